"""What rules read: a stack, or one endpoint as it is rendered, each able to say where in the user's file a part of it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpd_infra.plan.groups import GroupPlan, plan_groups
from dpd_infra.render.endpoint import RenderedManifest
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Patch, Path
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.spec.platform import PlatformSpec

PLATFORM_PATH: Path = ("config", "dpd-infra:platform")
"""Where a stack file holds the platform."""

ENDPOINTS_PATH: Path = ("config", "dpd-infra:endpoints")
"""Where a stack file holds the endpoints."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What a rule found: the registry adds severity, reason and source."""

    at: Path
    """Where in the user's file."""
    what: str
    fix: str
    value: Any = None
    patch: Patch | None = None
    related: tuple[Path, ...] = ()
    """Other places the verdict rests on: where one of them was refused for its shape, the verdict is withheld."""


@dataclass(frozen=True)
class EndpointSubject:
    """One endpoint as the operator will see it."""

    name: str
    rendered: RenderedManifest
    spec: EndpointSpec | None = None
    """The short form it was rendered from; None for a raw manifest."""
    stack: StackSubject | None = None
    """The stack it stands in; None for a raw manifest."""
    operator: OperatorFacts | None = None
    """The operator it is for, as far as known."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The rendered InferenceEndpointConfig."""
        return self.rendered.document

    def get(self, *path: str | int) -> Any:
        """A part of the manifest; None where any step of the path is missing."""
        current: Any = self.manifest
        for step in path:
            if isinstance(current, Mapping) and step in current:
                current = current[step]
            elif isinstance(current, list) and isinstance(step, int) and -len(current) <= step < len(current):
                current = current[step]
            else:
                return None
        return current

    def at(self, *path: str | int) -> Path:
        """Where in the user's file a part of the manifest came from: what the user wrote, or the nearest key to it."""
        origin = self.rendered.provenance.of(path)
        return origin.path if origin else ()


@dataclass(frozen=True)
class StackSubject:
    """A whole stack: its region, its platform and its endpoints, as far as they could be built."""

    region: str | None = None
    platform: PlatformSpec | None = None
    operator: OperatorFacts | None = None
    """The operator the endpoints are for: the platform's, or the one another stack promises."""
    endpoints: Mapping[str, EndpointSubject] = field(default_factory=dict)
    platform_path: Path = PLATFORM_PATH
    endpoints_path: Path = ENDPOINTS_PATH

    @cached_property
    def groups(self) -> tuple[GroupPlan, ...]:
        """The platform's instance groups; none without a platform."""
        return plan_groups(self.platform.instance_groups) if self.platform else ()

    def at(self, *path: str | int) -> Path:
        """Where in the user's file a part of the platform stands."""
        return (*self.platform_path, *path)
