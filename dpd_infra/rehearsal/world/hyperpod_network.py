"""The network that a HyperPod cluster needs: subnets of its VPC with a way out, one zone and an open security group for EFA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.simulation import Call
from dpd_infra.rehearsal.world.nodes import Group, group_specs
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import hyperpod as rules

NEEDED_ENDPOINTS = frozenset({"ec2", "ecr.api", "ecr.dkr", "eks-auth", "logs", "monitoring", "sts"})
"""Services that a node calls before it is of use; without a way out each needs an interface endpoint (AWS's Terraform modules)."""

_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"


def check(call: Call, eks: Resource, candidate: Resource) -> None:
    """Raise `SimulatedError` where the network of a cluster to be made will not do."""
    for config in _networks(candidate.outputs):
        for id in config.get("securityGroupIds") or []:
            base.existing_security_group(call, id, "CreateCluster", "SageMaker")
        for id in config.get("subnets") or []:
            subnet = base.existing_subnet(call, id, "CreateCluster", "SageMaker")
            if subnet.outputs["vpcId"] != eks.get("vpcConfig.vpcId"):
                raise _refused("InvalidRequest", rules.SUBNET_IN_VPC(subnet=id, cluster=eks.id))
            if not has_nat(call.account, subnet) and not has_endpoints(call.account, call.region, str(subnet.outputs["vpcId"])):
                raise _refused("GeneralServiceException", rules.WAY_OUT(subnet=id))
    for spec in group_specs(candidate.outputs):
        group = Group(candidate, spec)
        named = [str(id) for id in group.network.get("securityGroupIds") or []]
        if named and not any(_lets_out(call.account, call.region, id) for id in named):
            raise _refused("GeneralServiceException", rules.EGRESS(group=group.name, groups=", ".join(named)))
        if group.has_efa:
            _efa(call, group)


def _refused(code: str, message: Said) -> SimulatedError:
    return SimulatedError(message.within(f'operation CREATE failed with "{code}": {message}'))


def _networks(properties: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield properties.get("vpcConfig") or {}
    for spec in group_specs(properties):
        if spec.get("overrideVpcConfig"):
            yield spec["overrideVpcConfig"]


def _efa(call: Call, group: Group) -> None:
    subnets = [call.account.find(base.SUBNET, id, region=call.region) for id in group.network.get("subnets") or []]
    zones = {str(subnet.outputs["availabilityZone"]) for subnet in subnets if subnet is not None}
    own = group.spec.get("overrideVpcConfig")
    if own and len(zones) > 1:
        raise _refused("InvalidRequest", rules.ONE_ZONE(group=group.name, zones=", ".join(sorted(zones))))
    named = [str(id) for id in group.network.get("securityGroupIds") or []]
    if not any(opens_to_itself(call.account, call.region, id) for id in named):
        call.warn(f"no security group of group {group.name} lets all traffic in from itself and out to itself: {', '.join(named)}")
        raise _refused("GeneralServiceException", rules.EFA_HEALTH())


def _lets_out(account: SimulatedAccount, region: str, group: str) -> bool:
    """Whether a security group lets traffic out to anything but itself; one that AWS made does."""
    found = account.find(base.SECURITY_GROUP, group, region=region)
    if found is None:
        return True
    rules_of = [item.outputs for item in account.all(base.EGRESS_RULE, securityGroupId=group)]
    rules_of += [item.outputs for item in account.all(_RULE, securityGroupId=group, type="egress")]
    if any(
        rule.get(key)
        for rule in rules_of
        for key in ("cidrIpv4", "cidrIpv6", "prefixListId", "cidrBlocks", "ipv6CidrBlocks", "prefixListIds")
    ):
        return True
    if any(rule.get("referencedSecurityGroupId") not in (None, group) for rule in rules_of):
        return True
    return any(
        rule.get("cidrBlocks") or rule.get("prefixListIds") or rule.get("securityGroups") for rule in found.outputs.get("egress") or []
    )


def opens_to_itself(account: SimulatedAccount, region: str, group: str) -> bool:
    """Whether a security group lets all traffic in from itself and out to itself, each with a rule of that kind."""
    ways = set()
    for item in account.all(base.INGRESS_RULE, base.EGRESS_RULE, securityGroupId=group):
        if item.outputs.get("referencedSecurityGroupId") == group and str(item.outputs.get("ipProtocol")) == "-1":
            ways.add("in" if item.type == base.INGRESS_RULE else "out")
    for item in account.all(_RULE, securityGroupId=group):
        if (item.outputs.get("self") or item.outputs.get("sourceSecurityGroupId") == group) and str(item.outputs.get("protocol")) == "-1":
            ways.add("in" if item.outputs.get("type") == "ingress" else "out")
    found = account.find(base.SECURITY_GROUP, group, region=region)
    for way, key in (("in", "ingress"), ("out", "egress")):
        inline = (found.outputs.get(key) if found else None) or []
        if any((rule.get("self") or group in (rule.get("securityGroups") or [])) and str(rule.get("protocol")) == "-1" for rule in inline):
            ways.add(way)
    return ways == {"in", "out"}


def has_nat(account: SimulatedAccount, subnet: Resource) -> bool:
    """Whether a subnet's default route leads through a transit gateway, or through NAT to the internet."""
    ways = _default_routes(account, subnet)
    return any(way.get("transitGatewayId") or _is_public(account, subnet.region, way.get("natGatewayId")) for way in ways)


def _is_public(account: SimulatedAccount, region: str, gateway: object) -> bool:
    """Whether a NAT gateway's own subnet leads to an internet gateway (VPC user guide, NAT gateways); one that was found here does."""
    if not gateway:
        return False
    made = account.find(base.NAT_GATEWAY, str(gateway), region=region)
    subnet = account.find(base.SUBNET, str(made.outputs["subnetId"]), region=region) if made else None
    return subnet is None or any(way.get("gatewayId") for way in _default_routes(account, subnet))


def _default_routes(account: SimulatedAccount, subnet: Resource) -> list[Mapping[str, Any]]:
    table = _table(account, subnet)
    if table is None:
        return []
    made = account.find(base.ROUTE_TABLE, table, region=subnet.region)
    inline = (made.outputs.get("routes") or []) if made else []
    routes = [route.outputs for route in account.all(base.ROUTE, routeTableId=table, destinationCidrBlock="0.0.0.0/0")]
    return [*routes, *(route for route in inline if route.get("cidrBlock") == "0.0.0.0/0")]


def reaches_s3(account: SimulatedAccount, subnet: Resource) -> bool:
    """Whether a subnet has a way to S3: a gateway endpoint on its route table, or NAT."""
    table = _table(account, subnet)
    gateways = account.all(base.VPC_ENDPOINT, serviceName=f"com.amazonaws.{subnet.region}.s3")
    on_table = {str(id) for item in gateways for id in item.outputs.get("routeTableIds") or []}
    associated = account.all("aws:ec2/vpcEndpointRouteTableAssociation:VpcEndpointRouteTableAssociation")
    on_table |= {str(item.outputs.get("routeTableId")) for item in associated}
    return table in on_table or has_nat(account, subnet)


def has_endpoints(account: SimulatedAccount, region: str, vpc: str) -> bool:
    """Whether a VPC has every endpoint that nodes need where there is no way out."""
    names = {str(item.outputs.get("serviceName")) for item in account.all(base.VPC_ENDPOINT, vpcId=vpc)}
    return {f"com.amazonaws.{region}.{service}" for service in (*NEEDED_ENDPOINTS, "s3")} <= names


def _table(account: SimulatedAccount, subnet: Resource) -> str | None:
    association = account.first(base.ROUTE_TABLE_ASSOCIATION, subnetId=subnet.id)
    return str(association.outputs["routeTableId"]) if association else None
