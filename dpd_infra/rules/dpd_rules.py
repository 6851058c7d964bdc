"""Rules on disaggregation itself: where it runs at all, which operator it needs, and whether its pods fit the platform."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.instance_types import DPD_INSTANCE_TYPES
from dpd_infra.catalog.operator_releases import DPD_MINIMUM, DPD_PREFERRED, AddonVersion, missing_below, release_of
from dpd_infra.catalog.sources import CRD_3_2, DPD_GUIDE, DPD_TROUBLESHOOTING, KUBERNETES_DOCS, RELEASE_NOTES
from dpd_infra.plan.endpoint_names import NAME_AND_NAMESPACE_LIMIT
from dpd_infra.plan.groups import GROUP_LABEL
from dpd_infra.plan.names import DNS_LABEL_LIMIT
from dpd_infra.rules.demand import pods_told
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.spec.finding import Severity


@rule(
    "DPD001",
    "Disaggregation runs on five instance types only",
    severity=Severity.ERROR,
    why="DPD moves the KV cache over EFA with RDMA read and write between NVLink nodes: other types are not supported.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def supported_instance_types(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Another type under a pdSpec, in instanceType, instanceTypes or a required node affinity."""
    if not endpoint.reading.disaggregated:
        return
    for name, path in endpoint.reading.instance_types:
        if name not in DPD_INSTANCE_TYPES:
            yield Violation(
                endpoint.at(*path),
                f"{name} does not support disaggregated prefill and decode",
                f"use one of {', '.join(DPD_INSTANCE_TYPES)}, or turn disaggregation off (disaggregated: false)",
                value=name,
            )


@rule(
    "DPD002",
    "Disaggregation needs operator 3.2",
    severity=Severity.ERROR,
    why=f"pdSpec came with operator 3.2, add-on {DPD_MINIMUM}: an older operator drops it, or its pods restart with EngineDeadError or "
    "TimeoutError.",
    sources=(RELEASE_NOTES, DPD_TROUBLESHOOTING),
    since="3.2",
)
def operator_has_dpd(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A pdSpec for an add-on below v1.3.0-eksbuild.1."""
    if not endpoint.reading.disaggregated or endpoint.operator is None:
        return
    version = endpoint.operator.addon_version
    if AddonVersion.parse(version) < DPD_MINIMUM:
        yield Violation(
            version_place(endpoint, endpoint.at("spec", "pdSpec")),
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
    if not endpoint.reading.disaggregated or endpoint.operator is None:
        return
    version = endpoint.operator.addon_version
    if DPD_MINIMUM <= AddonVersion.parse(version) < DPD_PREFERRED:
        yield Violation(
            version_place(endpoint, endpoint.at("spec", "pdSpec")),
            f"add-on {version} lacks: {'; '.join(missing_below(version, DPD_PREFERRED))}",
            f"raise operator.addonVersion to {DPD_PREFERRED}",
            value=version,
        )


@rule(
    "DPD004",
    "Name and namespace fit the routing Service's name",
    severity=Severity.ERROR,
    why=f"The operator names a Service <name>-<namespace>-routing-service, and a Service name is a DNS label of {DNS_LABEL_LIMIT} "
    f"characters at most: {NAME_AND_NAMESPACE_LIMIT} are left for the two.",
    sources=(DPD_GUIDE, KUBERNETES_DOCS),
    since="2.1",
)
def names_fit(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Over 46 characters together, with a router."""
    name = str(endpoint.get("metadata", "name") or "")
    namespace = str(endpoint.get("metadata", "namespace") or "default")
    length = len(name) + len(namespace)
    if endpoint.reading.is_routed and length > NAME_AND_NAMESPACE_LIMIT:
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
    if endpoint.stack is None or not endpoint.stack.groups:
        return
    asked = endpoint.stack.asked
    types = tuple(name for name, _ in endpoint.reading.instance_types)
    related = (endpoint.stack.at("instanceGroups"),)
    for server in endpoint.reading.servers if endpoint.reading.disaggregated else ():
        path = (*server.path, "nodeSelector", GROUP_LABEL)
        wanted = endpoint.get(*path)
        if not isinstance(wanted, str):
            continue
        group = asked.group(wanted)
        if group is None:
            what = f"{server.name}: the platform has no instance group {wanted!r}"
            there = ", ".join(each.name for each in endpoint.stack.groups)
            yield Violation(endpoint.at(*path), what, f"its groups are {there}", value=wanted, related=related)
        elif types and group.spec.instance_type not in types:
            yield Violation(
                endpoint.at(*path),
                f"{server.name}: group {wanted} has {group.spec.instance_type} nodes, the endpoint asks for {' or '.join(types)}",
                "name a group of that type, or change the endpoint's instance type",
                value=wanted,
                related=related,
            )
    if types and not asked.has_group_of(types):
        what = f"no instance group has {' or '.join(types)} nodes"
        fix = "add a group of that type, or change the endpoint's instance type"
        yield Violation(endpoint.at(*endpoint.reading.instance_types[0][1]), what, fix, value=types[0], related=related)


@rule(
    "DPD006",
    "The pods of all endpoints fit the nodes of their groups",
    severity=Severity.ERROR,
    why="A pod takes GPUs and EFA devices of its own; what does not fit stays Pending while the rest of the endpoint waits for it. "
    "Maxima of autoscaling count.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def replicas_fit_groups(stack: StackSubject) -> Iterator[Violation]:
    """More GPUs or EFA devices asked of groups than their nodes have, by pods that can run nowhere else."""
    if stack.platform is None:
        return
    full: set[str] = set()
    for pool in stack.asked.pools:
        room = stack.asked.room(pool)
        if room is None or room.fits or full & pool.names:
            continue
        full |= pool.names
        within = list(stack.asked.within(pool))
        names, verb = " and ".join(pool), "has" if len(pool) == 1 else "have"
        if all(demand.group for demand in within) and len(pool) == 1:
            whose = f"group {names}"
        elif room.needed is None:
            whose = names
        else:
            whose = f"{'the' if len(pool) == 1 else 'all'} {room.kinds[0].name} nodes: {names}"
        one = len(pool) == 1
        counts = "count" if one else f"the count of {' or '.join(pool)}"
        yield Violation(
            stack.at("instanceGroups", *pool, "count") if one else stack.at("instanceGroups"),
            f"{whose} {verb} {room.told()} ({pods_told(within)})",
            f"raise {counts}, or lower replicas or autoscaling maxima",
            value=room.nodes if one else None,
        )


def _release(version: str) -> str:
    release = release_of(version)
    return release.operator if release else "older than 3.0"


def version_place(endpoint: EndpointSubject, otherwise: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The platform's pin where there is one in the file; the endpoint's own place where the operator is another stack's."""
    stack = endpoint.stack
    return stack.at("operator", "addonVersion") if stack is not None and stack.platform is not None else otherwise
