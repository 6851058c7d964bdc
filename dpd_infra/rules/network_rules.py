"""Rules on the network: zones, address blocks, and whether they are large enough."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from dpd_infra.catalog.regions import is_misspelt
from dpd_infra.catalog.sources import (
    ADDRESS_BLOCKS,
    PREREQUISITES_GUIDE,
    VPC_USER_GUIDE,
)
from dpd_infra.plan.subnets import SubnetKind, addresses_needed, plan_subnets
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.spec.finding import Severity

if TYPE_CHECKING:
    from dpd_infra.spec.network import NetworkSpec

PRIVATE_BLOCKS = tuple(IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
"""Private (RFC 1918) and shared (RFC 6598) address space: what nobody on the internet has."""

_LARGEST_VPC_PREFIX = 16
"""A VPC's own block is /16 at most (VPC user guide)."""


@rule(
    "DPD503",
    "The zones and the region agree",
    severity=Severity.ERROR,
    why="A subnet is made in the region of the provider: a zone of another region is refused by EC2 after the VPC stands.",
    sources=(PREREQUISITES_GUIDE,),
)
def zones_in_region(stack: StackSubject) -> Iterator[Violation]:
    """A zone outside `aws:region`."""
    network = stack.network
    if network is None:
        return
    region = stack.region or network.region
    if is_misspelt(region):
        # Said once, of the region itself.
        return
    places = [(("network", "zone"), network.zone)]
    places += [(("network", "controlPlaneZones", index), zone) for index, zone in enumerate(network.control_plane_zones)]
    for path, zone in places:
        if zone[:-1] != region:
            yield Violation(
                stack.at(*path),
                f"{zone} is not a zone of {region}",
                f"write {region}{zone[-1]}" if is_misspelt(zone[:-1]) else f"name a zone of {region}, or change aws:region",
                value=zone,
                related=(stack.at("network", "zone"),),
            )


@rule(
    "DPD504",
    "The GPU subnet has an address for everything",
    severity=Severity.ERROR,
    why="A P5 node can use 81 addresses on EKS, and a subnet can never be resized: with too few, nodes fail to join long after the plan.",
    sources=(PREREQUISITES_GUIDE, VPC_USER_GUIDE),
)
def gpu_subnet_is_large_enough(stack: StackSubject) -> Iterator[Violation]:
    """More addresses needed than the GPU subnet has."""
    if stack.network is None:
        return
    needed, usable = _addresses(stack, stack.network)
    if needed > usable:
        network = stack.network
        largest = max(stack.groups, key=lambda group: addresses_needed([(group.name, group.spec)]), default=None)
        own = "set network.gpuCidr to a block of its own (a VPC takes secondary blocks)"
        if network.gpu_cidr is not None:
            at, fix = stack.at("network", "gpuCidr"), "take a larger block"
        else:
            at = stack.at("network", "cidr")
            if "cidr" not in network.model_fields_set and largest is not None:
                at = stack.at("instanceGroups", largest.name, "count")
            fix = own if IPv4Network(network.cidr).prefixlen == _LARGEST_VPC_PREFIX else f"take a larger block, or {own}"
        yield Violation(
            at,
            f"the groups can use {needed:,} addresses at their counts, the GPU subnet has {usable:,}",
            f"{fix}; fewer nodes help too",
            value=largest.spec.count if largest and at[-1] == "count" else network.gpu_cidr or network.cidr,
            related=(stack.at("instanceGroups"), stack.at("network", "cidr")),
        )


@rule(
    "DPD515",
    "The network's blocks are private ones",
    severity=Severity.WARNING,
    why="Inside the VPC a public block hides the hosts that really have its addresses: nodes cannot reach them, and nothing says why.",
    sources=(ADDRESS_BLOCKS, VPC_USER_GUIDE),
)
def blocks_are_private(stack: StackSubject) -> Iterator[Violation]:
    """A `cidr` or `gpuCidr` outside 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and 100.64.0.0/10."""
    if stack.network is None:
        return
    for key, text in (("cidr", stack.network.cidr), ("gpuCidr", stack.network.gpu_cidr)):
        if text is not None and not any(IPv4Network(text).subnet_of(private) for private in PRIVATE_BLOCKS):
            fix = f"take a block of {', '.join(str(private) for private in PRIVATE_BLOCKS)}"
            yield Violation(stack.at("network", key), f"{text} is public address space", fix, value=text)


@rule(
    "DPD505",
    "The GPU subnet leaves room to grow",
    severity=Severity.WARNING,
    why="A subnet can never be resized, and HyperPod's network configuration is immutable: a full subnet means a new cluster.",
    sources=(PREREQUISITES_GUIDE,),
)
def gpu_subnet_has_room(stack: StackSubject) -> Iterator[Violation]:
    """Over half of the addresses used already."""
    if stack.network is None:
        return
    needed, usable = _addresses(stack, stack.network)
    if usable // 2 < needed <= usable:
        yield Violation(
            stack.at("network"),
            f"the groups can use {needed:,} of the GPU subnet's {usable:,} addresses: there is no room to double",
            "take a larger block now, before the cluster exists",
            related=(stack.at("instanceGroups"),),
        )


@rule(
    "DPD506",
    "The network's blocks do not overlap",
    severity=Severity.ERROR,
    why="EC2 refuses overlapping subnets, and a secondary block that overlaps the VPC's own.",
    sources=(VPC_USER_GUIDE,),
)
def blocks_do_not_overlap(stack: StackSubject) -> Iterator[Violation]:
    """A GPU block that overlaps the EKS and public subnets, or half of the VPC."""
    network = stack.network
    if network is None or network.gpu_cidr is None:
        return
    gpu, vpc = IPv4Network(network.gpu_cidr or ""), IPv4Network(network.cidr)
    others = [subnet for subnet in plan_subnets(network) if subnet.kind is not SubnetKind.GPU and IPv4Network(subnet.cidr).overlaps(gpu)]
    if others or (gpu.overlaps(vpc) and not gpu.subnet_of(vpc)):
        clash = ", ".join(f"{subnet.name} {subnet.cidr}" for subnet in others) or f"the VPC's {network.cidr}"
        upper = list(vpc.subnets(prefixlen_diff=1))[1]
        yield Violation(
            stack.at("network", "gpuCidr"),
            f"{gpu} overlaps {clash}",
            f"use {upper} (the upper half of cidr) or a block outside {vpc}",
            value=str(gpu),
            related=(stack.at("network", "cidr"),),
        )


def _addresses(stack: StackSubject, network: NetworkSpec) -> tuple[int, int]:
    """Addresses needed and usable in the GPU subnet."""
    gpu = next(subnet for subnet in plan_subnets(network) if subnet.kind is SubnetKind.GPU)
    return addresses_needed((group.name, group.spec) for group in stack.groups), gpu.usable_addresses
