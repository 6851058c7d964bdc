"""What a network may have beside its routes: interface endpoints in place of a way out, and flow logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from dpd_infra.catalog.interface_endpoints import SERVICES
from dpd_infra.components._roles import make_role
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.plan.iam import flow_logs_role
from dpd_infra.spec.network import FlowLogsSpec

HTTPS = 443
"""Every interface endpoint answers on it."""


def interface_endpoints(
    parent: pulumi.Resource,
    name: str,
    *,
    vpc_id: pulumi.Input[str],
    subnet_id: pulumi.Input[str],
    blocks: Mapping[str, str],
    more: Sequence[str],
    account: Account,
) -> tuple[pulumi.Resource, ...]:
    """An endpoint a service, in one subnet of the GPU zone, open to the VPC's `blocks` (by a stable suffix) and to nobody else.

    One zone, as with NAT: all nodes are there, and an endpoint costs by zone. `more` are services beside the known ones.
    """
    inside = pulumi.ResourceOptions(parent=parent)
    group = aws.ec2.SecurityGroup(
        f"{name}-endpoints",
        description="Interface endpoints: HTTPS from the VPC",
        vpc_id=vpc_id,
        tags=aws_tags(account, "endpoints"),
        opts=inside,
    )
    rules = [
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-endpoints-from-{suffix}",
            description="HTTPS from the VPC",
            security_group_id=group.id,
            cidr_ipv4=block,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            tags=aws_tags(account, f"endpoints-from-{suffix}"),
            opts=inside,
        )
        for suffix, block in blocks.items()
    ]
    endpoints = [
        aws.ec2.VpcEndpoint(
            f"{name}-{service.replace('.', '-')}",
            vpc_id=vpc_id,
            service_name=f"com.amazonaws.{account.region}.{service}",
            vpc_endpoint_type="Interface",
            subnet_ids=[subnet_id],
            security_group_ids=[group.id],
            # The services' own names lead to the endpoints: nothing that calls them has to be told.
            private_dns_enabled=True,
            tags=aws_tags(account, service),
            opts=inside,
        )
        for service in sorted({*SERVICES, *more})
    ]
    return (*rules, *endpoints)


def flow_logs(parent: pulumi.Resource, name: str, spec: FlowLogsSpec, *, vpc_id: pulumi.Input[str], account: Account) -> aws.ec2.FlowLog:
    """The VPC's flow log with its log group and the role that writes it."""
    inside = pulumi.ResourceOptions(parent=parent)
    group = aws.cloudwatch.LogGroup(
        f"{name}-flow-logs",
        name=f"/aws/vpc-flow-logs/{account.naming.scope}",
        retention_in_days=spec.retention_days,
        tags=aws_tags(account, "flow-logs"),
        opts=inside,
    )
    role = make_role(
        parent,
        f"{name}-flow-logs-role",
        group.arn.apply(
            lambda arn: flow_logs_role(region=account.region, account_id=account.account_id, log_group_arn=arn, partition=account.partition)
        ),
        role_name=account.naming.role("flow-logs"),
        account=account,
        suffix="flow-logs-role",
    )
    return aws.ec2.FlowLog(
        f"{name}-flow-log",
        vpc_id=vpc_id,
        traffic_type=spec.traffic.value,
        log_destination=group.arn,
        iam_role_arn=role.arn,
        tags=aws_tags(account, "flow-log"),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(role.resources)),
    )
