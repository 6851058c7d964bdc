"""The InferenceEndpointConfig CRD as facts: what the API server checks of each field, without the CRD's prose.

Nothing is read before it is asked for: the facts are one JSON file for the operator release that is held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dpd_infra.catalog.crd.releases import HELD, LATER_FIELDS, Steps, field_release, is_before, steps_of

API_GROUP = "inference.sagemaker.aws.amazon.com"
API_VERSION = f"{API_GROUP}/v1"
OF_V1 = f"apiVersion: {API_VERSION}"
"""What is to be written for a field that v1alpha1 does not have."""
KIND = "InferenceEndpointConfig"


@dataclass(frozen=True, slots=True)
class FieldFact:
    """What is known of one field."""

    steps: Steps
    """Its place: property names, and `[]` for the entries of a list."""
    schema: dict[str, Any]
    """Its structural schema, references at its top resolved: type, default, minimum, maximum, pattern, enum, format, …"""
    required: bool
    """Whether the object it stands in must have it."""

    @property
    def path(self) -> str:
        """`spec.kubernetes.volumes[].name`."""
        return ".".join(self.steps).replace(".[]", "[]")

    @property
    def release(self) -> str | None:
        """The operator release that brought it; None where no document says."""
        return field_release(self.steps)


@dataclass(frozen=True, slots=True)
class CrdFacts:
    """The facts of one version of the resource in one operator release."""

    release: str
    version: str
    complete: bool
    """Whether the release's CRD is held whole; where it is not, a field that is not here may exist."""
    schema: dict[str, Any]
    """The structural schema of the whole document."""
    shared: dict[str, Any]
    """Parts that the schema refers to as `#/$defs/<name>`."""

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A schema, or what it refers to."""
        reference = schema.get("$ref")
        return self.shared[reference.rsplit("/", 1)[-1]] if reference else schema

    def field(self, path: str | tuple[str | int, ...]) -> FieldFact | None:
        """The facts of the field at a place (`spec.pdSpec.routingThreshold`, or a path in a document); None where the CRD has none."""
        steps = steps_of(path)
        schema, required = self.resolve(self.schema), False
        for step in steps:
            required = step in schema.get("required", ())
            inner = self._inner(schema, step)
            if inner is None:
                return None
            schema = self.resolve(inner)
        return FieldFact(steps, schema, required)

    def fields(self, start: str = "") -> Iterator[FieldFact]:
        """Every field below a place, outer ones first."""
        fact = self.field(start)
        if fact is not None:
            yield from self._below(fact.steps, fact.schema)

    def _below(self, steps: Steps, schema: dict[str, Any]) -> Iterator[FieldFact]:
        for name, part in schema.get("properties", {}).items():
            inner = self.resolve(part)
            yield FieldFact((*steps, name), inner, name in schema.get("required", ()))
            yield from self._below((*steps, name), inner)
        if "items" in schema:
            yield from self._below((*steps, "[]"), self.resolve(schema["items"]))

    @staticmethod
    def _inner(schema: dict[str, Any], step: str) -> dict[str, Any] | None:
        if step == "[]":
            return schema.get("items")
        if step in schema.get("properties", {}):
            return schema["properties"][step]
        free = schema.get("additionalProperties")
        return free if isinstance(free, dict) else None


@cache
def _held() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name(f"inferenceendpointconfigs-{HELD}.json").read_text(encoding="utf-8"))


@cache
def crd_facts(release: str = HELD, version: str = "v1") -> CrdFacts:
    """The facts for an operator release. For a release after the held one: the held CRD and the later fields that are documented.

    Raises `KeyError` for a release that the catalog does not hold and for a version that is not served.
    """
    held = _held()
    schema, shared = held["versions"][version], held["$defs"]
    later = [field for field in LATER_FIELDS if not is_before(release, field.brought.release)] if version == "v1" else []
    facts = CrdFacts(release, version, not is_before(HELD, release), schema, shared)
    if not later:
        return facts
    # Only what is on the way to a new field is copied: the rest, and the shared parts, belong to every release.
    grown = dict(schema)
    for field in later:
        *way, name = steps_of(field.path)
        place = grown
        for step in way:
            place["properties"] = dict(place["properties"])
            place["properties"][step] = dict(facts.resolve(place["properties"][step]))
            place = place["properties"][step]
        place["properties"] = {**place["properties"], name: field.schema}
    return CrdFacts(release, version, facts.complete, grown, shared)


__all__ = ["API_GROUP", "API_VERSION", "KIND", "OF_V1", "CrdFacts", "FieldFact", "crd_facts", "field_release"]
