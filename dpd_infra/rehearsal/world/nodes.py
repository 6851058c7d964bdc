"""Which nodes there are: what instance groups ask for, bounded by the capacity of zones and the addresses of subnets."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.catalog.instance_types import Architecture, instance_type
from dpd_infra.catalog.node_sizes import node_size
from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base

RESERVED_ADDRESSES = 5
"""Addresses of a subnet that AWS keeps (VPC user guide, subnet sizing)."""

GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
TYPE_LABEL = "node.kubernetes.io/instance-type"
ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass
class Group:
    """One instance group and the nodes that it got."""

    cluster: Resource
    spec: Mapping[str, Any]
    placed: Counter[str] = field(default_factory=Counter)
    """Nodes by subnet id."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.spec.get("instanceGroupName"))

    @property
    def types(self) -> list[str]:
        """The instance types that it takes, the preferred one first."""
        one = self.spec.get("instanceType")
        return [str(one)] if one else [str(kind) for kind in (self.spec.get("instanceRequirements") or {}).get("instanceTypes") or []]

    @property
    def type(self) -> str:
        """The type that its nodes have: the first of those that it takes."""
        return self.types[0] if self.types else ""

    @property
    def wanted(self) -> int:
        """How many nodes it asks for."""
        return int(self.spec.get("instanceCount") or 0)

    @property
    def count(self) -> int:
        """How many nodes it has."""
        return self.placed.total()

    @property
    def is_spot(self) -> bool:
        """Whether it takes spot capacity."""
        return "spot" in (self.spec.get("capacityRequirements") or {})

    @property
    def has_efa(self) -> bool:
        """Whether its nodes have EFA devices."""
        known = node_size(self.type)
        return known is not None and known.efa_devices > 0

    @property
    def network(self) -> Mapping[str, Any]:
        """Its subnets and security groups: its own, or the cluster's."""
        return self.spec.get("overrideVpcConfig") or self.cluster.outputs.get("vpcConfig") or {}

    @property
    def addresses(self) -> int:
        """Addresses that one node takes; 0 for a type of which no figure is known."""
        known = instance_type(self.type)
        return known.addresses if known else 0


def groups(account: SimulatedAccount, candidate: Resource | None = None) -> list[Group]:
    """Every instance group with its nodes, in the order in which clusters were made; `candidate` is a cluster as it would be."""
    clusters = [item for item in account.all(base.HYPERPOD_CLUSTER) if candidate is None or item.id != candidate.id]
    if candidate is not None:
        clusters.append(candidate)
    taken: Counter[tuple[str, str]] = Counter()
    found: list[Group] = []
    for cluster in clusters:
        for spec in group_specs(cluster.outputs):
            group = Group(cluster, spec)
            _place(account, group, taken)
            found.append(group)
    return found


def group_specs(properties: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The groups of a cluster, restricted ones among them."""
    return [*(properties.get("instanceGroups") or []), *(properties.get("restrictedInstanceGroups") or [])]


def groups_on(account: SimulatedAccount, eks: str) -> list[Group]:
    """The groups whose nodes are in an EKS cluster, by its name."""
    arns = {item.outputs.get("arn") for item in account.all(base.CLUSTER) if item.id == eks}
    return [group for group in groups(account) if group.cluster.get("orchestrator.eks.clusterArn") in arns]


def count(account: SimulatedAccount, eks: str) -> int:
    """How many nodes an EKS cluster has."""
    return sum(group.count for group in groups_on(account, eks))


def _place(account: SimulatedAccount, group: Group, taken: Counter[tuple[str, str]]) -> None:
    """Give a group its nodes: in one subnet where they have EFA, over its subnets in order elsewhere."""
    subnets = [account.find(base.SUBNET, id, region=group.cluster.region) for id in group.network.get("subnets") or []]
    known = [subnet for subnet in subnets if subnet is not None]
    if not known:
        # A cluster of which only its groups are known has what it asks for.
        group.placed["" if not subnets else str(group.network["subnets"][0])] = group.wanted
        return
    rooms = [(_room(account, subnet, group.type, taken), subnet) for subnet in known]
    if group.has_efa:
        rooms = [max(rooms, key=lambda room: group.wanted if room[0] is None else room[0])]
    left = group.wanted
    for room, subnet in rooms:
        here = left if room is None else min(left, room)
        if here:
            group.placed[subnet.id] += here
            taken[str(subnet.outputs["availabilityZone"]), group.type] += here
            left -= here
    if group.count < int(group.spec.get("minInstanceCount") or 0):
        # Below its minimum a group is rolled back (CreateCluster, MinInstanceCount).
        for subnet in known:
            taken[str(subnet.outputs["availabilityZone"]), group.type] -= group.placed[subnet.id]
        group.placed.clear()


def _room(account: SimulatedAccount, subnet: Resource, kind: str, taken: Counter[tuple[str, str]]) -> int | None:
    zone = str(subnet.outputs["availabilityZone"])
    limit = account.world.capacity_of(zone, kind)
    return None if limit is None else max(0, limit - taken[zone, kind])


def size_of(subnet: Resource) -> int:
    """Addresses that a subnet has for others."""
    size = ipaddress.ip_network(str(subnet.outputs["cidrBlock"])).num_addresses
    return size - RESERVED_ADDRESSES - int(subnet.outputs.get("addressesInUse") or 0)


def pod_slots(found: Sequence[Group]) -> int | None:
    """Pods that fit on the amd64 nodes of some groups; None where a node's number is not known."""
    total = 0
    for group in found:
        if not group.count or not _is_amd64(group.type):
            continue
        known = node_size(group.type)
        if known is None or known.pods is None:
            return None
        total += group.count * known.pods
    return total


def _is_amd64(kind: str) -> bool:
    known = instance_type(kind)
    return known is None or known.architecture is Architecture.AMD64


@dataclass
class Node:
    """One node, as a scheduler sees it."""

    group: str
    labels: Mapping[str, str]
    gpus: int


def nodes_on(account: SimulatedAccount, eks: str) -> Iterator[Node]:
    """Every node of an EKS cluster."""
    for group in groups_on(account, eks):
        known = instance_type(group.type) or node_size(group.type)
        for subnet, number in group.placed.items():
            found = account.find(base.SUBNET, subnet, region=group.cluster.region)
            labels = {
                GROUP_LABEL: group.name,
                TYPE_LABEL: group.type,
                **({ZONE_LABEL: str(found.outputs["availabilityZone"])} if found else {}),
                **((group.spec.get("kubernetesConfig") or {}).get("labels") or {}),
            }
            for _ in range(number):
                yield Node(group.name, labels, known.gpus if known else 0)
