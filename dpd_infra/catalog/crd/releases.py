"""Which operator release brought which field of an InferenceEndpointConfig, and the fields that came after the CRD that is held here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.catalog.operator_releases import RELEASES
from dpd_infra.catalog.sources import CRD_3_3, GATEWAY_GUIDE, OPERATOR_NOTES, RELEASE_NOTES, Source

HELD = "3.2"
"""The release whose CRD is held whole. For any later one the fields below are added, and an unknown field is no error."""

UNKNOWN_FIELD = "unknownField"
"""The keyword of a problem with a field that a release's CRD does not have."""

Steps = tuple[str, ...]
"""A place in the schema: property names, and `[]` for the entries of a list."""

_CLI_CHANGELOG = Source("HyperPod CLI changelog", "aws/sagemaker-hyperpod-cli, CHANGELOG, v3.4.0")


@dataclass(frozen=True, slots=True)
class Brought:
    """What one release brought."""

    release: str
    """The operator release, `3.2`."""
    source: Source


FIELDS: dict[str, Brought] = {
    "spec.kvCacheSpec": Brought("2.1", _CLI_CHANGELOG),
    "spec.intelligentRoutingSpec": Brought("2.1", _CLI_CHANGELOG),
    "spec.instanceTypes": Brought("2.3", RELEASE_NOTES),
    "spec.nodeAffinity": Brought("3.0", RELEASE_NOTES),
    "spec.kubernetes": Brought("3.1", RELEASE_NOTES),
    "spec.tlsConfig.customCertificateConfig": Brought("3.1", RELEASE_NOTES),
    "spec.worker.requestLimits": Brought("3.1", RELEASE_NOTES),
    "spec.dataCapture": Brought("3.1.2", RELEASE_NOTES),
    "spec.modelSourceConfig.huggingFaceModel": Brought("3.1.2", RELEASE_NOTES),
    "spec.dnsConfig": Brought("3.1.2", RELEASE_NOTES),
    "spec.kubernetes.serviceAccountName": Brought("3.1.2", RELEASE_NOTES),
    "spec.pdSpec": Brought("3.2", RELEASE_NOTES),
}
"""By place in the resource; what stands below a field came with it. Fields that are not here came with the v1 resource or undocumented."""

VALUES: dict[tuple[str, str], Brought] = {
    ("spec.modelSourceConfig.modelSourceType", "huggingface"): Brought("3.1.2", RELEASE_NOTES),
    ("spec.modelSourceConfig.modelSourceType", "kubernetesVolume"): Brought("3.1.2", RELEASE_NOTES),
}
"""Values that a release added to a field that was there before."""


@dataclass(frozen=True, slots=True)
class LaterField:
    """A field that came after the CRD that is held, with as much of its schema as is known."""

    path: str
    schema: dict[str, Any]
    brought: Brought


LATER_FIELDS: tuple[LaterField, ...] = (
    LaterField(
        "spec.modelCacheConfig",
        {
            "type": "object",
            "properties": {
                "imageCache": {"type": "object", "required": ["enabled"], "properties": {"enabled": {"type": "boolean"}}},
                "weightsCache": {
                    "type": "object",
                    "properties": {
                        "enabled": {"type": "boolean", "default": False},
                        "hostPath": {"type": "string", "default": "/opt/dlami/nvme", "minLength": 1, "maxLength": 255},
                    },
                },
            },
        },
        Brought("3.3", CRD_3_3),
    ),
    LaterField(
        "spec.loadBalancer.idleTimeoutSeconds",
        {"type": "integer", "format": "int32", "default": 60, "minimum": 1, "maximum": 4000},
        Brought("3.3", RELEASE_NOTES),
    ),
    LaterField(
        "spec.inferenceGateway",
        {"type": "object", "properties": {"enabled": {"type": "boolean", "default": False}, "name": {"type": "string"}}},
        Brought("gateway", GATEWAY_GUIDE),
    ),
    LaterField(
        "spec.kubernetes.tolerations",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string"},
                    "operator": {"type": "string"},
                    "value": {"type": "string"},
                    "effect": {"type": "string"},
                    "tolerationSeconds": {"type": "integer", "format": "int64"},
                },
            },
        },
        Brought("3.7", OPERATOR_NOTES),
    ),
)
"""Fields whose place is documented."""

UNPLACED_FIELDS: dict[str, Brought] = {
    "metricsSidecarResources": Brought("3.4", RELEASE_NOTES),
    "metricsCollectorResources": Brought("3.4", RELEASE_NOTES),
    "s3UploaderResources": Brought("3.4", RELEASE_NOTES),
    "priorityClassName": Brought("3.7", OPERATOR_NOTES),
}
"""Fields by name whose place in the resource no document shows."""

_ORDER = {release: index for index, release in enumerate(("2.1", *(known.operator for known in RELEASES)))}


def is_before(release: str, other: str) -> bool:
    """Whether an operator release came before another. Raises `KeyError` for one that is not in the catalog."""
    return _ORDER[release] < _ORDER[other]


def steps_of(path: str | tuple[str | int, ...]) -> Steps:
    """A place as property names and `[]`: of `spec.kubernetes.volumes[].name`, or of a path in a document with list positions."""
    if isinstance(path, str):
        return tuple(path.replace("[]", ".[]").split(".")) if path else ()
    return tuple("[]" if isinstance(step, int) else step for step in path)


_BROUGHT: dict[Steps, Brought] = {steps_of(path): brought for path, brought in FIELDS.items()} | {
    steps_of(field.path): field.brought for field in LATER_FIELDS
}


def field_brought(path: str | tuple[str | int, ...]) -> Brought | None:
    """The release that brought a field, or the part of the resource that it stands in; None where no document says."""
    steps = steps_of(path)
    for length in range(len(steps), 0, -1):
        if steps[:length] in _BROUGHT:
            return _BROUGHT[steps[:length]]
    return UNPLACED_FIELDS.get(steps[-1]) if steps else None


def field_release(path: str | tuple[str | int, ...]) -> str | None:
    """`field_release("spec.pdSpec")` is `"3.2"`; None for a field whose release is not documented."""
    brought = field_brought(path)
    return brought.release if brought else None


@dataclass(slots=True)
class _Node:
    """One step of the places that have a release: what brought it, the values that have one of their own, and what is below."""

    brought: Brought | None = None
    values: dict[str, Brought] = field(default_factory=dict)
    below: dict[str, _Node] = field(default_factory=dict)


def _tree() -> _Node:
    root = _Node()

    def node(steps: Steps) -> _Node:
        place = root
        for step in steps:
            place = place.below.setdefault(step, _Node())
        return place

    for steps, brought in _BROUGHT.items():
        node(steps).brought = brought
    for (path, value), brought in VALUES.items():
        node(steps_of(path)).values[value] = brought
    return root


_TREE = _tree()
_NOWHERE = _Node()
_DEEPEST = 100


def fields_by_release(document: Any) -> Iterator[tuple[tuple[str | int, ...], Brought]]:
    """Every place of a document whose field, or whose value, a documented operator release brought: the outermost place of each field."""
    yield from _brought_in(document, (), _TREE, None)


def _brought_in(
    value: Any, path: tuple[str | int, ...], node: _Node, around: Brought | None
) -> Iterator[tuple[tuple[str | int, ...], Brought]]:
    if node.brought is not None and node.brought != around:
        yield path, node.brought
    here = node.brought or around
    if isinstance(value, str) and value in node.values:
        yield path, node.values[value]
    # Below a field that has a release only the known places differ from it; elsewhere a name alone may have one.
    if len(path) > _DEEPEST or (here is not None and not node.below):
        return
    if isinstance(value, dict):
        for key, part in value.items():
            below = node.below.get(key, _NOWHERE)
            if here is None and below is _NOWHERE and key in UNPLACED_FIELDS:
                yield (*path, key), UNPLACED_FIELDS[key]
            elif below is not _NOWHERE or isinstance(part, (dict, list)):
                yield from _brought_in(part, (*path, key), below, here)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            if isinstance(part, (dict, list)):
                yield from _brought_in(part, (*path, index), node.below.get("[]", _NOWHERE), here)
