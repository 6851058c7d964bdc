"""Rules on disaggregation itself: where it runs at all, which operator it needs, and whether its pods fit the platform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dpd_infra.catalog.instance_types import DPD_INSTANCE_TYPES
from dpd_infra.catalog.operator_releases import DPD_MINIMUM, DPD_PREFERRED, AddonVersion, missing_below, release_of
from dpd_infra.catalog.sources import CRD_3_2, DPD_GUIDE, DPD_TROUBLESHOOTING, KUBERNETES_DOCS, RELEASE_NOTES
from dpd_infra.plan.endpoint_names import NAME_AND_NAMESPACE_LIMIT
from dpd_infra.plan.groups import GROUP_LABEL
from dpd_infra.plan.names import DNS_LABEL_LIMIT
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.spec.finding import Severity

ROLE_SPECS = (("prefill", "prefillSpec"), ("decode", "decodingSpec"))
"""A role's name and its key in the resource."""


@rule(
    "DPD001",
    "Disaggregation runs on five instance types only",
    severity=Severity.ERROR,
    why="DPD moves the KV cache over EFA with RDMA read and write between NVLink nodes: other types are not supported.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def supported_instance_types(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Another type under a pdSpec."""
    if endpoint.get("spec", "pdSpec") is None:
        return
    places = [("instanceType",)] if endpoint.get("spec", "instanceType") else []
    places += [("instanceTypes", index) for index in range(len(endpoint.get("spec", "instanceTypes") or []))]
    for place in places:
        value = endpoint.get("spec", *place)
        if value not in DPD_INSTANCE_TYPES:
            yield Violation(
                endpoint.at("spec", *place),
                f"{value} does not support disaggregated prefill and decode",
                f"use one of {', '.join(DPD_INSTANCE_TYPES)}, or turn disaggregation off (disaggregated: false)",
                value=value,
            )


@rule(
    "DPD002",
    "Disaggregation needs operator 3.2",
    severity=Severity.ERROR,
    why=f"pdSpec came with operator 3.2, add-on {DPD_MINIMUM}: an older operator drops it, or its pods restart with EngineDeadError or TimeoutError.",
    sources=(RELEASE_NOTES, DPD_TROUBLESHOOTING),
    since="3.2",
)
def operator_has_dpd(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A pdSpec for an add-on below v1.3.0-eksbuild.1."""
    if endpoint.get("spec", "pdSpec") is None or endpoint.operator is None:
        return
    version = endpoint.operator.addon_version
    if AddonVersion.parse(version) < DPD_MINIMUM:
        yield Violation(
            _version_place(endpoint, endpoint.at("spec", "pdSpec")),
            f"endpoint {endpoint.name} is disaggregated, add-on {version} holds operator {_release(version)}, which has no pdSpec",
            f"raise operator.addonVersion to {DPD_PREFERRED} (at least {DPD_MINIMUM})",
            value=version,
        )


@rule(
    "DPD003",
    "Disaggregation is better off with operator 3.3",
    severity=Severity.WARNING,
    why="Operator 3.2 runs DPD with known faults that 3.3 mended.",
    sources=(RELEASE_NOTES,),
    since="3.2",
)
def operator_is_preferred(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A pdSpec for an add-on from v1.3.0 to below v1.4.0."""
    if endpoint.get("spec", "pdSpec") is None or endpoint.operator is None:
        return
    version = endpoint.operator.addon_version
    if DPD_MINIMUM <= AddonVersion.parse(version) < DPD_PREFERRED:
        yield Violation(
            _version_place(endpoint, endpoint.at("spec", "pdSpec")),
            f"add-on {version} lacks: {'; '.join(missing_below(version, DPD_PREFERRED))}",
            f"raise operator.addonVersion to {DPD_PREFERRED}",
            value=version,
        )


@rule(
    "DPD004",
    "Name and namespace fit the routing Service's name",
    severity=Severity.ERROR,
    why=f"The operator names a Service <name>-<namespace>-routing-service, and a Service name is a DNS label of {DNS_LABEL_LIMIT} characters at most: "
    f"{NAME_AND_NAMESPACE_LIMIT} are left for the two.",
    sources=(DPD_GUIDE, KUBERNETES_DOCS),
    since="2.1",
)
def names_fit(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Over 46 characters together, with a router."""
    routed = endpoint.get("spec", "pdSpec") is not None or endpoint.get("spec", "intelligentRoutingSpec", "enabled") is True
    name = str(endpoint.get("metadata", "name") or "")
    namespace = str(endpoint.get("metadata", "namespace") or "default")
    length = len(name) + len(namespace)
    if routed and length > NAME_AND_NAMESPACE_LIMIT:
        yield Violation(
            endpoint.at("metadata", "name"),
            f"name {name!r} and namespace {namespace!r} have {length} characters together",
            f"shorten them to {NAME_AND_NAMESPACE_LIMIT} together",
            value=name,
        )


@rule(
    "DPD005",
    "A role's instance group exists and has the endpoint's type",
    severity=Severity.ERROR,
    why="The role's pods select nodes by the group's name and by the instance type: with no such node they stay Pending.",
    sources=(CRD_3_2,),
    since="3.2",
)
def role_groups_exist(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A group the platform does not have, one of another type, or no group at all of the endpoint's type."""
    if endpoint.stack is None or endpoint.stack.platform is None:
        return
    groups = {group.name: group for group in endpoint.stack.groups}
    types = _instance_types(endpoint)
    related = (endpoint.stack.at("instanceGroups"),)
    for role, key in ROLE_SPECS:
        path = ("spec", "pdSpec", key, "nodeSelector", GROUP_LABEL)
        wanted = endpoint.get(*path)
        if wanted is None:
            continue
        if wanted not in groups:
            yield Violation(
                endpoint.at(*path), f"{role}: the platform has no instance group {wanted!r}", f"its groups are {', '.join(groups)}", value=wanted, related=related
            )
        elif types and groups[wanted].spec.instance_type not in types:
            yield Violation(
                endpoint.at(*path),
                f"{role}: group {wanted} has {groups[wanted].spec.instance_type} nodes, the endpoint asks for {' or '.join(types)}",
                "name a group of that type, or change the endpoint's instance type",
                value=wanted,
                related=related,
            )
    if types and not any(group.spec.instance_type in types for group in groups.values()):
        place = "instanceType" if endpoint.get("spec", "instanceType") else "instanceTypes"
        yield Violation(
            endpoint.at("spec", place), f"no instance group has {' or '.join(types)} nodes", "add a group of that type, or change the endpoint's instance type",
            value=types[0], related=related,
        )


@rule(
    "DPD006",
    "The pods of all endpoints fit the nodes of their groups",
    severity=Severity.ERROR,
    why="A role's pod takes GPUs of its own; what does not fit stays Pending while the rest of the endpoint waits for it. Maxima of autoscaling count.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def replicas_fit_groups(stack: StackSubject) -> Iterator[Violation]:
    """More GPUs asked of a group than its nodes have, by endpoints that name the group or its type."""
    if stack.platform is None:
        return
    demands = [demand for endpoint in stack.endpoints.values() for demand in _demands(endpoint)]
    capacity = {group.name: group.spec.count * (group.kind.gpus if group.kind else 0) for group in stack.groups}
    by_group: defaultdict[str, int] = defaultdict(int)
    for _, group, _, gpus in demands:
        if group is not None:
            by_group[group] += gpus
    for name in sorted(by_group):
        if name in capacity and by_group[name] > capacity[name]:
            yield Violation(
                stack.at("instanceGroups", name, "count"),
                f"group {name} has {capacity[name]} GPUs, its endpoints ask for {by_group[name]}",
                "raise count, or lower replicas or autoscaling maxima",
                value=stack.platform.instance_groups[name].count,
            )
    for kind in sorted({group.spec.instance_type for group in stack.groups if group.is_gpu}):
        of_kind = [group.name for group in stack.groups if group.spec.instance_type == kind]
        asked = sum(gpus for _, group, types, gpus in demands if group in of_kind or (group is None and kind in types))
        free_demand = any(group is None and kind in types for _, group, types, _ in demands)
        if free_demand and asked > sum(capacity[name] for name in of_kind):
            yield Violation(
                stack.at("instanceGroups"),
                f"the {kind} groups have {sum(capacity[name] for name in of_kind)} GPUs together, their endpoints ask for {asked}",
                f"raise the count of {' or '.join(of_kind)}, or lower replicas or autoscaling maxima",
            )


def _demands(endpoint: EndpointSubject) -> Iterator[tuple[str, str | None, tuple[str, ...], int]]:
    """For each Deployment of an endpoint: its name, group, instance types, and the GPUs it can ask for at most."""
    types = _instance_types(endpoint)
    if endpoint.get("spec", "pdSpec") is None:
        maximum = endpoint.get("spec", "autoScalingSpec", "maxReplicaCount") or endpoint.get("spec", "replicas") or 1
        gpus = _gpus(endpoint.get("spec", "worker", "resources"))
        yield endpoint.name, None, types, maximum * gpus
        return
    for role, key in ROLE_SPECS:
        scaling = endpoint.get("spec", "pdSpec", "autoScalingSpec", "prefillAutoScaling" if role == "prefill" else "decodingAutoScaling")
        replicas = endpoint.get("spec", "pdSpec", key, "replicas") or 1
        if scaling is not None:
            replicas = scaling.get("maxReplicaCount", 5)
        yield (
            f"{endpoint.name} {role}",
            endpoint.get("spec", "pdSpec", key, "nodeSelector", GROUP_LABEL),
            types,
            replicas * _gpus(endpoint.get("spec", "pdSpec", key, "resources")),
        )


def _gpus(resources: object) -> int:
    """GPUs of a resources block: requests, else limits."""
    if not isinstance(resources, dict):
        return 0
    for kind in ("requests", "limits"):
        value = (resources.get(kind) or {}).get("nvidia.com/gpu")
        if value is not None and str(value).isdigit():
            return int(value)
    return 0


def _instance_types(endpoint: EndpointSubject) -> tuple[str, ...]:
    one = endpoint.get("spec", "instanceType")
    return (one,) if one else tuple(endpoint.get("spec", "instanceTypes") or ())


def _release(version: str) -> str:
    release = release_of(version)
    return release.operator if release else "older than 3.0"


def _version_place(endpoint: EndpointSubject, otherwise: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The platform's pin where there is one in the file; the endpoint's own place where the operator is another stack's."""
    return endpoint.stack.at("operator", "addonVersion") if endpoint.stack is not None and endpoint.stack.platform is not None else otherwise
