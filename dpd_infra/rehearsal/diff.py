"""How the simulated providers compare the inputs of two deployments: property by property, arrays by position unless declared unordered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dpd_infra.rehearsal.wire import Asset, Unknown
from dpd_infra.rehearsal.workspace import STAND_IN

_PLAIN_KEY = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$]*$")
_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')

DEFAULTS_KEY = "__defaults"
"""Input that names the properties a provider filled in by itself; no part of the comparison."""


class Change(StrEnum):
    """What happened to one property."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True)
class Difference:
    """Every changed property path, and which of them force a replacement."""

    changes: Mapping[str, Change] = field(default_factory=dict)
    replaces: frozenset[str] = frozenset()

    @property
    def top_level(self) -> list[str]:
        """The changed top-level properties, sorted."""
        return sorted({re.split(r"[.\[]", path, maxsplit=1)[0] for path in self.changes})


def compare(old: Mapping[str, Any], new: Mapping[str, Any], *, replace_on: Iterable[str] = (), unordered: Iterable[str] = ()) -> Difference:
    """Compare plain inputs (secrets opened).

    `replace_on` and `unordered` are dotted property paths without indices, such as `vpcConfig.subnetIds`: a change at or below one of
    `replace_on` forces a replacement; an array in `unordered` only counts as changed when its elements differ as a multiset.
    """
    loose = frozenset(unordered)
    forced = tuple(replace_on)
    changes = dict(_walk(old, new, "", loose))
    replaces = frozenset(path for path in changes if any(_at_or_below(_plain(path), root) for root in forced))
    return Difference(changes, replaces)


def _plain(path: str) -> str:
    return _INDEX.sub("", path)


def _at_or_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}.")


def _walk(old: Any, new: Any, path: str, unordered: frozenset[str]) -> Iterator[tuple[str, Change]]:
    if isinstance(old, str) and old == STAND_IN:
        return  # an exported state's encrypted value: what it was, nobody here can say
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new} - {DEFAULTS_KEY}):
            yield from _walk_member(old.get(key), new.get(key), _member(path, key), unordered)
    elif isinstance(old, list) and isinstance(new, list):
        if _plain(path) in unordered and _multiset(old) == _multiset(new):
            return
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            yield from _walk_member(before, after, f"{path}[{index}]", unordered)
    elif isinstance(new, Unknown) or isinstance(old, Unknown) or old != new:
        yield path, Change.UPDATE


def _walk_member(old: Any, new: Any, path: str, unordered: frozenset[str]) -> Iterator[tuple[str, Change]]:
    # A null and an absent property are the same to a provider.
    if old is None and new is None:
        return
    if old is None:
        yield path, Change.ADD
    elif new is None:
        yield path, Change.DELETE
    else:
        yield from _walk(old, new, path, unordered)


def _member(path: str, key: str) -> str:
    if not _PLAIN_KEY.match(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def _multiset(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True, default=_stable) for item in items)


def _stable(value: Any) -> str:
    return value.hash if isinstance(value, Asset) else repr(value)
