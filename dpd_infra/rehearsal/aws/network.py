"""The simulated VPC: subnets, gateways, routes, endpoints and security groups, with the references and clashes that EC2 checks."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.base import existing_security_group, existing_vpc, needs, violation
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.world import interfaces
from dpd_infra.rehearsal.world.rules import account as rules
from dpd_infra.rehearsal.world.rules import ec2

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _block(text: str, operation: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise AwsError("EC2", operation, "InvalidParameterValue", ec2.CIDR_BLOCK(block=text)) from None


class Vpc(ResourceType):
    """A VPC: it goes only after all that stands in it."""

    token = base.VPC

    def create(self, call: Call) -> Made:
        _block(call.text("cidrBlock"), "CreateVpc")
        limit = call.account.world.quotas.vpcs
        if limit is not None and len(base.in_region(call, base.VPC)) >= limit:
            raise AwsError("EC2", "CreateVpc", "VpcLimitExceeded", rules.VPC_QUOTA())
        id = call.account.hex("vpc", call.urn)
        suffix = id.removeprefix("vpc-")
        return Made(
            id,
            {
                "arn": call.arn("ec2", f"vpc/{id}"),
                "defaultNetworkAclId": f"acl-{suffix}",
                "defaultRouteTableId": f"rtb-{suffix}",
                "defaultSecurityGroupId": f"sg-{suffix}",
                "dhcpOptionsId": f"dopt-{suffix}",
                "enableDnsSupport": call.inputs.get("enableDnsSupport", True),
                "instanceTenancy": call.inputs.get("instanceTenancy", "default"),
                "mainRouteTableId": f"rtb-{suffix}",
                "ownerId": call.account.id,
            },
        )

    def delete(self, call: Call) -> None:
        tokens = (base.SUBNET, base.INTERNET_GATEWAY, base.VPC_ENDPOINT, base.SECURITY_GROUP, base.ROUTE_TABLE)
        left = needs(call.account, tokens, "vpcId", call.id)
        if left:
            base.explain(call, [item for item in left if not item.urn])
            raise violation("DeleteVpc", rules.VPC_IN_USE(id=call.id))


class VpcIpv4CidrBlockAssociation(ResourceType):
    """A further address block of a VPC, in use while a subnet lies in it."""

    token = base.CIDR_ASSOCIATION

    def create(self, call: Call) -> Made:
        vpc = existing_vpc(call, "AssociateVpcCidrBlock")
        block = _block(call.text("cidrBlock"), "AssociateVpcCidrBlock")
        for other in (vpc, *call.account.all(base.CIDR_ASSOCIATION, vpcId=vpc.id)):
            if block.overlaps(ipaddress.ip_network(other.outputs["cidrBlock"])):
                message = call.taken(ec2.VPC_BLOCKS(block=block, vpc=vpc.id), other)
                raise AwsError("EC2", "AssociateVpcCidrBlock", "InvalidVpc.Range", message)
        return Made(call.account.hex("vpc-cidr-assoc", call.urn))

    def delete(self, call: Call) -> None:
        block = ipaddress.ip_network(call.text("cidrBlock"))
        for subnet in needs(call.account, (base.SUBNET,), "vpcId", call.text("vpcId")):
            if ipaddress.ip_network(subnet.outputs["cidrBlock"]).overlaps(block):
                message = ec2.VPC_BLOCK_IN_USE(vpc=call.text("vpcId"), block=block)
                raise AwsError("EC2", "DisassociateVpcCidrBlock", "InvalidCidrBlock.InUse", message)


def _blocks(account: SimulatedAccount, vpc: str, outputs: Mapping[str, Any]) -> list[Network]:
    more = [item.outputs["cidrBlock"] for item in account.all(base.CIDR_ASSOCIATION, vpcId=vpc)]
    return [ipaddress.ip_network(text) for text in (outputs["cidrBlock"], *more)]


class Subnet(ResourceType):
    """A subnet: inside a block of its VPC, overlapping no other, in a zone that exists."""

    token = base.SUBNET

    def create(self, call: Call) -> Made:
        vpc = existing_vpc(call, "CreateSubnet")
        block = _block(call.text("cidrBlock"), "CreateSubnet")
        if not any(block.version == outer.version and block.subnet_of(outer) for outer in _blocks(call.account, vpc.id, vpc.outputs)):  # pyright: ignore[reportArgumentType]
            raise AwsError("EC2", "CreateSubnet", "InvalidSubnet.Range", ec2.SUBNET_IN_BLOCK(block=block))
        for other in call.account.all(base.SUBNET, vpcId=vpc.id):
            if ipaddress.ip_network(other.outputs["cidrBlock"]).overlaps(block):
                raise AwsError("EC2", "CreateSubnet", "InvalidSubnet.Conflict", call.taken(ec2.SUBNETS_APART(block=block), other))
        zone = call.text("availabilityZone") or f"{call.region}a"
        if zone not in zones(call.region, 6):
            message = ec2.ZONE_EXISTS(zone=zone, zones=", ".join(zones(call.region, 6)))
            raise AwsError("EC2", "CreateSubnet", "InvalidParameterValue", message)
        id = call.account.hex("subnet", call.urn)
        return Made(
            id,
            {
                "arn": call.arn("ec2", f"subnet/{id}"),
                "availabilityZone": zone,
                "availabilityZoneId": zone_id(zone),
                "ownerId": call.account.id,
                "mapPublicIpOnLaunch": call.inputs.get("mapPublicIpOnLaunch", False),
            },
        )

    def delete(self, call: Call) -> None:
        here = interfaces.in_subnet(call.account, call.record) if call.record else []
        named = [item for item in call.account.all(base.HYPERPOD_CLUSTER) if call.id in item.get("vpcConfig.subnets", [])]
        if here or named:
            call.warn(f"network interfaces are left in {call.id}: {interfaces.owners(here) or 'a HyperPod cluster names it'}")
            raise violation("DeleteSubnet", rules.SUBNET_IN_USE(id=call.id))


def zones(region: str, count: int = 3) -> list[str]:
    """Names of availability zones of a region."""
    return [f"{region}{letter}" for letter in "abcdef"[:count]]


def zone_id(zone: str) -> str:
    """An availability zone id in AWS's form, such as `use2-az1`."""
    region, letter = zone[:-1], zone[-1]
    area, direction, number = region.rsplit("-", 2)
    return f"{area.replace('-', '')}{direction[0]}{number}-az{ord(letter) - ord('a') + 1}"


class SecurityGroup(ResourceType):
    """A security group: one name a VPC, held by whatever carries or names it."""

    token = base.SECURITY_GROUP
    autoname = "name"

    def create(self, call: Call) -> Made:
        vpc = existing_vpc(call, "CreateSecurityGroup") if call.text("vpcId") else None
        name = call.text("name")
        if vpc and (there := call.account.first(base.SECURITY_GROUP, vpcId=vpc.id, name=name)) is not None:
            message = call.taken(ec2.GROUP_NAME(name=name, vpc=vpc.id), there)
            raise AwsError("EC2", "CreateSecurityGroup", "InvalidGroup.Duplicate", message)
        id = call.account.hex("sg", call.urn)
        description = call.text("description", "Managed by Pulumi")
        return Made(id, {"arn": call.arn("ec2", f"security-group/{id}"), "ownerId": call.account.id, "description": description})

    def delete(self, call: Call) -> None:
        others = [item for item in call.account.all(base.INGRESS_RULE, base.EGRESS_RULE) if item.outputs.get("securityGroupId") != call.id]
        users = [item for item in others if item.outputs.get("referencedSecurityGroupId") == call.id]
        carried = interfaces.carrying(call.account, call.record.region, call.id) if call.record else []
        if users or carried:
            if carried:
                call.warn(f"{call.id} is carried by {interfaces.owners(carried)}")
            raise violation("DeleteSecurityGroup", rules.GROUP_IN_USE(id=call.id))


class _Rule(ResourceType):
    operation = ""

    def create(self, call: Call) -> Made:
        group = call.text("securityGroupId")
        existing_security_group(call, group, self.operation)
        referenced = call.text("referencedSecurityGroupId")
        if referenced:
            existing_security_group(call, referenced, self.operation)
        peers = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
        shape = ("ipProtocol", "fromPort", "toPort", *peers)
        for other in call.account.all(self.token, securityGroupId=group):
            if all(other.outputs.get(key) == call.inputs.get(key) for key in shape):
                peer = next((call.text(key) for key in peers if call.text(key)), "")
                message = call.taken(ec2.GROUP_RULE(peer=peer, ports=_ports(call)), other)
                raise AwsError("EC2", self.operation, "InvalidPermission.Duplicate", message)
        id = call.account.hex("sgr", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"security-group-rule/{id}"), "securityGroupRuleId": id})


def _ports(call: Call) -> str:
    """Protocol and ports as EC2 tells them: `ALL`, `TCP, from port: 443, to port: 443`."""
    protocol = call.text("ipProtocol")
    if protocol == "-1":
        return "ALL"
    return f"{protocol.upper()}, from port: {call.text('fromPort')}, to port: {call.text('toPort')}"


class IngressRule(_Rule):
    """A way in."""

    token = base.INGRESS_RULE
    operation = "AuthorizeSecurityGroupIngress"


class EgressRule(_Rule):
    """A way out."""

    token = base.EGRESS_RULE
    operation = "AuthorizeSecurityGroupEgress"


class FlowLog(ResourceType):
    """The flow log of a VPC."""

    token = "aws:ec2/flowLog:FlowLog"  # noqa: S105 - a type token

    def create(self, call: Call) -> Made:
        if call.text("vpcId"):
            existing_vpc(call, "CreateFlowLogs")
        id = call.account.hex("fl", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"vpc-flow-log/{id}")})


class Tag(ResourceType):
    """A single tag on something else."""

    token = "aws:ec2/tag:Tag"  # noqa: S105 - a type token

    def create(self, call: Call) -> Made:
        return Made(f"{call.text('resourceId')},{call.text('key')}")


TYPES: tuple[ResourceType, ...] = (
    Vpc(),
    VpcIpv4CidrBlockAssociation(),
    Subnet(),
    SecurityGroup(),
    IngressRule(),
    EgressRule(),
    FlowLog(),
    Tag(),
)
