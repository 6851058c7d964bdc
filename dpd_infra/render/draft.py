"""A manifest in the making: every value is put in place together with its origin."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpd_infra.render.provenance import Origin, OriginKind, Provenance, leaves
from dpd_infra.spec.finding import Path

if TYPE_CHECKING:
    from dpd_infra.spec.base import Spec


class SpecReader:
    """Reads values of a spec and knows where in the user's file each stands or would stand."""

    def __init__(self, spec: Spec, prefix: Path, how: Mapping[tuple[str, ...], str] | None = None) -> None:
        """`how`: by attribute names, of numbers that stand for `auto`: what each was worked out from."""
        self._spec = spec
        self._prefix = prefix
        self._how = how or {}

    def read(self, *names: str) -> tuple[Any, Origin]:
        """The value behind attribute names, `read("routing", "threshold")`, and its origin."""
        from dpd_infra.spec.endpoint.defaults import default_source  # noqa: PLC0415 - rules on raw manifests need no spec

        value: Any = self._spec
        written, setting, source = self._prefix, self._prefix, ""
        is_written = True
        for name in names:
            field = type(value).model_fields[name]
            alias = field.alias or name
            setting = (*setting, alias)
            is_written = is_written and name in value.model_fields_set
            if is_written:
                written = setting
            source = default_source(field)
            value = getattr(value, name)
        if names in self._how:
            # The user wrote `auto` there, and nobody the number.
            return value, Origin(OriginKind.DEFAULT, written, setting, self._how[names])
        kind = OriginKind.FILE if is_written else OriginKind.DEFAULT
        return value, Origin(kind, written, setting, "" if is_written else source)

    def derived(self, source: str, *names: str) -> Origin:
        """The origin of a value that was worked out, and where it could be set."""
        _, origin = self.read(*names)
        return Origin(OriginKind.DEFAULT, origin.path, origin.setting, source)


class Draft:
    """A document that grows value by value; keys keep the order in which they were put."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}
        self.provenance = Provenance()

    def put(self, path: Path, value: Any, origin: Origin, *, same_shape: bool = False) -> None:
        """Put a value in place. With `same_shape` its parts stand under the same keys in the user's file, so their origins go there."""
        plain = plain_data(value)
        place: Any = self.document
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = plain
        for steps, _ in leaves(plain):
            self.provenance.origins[(*path, *steps)] = origin.below(steps) if same_shape else origin

    def append(self, path: Path, value: Any, origin: Origin, *, same_shape: bool = False) -> None:
        """Put a value at the end of a list, which begins to be where it is not there yet."""
        place: Any = self.document
        for step in path[:-1]:
            place = place.setdefault(step, {})
        items = place.setdefault(path[-1], [])
        plain = plain_data(value)
        items.append(plain)
        for steps, _ in leaves(plain):
            self.provenance.origins[(*path, len(items) - 1, *steps)] = origin.below(steps) if same_shape else origin


def plain_data(value: Any) -> Any:
    """A copy made of dicts, lists and scalars; of a model only what was set."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    if isinstance(value, dict):
        return {key: plain_data(item) for key, item in value.items()}
    return str(value) if isinstance(value, StrEnum) else copy.deepcopy(value)
