"""The simulated VPC: subnets, gateways, routes, endpoints and security groups, with the references and clashes that EC2 checks."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.base import existing, existing_security_group, existing_subnet, existing_vpc
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _violation(operation: str, message: str) -> AwsError:
    return AwsError("EC2", operation, "DependencyViolation", message)


def _block(text: str, operation: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        message = f"Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block."
        raise AwsError("EC2", operation, "InvalidParameterValue", message) from None


def _needs(account: SimulatedAccount, tokens: tuple[str, ...], key: str, id: str) -> list[Resource]:
    return [item for item in account.all(*tokens) if item.outputs.get(key) == id or id in (item.outputs.get(key) or [])]


class Vpc(ResourceType):
    """A VPC: it goes only after all that stands in it."""

    token = base.VPC
    replace_on = ("cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength")

    def create(self, call: Call) -> Made:
        _block(call.text("cidrBlock"), "CreateVpc")
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
        if _needs(call.account, tokens, "vpcId", call.id):
            raise _violation("DeleteVpc", f"The vpc '{call.id}' has dependencies and cannot be deleted.")


class VpcIpv4CidrBlockAssociation(ResourceType):
    """A further address block of a VPC, in use while a subnet lies in it."""

    token = base.CIDR_ASSOCIATION
    replace_on = ("cidrBlock", "vpcId", "ipv4IpamPoolId", "ipv4NetmaskLength")

    def create(self, call: Call) -> Made:
        vpc = existing_vpc(call, "AssociateVpcCidrBlock")
        block = _block(call.text("cidrBlock"), "AssociateVpcCidrBlock")
        if any(block.overlaps(other) for other in _blocks(call.account, vpc.id, vpc.outputs)):
            raise AwsError("EC2", "AssociateVpcCidrBlock", "InvalidVpc.Range", f"The CIDR '{block}' conflicts with another subnet")
        return Made(call.account.hex("vpc-cidr-assoc", call.urn))

    def delete(self, call: Call) -> None:
        block = ipaddress.ip_network(call.text("cidrBlock"))
        for subnet in _needs(call.account, (base.SUBNET,), "vpcId", call.text("vpcId")):
            if ipaddress.ip_network(subnet.outputs["cidrBlock"]).overlaps(block):
                message = f"The vpc CIDR block with association ID {call.id} is currently in use and cannot be disassociated."
                raise AwsError("EC2", "DisassociateVpcCidrBlock", "InvalidCidrBlock.InUse", message)


def _blocks(account: SimulatedAccount, vpc: str, outputs: Mapping[str, Any]) -> list[Network]:
    more = [item.outputs["cidrBlock"] for item in account.all(base.CIDR_ASSOCIATION, vpcId=vpc)]
    return [ipaddress.ip_network(text) for text in (outputs["cidrBlock"], *more)]


class Subnet(ResourceType):
    """A subnet: inside a block of its VPC, overlapping no other, in a zone that exists."""

    token = base.SUBNET
    replace_on = ("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId")

    def create(self, call: Call) -> Made:
        vpc = existing_vpc(call, "CreateSubnet")
        block = _block(call.text("cidrBlock"), "CreateSubnet")
        if not any(block.version == outer.version and block.subnet_of(outer) for outer in _blocks(call.account, vpc.id, vpc.outputs)):  # pyright: ignore[reportArgumentType]
            raise AwsError("EC2", "CreateSubnet", "InvalidSubnet.Range", f"The CIDR '{block}' is invalid.")
        for other in call.account.all(base.SUBNET, vpcId=vpc.id):
            if ipaddress.ip_network(other.outputs["cidrBlock"]).overlaps(block):
                raise AwsError("EC2", "CreateSubnet", "InvalidSubnet.Conflict", f"The CIDR '{block}' conflicts with another subnet")
        zone = call.text("availabilityZone") or f"{call.region}a"
        if zone not in zones(call.region, 6):
            allowed = ", ".join(zones(call.region, 6))
            message = f"Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the following"
            raise AwsError("EC2", "CreateSubnet", "InvalidParameterValue", f"{message} availability zones: {allowed}.")
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
        users = _needs(call.account, (base.NAT_GATEWAY,), "subnetId", call.id)
        users += _needs(call.account, (base.VPC_ENDPOINT,), "subnetIds", call.id)
        users += [item for item in call.account.all(base.CLUSTER) if call.id in item.get("vpcConfig.subnetIds", [])]
        users += [item for item in call.account.all(base.HYPERPOD_CLUSTER) if call.id in item.get("vpcConfig.subnets", [])]
        if users:
            raise _violation("DeleteSubnet", f"The subnet '{call.id}' has dependencies and cannot be deleted.")


def zones(region: str, count: int = 3) -> list[str]:
    """Names of availability zones of a region."""
    return [f"{region}{letter}" for letter in "abcdef"[:count]]


def zone_id(zone: str) -> str:
    """An availability zone id in AWS's form, such as `use2-az1`."""
    region, letter = zone[:-1], zone[-1]
    area, direction, number = region.rsplit("-", 2)
    return f"{area.replace('-', '')}{direction[0]}{number}-az{ord(letter) - ord('a') + 1}"


class InternetGateway(ResourceType):
    """The way out of a VPC: one a VPC, held by public addresses."""

    token = base.INTERNET_GATEWAY

    def create(self, call: Call) -> Made:
        if call.text("vpcId"):
            vpc = existing_vpc(call, "AttachInternetGateway")
            if call.account.all(base.INTERNET_GATEWAY, vpcId=vpc.id):
                message = f"Network {vpc.id} already has an internet gateway attached"
                raise AwsError("EC2", "AttachInternetGateway", "Resource.AlreadyAssociated", message)
        id = call.account.hex("igw", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"internet-gateway/{id}"), "ownerId": call.account.id})

    def delete(self, call: Call) -> None:
        vpc = str(call.now().get("vpcId"))
        subnets = {item.id for item in call.account.all(base.SUBNET, vpcId=vpc)}
        if any(item.outputs.get("subnetId") in subnets and item.outputs.get("allocationId") for item in call.account.all(base.NAT_GATEWAY)):
            message = (
                f"Network {vpc} has some mapped public address(es). Please unmap those public address(es) before detaching the gateway."
            )
            raise _violation("DetachInternetGateway", message)


class Eip(ResourceType):
    """A public address, held by a NAT gateway."""

    token = base.EIP

    def create(self, call: Call) -> Made:
        id = call.account.hex("eipalloc", call.urn)
        # 203.0.113.0/24 is reserved for documentation (RFC 5737).
        public = f"203.0.113.{1 + int(id[-2:], 16) % 254}"
        return Made(id, {"allocationId": id, "arn": call.arn("ec2", f"elastic-ip/{id}"), "publicIp": public, "domain": "vpc"})

    def delete(self, call: Call) -> None:
        if _needs(call.account, (base.NAT_GATEWAY,), "allocationId", call.id):
            message = f"Address with allocation id [{call.id}] cannot be released because it is in use."
            raise AwsError("EC2", "ReleaseAddress", "InvalidIPAddress.InUse", message)


class NatGateway(ResourceType):
    """A NAT gateway: needs an address, and an internet gateway in its VPC."""

    token = base.NAT_GATEWAY
    replace_on = ("subnetId", "allocationId", "connectivityType")

    def create(self, call: Call) -> Made:
        subnet = existing_subnet(call, call.text("subnetId"), "CreateNatGateway")
        address = {}
        if call.text("connectivityType", "public") == "public":
            vpc = subnet.outputs["vpcId"]
            if not call.account.all(base.INTERNET_GATEWAY, vpcId=vpc):
                raise AwsError("EC2", "CreateNatGateway", "Gateway.NotAttached", f"Network {vpc} has no Internet gateway attached")
            allocation = call.text("allocationId")
            message = f"The allocation ID '{allocation}' does not exist"
            code = "InvalidAllocationID.NotFound"
            eip = existing(call, base.EIP, allocation, service="EC2", operation="CreateNatGateway", code=code, message=message)
            address = {"publicIp": eip.outputs["publicIp"]}
        id = call.account.hex("nat", call.urn)
        suffix = id.removeprefix("nat-")
        private = str(ipaddress.ip_network(subnet.outputs["cidrBlock"])[10])
        return Made(id, {**address, "networkInterfaceId": f"eni-{suffix}", "privateIp": private, "associationId": f"eipassoc-{suffix}"})


def existing_route_table(call: Call, id: str, operation: str) -> None:
    """Refuse a route table that is neither made nor a VPC's main one."""
    if id in {item.outputs.get("mainRouteTableId") for item in call.account.all(base.VPC)}:
        return
    code = "InvalidRouteTableID.NotFound"
    existing(call, base.ROUTE_TABLE, id, service="EC2", operation=operation, code=code, message=f"The routeTable ID '{id}' does not exist")


class RouteTable(ResourceType):
    """A route table, held by its associations."""

    token = base.ROUTE_TABLE
    replace_on = ("vpcId",)

    def create(self, call: Call) -> Made:
        existing_vpc(call, "CreateRouteTable")
        id = call.account.hex("rtb", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"route-table/{id}"), "ownerId": call.account.id})

    def delete(self, call: Call) -> None:
        if _needs(call.account, (base.ROUTE_TABLE_ASSOCIATION,), "routeTableId", call.id):
            raise _violation("DeleteRouteTable", f"The routeTable '{call.id}' has dependencies and cannot be deleted.")


class Route(ResourceType):
    """A route: table and target must exist, one a destination."""

    token = base.ROUTE
    replace_on = ("routeTableId", "destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")

    def create(self, call: Call) -> Made:
        table = call.text("routeTableId")
        existing_route_table(call, table, "CreateRoute")
        destination = call.text("destinationCidrBlock") or call.text("destinationIpv6CidrBlock") or call.text("destinationPrefixListId")
        for key, token, code in (
            ("natGatewayId", base.NAT_GATEWAY, "InvalidNatGatewayID.NotFound"),
            ("gatewayId", base.INTERNET_GATEWAY, "InvalidGatewayID.NotFound"),
        ):
            target = call.text(key)
            if target:
                message = f"The gateway ID '{target}' does not exist"
                existing(call, token, target, service="EC2", operation="CreateRoute", code=code, message=message)
        id = f"r-{table}-{destination}"
        if call.account.find(base.ROUTE, id, region=call.region):
            raise AwsError("EC2", "CreateRoute", "RouteAlreadyExists", f"The route identified by {destination} already exists.")
        return Made(id, {"origin": "CreateRoute", "state": "active"})


class RouteTableAssociation(ResourceType):
    """A subnet's route table: one a subnet."""

    token = base.ROUTE_TABLE_ASSOCIATION
    replace_on = ("subnetId", "gatewayId")

    def create(self, call: Call) -> Made:
        existing_route_table(call, call.text("routeTableId"), "AssociateRouteTable")
        subnet = call.text("subnetId")
        if subnet:
            existing_subnet(call, subnet, "AssociateRouteTable")
            if call.account.all(base.ROUTE_TABLE_ASSOCIATION, subnetId=subnet):
                message = f"the specified association for route table {call.text('routeTableId')} conflicts with an existing association"
                raise AwsError("EC2", "AssociateRouteTable", "Resource.AlreadyAssociated", message)
        return Made(call.account.hex("rtbassoc", call.urn))


class VpcEndpoint(ResourceType):
    """A gateway or interface endpoint and what it refers to."""

    token = base.VPC_ENDPOINT
    replace_on = ("vpcId", "serviceName", "vpcEndpointType", "serviceRegion")

    def create(self, call: Call) -> Made:
        existing_vpc(call, "CreateVpcEndpoint")
        self._references(call)
        id = call.account.hex("vpce", call.urn)
        kind = call.text("vpcEndpointType", "Gateway")
        more: dict[str, Any] = {"prefixListId": f"pl-{id[-8:]}"} if kind == "Gateway" else {"networkInterfaceIds": [f"eni-{id[-17:]}"]}
        if kind == "Interface":
            name = f"{id}.{call.text('serviceName')}"
            more["dnsEntries"] = [{"dnsName": name, "hostedZoneId": "Z00000000000000000000"}]
        arn = call.arn("ec2", f"vpc-endpoint/{id}")
        return Made(id, {**more, "arn": arn, "ownerId": call.account.id, "state": "available", "vpcEndpointType": kind})

    def update(self, call: Call) -> Mapping[str, Any]:
        self._references(call)
        return {}

    def _references(self, call: Call) -> None:
        for table in call.inputs.get("routeTableIds") or []:
            existing_route_table(call, table, "CreateVpcEndpoint")
        for subnet in call.inputs.get("subnetIds") or []:
            existing_subnet(call, subnet, "CreateVpcEndpoint")
        for group in call.inputs.get("securityGroupIds") or []:
            existing_security_group(call, group, "CreateVpcEndpoint")


class SecurityGroup(ResourceType):
    """A security group: one name a VPC, held by whatever carries or names it."""

    token = base.SECURITY_GROUP
    replace_on = ("name", "namePrefix", "description", "vpcId")
    autoname = "name"

    def create(self, call: Call) -> Made:
        vpc = existing_vpc(call, "CreateSecurityGroup") if call.text("vpcId") else None
        name = call.text("name")
        if vpc and call.account.all(base.SECURITY_GROUP, vpcId=vpc.id, name=name):
            message = f"The security group '{name}' already exists for VPC '{vpc.id}'"
            raise AwsError("EC2", "CreateSecurityGroup", "InvalidGroup.Duplicate", message)
        id = call.account.hex("sg", call.urn)
        description = call.text("description", "Managed by Pulumi")
        return Made(id, {"arn": call.arn("ec2", f"security-group/{id}"), "ownerId": call.account.id, "description": description})

    def delete(self, call: Call) -> None:
        rules = [item for item in call.account.all(base.INGRESS_RULE, base.EGRESS_RULE) if item.outputs.get("securityGroupId") != call.id]
        users = [item for item in rules if item.outputs.get("referencedSecurityGroupId") == call.id]
        users += [item for item in call.account.all(base.CLUSTER) if call.id in item.get("vpcConfig.securityGroupIds", [])]
        users += [item for item in call.account.all(base.HYPERPOD_CLUSTER) if call.id in item.get("vpcConfig.securityGroupIds", [])]
        users += _needs(call.account, (base.VPC_ENDPOINT,), "securityGroupIds", call.id)
        if users:
            raise _violation("DeleteSecurityGroup", f"resource {call.id} has a dependent object")


class _Rule(ResourceType):
    operation = ""
    replace_on = ("securityGroupId",)

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
                message = f'the specified rule "peer: {peer}, {call.text("ipProtocol")}, ALLOW" already exists'
                raise AwsError("EC2", self.operation, "InvalidPermission.Duplicate", message)
        id = call.account.hex("sgr", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"security-group-rule/{id}"), "securityGroupRuleId": id})


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
    replace_on = ("vpcId", "subnetId", "eniId", "logDestination", "trafficType", "iamRoleArn", "logFormat", "maxAggregationInterval")

    def create(self, call: Call) -> Made:
        if call.text("vpcId"):
            existing_vpc(call, "CreateFlowLogs")
        id = call.account.hex("fl", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"vpc-flow-log/{id}")})


class Tag(ResourceType):
    """A single tag on something else."""

    token = "aws:ec2/tag:Tag"  # noqa: S105 - a type token
    replace_on = ("resourceId", "key")

    def create(self, call: Call) -> Made:
        return Made(f"{call.text('resourceId')},{call.text('key')}")


TYPES: tuple[ResourceType, ...] = (
    Vpc(),
    VpcIpv4CidrBlockAssociation(),
    Subnet(),
    InternetGateway(),
    Eip(),
    NatGateway(),
    RouteTable(),
    Route(),
    RouteTableAssociation(),
    VpcEndpoint(),
    SecurityGroup(),
    IngressRule(),
    EgressRule(),
    FlowLog(),
    Tag(),
)
