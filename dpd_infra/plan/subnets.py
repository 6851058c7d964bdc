"""The VPC's layout as a pure function: blocks never overlap, and none moves when a zone, a group or a node is added.

The upper half of the VPC's block is the GPU subnet, whatever the groups are: a subnet can never be resized, so room to grow has to be
there from the start. The lower half is cut into eight equal slots, one a zone letter (`a` to `h`), and each zone's EKS and public
subnets lie in its own slot: adding a zone fills an empty slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from dpd_infra.catalog.instance_types import GPU_NODE_ADDRESSES, instance_type
from dpd_infra.spec.vocabulary import Egress

if TYPE_CHECKING:
    from dpd_infra.spec.cluster import InstanceGroupSpec
    from dpd_infra.spec.network import NetworkSpec

RESERVED_ADDRESSES = 5
"""Addresses AWS keeps of every subnet: the first four and the last (VPC user guide, subnet sizing)."""

_SLOTS = 8
"""Zone letters a to h: no region has more zones."""


class SubnetKind(StrEnum):
    """What a subnet is for."""

    GPU = "gpu"
    """All HyperPod nodes, private."""
    CONTROL_PLANE = "control-plane"
    """The network interfaces of the EKS control plane, private."""
    PUBLIC = "public"
    """The NAT gateway."""


@dataclass(frozen=True, slots=True)
class SubnetPlan:
    """One subnet to make."""

    name: str
    """A stable suffix for the resource's name: kind and zone letter."""
    kind: SubnetKind
    zone: str
    cidr: str

    @property
    def usable_addresses(self) -> int:
        """Addresses that are left for nodes and pods."""
        return IPv4Network(self.cidr).num_addresses - RESERVED_ADDRESSES


def control_plane_zones(spec: NetworkSpec) -> tuple[str, ...]:
    """The zones of the EKS subnets, in order: those of the spec, or the GPU zone and one other.

    The other one is `a`, or `b` beside an `a`; in ap-northeast-1, where new accounts have no `b`, it is `c`.
    """
    if spec.control_plane_zones:
        return tuple(sorted(set(spec.control_plane_zones)))
    letter = spec.zone[-1]
    other = "a" if letter != "a" else "c" if spec.region == "ap-northeast-1" else "b"
    return tuple(sorted((spec.zone, f"{spec.region}{other}")))


def plan_subnets(spec: NetworkSpec) -> tuple[SubnetPlan, ...]:
    """The GPU subnet, an EKS subnet a zone, and a public subnet in the GPU zone for the NAT gateway, where there is one.

    In an existing VPC it is the GPU subnet alone.
    """
    if spec.in_existing_vpc:
        return (SubnetPlan("gpu", SubnetKind.GPU, spec.zone, spec.gpu_cidr or ""),)
    lower, upper = IPv4Network(spec.cidr).subnets(prefixlen_diff=1)
    slots = list(lower.subnets(prefixlen_diff=3))
    gpu = SubnetPlan("gpu", SubnetKind.GPU, spec.zone, spec.gpu_cidr or str(upper))
    control_plane = [
        SubnetPlan(f"control-plane-{zone[-1]}", SubnetKind.CONTROL_PLANE, zone, str(_half(slots[_slot(zone)], 0)))
        for zone in control_plane_zones(spec)
    ]
    public = SubnetPlan(f"public-{spec.zone[-1]}", SubnetKind.PUBLIC, spec.zone, str(_half(slots[_slot(spec.zone)], 1)))
    return (gpu, *control_plane, public) if spec.egress is Egress.NAT else (gpu, *control_plane)


def secondary_cidr(spec: NetworkSpec) -> str | None:
    """The block to associate with the VPC beside its own: the GPU subnet's, where it lies outside."""
    if spec.gpu_cidr is None or IPv4Network(spec.gpu_cidr).subnet_of(IPv4Network(spec.cidr)):
        return None
    return spec.gpu_cidr


def addresses_needed(groups: Mapping[str, InstanceGroupSpec] | Iterable[tuple[str, InstanceGroupSpec]]) -> int:
    """Addresses the groups can use at their full counts: 81 a P5 node (HyperPod prerequisites); an unknown type counts as a GPU node."""
    items = groups.items() if isinstance(groups, Mapping) else groups
    total = 0
    for _, group in items:
        kind = instance_type(group.instance_type)
        total += group.count * (kind.addresses if kind else GPU_NODE_ADDRESSES)
    return total


def _slot(zone: str) -> int:
    return (ord(zone[-1]) - ord("a")) % _SLOTS


def _half(block: IPv4Network, index: int) -> IPv4Network:
    return list(block.subnets(prefixlen_diff=1))[index]
