"""The overrides that turn one manifest into another, and what still differs where there are none."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from dpd_infra.render.overrides import NAMED_LISTS
from dpd_infra.spec.finding import Path, pointer


def merge_patch(base: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Overrides that turn `base` into `wanted`: a JSON merge patch whose named lists go by name, as `overrides` are merged."""
    return _patch(base, wanted, ())


def _patch(base: dict[str, Any], wanted: dict[str, Any], path: Path) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in base if key not in wanted}
    for key, value in wanted.items():
        here = (*path, key)
        before = base.get(key)
        if key in base and same(before, value):
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            patch[key] = _patch(before, value, here)
        elif here in NAMED_LISTS and isinstance(value, list):
            patch[key] = _named(before if isinstance(before, list) else [], value)
        else:
            patch[key] = copy.deepcopy(value)
    return patch


def _named(base: list[Any], wanted: list[Any]) -> list[Any]:
    """Entries that are kept in place need no word; from the first that is not on, everything is taken out and put back in order."""
    kept = 0
    while kept < min(len(base), len(wanted)) and _name(base[kept]) == _name(wanted[kept]) is not None:
        kept += 1
    changed = [entry for before, entry in zip(base[:kept], wanted[:kept], strict=True) if not same(before, entry)]
    removed = [{"name": _name(entry), "value": None} for entry in base[kept:]]
    return [*copy.deepcopy(changed), *removed, *copy.deepcopy(wanted[kept:])]


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, dict) else None


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from true and from 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(*pair) for pair in zip(left, right, strict=True))
    return type(left) is type(right) and left == right


def differences(wanted: Any, got: Any, path: Path = ()) -> Iterator[str]:
    """Where two manifests differ, one sentence a place."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in [*wanted, *(key for key in got if key not in wanted)]:
            here = (*path, key)
            if key not in got:
                yield f"{pointer(here)} is lost"
            elif key not in wanted:
                yield f"{pointer(here)} is added: {_short(got[key])}"
            else:
                yield from differences(wanted[key], got[key], here)
    elif not same(wanted, got):
        yield f"{pointer(path)} becomes {_short(got)}, it was {_short(wanted)}"


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:80]}…"
