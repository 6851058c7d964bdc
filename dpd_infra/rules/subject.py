"""What rules read: a stack, or one endpoint as it is rendered, each able to say where in the user's file a part of it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from dpd_infra.catalog.operator_releases import RELEASES, release_of
from dpd_infra.plan.groups import GroupPlan, plan_groups
from dpd_infra.plan.pieces import NetworkPiece, pieces
from dpd_infra.render.endpoint import RenderedManifest
from dpd_infra.render.provenance import OriginKind
from dpd_infra.rules.reading import ManifestReading
from dpd_infra.spec.finding import Patch, Path
from dpd_infra.spec.silence_annotation import SILENCE_ANNOTATION, read_silences

if TYPE_CHECKING:
    from dpd_infra.catalog.crd.validate import Problem
    from dpd_infra.rules.demand import AskedNodes
    from dpd_infra.spec.control_plane import ControlPlaneSpec
    from dpd_infra.spec.endpoint import EndpointSpec
    from dpd_infra.spec.network import NetworkSpec
    from dpd_infra.spec.operator import OperatorFacts
    from dpd_infra.spec.platform import PlatformSpec

Found = TypeVar("Found")

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
    secret: bool = False
    """A secret stands there: no report shows the line."""


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
    kept: dict[Any, Any] = field(default_factory=dict[Any, Any], compare=False, repr=False)
    """What `once_an_endpoint` worked out."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The rendered InferenceEndpointConfig."""
        return self.rendered.document

    def get(self, *path: str | int) -> Any:
        """A part of the manifest; None where any step of the path is missing."""
        current: Any = self.manifest
        for step in path:
            if isinstance(current, dict):
                if step not in current:
                    return None
                current = current[step]
            elif isinstance(current, list) and isinstance(step, int) and -len(current) <= step < len(current):
                current = current[step]
            else:
                return None
        return current

    @cached_property
    def reading(self) -> ManifestReading:
        """What the manifest says, read once for all rules."""
        return ManifestReading(self.manifest, self.operator.image_mirrors if self.operator is not None else None)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What the API server would refuse of the manifest, with the operator's CRD; with the newest where the operator is not known."""
        from dpd_infra.catalog.crd.validate import validate_document  # noqa: PLC0415 - the schema library is loaded where a manifest is read

        release = release_of(self.operator.addon_version) if self.operator is not None else RELEASES[-1]
        return tuple(validate_document(self.manifest, (release or RELEASES[0]).operator))

    @cached_property
    def silences(self) -> Mapping[str, str]:
        """The rules that do not apply to this endpoint, each with the reason given: those of its entry, and those of its annotation."""
        annotation = self.get("metadata", "annotations", SILENCE_ANNOTATION)
        written = {entry.rule: entry.reason for entry in read_silences(annotation) if entry.reason} if annotation is not None else {}
        return written | ({entry.rule: entry.reason for entry in self.spec.silence} if self.spec is not None else {})

    def at(self, *path: str | int) -> Path:
        """Where in the user's file a part of the manifest came from: what the user wrote, or the nearest key to it."""
        if self.spec is None:
            return (*self.rendered.context.path, *self._standing(path))
        origin = self.rendered.provenance.of(path)
        return origin.path if origin else ()

    def is_default(self, *path: str | int) -> bool:
        """Whether a part of the manifest is a default of the short form, which nobody wrote."""
        origin = self.rendered.provenance.of(path) if self.spec is not None else None
        return origin is not None and origin.kind is OriginKind.DEFAULT

    def _standing(self, path: Path) -> Path:
        """The longest part of a path that leads to something in the manifest."""
        current: Any = self.manifest
        for length, step in enumerate(path):
            # A null stands there too.
            if not _holds(current, step):
                return path[:length]
            current = current[step]
        return path


def _holds(part: Any, step: str | int) -> bool:
    return step in (part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ())


def once_an_endpoint(work: Callable[[EndpointSubject], Found]) -> Callable[[EndpointSubject], Found]:
    """What several rules ask of an endpoint, worked out for the first of them."""

    def found(endpoint: EndpointSubject) -> Found:
        if work not in endpoint.kept:
            endpoint.kept[work] = work(endpoint)
        return endpoint.kept[work]

    return found


def once_a_stack(work: Callable[[StackSubject], Found]) -> Callable[[StackSubject], Found]:
    """What a rule on endpoints asks of all of them, worked out for the first one: as many endpoints ask as there are."""

    def found(stack: StackSubject) -> Found:
        if work not in stack.kept:
            stack.kept[work] = work(stack)
        return stack.kept[work]

    return found


def told_once(endpoint: EndpointSubject, rule_id: str, holds: Callable[[EndpointSubject], bool]) -> str | None:
    """For advice on a default that nobody touched: the first endpoint of a stack that has it is told, and how many others have it too.

    None for those others. An endpoint that silences the rule counts for none.
    """
    if endpoint.stack is None or rule_id in endpoint.silences or not holds(endpoint):
        return ""
    kept = endpoint.stack.kept
    if rule_id not in kept:
        alike = [name for name, other in endpoint.stack.endpoints.items() if rule_id not in other.silences and holds(other)]
        kept[rule_id] = (alike[0] if alike else None, max(len(alike) - 1, 0))
    first, others = kept[rule_id]
    if first not in (endpoint.name, None):
        return None
    return f" (the same default as of {others} other endpoint{'s' if others > 1 else ''})" if others else ""


@dataclass(frozen=True)
class StackSubject:
    """A whole stack: its region, its platform and its endpoints, as far as they could be built."""

    region: str | None = None
    platform: PlatformSpec | None = None
    operator: OperatorFacts | None = None
    """The operator the endpoints are for: the platform's, or the one another stack promises."""
    promises_operator: bool = False
    """Whether the file says what another stack's operator is, under a key of its own."""
    endpoints: Mapping[str, EndpointSubject] = field(default_factory=dict)
    companions: tuple[Mapping[str, Any], ...] = ()
    """Other Kubernetes objects at hand that rules know to read: Kueue's LocalQueues and ClusterQueues beside a raw manifest."""
    platform_path: Path = PLATFORM_PATH
    endpoints_path: Path = ENDPOINTS_PATH
    kept: dict[Any, Any] = field(default_factory=dict[Any, Any], compare=False, repr=False)
    """What `once_a_stack` worked out."""

    @cached_property
    def groups(self) -> tuple[GroupPlan, ...]:
        """The platform's instance groups, or what is known of an existing cluster's; none where nothing is known."""
        if self.platform is None:
            return ()
        existing = self.platform.existing.cluster
        return plan_groups(existing.instance_groups if existing else self.platform.instance_groups)

    @cached_property
    def asked(self) -> AskedNodes:
        """What the pods of all of its endpoints ask of nodes, worked out once for all rules."""
        from dpd_infra.rules.demand import AskedNodes  # noqa: PLC0415 - it reads subjects

        return AskedNodes(self)

    @property
    def network(self) -> NetworkSpec | None:
        """The network that the platform makes; None where it makes none."""
        made = self.platform is not None and pieces(self.platform).network in (NetworkPiece.OWN, NetworkPiece.IN_EXISTING_VPC)
        return self.platform.network if self.platform is not None and made else None

    @property
    def control_plane(self) -> ControlPlaneSpec | None:
        """The EKS cluster that the platform makes; None where it makes none."""
        return self.platform.control_plane if self.platform is not None and self.platform.existing.control_plane is None else None

    def at(self, *path: str | int) -> Path:
        """Where in the user's file a part of the platform stands; the groups of an existing cluster stand with it."""
        if path[:1] == ("instanceGroups",) and self.platform is not None and self.platform.existing.cluster is not None:
            path = ("existing", "cluster", *path)
        return (*self.platform_path, *path)
