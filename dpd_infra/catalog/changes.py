"""What changing a field of a stack file does: the facts that tools/make_change_docs.py derived, by field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

FACTS = Path(__file__).with_name("changes.json")


class Outcome(StrEnum):
    """What an `up` does for a changed field, the gravest first."""

    REFUSED = "refused"
    """A rule stops the change before anything is touched."""
    REPLACE = "replace"
    """At least one resource is deleted and made anew."""
    UPDATE = "update"
    """Resources are changed in place, made or deleted beside those that stay."""
    NOTHING = "nothing"
    """No resource changes."""


_GRAVITY = ("replace", "delete", "create", "update", "options")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field and what a change of it does."""

    field: str
    """`platform.instanceGroups.*.count`; `*` is an entry's name, `[]` an entry of a list."""
    outcome: Outcome
    resources: Mapping[str, str]
    """What happens to the resources, by the kinds' names: `update`, `replace`, `create`, `delete` or `options`."""
    rules: tuple[str, ...]
    """The rules on a change that speak of it, errors first."""

    def by_operation(self) -> dict[str, list[str]]:
        """The kinds of resources by what happens to them, the gravest first."""
        groups: dict[str, list[str]] = {}
        for kind, operation in sorted(self.resources.items(), key=lambda item: (_GRAVITY.index(item[1]), item[0])):
            groups.setdefault(operation, []).append(kind)
        return groups


@cache
def field_changes() -> Mapping[str, FieldChange]:
    """Every field of a stack file by its path."""
    data = json.loads(FACTS.read_text(encoding="utf-8"))
    return {
        name: FieldChange(name, Outcome(entry["outcome"]), entry.get("resources", {}), tuple(entry.get("rules", ())))
        for name, entry in data.items()
    }


def change_of(path: Sequence[str | int]) -> FieldChange | None:
    """The entry of a place in a stack file, `("platform", "instanceGroups", "gpu", "count")`: of the field that it is or lies in.

    None for a place above every field.
    """
    known = field_changes()
    for length in range(len(path), 0, -1):
        steps = path[:length]
        found = [name for name in known if _matches(name.replace("[]", ".[]").split("."), steps)]
        if found:
            return known[min(found, key=lambda name: name.count("*"))]
    return None


def _matches(pattern: Sequence[str], steps: Sequence[str | int]) -> bool:
    return len(pattern) == len(steps) and all(
        part in {"*", step} or (part == "[]" and isinstance(step, int)) for part, step in zip(pattern, steps, strict=True)
    )
