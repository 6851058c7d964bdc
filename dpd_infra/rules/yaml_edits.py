"""Ways of changing one place of a YAML text, each touching as little as it can; whoever uses them reads the result back."""

from __future__ import annotations

import copy
import difflib
import io
import json
import re
from dataclasses import replace
from typing import Any

from dpd_infra.spec.finding import Patch, Path
from dpd_infra.spec.yaml_scalar import plain_value
from dpd_infra.spec.yaml_source import Document, Place

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./ @+-]*(?<! )")
_LINE_END = re.compile("\r\n|[\n\r]")


class CannotPatch(Exception):
    """A patch that cannot be written without touching more than it names."""


def splice(document: Document, patch: Patch) -> tuple[str, Any]:
    """Replace the text of one scalar by that of another."""
    span = document.span(patch.path)
    before = _at(document.data, patch.path)
    if patch.remove or span is None or isinstance(before, (dict, list)) or isinstance(patch.value, (dict, list)):
        raise CannotPatch
    start, end = span
    old = document.text[start:end]
    value = patch.value
    if isinstance(value, str) and before is not None and not isinstance(before, str) and _as_text(before) == value:
        # A number that is meant as text keeps its spelling: 1.30 becomes "1.30".
        value = old
        new = json.dumps(old, ensure_ascii=False)
    else:
        new = scalar_text(value, quote=old[:1] if old[:1] in {'"', "'"} and isinstance(value, str) else "")
    new = f"{'' if old or document.text[start - 1 : start].isspace() else ' '}{new}"
    new += old[len(old.rstrip("\r\n")) :]
    return document.text[:start] + new + document.text[end:], _changed(document.data, Patch(patch.path, value))


def cut_lines(document: Document, patch: Patch) -> tuple[str, Any]:
    """Take out the lines of a key or an item that has them to itself; comments above and below stay."""
    place = _place(document.root, patch.path)
    if not patch.remove or place is None or place.start < 0:
        raise CannotPatch
    lines = _LINE_END.split(document.text)
    ends = [match.end() for match in _LINE_END.finditer(document.text)]
    starts = [0, *ends]
    head = lines[place.line][: place.column]
    if head.strip() not in ({"-"} if isinstance(patch.path[-1], int) else {""}):
        raise CannotPatch
    last = _last(document.text, place)
    last_line = next(index for index in range(len(starts) - 1, -1, -1) if starts[index] <= last)
    rest = document.text[last : starts[last_line] + len(lines[last_line])]
    if rest.strip() and not rest.strip().startswith("#"):
        raise CannotPatch
    after = starts[last_line + 1] if last_line + 1 < len(starts) else len(document.text)
    return document.text[: starts[place.line]] + document.text[after:], _changed(document.data, patch)


def flow(document: Document, patch: Patch) -> tuple[str, Any]:
    """Add to a list or mapping in brackets, or take out of one."""
    text, parent, last = document.text, _place(document.root, patch.path[:-1]), patch.path[-1]
    if parent is None or parent.start < 0 or text[parent.start : parent.start + 1] not in {"{", "["}:
        raise CannotPatch
    parts = parent.parts.values() if isinstance(parent.parts, dict) else parent.parts or []
    beside = [(_offset(text, part), part.end) for part in parts]
    own = _place(parent, (last,))
    if not patch.remove and own is None:
        inner = text[parent.start + 1 : parent.end - 1].rstrip()
        at = parent.start + 1 + len(inner)
        entry = flow_text(patch.value) if isinstance(last, int) else f"{scalar_text(last)}: {flow_text(patch.value)}"
        between = " " if inner.endswith(",") else ", " if inner else ""
        return text[:at] + between + entry + text[at:], _changed(document.data, patch)
    if not patch.remove or own is None or own.start < 0:
        raise CannotPatch
    begin, end = _offset(text, own), own.end
    following = [start for start, _ in beside if start > begin]
    before = [stop for start, stop in beside if start < begin]
    begin, end = (begin, min(following)) if following else (max(before), end) if before else (begin, end)
    return text[:begin] + text[end:], _changed(document.data, patch)


def overwrite(document: Document, patch: Patch) -> tuple[str, Any]:
    """Replace a whole value by another, written on one line."""
    place = _place(document.root, patch.path)
    if patch.remove or place is None or place.start < 0:
        raise CannotPatch
    text = document.text
    start, end = place.start, max(place.start, _last(text, place))
    between = "" if end > start or text[start - 1 : start].isspace() else " "
    return text[:start] + between + flow_text(patch.value) + text[end:], _changed(document.data, patch)


def _offset(text: str, place: Place) -> int:
    """Where a key or an item begins in the text."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    return starts[place.line] + place.column


def round_trip(document: Document, patch: Patch) -> tuple[str, Any]:
    """Change the document as ruamel.yaml holds it, and carry over only the lines that the change itself altered."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - loaded for `--fix` alone
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415
    from ruamel.yaml.util import load_yaml_guess_indent  # noqa: PLC0415

    root = document.root
    body = document.text[root.start : root.end]
    if root.column != 0 or root.start < 0:
        raise CannotPatch
    newline = "\r\n" if "\r\n" in body else "\n"
    body = body.replace("\r\n", "\n")
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    try:
        _, indent, sequence = load_yaml_guess_indent(body)
        yaml.indent(mapping=2 if indent is None else indent - (sequence or 0), sequence=indent or 2, offset=sequence or 0)
        data = yaml.load(body)
        plain = _dump(yaml, data)
        _set(data, replace(patch, value=_quoted(patch.value)))
        changed = _dump(yaml, data)
    except (YAMLError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise CannotPatch from error
    merged = carried_over(body, plain, changed).replace("\n", newline)
    return document.text[: root.start] + merged + document.text[root.end :], _changed(document.data, patch)


def carried_over(own: str, before: str, after: str) -> str:
    """What `after` changed of `before`, written into `own`, which is `before` in another layout.

    Raises `CannotPatch` where the layouts differ in the lines that change.
    """
    mine, old, new = (text.splitlines(keepends=True) for text in (own, before, after))
    matcher = difflib.SequenceMatcher(None, old, mine, autojunk=False)
    matching = {i + step: j + step for i, j, size in matcher.get_matching_blocks() for step in range(size)}
    result = list(mine)
    for tag, i1, i2, j1, j2 in reversed(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        if i1 == i2:
            above, below = matching.get(i1 - 1), matching.get(i1)
            at = above + 1 if above is not None else below if below is not None else len(mine) if i1 == len(old) else None
            if at is None:
                raise CannotPatch
            result[at:at] = new[j1:j2]
        else:
            places = [matching.get(index) for index in range(i1, i2)]
            first = places[0]
            if first is None or places != list(range(first, first + len(places))):
                raise CannotPatch
            result[first : first + len(places)] = new[j1:j2]
    return "".join(result)


def scalar_text(value: Any, *, quote: str = "") -> str:
    """A scalar as YAML on one line, plain where every reader takes it for what it is."""
    if not isinstance(value, str):
        return json.dumps(value)
    if quote == "'" and "\n" not in value and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    is_plain = _PLAIN.fullmatch(value) and value == plain_value(value) == plain_value(value, kubernetes=True)
    return value if is_plain and not quote else json.dumps(value, ensure_ascii=False)


def flow_text(value: Any) -> str:
    """Plain data as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar_text(key)}: {flow_text(part)}" for key, part in value.items()) + "}"
    return "[" + ", ".join(flow_text(part) for part in value) + "]" if isinstance(value, list) else scalar_text(value)


def _quoted(value: Any) -> Any:
    """The same data, its texts held so that ruamel.yaml writes them as `scalar_text` would."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # noqa: PLC0415

    if isinstance(value, dict):
        return {key: _quoted(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_quoted(part) for part in value]
    return DoubleQuotedScalarString(value) if isinstance(value, str) and scalar_text(value) != value else value


def _dump(yaml: Any, data: Any) -> str:
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _at(data: Any, path: Path) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError) as error:
            raise CannotPatch from error
    return data


def _place(place: Place, path: Path) -> Place | None:
    for step in path:
        parts: Any = place.parts
        try:
            place = parts[step]
        except (KeyError, IndexError, TypeError):
            return None
    return place


def _last(text: str, place: Place) -> int:
    """Where the text of a value ends, without the blank lines and comments that follow a block."""
    inner = list(place.parts.values()) if isinstance(place.parts, dict) else place.parts or []
    if not inner or text[place.start : place.start + 1] in {"{", "["}:
        return place.start + len(text[place.start : place.end].rstrip())
    return max(_last(text, part) for part in inner if part.start >= 0)


def _changed(data: Any, patch: Patch) -> Any:
    """A copy of plain data with a patch in it. Raises `CannotPatch`."""
    changed = copy.deepcopy(data)
    try:
        _set(changed, patch)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise CannotPatch from error
    return changed


def _set(data: Any, patch: Patch) -> None:
    """Set or remove a place; what is missing on the way is made, and a list position one past the end appends."""
    *way, last = patch.path
    key: Any = last
    for index, step in enumerate(way):
        if isinstance(data, dict) and data.get(step) is None and not patch.remove:
            data[step] = [] if isinstance(patch.path[index + 1], int) else {}
        data = data[step]
    if patch.remove:
        del data[key]
    elif isinstance(data, list) and last == len(data):
        data.append(copy.deepcopy(patch.value))
    elif isinstance(data, (dict, list)):
        data[key] = copy.deepcopy(patch.value)
    else:
        raise TypeError
