"""Values of a document that nobody has checked, read as what they should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOTHING: Mapping[str, Any] = {}


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def entries(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value where it is text, else none."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """The value where it is an integer of 64 bits, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def hashable(value: Any) -> Any:
    """Plain data as something that can be looked up: two are equal where the data are."""
    if isinstance(value, dict):
        return dict, frozenset((key, hashable(part)) for key, part in value.items())
    return (type(value), *map(hashable, value)) if isinstance(value, (list, tuple)) else value
