"""What rules read beyond one stack or endpoint: the endpoints of one file, and the change from one stack to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpd_infra.rules.subject import EndpointSubject, StackSubject
from dpd_infra.spec.finding import Path


@dataclass(frozen=True, slots=True)
class NamedEndpoint:
    """An endpoint of a file by its name."""

    name: str
    namespace: str
    """Empty where the file leaves it to whoever applies it."""
    at: Path
    """Where its name stands in its document."""
    line: int
    """Where it begins in the file."""


@dataclass(frozen=True, slots=True)
class FileSubject:
    """The endpoints of one file of manifests, in order; the last one is the one that is looked at."""

    endpoints: tuple[NamedEndpoint, ...]


@dataclass(frozen=True, slots=True)
class UpgradeSubject:
    """A stack as it is and as it is to be."""

    old: StackSubject
    new: StackSubject


def is_made_anew(before: EndpointSubject, after: EndpointSubject) -> bool:
    """Whether an endpoint is another resource after the change, so that nothing of it is fixed."""
    if before.spec is None or after.spec is None:
        return False
    old, new = before.spec.change, after.spec.change
    return new.generation > old.generation or new.recreations > old.recreations


def keeps_sagemaker_name(before: EndpointSubject, after: EndpointSubject) -> bool:
    """Whether both have one SageMaker endpoint, by its name."""
    name = after.get("spec", "endpointName")
    return bool(name) and before.get("spec", "endpointName") == name


def both_endpoints(change: UpgradeSubject) -> Iterator[tuple[EndpointSubject, EndpointSubject]]:
    """Each endpoint that is there before and after."""
    for name, before in change.old.endpoints.items():
        after = change.new.endpoints.get(name)
        if after is not None:
            yield before, after
