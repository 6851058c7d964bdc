"""Policies on the two clusters: the HyperPod cluster and its security groups, and the EKS control plane."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any

from dpd_infra.catalog.instance_types import instance_type
from dpd_infra.catalog.sources import AWS_NATIVE_CLUSTER, EKS_PREREQUISITES_GUIDE, EKS_USER_GUIDE, PREREQUISITES_GUIDE
from dpd_infra.policy.registration import EKS_CLUSTERS, HYPERPOD_CLUSTER, SECURITY_GROUP, NotKnownYet, Registration, mappings, texts
from dpd_infra.policy.registry import Breach, Context, resource_policy, stack_policy
from dpd_infra.spec.finding import Severity
from dpd_infra.testing.recording import UNKNOWN

_ALL_PROTOCOLS = frozenset({"-1", "all"})
_DIRECTIONS = ("ingress", "egress")
_RULE_TYPES = {
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "ingress",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": "egress",
}
_CLASSIC_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"


@resource_policy(
    "DPD711",
    "A HyperPod cluster is protected",
    types=HYPERPOD_CLUSTER,
    severity=Severity.ERROR,
    why="Another name, network or EKS cluster replaces it: the GPU nodes are deleted before new ones are asked for, and the capacity may "
    "not come back. With `protect` the update stops there.",
    sources=(AWS_NATIVE_CLUSTER, EKS_PREREQUISITES_GUIDE),
)
def hyperpod_cluster_is_protected(cluster: Registration, _context: Context) -> Iterator[Breach]:
    """A HyperPod cluster whose resource options leave out `protect`."""
    if not cluster.protect:
        yield Breach("Pulumi may delete or replace this HyperPod cluster", "register it with protect=True")


@resource_policy(
    "DPD712",
    "The Kubernetes API is not open to the world",
    types=EKS_CLUSTERS,
    severity=Severity.ERROR,
    why="EKS opens the public endpoint to every address where nothing is said. Whoever holds a leaked token is then in the cluster from "
    "anywhere.",
    sources=(EKS_USER_GUIDE,),
)
def kubernetes_api_is_not_open(cluster: Registration, _context: Context) -> Iterator[Breach]:
    """A public endpoint whose blocks, taken together, are every IPv4 or IPv6 address."""
    settings = "vpcConfig" if cluster.type.startswith("aws:") else "resourcesVpcConfig"
    if cluster.get(settings, "endpointPublicAccess") is False:
        return
    blocks = cluster.get(settings, "publicAccessCidrs")
    if isinstance(blocks, list) and UNKNOWN in blocks:
        raise NotKnownYet(f"{settings}.publicAccessCidrs")
    named = texts(blocks)
    if not named:
        yield Breach("publicAccessCidrs is not set, which means every address", "name the addresses you deploy from, or close the endpoint")
    elif _is_everything(named):
        yield Breach(f"publicAccessCidrs is {', '.join(named)}, which is every address", "name the addresses you deploy from")


def _is_everything(blocks: Sequence[str]) -> bool:
    networks = [network for block in blocks for network in _network(block)]
    v4 = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    v6 = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    return any(network.prefixlen == 0 for network in (*ipaddress.collapse_addresses(v4), *ipaddress.collapse_addresses(v6)))


def _network(block: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    # One that is no block is refused by EKS.
    with contextlib.suppress(ValueError):
        yield ipaddress.ip_network(block, strict=False)


@resource_policy(
    "DPD713",
    "Kubernetes Secrets are encrypted with a key of your own",
    types=EKS_CLUSTERS,
    severity=Severity.WARNING,
    why="Without one EKS encrypts them with a key that AWS owns: its use is not in your trail, and you cannot take it away. A key can be "
    "added later, and never removed.",
    sources=(EKS_USER_GUIDE,),
)
def secrets_are_encrypted(cluster: Registration, _context: Context) -> Iterator[Breach]:
    """An EKS cluster without an encryption configuration for `secrets`."""
    if not any("secrets" in texts(entry.get("resources")) for entry in mappings(cluster.get("encryptionConfig"))):
        yield Breach("no KMS key encrypts this cluster's Secrets", "set encryptionConfig with resources [secrets] and a key's ARN")


@stack_policy(
    "DPD717",
    "EFA nodes may talk to each other, in both directions",
    severity=Severity.ERROR,
    why="EFA needs a security group with all traffic from and to the group itself; a rule for every address does not stand in for it. "
    "Without it the KV cache does not reach the decoder.",
    sources=(PREREQUISITES_GUIDE,),
)
def efa_groups_allow_themselves(stack: Sequence[Registration], _context: Context) -> Iterator[Breach]:
    """A HyperPod cluster with EFA nodes none of whose security groups, made in this stack, has both rules to itself."""
    by_urn = {resource.urn: resource for resource in stack}
    open_both_ways = _open_to_themselves(stack)
    for cluster in stack:
        if cluster.type != HYPERPOD_CLUSTER or not _has_efa(cluster):
            continue
        origins = cluster.property_dependencies.get("vpcConfig", ())
        groups = [by_urn[urn] for urn in origins if urn in by_urn and by_urn[urn].type == SECURITY_GROUP]
        # Groups that stand elsewhere are not looked at: their rules are not in this stack.
        if groups and not any(group.urn in open_both_ways for group in groups):
            names = ", ".join(group.name for group in groups)
            what = f"of the security groups {names} none allows all traffic from and to itself"
            yield Breach(what, "give one of them an ingress and an egress rule for protocol -1 that name the group itself", cluster.urn)


def _has_efa(cluster: Registration) -> bool:
    kinds = [instance_type(str(group.get("instanceType"))) for group in mappings(cluster.get("instanceGroups"))]
    return any(kind is not None and kind.efa_devices for kind in kinds)


def _open_to_themselves(stack: Sequence[Registration]) -> set[str]:
    """The URNs of the security groups with both rules to themselves."""
    groups = {resource.urn: resource for resource in stack if resource.type == SECURITY_GROUP}
    found = {(urn, direction) for resource in stack for urn, direction in _rules_to_itself(resource, groups)}
    return {urn for urn in groups if all((urn, direction) in found for direction in _DIRECTIONS)}


def _rules_to_itself(resource: Registration, groups: dict[str, Registration]) -> Iterator[tuple[str, str]]:
    """The group and the direction of a rule for all traffic that names its own group, in any of the three ways to write one."""
    if resource.type in _RULE_TYPES:
        if _is_all(resource.props.get("ipProtocol")):
            own = _groups_of(resource, "securityGroupId", groups)
            both = own & _groups_of(resource, "referencedSecurityGroupId", groups)
            yield from ((urn, _RULE_TYPES[resource.type]) for urn in both)
    elif resource.type == _CLASSIC_RULE:
        if _is_all(resource.props.get("protocol")):
            own = _groups_of(resource, "securityGroupId", groups)
            both = own if resource.props.get("self") is True else own & _groups_of(resource, "sourceSecurityGroupId", groups)
            yield from ((urn, str(resource.props.get("type"))) for urn in both)
    elif resource.urn in groups:
        for direction in _DIRECTIONS:
            if any(rule.get("self") is True and _is_all(rule.get("protocol")) for rule in mappings(resource.props.get(direction))):
                yield resource.urn, direction


def _groups_of(rule: Registration, key: str, groups: dict[str, Registration]) -> set[str]:
    """The group that a property names: by what its value comes from, which is known in a preview too, or by its id."""
    by_origin = {urn for urn in rule.property_dependencies.get(key, ()) if urn in groups}
    named = rule.props.get(key)
    return by_origin or {urn for urn, group in groups.items() if isinstance(named, str) and named == group.props.get("id")}


def _is_all(protocol: Any) -> bool:
    return str(protocol).lower() in _ALL_PROTOCOLS
