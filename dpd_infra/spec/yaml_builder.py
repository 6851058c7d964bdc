"""From a YAML parser's events to plain data with places: no tree of nodes before it, so depth is known before memory is spent."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import yaml

from dpd_infra.spec.yaml_scalar import key_text, plain_value

MAX_DEPTH = 100
"""Deeper nesting is refused: the resource's own schema is 25 levels deep."""

MAX_VALUES = 100_000
"""What one document may hold, its anchors expanded. An endpoint has some hundreds."""

_TAGS = "tag:yaml.org,2002:"
_SCALAR, _ALIAS, _MAPPING, _MAPPING_END, _SEQUENCE_END = (
    yaml.ScalarEvent,
    yaml.AliasEvent,
    yaml.MappingStartEvent,
    yaml.MappingEndEvent,
    yaml.SequenceEndEvent,
)

_new: Any = tuple.__new__
"""Makes a named tuple at half the cost of calling its class: there are two a value."""


class YamlProblem(Exception):
    """Text that cannot be read, with the place where it went wrong. `line` and `column` are 1-based, 0 where there is none."""

    def __init__(self, what: str, *, line: int = 0, column: int = 0, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        self.column = column
        self.fix = fix
        self.file = ""
        """The file, as its reader was told."""


class Place(NamedTuple):
    """Where a key or a list item stands, and the places of the parts of its value."""

    line: int
    """0-based, as the parser counts."""
    column: int
    parts: dict[str, Place] | list[Place] | None
    start: int
    """Where its value begins in the text, characters; -1 for an alias, whose value stands elsewhere."""
    end: int


class _Node(NamedTuple):
    """A value that was built, with what it counts for."""

    data: Any
    parts: dict[str, Place] | list[Place] | None
    values: int
    height: int
    start: int
    end: int


class Builder:
    """Turns the events of one text into its documents. `parser` is one of PyYAML's; `kubernetes` says whose words are followed."""

    def __init__(self, parser: Any, *, kubernetes: bool) -> None:
        self._next = parser.get_event
        self._kubernetes = kubernetes
        self._anchors: dict[str, _Node | None] = {}
        self._values = 0

    def documents(self, most: int) -> Iterator[tuple[Any, Place]]:
        """Each document's data with the place of its root. Raises `YamlProblem` where one cannot be built and after `most` of them."""
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                if most == 0:
                    _stop("more documents than one file may hold", event, "split the file")
                most -= 1
                self._anchors = {}
                self._values = 0
                first = self._next()
                node = self._node(first, 0)
                mark = first.start_mark
                yield node.data, Place(mark.line, mark.column, node.parts, node.start, node.end)

    def _node(self, event: Any, depth: int) -> _Node:
        self._values += 1
        if self._values > MAX_VALUES:
            _stop(f"a document of more than {MAX_VALUES:,} values", event, "split it")
        kind = type(event)
        if kind is _ALIAS:
            return self._alias(event, depth)
        if depth > MAX_DEPTH:
            _stop(f"nested deeper than {MAX_DEPTH} levels", event)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if kind is _SCALAR:
            data = event.value
            if event.tag is not None and event.tag != "!":
                data = _tagged(event, kubernetes=self._kubernetes)
            elif event.implicit[0]:
                data = plain_value(data, kubernetes=self._kubernetes)
            node = _new(_Node, (data, None, 1, 0, event.start_mark.index, event.end_mark.index))
        elif kind is _MAPPING:
            _check_tag(event, "map")
            node = self._mapping(event, depth)
        else:
            _check_tag(event, "seq")
            node = self._sequence(event, depth)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: Any, depth: int) -> _Node:
        if event.anchor not in self._anchors:
            _stop(f"the alias *{event.anchor} stands for nothing: there is no &{event.anchor} before it", event)
        node = self._anchors[event.anchor]
        if node is None:
            _stop(f"the anchor &{event.anchor} contains itself", event)
        self._values += node.values
        if self._values > MAX_VALUES:
            _stop(f"anchors expand to more than {MAX_VALUES:,} values", event)
        if depth + node.height > MAX_DEPTH:
            _stop(f"nested deeper than {MAX_DEPTH} levels", event)
        return node._replace(data=_copy(node.data), start=-1, end=-1)

    def _sequence(self, event: Any, depth: int) -> _Node:
        data: list[Any] = []
        parts: list[Place] = []
        before, height = self._values, 0
        while type(item := self._next()) is not _SEQUENCE_END:
            node = self._node(item, depth + 1)
            mark = item.start_mark
            data.append(node.data)
            parts.append(_new(Place, (mark.line, mark.column, node.parts, node.start, node.end)))
            if node.height >= height:
                height = node.height + 1
        return _Node(data, parts, self._values - before + 1, height, event.start_mark.index, item.end_mark.index)

    def _mapping(self, event: Any, depth: int) -> _Node:
        data: dict[str, Any] = {}
        parts: dict[str, Place] = {}
        merged: list[_Node] = []
        before, height = self._values, 0
        while type(head := self._next()) is not _MAPPING_END:
            if type(head) is not _SCALAR:
                _stop("a key that is a list, a mapping or an alias", head, "write the key out as text")
            key = head.value
            if head.implicit[0] and key == "<<":
                merged += self._merged(self._next(), depth)
                continue
            if self._kubernetes and head.implicit[0]:
                key = key_text(key)
            if head.anchor is not None:
                self._anchors[head.anchor] = _Node(head.value, None, 1, 0, head.start_mark.index, head.end_mark.index)
            mark = head.start_mark
            if key in data:
                _stop(f"the key {key!r} stands twice, first in line {parts[key].line + 1}", head, "keep one of the two")
            node = self._node(self._next(), depth + 1)
            data[key] = node.data
            parts[key] = _new(Place, (mark.line, mark.column, node.parts, node.start, node.end))
            if node.height >= height:
                height = node.height + 1
        for node in merged:
            height = max(height, node.height)
            own = node.parts if isinstance(node.parts, dict) else {}
            for key, value in node.data.items():
                if key not in data:
                    data[key] = value
                    parts[key] = own[key]._replace(start=-1, end=-1)
        return _Node(data, parts, self._values - before + 1, height, event.start_mark.index, head.end_mark.index)

    def _merged(self, event: Any, depth: int) -> list[_Node]:
        """The mappings that a `<<` merges: the first of a list wins."""
        if isinstance(event, yaml.SequenceStartEvent):
            nodes = []
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                nodes += self._merged(item, depth)
                if isinstance(item, yaml.SequenceStartEvent):
                    _stop("`<<` merges mappings only", item)
            return nodes
        node = self._node(event, depth)
        if not isinstance(node.data, dict):
            _stop("`<<` merges mappings only", event)
        return [node]


def _stop(what: str, event: Any, fix: str = "") -> NoReturn:
    mark = event.start_mark
    raise YamlProblem(what, line=mark.line + 1, column=mark.column + 1, fix=fix)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(part) for key, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, list) else value


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in {None, "!", _TAGS + kind}:
        _stop(f"the tag {_shown_tag(event.tag)} means nothing here", event, "leave it out")


def _shown_tag(tag: str) -> str:
    return tag.replace(_TAGS, "!!", 1)


def _tagged(event: Any, *, kubernetes: bool) -> Any:
    """A scalar with a tag, as Go's readers take it: the text must be one that the tag fits."""
    text, tag = event.value, event.tag.removeprefix(_TAGS)
    value = plain_value(text, kubernetes=kubernetes)
    match tag:
        case "str" | "timestamp":
            return text
        case "binary":
            try:
                return base64.b64decode(re.sub(r"\s", "", text), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                _stop("!!binary with what is not base64 of text", event)
        case "int" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "float" if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        case "bool" if isinstance(value, bool):
            return value
        case "null" if value is None:
            return None
        case "int" | "float" | "bool" | "null":
            _stop(f"{text!r} is no !!{tag}", event)
        case _:
            _stop(f"the tag {_shown_tag(event.tag)} means nothing here", event, "leave it out")
