"""The last layer of a rendered manifest: the endpoint's `overrides`, merged as a JSON merge patch (RFC 7386).

One list is not replaced whole: `spec.worker.environmentVariables` merges by name, as the API server keeps it (a list-map).
An entry with `value: null` takes the variable away.
"""

from __future__ import annotations

import copy
from typing import Any

from dpd_infra.render.provenance import Origin, OriginKind, Provenance, leaves
from dpd_infra.spec.finding import Path

NAMED_LISTS: frozenset[Path] = frozenset({("spec", "worker", "environmentVariables")})
"""Lists that merge by their entries' `name`."""


def merge(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """A new document with the overrides merged in; neither argument is changed."""
    return _merge(document, overrides, ())


def _merge(target: Any, patch: Any, path: Path) -> Any:
    if isinstance(patch, dict):
        result = dict(target) if isinstance(target, dict) else {}
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = _merge(result.get(key), value, (*path, key))
        return result
    if path in NAMED_LISTS and isinstance(patch, list):
        return _merge_named(target if isinstance(target, list) else [], patch)
    return copy.deepcopy(patch)


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, dict) else None


def _merge_named(target: list[Any], patch: list[Any]) -> list[Any]:
    result = list(target)
    for entry in patch:
        name = _name(entry)
        position = next((index for index, old in enumerate(result) if name is not None and _name(old) == name), None)
        removes = isinstance(entry, dict) and entry.get("value", ...) is None
        if position is None:
            result.extend([] if removes else [copy.deepcopy(entry)])
        elif removes:
            del result[position]
        else:
            result[position] = copy.deepcopy(entry)
    return result


def merge_with_provenance(
    document: dict[str, Any], provenance: Provenance, overrides: dict[str, Any], overrides_path: Path
) -> tuple[dict[str, Any], Provenance]:
    """The merged document, and the origin of each of its leaves: what an override brought points into the overrides."""
    merged = merge(document, overrides)
    moved = _moved(document, merged)
    origins: dict[Path, Origin] = {}
    for leaf, _ in leaves(merged):
        written = _place_in_overrides(overrides, leaf, merged)
        if written is not None:
            place = (*overrides_path, *written)
            origins[leaf] = Origin(OriginKind.OVERRIDE, place, place)
        else:
            before = provenance.origins.get(moved.get(leaf[:4], leaf[:4]) + leaf[4:])
            # An object that lost its last key to an override is a leaf that the override made.
            origins[leaf] = before or Origin(OriginKind.OVERRIDE, overrides_path, overrides_path)
    return merged, Provenance(origins)


def _moved(document: dict[str, Any], merged: dict[str, Any]) -> dict[Path, Path]:
    """Where the entries of a named list stood before the merge."""
    places: dict[Path, Path] = {}
    for path in NAMED_LISTS:
        before = {_name(entry): index for index, entry in enumerate(_at(document, path) or [])}
        for index, entry in enumerate(_at(merged, path) or []):
            if _name(entry) in before:
                places[(*path, index)] = (*path, before[_name(entry)])
    return places


def _at(document: Any, path: Path) -> list[Any] | None:
    for step in path:
        document = document.get(step) if isinstance(document, dict) else None
    return document if isinstance(document, list) else None


def _place_in_overrides(overrides: Any, leaf: Path, merged: dict[str, Any]) -> Path | None:
    """Where in the overrides a leaf of the merged document was written; None where it was not."""
    written: Path = ()
    patch: Any = overrides
    for depth, step in enumerate(leaf):
        here = leaf[:depth]
        if isinstance(patch, dict):
            if step not in patch:
                return None
            written, patch = (*written, step), patch[step]
        elif isinstance(patch, list) and here in NAMED_LISTS:
            name = _name((_at(merged, here) or [])[int(step)])
            position = next((index for index in range(len(patch) - 1, -1, -1) if _name(patch[index]) == name), None)
            if position is None:
                return None
            written, patch = (*written, position), patch[position]
        elif isinstance(patch, list) and isinstance(step, int) and step < len(patch):
            written, patch = (*written, step), patch[step]
        else:
            return written
    return written
