"""The simulated ways in and out of a VPC: gateways, addresses, routes and endpoints."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.base import existing, existing_security_group, existing_subnet, existing_vpc, needs, violation
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.world import interfaces
from dpd_infra.rehearsal.world.rules import account as rules
from dpd_infra.rehearsal.world.rules import ec2


class InternetGateway(ResourceType):
    """The way out of a VPC: one a VPC, held by public addresses."""

    token = base.INTERNET_GATEWAY

    def create(self, call: Call) -> Made:
        if call.text("vpcId"):
            vpc = existing_vpc(call, "AttachInternetGateway")
            if (there := call.account.first(base.INTERNET_GATEWAY, vpcId=vpc.id)) is not None:
                message = call.taken(ec2.ONE_GATEWAY(vpc=vpc.id), there)
                raise AwsError("EC2", "AttachInternetGateway", "InvalidParameterValue", message)
        limit = call.account.world.quotas.internet_gateways
        if limit is not None and len(base.in_region(call, base.INTERNET_GATEWAY)) >= limit:
            raise AwsError("EC2", "CreateInternetGateway", "InternetGatewayLimitExceeded", rules.GATEWAY_QUOTA())
        id = call.account.hex("igw", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"internet-gateway/{id}"), "ownerId": call.account.id})

    def delete(self, call: Call) -> None:
        vpc = str(call.now().get("vpcId"))
        subnets = {item.id for item in call.account.all(base.SUBNET, vpcId=vpc)}
        if any(item.outputs.get("subnetId") in subnets and item.outputs.get("allocationId") for item in call.account.all(base.NAT_GATEWAY)):
            raise violation("DetachInternetGateway", rules.MAPPED_ADDRESSES(vpc=vpc))


class Eip(ResourceType):
    """A public address, held by a NAT gateway."""

    token = base.EIP

    def create(self, call: Call) -> Made:
        limit = call.account.world.quotas.elastic_addresses
        if limit is not None and len(base.in_region(call, base.EIP)) >= limit:
            raise AwsError("EC2", "AllocateAddress", "AddressLimitExceeded", rules.ADDRESS_QUOTA())
        id = call.account.hex("eipalloc", call.urn)
        # 203.0.113.0/24 is reserved for documentation (RFC 5737).
        public = f"203.0.113.{1 + int(id[-2:], 16) % 254}"
        return Made(id, {"allocationId": id, "arn": call.arn("ec2", f"elastic-ip/{id}"), "publicIp": public, "domain": "vpc"})

    def delete(self, call: Call) -> None:
        if needs(call.account, (base.NAT_GATEWAY,), "allocationId", call.id):
            raise AwsError("EC2", "ReleaseAddress", "InvalidIPAddress.InUse", rules.ADDRESS_IN_USE(id=call.id))


class NatGateway(ResourceType):
    """A NAT gateway: needs an address, and an internet gateway in its VPC."""

    token = base.NAT_GATEWAY

    def create(self, call: Call) -> Made:
        subnet = existing_subnet(call, call.text("subnetId"), "CreateNatGateway")
        _has_room(call, subnet, "CreateNatGateway")
        address = {}
        if call.text("connectivityType", "public") == "public":
            vpc = subnet.outputs["vpcId"]
            if not call.account.all(base.INTERNET_GATEWAY, vpcId=vpc):
                raise AwsError("EC2", "CreateNatGateway", "Gateway.NotAttached", rules.NETWORK_HAS_GATEWAY(vpc=vpc))
            allocation = call.text("allocationId")
            message = ec2.ADDRESS_EXISTS(id=allocation)
            code = "InvalidAllocationID.NotFound"
            eip = existing(call, base.EIP, allocation, service="EC2", operation="CreateNatGateway", code=code, message=message)
            address = {"publicIp": eip.outputs["publicIp"]}
        id = call.account.hex("nat", call.urn)
        suffix = id.removeprefix("nat-")
        private = str(ipaddress.ip_network(subnet.outputs["cidrBlock"])[10])
        return Made(id, {**address, "networkInterfaceId": f"eni-{suffix}", "privateIp": private, "associationId": f"eipassoc-{suffix}"})


def _has_room(call: Call, subnet: Resource, operation: str) -> None:
    """Refuse what takes an address of a subnet that has none left."""
    if interfaces.free(call.account, subnet) < 1:
        raise AwsError("EC2", operation, "InsufficientFreeAddressesInSubnet", rules.SUBNET_FULL())


def existing_route_table(call: Call, id: str, operation: str) -> None:
    """Refuse a route table that is neither made nor a VPC's main one."""
    if id in {item.outputs.get("mainRouteTableId") for item in call.account.all(base.VPC)}:
        return
    code = "InvalidRouteTableID.NotFound"
    existing(call, base.ROUTE_TABLE, id, service="EC2", operation=operation, code=code, message=ec2.ROUTE_TABLE_EXISTS(id=id))


class RouteTable(ResourceType):
    """A route table, held by its associations."""

    token = base.ROUTE_TABLE

    def create(self, call: Call) -> Made:
        existing_vpc(call, "CreateRouteTable")
        id = call.account.hex("rtb", call.urn)
        return Made(id, {"arn": call.arn("ec2", f"route-table/{id}"), "ownerId": call.account.id})

    def delete(self, call: Call) -> None:
        if needs(call.account, (base.ROUTE_TABLE_ASSOCIATION,), "routeTableId", call.id):
            raise violation("DeleteRouteTable", ec2.ROUTE_TABLE_IN_USE(id=call.id))


class Route(ResourceType):
    """A route: table and target must exist, one a destination."""

    token = base.ROUTE

    def create(self, call: Call) -> Made:
        table = call.text("routeTableId")
        existing_route_table(call, table, "CreateRoute")
        destination = call.text("destinationCidrBlock") or call.text("destinationIpv6CidrBlock") or call.text("destinationPrefixListId")
        for key, token, code, rule in (
            ("natGatewayId", base.NAT_GATEWAY, "InvalidNatGatewayID.NotFound", ec2.NAT_GATEWAY_EXISTS),
            ("gatewayId", base.INTERNET_GATEWAY, "InvalidGatewayID.NotFound", ec2.GATEWAY_EXISTS),
        ):
            target = call.text(key)
            if target:
                message = rule(id=target)
                existing(call, token, target, service="EC2", operation="CreateRoute", code=code, message=message)
        id = f"r-{table}-{destination}"
        if (there := call.account.find(base.ROUTE, id, region=call.region)) is not None:
            raise AwsError("EC2", "CreateRoute", "RouteAlreadyExists", call.taken(ec2.ROUTE_ONCE(destination=destination), there))
        return Made(id, {"origin": "CreateRoute", "state": "active"})


class RouteTableAssociation(ResourceType):
    """A subnet's route table: one a subnet."""

    token = base.ROUTE_TABLE_ASSOCIATION

    def create(self, call: Call) -> Made:
        existing_route_table(call, call.text("routeTableId"), "AssociateRouteTable")
        subnet = call.text("subnetId")
        if subnet:
            existing_subnet(call, subnet, "AssociateRouteTable")
            if (there := call.account.first(base.ROUTE_TABLE_ASSOCIATION, subnetId=subnet)) is not None:
                message = call.taken(ec2.ONE_ROUTE_TABLE(id=call.text("routeTableId")), there)
                raise AwsError("EC2", "AssociateRouteTable", "Resource.AlreadyAssociated", message)
        return Made(call.account.hex("rtbassoc", call.urn))


class VpcEndpoint(ResourceType):
    """A gateway or interface endpoint and what it refers to."""

    token = base.VPC_ENDPOINT

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
        before = call.now().get("subnetIds") or []
        for id in call.inputs.get("subnetIds") or []:
            subnet = existing_subnet(call, id, "CreateVpcEndpoint")
            if id not in before:
                _has_room(call, subnet, "CreateVpcEndpoint")
        for group in call.inputs.get("securityGroupIds") or []:
            existing_security_group(call, group, "CreateVpcEndpoint")


TYPES: tuple[ResourceType, ...] = (
    InternetGateway(),
    Eip(),
    NatGateway(),
    RouteTable(),
    Route(),
    RouteTableAssociation(),
    VpcEndpoint(),
)
