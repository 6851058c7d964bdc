"""The outputs of a simulated resource: what was given, what the service adds, what is not known yet and what has drifted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.diff import DEFAULTS_KEY
from dpd_infra.rehearsal.simulation import ResourceType
from dpd_infra.rehearsal.wire import UNKNOWN, conceal, overlay, reveal


def outputs(given: Mapping[str, Any], computed: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, with what the service computed laid over it."""
    merged = overlay(given, computed)
    merged.pop(DEFAULTS_KEY, None)
    return merged


def with_unknowns(given: Mapping[str, Any], kind: ResourceType) -> dict[str, Any]:
    """What a preview of a create can say."""
    merged = {key: value for key, value in given.items() if key != DEFAULTS_KEY}
    for path in kind.unknown_inside:
        merged = overlay(merged, _nest(path.split("."), UNKNOWN))
    return merged


def keep_inside(merged: dict[str, Any], old: Mapping[str, Any], kind: ResourceType) -> dict[str, Any]:
    """Carry over what the service once added inside an input."""
    for path in kind.unknown_inside:
        value: Any = old
        for key in path.split("."):
            value = reveal(value).get(key) if isinstance(reveal(value), Mapping) else None
        if value is not None:
            merged = overlay(merged, _nest(path.split("."), value))
    return merged


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    return {keys[0]: value if len(keys) == 1 else _nest(keys[1:], value)}


def live(known: Any, real: Any) -> Any:
    """What the engine knows, replaced where the account's values differ. Nothing is added: a provider adopts no input that was not given.

    Secrets compare by their digest, so they stay as they are.
    """
    if isinstance(known, Mapping) and isinstance(real, Mapping):
        return {key: live(value, real[key]) if key in real else value for key, value in known.items()}
    return known if conceal(known) == real else real
