"""What could stand at a refused place: the documented example of a field, as a file would hold it."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

_OPEN_FIXES = ("of that form", "correct it", "write something", "write text", "a mapping of keys to values", "a list")
"""How a fix ends that says nothing concrete."""


def with_example(fix: str, example: str) -> str:
    """The fix with an example after it, where it needs one and there is one."""
    return f"{fix}, for example {example}" if example and fix.endswith(_OPEN_FIXES) else fix


def example_of(field: FieldInfo | None, below: int) -> str:
    """The example of a field or else its default, or with `below` 1 of one of its entries; empty where none is documented."""
    if field is None or below > 1:
        return ""
    values = list(field.examples or ([field.default] if isinstance(field.default, str) and field.default else ()))
    if values and below:
        entries = values[0].values() if isinstance(values[0], Mapping) else values[0] if isinstance(values[0], (list, tuple)) else ()
        values = list(entries)
    values = values or _in_annotation(field.annotation, below)
    return flow(values[0]) if values else ""


def example_named(fields: Mapping[str, FieldInfo], text: str) -> str:
    """The first of a section's fields that a message names and that has an example, as `key: value`."""
    found = []
    for name, field in fields.items():
        key = field.alias or name
        place = re.search(rf"(?<![\w.]){re.escape(key)}\b", text)
        if place is not None and (example := example_of(field, 0)):
            found.append((place.start(), f"{key}: {example}"))
    return min(found, default=(0, ""))[1]


def flow(value: Any) -> str:
    """Plain data in YAML's flow style."""
    match value:
        case Mapping():
            return f"{{{', '.join(f'{key}: {flow(part)}' for key, part in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(flow(part) for part in value)}]"
        case bool():
            return str(value).lower()
        case str() if re.fullmatch(r"[\d.]*", value):
            return f'"{value}"'
        case _:
            return str(value)


def _in_annotation(annotation: Any, below: int) -> list[Any]:
    """The examples that a type's own name brings: of an entry where the type is a list, and of a mapping's values."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        own = [example for part in arguments[1:] if isinstance(part, FieldInfo) for example in part.examples or ()]
        return own if own and not below else _in_annotation(arguments[0], below)
    if origin in (typing.Union, types.UnionType):
        return next((found for argument in arguments if (found := _in_annotation(argument, below))), [])
    if origin in (tuple, list):
        entries = _in_annotation(arguments[0], 0)
        return entries if below else [entries[:1]] if entries else []
    if origin is dict and below:
        return _in_annotation(arguments[1], 0)
    return []
