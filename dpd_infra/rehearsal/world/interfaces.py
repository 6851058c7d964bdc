"""The network interfaces that stand in subnets, whoever made them: what uses addresses, and what blocks a network's deletion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.world.made import LOAD_BALANCER
from dpd_infra.rehearsal.world.nodes import group_specs, groups, size_of


@dataclass(frozen=True)
class Interface:
    """One interface, or several equal ones of one owner in one subnet."""

    subnet: str
    groups: tuple[str, ...]
    """The security groups that it carries."""
    owner: str
    """What it belongs to, for people."""
    number: int = 1
    addresses: int = 1
    """Of all of them."""


def interfaces(account: SimulatedAccount, region: str) -> Iterator[Interface]:
    """Every interface of a region."""
    for group in groups(account):
        security = tuple(group.network.get("securityGroupIds") or ())
        for subnet, number in group.placed.items():
            if group.cluster.region == region:
                owner = f"nodes of HyperPod instance group {group.name}"
                yield Interface(subnet, security, owner, number, number * max(1, group.addresses))
    for item in account.all(base.CLUSTER, base.NAT_GATEWAY, base.VPC_ENDPOINT, LOAD_BALANCER):
        if item.region == region:
            yield from _of(item)


def _of(item: Resource) -> Iterator[Interface]:
    if item.type == base.CLUSTER:
        security = (str(item.get("vpcConfig.clusterSecurityGroupId", "")), *item.get("vpcConfig.securityGroupIds", []))
        for subnet in item.get("vpcConfig.subnetIds", []):
            yield Interface(str(subnet), security, f"control plane of EKS cluster {item.id}")
    elif item.type == base.NAT_GATEWAY:
        yield Interface(str(item.outputs.get("subnetId")), (), f"NAT gateway {item.id}")
    elif item.type == base.VPC_ENDPOINT:
        for subnet in item.outputs.get("subnetIds") or []:
            yield Interface(str(subnet), tuple(item.outputs.get("securityGroupIds") or ()), f"VPC endpoint {item.id}")
    else:
        for subnet in item.outputs["subnetIds"]:
            owner = f"load balancer {item.id}, made by the load balancer controller for {item.outputs['madeFor']}"
            yield Interface(str(subnet), tuple(item.outputs["securityGroupIds"]), owner)


def in_subnet(account: SimulatedAccount, subnet: Resource) -> list[Interface]:
    """The interfaces in one subnet."""
    return [item for item in interfaces(account, subnet.region) if item.subnet == subnet.id]


def carrying(account: SimulatedAccount, region: str, group: str) -> list[Interface]:
    """The interfaces that carry a security group; also those of groups that have no node yet but name it."""
    found = [item for item in interfaces(account, region) if group in item.groups]
    for cluster in account.all(base.HYPERPOD_CLUSTER):
        named = [cluster.outputs.get("vpcConfig") or {}, *(spec.get("overrideVpcConfig") or {} for spec in group_specs(cluster.outputs))]
        if cluster.region == region and any(group in (config.get("securityGroupIds") or []) for config in named):
            found.append(Interface("", (group,), f"HyperPod cluster {cluster.outputs.get('clusterName')}"))
    return found


def free(account: SimulatedAccount, subnet: Resource) -> int:
    """Addresses of a subnet that nobody has."""
    return size_of(subnet) - sum(item.addresses for item in in_subnet(account, subnet))


def owners(found: list[Interface]) -> str:
    """Whose interfaces they are, for people."""
    return ", ".join(sorted({item.owner for item in found}))
