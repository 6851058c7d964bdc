"""The `pulumi.com/waitFor` annotation, evaluated as the Kubernetes provider does: JSONPath or condition expressions that must all hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.world.rules import api_server as rules

WAIT_FOR = "pulumi.com/waitFor"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"

DEFAULT_TIMEOUT = 600.0
"""Seconds that the provider waits for a custom resource when nothing else is said (pulumi-kubernetes await.go)."""

_ANY_OF = re.compile(r"(.+)\[\?\((@==(?:'[^']*'|\"[^\"]*\")(?:\|\|@==(?:'[^']*'|\"[^\"]*\"))*)\)\]")
"""A filter that selects children with one of some values, the one kind of filter that is understood here."""
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\['([^']+)'\]")


@dataclass(frozen=True)
class Wait:
    """One expression of the annotation."""

    text: str
    path: tuple[str | int, ...] = ()
    value: str | None = None
    """What the path must equal; None where any value will do."""
    any_of: frozenset[str] = frozenset()
    """What one of the path's children must equal."""
    condition: str = ""
    """The condition type, for `condition=…`; its status must be `value`."""

    def holds(self, item: Mapping[str, Any]) -> bool:
        """Whether the object satisfies the expression."""
        if self.condition:
            conditions = (item.get("status") or {}).get("conditions") or []
            return any(entry.get("type") == self.condition and str(entry.get("status")).lower() == self.value for entry in conditions)
        found = follow(item, self.path)
        if self.any_of:
            children = found.values() if isinstance(found, Mapping) else found if isinstance(found, list) else ()
            return not self.any_of.isdisjoint(child for child in children if isinstance(child, str))
        return found is not None and (self.value is None or str(found) == self.value)


def follow(item: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path, or None."""
    for step in path:
        if isinstance(step, int):
            item = item[step] if isinstance(item, list) and step < len(item) else None
        else:
            item = item.get(step) if isinstance(item, Mapping) else None
    return item


def parse(annotation: str) -> list[Wait]:
    """Read the annotation: one expression, or a JSON array of them. Raises `SimulatedError` where the provider would."""
    text = annotation.strip()
    expressions = json.loads(text) if text.startswith("[") else [text]
    return [_parse_one(expression) for expression in expressions]


def _parse_one(text: str) -> Wait:
    if text.startswith("condition="):
        kind, _, status = text.removeprefix("condition=").partition("=")
        return Wait(text, condition=kind, value=(status or "True").lower())
    match = re.fullmatch(r"jsonpath=\{([^{}]+)\}(?:=(.*))?", text)
    if match is None:
        raise SimulatedError(rules.WAIT_PREFIX(text=text))
    expression, value = match.groups()
    expression = expression.removeprefix("$")
    any_of: frozenset[str] = frozenset()
    if value is None and (filtered := _ANY_OF.fullmatch(expression)):
        expression = filtered[1]
        any_of = frozenset(re.findall(r"==['\"]([^'\"]*)['\"]", filtered[2]))
    steps = list(_STEP.finditer(expression))
    if "".join(step.group(0) for step in steps) != expression or not steps:
        raise SimulatedError(rules.WAIT_PATH(expression=expression))
    path = tuple(int(step.group(2)) if step.group(2) else step.group(1) or step.group(3) for step in steps)
    return Wait(text, path, value.strip("'\"") if value is not None else None, any_of)


def timeout_of(item: Mapping[str, Any], custom_timeout: float) -> float:
    """Seconds to wait: the resource option, else the annotation, else ten minutes."""
    annotated = annotations_of(item).get(TIMEOUT_SECONDS)
    return custom_timeout or (float(annotated) if annotated else DEFAULT_TIMEOUT)


def annotations_of(item: Mapping[str, Any]) -> Mapping[str, str]:
    """The object's annotations."""
    return (item.get("metadata") or {}).get("annotations") or {}
