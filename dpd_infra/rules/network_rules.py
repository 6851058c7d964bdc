"""Rules on the network and the control plane: zones, blocks, versions and who reaches the API."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from dpd_infra.catalog.addons import CONTROL_PLANE_ADDONS
from dpd_infra.catalog.kubernetes_versions import HYPERPOD_VERSIONS, INFERENCE_ADDON_VERSIONS, SUPPORTED_VERSIONS
from dpd_infra.catalog.regions import is_misspelt
from dpd_infra.catalog.sources import (
    ADDRESS_BLOCKS,
    CLOUDWATCH_LOGS_API,
    DESIGN_NOTE,
    EKS_PREREQUISITES_GUIDE,
    EKS_USER_GUIDE,
    OPERATOR_NOTES,
    PREREQUISITES_GUIDE,
    VPC_USER_GUIDE,
)
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.plan.subnets import SubnetKind, addresses_needed, control_plane_zones, plan_subnets
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.vocabulary import AccessPolicy

if TYPE_CHECKING:
    from dpd_infra.spec.network import NetworkSpec

LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""The retention times CloudWatch Logs takes (PutRetentionPolicy)."""

PRIVATE_BLOCKS = tuple(IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
"""Private (RFC 1918) and shared (RFC 6598) address space: what nobody on the internet has."""

_LARGEST_VPC_PREFIX = 16
"""A VPC's own block is /16 at most (VPC user guide)."""


@rule(
    "DPD501",
    "Somebody must reach the Kubernetes API",
    severity=Severity.ERROR,
    why="The API endpoint would be private with nothing said about how Pulumi gets there: `pulumi up` makes the cluster and then hangs "
    "at its first Kubernetes resource.",
    sources=(DESIGN_NOTE,),
)
def api_is_reachable(stack: StackSubject) -> Iterator[Violation]:
    """Neither CIDRs nor an explicit `private: true`."""
    if stack.control_plane and not stack.control_plane.public_access_cidrs and not stack.control_plane.private:
        yield Violation(
            stack.at("controlPlane"),
            "neither publicAccessCidrs nor private is set",
            "name the blocks you deploy from, publicAccessCidrs: [203.0.113.0/24], or say private: true if you deploy from within the VPC",
            related=(stack.at("controlPlane", "publicAccessCidrs"), stack.at("controlPlane", "private")),
        )


@rule(
    "DPD502",
    "The Kubernetes version is one that HyperPod and the operator both take",
    severity=Severity.ERROR,
    why=f"HyperPod takes EKS {HYPERPOD_VERSIONS[0]} to {HYPERPOD_VERSIONS[-1]}, the inference add-on {INFERENCE_ADDON_VERSIONS[0]} to "
    f"{INFERENCE_ADDON_VERSIONS[-1]}: outside both the cluster or the add-on is refused after EKS stands.",
    sources=(EKS_PREREQUISITES_GUIDE, OPERATOR_NOTES),
)
def kubernetes_version(stack: StackSubject) -> Iterator[Violation]:
    """Outside 1.32 to 1.35."""
    if stack.control_plane and (version := stack.control_plane.version) not in SUPPORTED_VERSIONS:
        yield Violation(
            stack.at("controlPlane", "version"),
            f"Kubernetes {version} is not supported",
            f'write "{SUPPORTED_VERSIONS[0]}" (the first good one) to "{SUPPORTED_VERSIONS[-1]}"',
            value=version,
        )


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


@rule(
    "DPD507",
    "Somebody may administer the cluster",
    severity=Severity.ERROR,
    why="With deployerAccess off and no other cluster admin, Pulumi's own Kubernetes resources are refused as Unauthorized.",
    sources=(EKS_USER_GUIDE,),
)
def somebody_administers(stack: StackSubject) -> Iterator[Violation]:
    """Nobody has the cluster-admin policy on the whole cluster."""
    if stack.control_plane is None or stack.control_plane.deployer_access:
        return
    grants = stack.control_plane.access.values()
    if not any(grant.policy is AccessPolicy.CLUSTER_ADMIN and not grant.namespaces for grant in grants):
        yield Violation(
            stack.at("controlPlane", "deployerAccess"),
            "nobody is given the cluster-admin policy",
            "set deployerAccess: true, or add a grant with policy: clusterAdmin for the role that runs `pulumi up`",
            related=(stack.at("controlPlane", "access"),),
        )


@rule(
    "DPD508",
    "The Kubernetes API is not open to everyone",
    severity=Severity.WARNING,
    why="0.0.0.0/0 lets the whole internet try the Kubernetes API; IAM still guards it, but a leaked key is then enough.",
    sources=(EKS_USER_GUIDE,),
)
def api_is_not_world_open(stack: StackSubject) -> Iterator[Violation]:
    """A block of /0."""
    if stack.control_plane:
        for index, cidr in enumerate(stack.control_plane.public_access_cidrs):
            if IPv4Network(cidr).prefixlen == 0:
                yield Violation(
                    stack.at("controlPlane", "publicAccessCidrs", index),
                    "the API endpoint is open to every address",
                    "name the blocks you deploy from",
                    value=cidr,
                )


@rule(
    "DPD509",
    "The log retention is one that CloudWatch takes",
    severity=Severity.ERROR,
    why="CloudWatch Logs takes certain numbers of days only and refuses the log group otherwise.",
    sources=(CLOUDWATCH_LOGS_API,),
)
def log_retention(stack: StackSubject) -> Iterator[Violation]:
    """A number of days CloudWatch refuses."""
    if stack.control_plane and (days := stack.control_plane.log_retention_days) not in LOG_RETENTION_DAYS:
        nearest = min((known for known in LOG_RETENTION_DAYS if known >= days), default=LOG_RETENTION_DAYS[-1])
        yield Violation(
            stack.at("controlPlane", "logRetentionDays"), f"CloudWatch does not take {days} days", f"write {nearest}", value=days
        )


@rule(
    "DPD510",
    "Pinned control-plane add-ons meet their minimums",
    severity=Severity.ERROR,
    why="HyperPod needs vpc-cni v1.18.3 or later, and takes no other network plugin.",
    sources=(EKS_PREREQUISITES_GUIDE,),
)
def control_plane_addon_versions(stack: StackSubject) -> Iterator[Violation]:
    """A pin below the minimum, or of an add-on that is not made with the control plane."""
    if stack.control_plane is None:
        return
    known = {addon.name: addon for addon in CONTROL_PLANE_ADDONS}
    for name, version in stack.control_plane.addon_versions.items():
        path = stack.at("controlPlane", "addonVersions", name)
        if name not in known:
            yield Violation(
                path,
                f"{name} is not an add-on of the control plane",
                f"the add-ons here are {', '.join(known)}; others are under addons",
                value=version,
            )
        elif problem := below_minimum(version, known[name].minimum):
            yield Violation(path, f"{name} {problem}", f"write {known[name].minimum} or later, or remove the pin", value=version)


@rule(
    "DPD511",
    "The EKS subnets are where the GPU nodes are",
    severity=Severity.WARNING,
    why="Without an EKS subnet in the GPU zone every call between nodes and the API crosses zones, which costs time and money.",
    sources=(EKS_USER_GUIDE,),
)
def control_plane_in_gpu_zone(stack: StackSubject) -> Iterator[Violation]:
    """Control-plane zones that leave the GPU zone out."""
    network = stack.network
    if network and not network.in_existing_vpc and network.zone not in control_plane_zones(network):
        yield Violation(
            stack.at("network", "controlPlaneZones"),
            f"the GPU zone {network.zone} is not among them",
            f"add {network.zone}",
            related=(stack.at("network", "zone"),),
        )


def _addresses(stack: StackSubject, network: NetworkSpec) -> tuple[int, int]:
    """Addresses needed and usable in the GPU subnet."""
    gpu = next(subnet for subnet in plan_subnets(network) if subnet.kind is SubnetKind.GPU)
    return addresses_needed((group.name, group.spec) for group in stack.groups), gpu.usable_addresses
