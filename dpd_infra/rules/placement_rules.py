"""Rules on where pods go: zones, node labels, and what a pod asks of a node."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace

from dpd_infra.catalog.sources import (
    CRD_3_2,
    DPD_GUIDE,
    EKS_PREREQUISITES_GUIDE,
    KUBERNETES_DOCS,
    PREREQUISITES_GUIDE,
    thread,
)
from dpd_infra.plan.groups import GROUP_LABEL
from dpd_infra.plan.pieces import gpu_zone
from dpd_infra.render.endpoint_roles import INSTANCE_TYPE_LABEL
from dpd_infra.rules.demand import Demand, Pool, demands
from dpd_infra.rules.patches import remove, set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.wording import named
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import mapping

HYPERPOD_LABELS: dict[str, tuple[str, ...]] = {
    GROUP_LABEL: (),
    INSTANCE_TYPE_LABEL: (),
    "sagemaker.amazonaws.com/cluster-name": (),
    "sagemaker.amazonaws.com/node-health-status": ("Schedulable", "Unschedulable"),
    "sagemaker.amazonaws.com/deep-health-check-status": ("Passed",),
    "topology.kubernetes.io/region": (),
    "topology.kubernetes.io/zone": (),
}
"""The labels of HyperPod nodes, and the values of those that have few (HyperPod on EKS prerequisites)."""

_LABEL_DOMAINS = ("sagemaker.amazonaws.com/", "node.kubernetes.io/instance-type", "topology.kubernetes.io/")


@rule(
    "DPD020",
    "Both roles stay in one zone",
    severity=Severity.WARNING,
    why="EFA traffic cannot cross zones: with roles in two zones the KV cache goes over TCP or not at all.",
    sources=(PREREQUISITES_GUIDE, CRD_3_2),
    since="3.2",
)
def same_zone(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`topologySpec.sameAZ: false`."""
    path = ("spec", "pdSpec", "topologySpec", "sameAZ")
    if endpoint.get(*path) is False:
        what = "sameAZ is false: prefill and decode may run in different zones"
        name = named(endpoint, "topologySpec.sameAZ", "placement.sameZone", path)
        fix = f"set {name} to true, the operator's default"
        yield Violation(endpoint.at(*path), what, fix, value=False, patch=set_value(endpoint, path, value=True))


@rule(
    "DPD021",
    "The endpoint's zone is the GPU zone",
    severity=Severity.ERROR,
    why="All GPU nodes of the platform are in one zone: pods that ask for another stay Pending.",
    sources=(PREREQUISITES_GUIDE, CRD_3_2),
    since="3.2",
)
def zone_is_gpu_zone(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`topologySpec.availabilityZone`, or a zone label that a role selects, that is not the platform's."""
    if endpoint.stack is None or endpoint.stack.platform is None:
        return
    zone = gpu_zone(endpoint.stack.platform)
    if zone is None:
        return
    places = [("spec", "pdSpec", "topologySpec", "availabilityZone")]
    places += [(*server.path, "nodeSelector", "topology.kubernetes.io/zone") for server in endpoint.reading.servers]
    for path in places:
        asked = endpoint.get(*path)
        if isinstance(asked, str) and asked and asked != zone:
            yield Violation(
                endpoint.at(*path),
                f"{asked} is asked for, the GPU zone is {zone}",
                f"write {zone}, or leave it out",
                value=asked,
                patch=set_value(endpoint, path, zone),
                related=(endpoint.stack.at("network", "zone"),),
            )


@rule(
    "DPD022",
    "Placement groups are EC2's, nodes are HyperPod's",
    severity=Severity.ADVICE,
    why="HyperPod places its nodes itself; what topologySpec.placementGroup does there is documented nowhere.",
    sources=(CRD_3_2,),
    since="3.2",
)
def placement_group(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A placementGroup in the topologySpec."""
    path = ("spec", "pdSpec", "topologySpec", "placementGroup")
    if endpoint.get(*path):
        what = f"placement group {endpoint.get(*path)!r} is asked for"
        yield Violation(endpoint.at(*path), what, "leave it out unless you have seen it work", patch=remove(endpoint, path))


@rule(
    "DPD023",
    "A spare node lets image and flags be changed",
    severity=Severity.ADVICE,
    why="A Deployment starts the new pod before it stops the old one (25 % surge, rounded up): with every node taken, the new pod stays "
    "Pending and the old one keeps serving.",
    sources=(KUBERNETES_DOCS, thread("vllm-project/vllm", 49238)),
    since="3.2",
)
def spare_node(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Nodes for all pods and none for the one more that a change of image or flags needs."""
    stack = endpoint.stack
    if stack is None or stack.platform is None or not endpoint.reading.disaggregated:
        return
    asked = stack.asked
    pools: dict[Pool, list[str]] = {}
    for server, demand in zip(endpoint.reading.servers, demands(endpoint), strict=True):
        pool = asked.pool(demand)
        before, surged = asked.room(pool), asked.room(pool, replace(demand, pods=1))
        # What does not fit at all is said by another rule.
        if before is not None and surged is not None and before.fits and not surged.fits:
            pools.setdefault(pool, []).append(server.name)
    for names, roles in pools.items():
        nodes, groups = asked.nodes(names), asked.groups(names)
        path = (*endpoint.reading.servers[0].path, "replicas") if len(roles) > 1 else ("spec", "pdSpec", _KEYS[roles[0]], "replicas")
        yield Violation(
            endpoint.at(*path),
            f"{' and '.join(names)}: {nodes} {'node' if nodes == 1 else 'nodes'}, all taken: {' and '.join(roles)} cannot be changed "
            "without an interruption",
            f"raise instanceGroups.{names[0]}.count to {groups[0].spec.count + 1} before a change, or delete the old pod during one",
        )


_KEYS = {"prefill": "prefillSpec", "decode": "decodingSpec"}


@rule(
    "DPD027",
    "Node selectors name labels that HyperPod nodes carry",
    severity=Severity.ERROR,
    why="A label that no node has, or another value of it, keeps the pods Pending with no other sign.",
    sources=(EKS_PREREQUISITES_GUIDE, thread("aws/sagemaker-hyperpod-cli", 386, 399)),
    since="3.2",
)
def selectors_match(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An unknown label of HyperPod's domains, a wrong value, or an instance type without `ml.`."""
    if not endpoint.reading.disaggregated:
        return
    for server in endpoint.reading.servers:
        for key, value in mapping(server.block.get("nodeSelector")).items():
            path = (*server.path, "nodeSelector", key)
            known = HYPERPOD_LABELS.get(key)
            if known is None and key.startswith(_LABEL_DOMAINS):
                near = difflib.get_close_matches(key, HYPERPOD_LABELS, n=1, cutoff=0)
                yield Violation(endpoint.at(*path), f"{server.name}: HyperPod nodes carry no label {key}", f"use {near[0]}", value=value)
            elif known and value not in known:
                patch = set_value(endpoint, path, known[0]) if len(known) == 1 else None
                what = f"{server.name}: {key} is never {value}"
                yield Violation(endpoint.at(*path), what, f"write {' or '.join(known)}", value=value, patch=patch)
            elif key == INSTANCE_TYPE_LABEL and isinstance(value, str) and not value.startswith("ml."):
                patch = set_value(endpoint, path, f"ml.{value}")
                what = f"{server.name}: the label's value on HyperPod nodes keeps its prefix"
                yield Violation(endpoint.at(*path), what, f"write ml.{value}", value=value, patch=patch)


@rule(
    "DPD035",
    "The endpoint's zones are one zone",
    severity=Severity.ERROR,
    why="The node label topology.kubernetes.io/zone holds a zone's name, us-east-2a: its id or a region match no node. And EFA traffic "
    "cannot cross zones: roles in two of them never exchange a KV cache over it, and a zone that a selector contradicts leaves no node.",
    sources=(EKS_PREREQUISITES_GUIDE, PREREQUISITES_GUIDE, CRD_3_2),
    since="3.2",
)
def zones_are_one(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A zone that is no zone's name, or two zones among topologySpec and the roles' selectors."""
    if not endpoint.reading.disaggregated:
        return
    places: list[Path] = [("spec", "pdSpec", "topologySpec", "availabilityZone")]
    label = "topology.kubernetes.io/zone"
    places += [(*server.path, "nodeSelector", label) for server in endpoint.reading.servers if "nodeSelector" in server.block]
    asked = [(path, zone) for path in places if isinstance(zone := endpoint.get(*path), str) and zone]
    for path, zone in asked:
        if not _ZONE.fullmatch(zone):
            yield Violation(endpoint.at(*path), f"{zone} is no zone's name", "write it as us-east-2a", zone)
        elif zone != asked[0][1] and _ZONE.fullmatch(asked[0][1]):
            what = f"{zone} is asked for here, {asked[0][1]} for {_whose(asked[0][0])}"
            yield Violation(endpoint.at(*path), what, f"write {asked[0][1]}", zone, related=(endpoint.at(*asked[0][0]),))


_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}(-[a-z]+-[0-9]{1,2})?[a-z]")
"""A zone's name, of a region or of a local zone (`us-west-2-lax-1a`)."""


def _whose(path: Path) -> str:
    return "the endpoint" if "topologySpec" in path else "prefill"


@rule(
    "DPD036",
    "A role's nodes are of the endpoint's type",
    severity=Severity.ERROR,
    why="The operator keeps the pods to nodes of the endpoint's instance type, and a role's selector to those of another: no node is both, "
    "and the pods stay Pending.",
    sources=(CRD_3_2, EKS_PREREQUISITES_GUIDE),
    since="3.2",
)
def selector_has_the_type(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A role that selects `node.kubernetes.io/instance-type` of a type that the endpoint does not name."""
    types = [name for name, _ in endpoint.reading.instance_types]
    if not endpoint.reading.disaggregated or not types:
        return
    for server in endpoint.reading.servers:
        path: Path = (*server.path, "nodeSelector", INSTANCE_TYPE_LABEL)
        wanted = mapping(server.block.get("nodeSelector")).get(INSTANCE_TYPE_LABEL)
        # One without its prefix is told as that.
        if isinstance(wanted, str) and wanted.startswith("ml.") and wanted not in types:
            what = f"{server.name} selects {wanted} nodes, the endpoint runs on {' or '.join(types)}"
            patch = remove(endpoint, path)
            yield Violation(endpoint.at(*path), what, "remove it, or name the type in instanceTypes", wanted, patch)


@rule(
    "DPD033",
    "Both roles say where they run, or neither",
    severity=Severity.WARNING,
    why="A role without a group of its own runs wherever a node of its type is free: on the other role's nodes too, whose pods then stay "
    "Pending.",
    sources=(DPD_GUIDE, KUBERNETES_DOCS),
    since="3.2",
)
def both_roles_are_placed(endpoint: EndpointSubject) -> Iterator[Violation]:
    """One role selects an instance group, the other none, and there are nodes of their type outside of that group."""
    if not endpoint.reading.disaggregated or not any("nodeSelector" in server.block for server in endpoint.reading.servers):
        return
    asked = list(demands(endpoint))
    placed = [demand for demand in asked if demand.group is not None]
    free = [(server, demand) for server, demand in zip(endpoint.reading.servers, asked, strict=True) if demand.group is None]
    if not placed or not free or not _has_choice(endpoint, placed[0]):
        return
    server, demand = free[0]
    if set(mapping(server.block.get("nodeSelector"))) - _COMMON_LABELS:
        # It is placed by labels of its own.
        return
    selector = (*server.path, "nodeSelector", GROUP_LABEL)
    name = named(endpoint, f"{'.'.join(map(str, server.path[1:]))}.nodeSelector", f"{demand.role}.instanceGroup", selector)
    yield Violation(
        endpoint.at(*next(other.path for other in endpoint.reading.servers if other is not server), "nodeSelector", GROUP_LABEL),
        f"{placed[0].role} is kept to group {placed[0].group}; {demand.role} may land on any group, {placed[0].group} among them",
        f"name the group of {demand.role} too: {name}",
        value=placed[0].group,
        related=(endpoint.at(*selector),),
    )


_COMMON_LABELS = frozenset({INSTANCE_TYPE_LABEL, "topology.kubernetes.io/region", "topology.kubernetes.io/zone"})
"""Labels that nodes of many groups share."""


def _has_choice(endpoint: EndpointSubject, placed: Demand) -> bool:
    """Whether pods of the endpoint's types find nodes outside of one group; so it is where the groups are not known."""
    if endpoint.stack is None or not endpoint.stack.groups or placed.group is None:
        return True
    asked = endpoint.stack.asked
    # A group that is not there is told as that.
    return asked.group(placed.group) is not None and asked.has_group_of(placed.types, but=placed.group)


@rule(
    "DPD031",
    "A node affinity under a pdSpec names instance types",
    severity=Severity.WARNING,
    why="DPD runs on five instance types only: nodes that are found by other labels may be of any type, and nothing here can tell.",
    sources=(DPD_GUIDE, CRD_3_2),
    since="3.2",
)
def affinity_names_types(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A nodeAffinity without a required `node.kubernetes.io/instance-type`, under a pdSpec."""
    reading = endpoint.reading
    if reading.disaggregated and mapping(reading.spec.get("nodeAffinity")) and not reading.instance_types:
        fix = f"add a required matchExpression: {{key: {INSTANCE_TYPE_LABEL}, operator: In, values: [ml.p5.48xlarge]}}"
        yield Violation(endpoint.at("spec", "nodeAffinity"), "nodeAffinity requires no instance type", fix)
