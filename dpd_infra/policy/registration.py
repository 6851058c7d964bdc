"""One resource as rules on registrations read it: plain data, whether it comes from the engine or from a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.testing.recording import UNKNOWN

ENDPOINT_TYPES = frozenset(
    f"kubernetes:inference.sagemaker.aws.amazon.com/{version}:InferenceEndpointConfig" for version in ("v1", "v1alpha1")
)
HYPERPOD_CLUSTER = "aws-native:sagemaker:Cluster"
EKS_CLUSTERS = frozenset({"aws:eks/cluster:Cluster", "aws-native:eks:Cluster"})
EKS_ADDONS = frozenset({"aws:eks/addon:Addon", "aws-native:eks:Addon"})
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"


class NotKnownYet(Exception):
    """A preview cannot know what a rule rests on: it is judged in the update."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long Pulumi waits, in seconds; 0 for the provider's own default."""

    create: float = 0
    update: float = 0
    delete: float = 0


@dataclass(frozen=True, slots=True)
class Registration:
    """A resource that a program registered."""

    type: str
    """The type token, `aws:eks/cluster:Cluster`."""
    name: str
    urn: str
    props: Mapping[str, Any]
    """Its inputs, by the provider's own (camelCase) names; of a stack that is judged as a whole: its outputs. Secrets are unwrapped,
    numbers without a fraction are int, and what is not known is `UNKNOWN`."""
    protect: bool = False
    timeouts: Timeouts = Timeouts()
    provider: Mapping[str, Any] = field(default_factory=dict)
    """The provider's own inputs; empty where they are not told."""
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By property: the URNs of what its value comes from; told of a stack that is judged as a whole."""

    def get(self, *path: str | int) -> Any:
        """A part of the properties; None where any step of the path is missing. Raises `NotKnownYet`."""
        current: Any = self.props
        for step in path:
            if isinstance(current, Mapping):
                current = current.get(step)
            elif isinstance(current, list) and isinstance(step, int) and step < len(current):
                current = current[step]
            else:
                return None
            if current is UNKNOWN:
                raise NotKnownYet(".".join(map(str, path)))
        return current


def mapping(value: Any) -> Mapping[str, Any]:
    """A value where it is a mapping; an empty one for anything else: what the provider refuses is the provider's to say."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list, or the one mapping that stands in its place."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def texts(value: Any) -> list[str]:
    """The texts of a list, or the one text that stands in its place."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, str)]


def unknown_places(value: Any, path: str = "") -> Iterator[str]:
    """Where in a value something is not known, `spec.worker.image`."""
    if value is UNKNOWN:
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from unknown_places(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, part in enumerate(value):
            yield from unknown_places(part, f"{path}[{index}]")
