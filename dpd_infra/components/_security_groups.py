"""The security groups that HyperPod nodes carry.

The EFA group allows all traffic to and from itself, both said explicitly, and nothing else: EFA needs the rule to itself even beside an
open outbound one, and an open outbound one in that group can fail EFA health checks (HyperPod prerequisites). So the way out is in a
second group, the nodes group. The EKS control plane's network interfaces carry both groups too (as in AWS's Terraform modules for
HyperPod), and reach kubelets and webhooks by the EFA group's rule to itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account

ALL_PROTOCOLS = "-1"
"""Every protocol and port (EC2 API, IpPermission)."""

ANYWHERE = "0.0.0.0/0"
"""Every IPv4 address."""

CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"
"""Before an EKS cluster's name: the AWS Load Balancer Controller opens the way to pods in the one group of a network interface with this
tag, and refuses an interface where none of several groups has it, or more than one (its issues 1594, 1897)."""


@dataclass(frozen=True, slots=True)
class NodeSecurityGroups:
    """Both groups with their rules."""

    efa: aws.ec2.SecurityGroup
    nodes: aws.ec2.SecurityGroup
    rules: tuple[pulumi.Resource, ...]
    """What must stand before a node starts."""


@dataclass(frozen=True, slots=True)
class Way:
    """Where a rule leads: a block, or a list of blocks."""

    cidr: str | None = None
    prefix_list_id: pulumi.Input[str] | None = None


OPEN: Mapping[str, Way] = {"anywhere": Way(cidr=ANYWHERE)}
"""The way out of nodes with NAT, by the suffix of its rule's name."""


def node_security_groups(
    parent: pulumi.Resource,
    name: str,
    *,
    vpc_id: pulumi.Input[str],
    account: Account,
    cluster_name: str | None,
    ways_out: Mapping[str, Way] = OPEN,
) -> NodeSecurityGroups:
    """Make both groups as children of a component; the nodes group is marked as the EKS cluster's where that is named."""
    inside = pulumi.ResourceOptions(parent=parent)
    efa = aws.ec2.SecurityGroup(
        f"{name}-efa",
        description="HyperPod nodes: all traffic among themselves, EFA included",
        vpc_id=vpc_id,
        tags=aws_tags(account, "efa"),
        opts=inside,
    )
    nodes = aws.ec2.SecurityGroup(
        f"{name}-nodes",
        description="HyperPod nodes: the way out, and what load balancers open",
        vpc_id=vpc_id,
        # The controller's rules name its own groups, which could not be deleted while this one still pointed at them.
        revoke_rules_on_delete=True,
        tags=aws_tags(account, "nodes", {f"{CLUSTER_TAG_PREFIX}{cluster_name}": "owned"} if cluster_name else None),
        opts=inside,
    )
    rules = (
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-efa-from-itself",
            description="All traffic from the group itself",
            security_group_id=efa.id,
            referenced_security_group_id=efa.id,
            ip_protocol=ALL_PROTOCOLS,
            tags=aws_tags(account, "efa-from-itself"),
            opts=inside,
        ),
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-efa-to-itself",
            description="All traffic to the group itself",
            security_group_id=efa.id,
            referenced_security_group_id=efa.id,
            ip_protocol=ALL_PROTOCOLS,
            tags=aws_tags(account, "efa-to-itself"),
            opts=inside,
        ),
        *(
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-nodes-to-{suffix}",
                description="Images, models and AWS APIs",
                security_group_id=nodes.id,
                cidr_ipv4=way.cidr,
                prefix_list_id=way.prefix_list_id,
                ip_protocol=ALL_PROTOCOLS,
                tags=aws_tags(account, f"nodes-to-{suffix}"),
                opts=inside,
            )
            for suffix, way in ways_out.items()
        ),
    )
    return NodeSecurityGroups(efa, nodes, rules)
