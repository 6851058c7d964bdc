"""Rules on the EKS cluster: its version, who reaches and administers its API, its logs and add-ons."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from dpd_infra.catalog.addons import CONTROL_PLANE_ADDONS
from dpd_infra.catalog.kubernetes_versions import HYPERPOD_VERSIONS, INFERENCE_ADDON_VERSIONS, SUPPORTED_VERSIONS
from dpd_infra.catalog.sources import (
    CLOUDWATCH_LOGS_API,
    DESIGN_NOTE,
    EKS_PREREQUISITES_GUIDE,
    EKS_USER_GUIDE,
    OPERATOR_NOTES,
)
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.plan.subnets import control_plane_zones
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.vocabulary import AccessPolicy

LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""The retention times CloudWatch Logs takes (PutRetentionPolicy)."""


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
