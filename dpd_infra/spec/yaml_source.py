"""YAML with positions, read as Pulumi reads it: every value knows its line and column, and hostile input ends in one clear report.

Pulumi parses with Go's yaml.v3: `yes`, `no`, `on` and `off` are text, a key stands once, `<<` merges. Text is limited in size, depth
and in what its anchors expand to, so that reading takes bounded time and memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from dpd_infra.spec.finding import Path

MAX_BYTES = 16 * 1024 * 1024
"""Larger files are refused: a stack file is some kilobytes."""

MAX_DEPTH = 100
"""Deeper nesting is refused: the resource's own schema is 25 levels deep."""

MAX_NODES = 1_000_000
"""What anchors may expand a document to."""

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlProblem(Exception):
    """Text that cannot be read, with the place where it went wrong. `line` and `column` are 1-based, 0 where there is none."""

    def __init__(self, what: str, *, line: int = 0, column: int = 0, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        self.column = column
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text, 1-based."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: plain data and where each part of it stands."""

    data: Any
    positions: dict[Path, Position] = field(repr=False)
    """Of each key in a mapping and each item of a list, by path from the document's root."""
    text: str = field(repr=False)
    file: str = ""

    def locate(self, path: Path) -> Position:
        """Where a path stands, or where its nearest ancestor does; (1, 1) for the root."""
        for length in range(len(path), -1, -1):
            position = self.positions.get(path[:length])
            if position is not None:
                return position
        return Position(1, 1)

    def source_line(self, line: int) -> str:
        """The text of a line, without its end; empty where there is none."""
        lines = self.text.splitlines()
        return lines[line - 1] if 0 < line <= len(lines) else ""


class _Loader(_BASE):
    """PyYAML's parser with yaml.v3's idea of what a plain scalar means."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), list(_first))


def load_document(text: str | bytes, file: str = "") -> Document:
    """Read a text that holds one document. An empty text is a document whose data is None.

    Raises `YamlProblem` for anything that is not one readable YAML document.
    """
    documents = list(load_documents(text, file))
    if len(documents) > 1:
        message = f"{len(documents)} documents where one is expected"
        raise YamlProblem(message, fix="keep one stack in a file")
    return documents[0] if documents else Document(None, {}, "", file)


def load_documents(text: str | bytes, file: str = "") -> Iterator[Document]:
    """Read every document of a text, in order. Raises `YamlProblem` at the first thing that cannot be read."""
    decoded = _decode(text)
    loader = _Loader(decoded)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield _Builder(decoded, file).document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "not YAML"
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlProblem(f"not YAML: {what}", line=line, column=column) from error
    except yaml.YAMLError as error:
        raise YamlProblem(f"not YAML: {error}".splitlines()[0]) from error
    except RecursionError as error:
        raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels") from error
    finally:
        loader.dispose()


def _decode(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        raise YamlProblem(f"larger than {MAX_BYTES // 1024**2} MiB", fix="split it, or name the files you mean")
    if isinstance(text, bytes):
        encoding = "utf-16" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        try:
            text = text.decode(encoding)
        except UnicodeDecodeError as error:
            before = text[: error.start].decode("utf-8", errors="replace")
            raise YamlProblem(
                f"not {encoding.removesuffix('-sig').upper()} text: byte {error.start} cannot be decoded",
                line=before.count("\n") + 1,
                fix="save the file as UTF-8",
            ) from error
    if (at := text.find("\x00")) >= 0:
        raise YamlProblem("a NUL character", line=text.count("\n", 0, at) + 1, fix="remove it: the file is binary or damaged")
    # Depth is limited before the parser sees the text: it recurses once a level, and a flow collection costs one character a level.
    depth = 0
    for match in re.finditer(r"[\[\]{}\n]", text):
        character = match.group()
        if character == "\n":
            continue
        depth = depth + 1 if character in "[{" else max(0, depth - 1)
        if depth > MAX_DEPTH * 10:
            raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", line=text.count("\n", 0, match.start()) + 1)
    return text


class _Builder:
    """Turns parsed nodes into plain data, keeping positions and counting what anchors expand to."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._positions: dict[Path, Position] = {}
        self._built = 0

    def document(self, node: yaml.Node) -> Document:
        self._positions[()] = _position(node)
        return Document(self._value(node, (), 0), self._positions, self._text, self._file)

    def _value(self, node: yaml.Node, path: Path, depth: int) -> Any:
        self._built += 1
        if self._built > MAX_NODES:
            raise YamlProblem(f"anchors expand to more than {MAX_NODES:,} values", line=_position(node).line)
        if depth > MAX_DEPTH:
            raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", line=_position(node).line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self._positions[(*path, index)] = _position(item)
                items.append(self._value(item, (*path, index), depth + 1))
            return items
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = _position(key_node)
            if key_node.tag == "tag:yaml.org,2002:merge":
                for part in reversed(value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]):
                    value = self._value(part, path, depth + 1)
                    if not isinstance(value, dict):
                        raise YamlProblem("`<<` merges mappings only", line=place.line, column=place.column)
                    merged.update(value)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlProblem("a key that is a list or a mapping", line=place.line, column=place.column)
            key = str(key_node.value)
            if key in result:
                raise YamlProblem(f"the key {key!r} stands twice", line=place.line, column=place.column, fix="keep one of the two")
            self._positions[(*path, key)] = place
            result[key] = self._value(value_node, (*path, key), depth + 1)
        return {**{key: value for key, value in merged.items() if key not in result}, **result} if merged else result


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _scalar(node: yaml.Node) -> Any:
    text = str(node.value)
    match node.tag:
        case "tag:yaml.org,2002:null":
            return None
        case "tag:yaml.org,2002:bool":
            return text.lower() == "true"
        case "tag:yaml.org,2002:int":
            return _integer(text, node)
        case "tag:yaml.org,2002:float":
            return _float(text)
        case _:
            return text


def _integer(text: str, node: yaml.Node) -> int | float:
    digits = text.replace("_", "").lower()
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits.removeprefix("+"))
    if len(digits) > 64:
        raise YamlProblem("a number of more than 64 digits", line=_position(node).line, column=_position(node).column)
    for prefix, base in (("0b", 2), ("0o", 8), ("0x", 16), ("0", 8)):
        if digits.startswith(prefix) and digits != "0":
            return sign * int(digits.removeprefix(prefix), base)
    return sign * int(digits)


def _float(text: str) -> float:
    lowered = text.lower()
    if lowered.endswith(".inf"):
        return -math.inf if lowered.startswith("-") else math.inf
    return math.nan if lowered == ".nan" else float(lowered)
