"""What all simulated AWS resource types share: lookups with AWS's own refusals, and the generic type for what has no model."""

from __future__ import annotations

import re

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.wire import Unknown
from dpd_infra.rehearsal.world.rule import Said, WorldRule
from dpd_infra.rehearsal.world.rules import ec2

VPC = "aws:ec2/vpc:Vpc"
CIDR_ASSOCIATION = "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation"
SUBNET = "aws:ec2/subnet:Subnet"
INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
EIP = "aws:ec2/eip:Eip"
NAT_GATEWAY = "aws:ec2/natGateway:NatGateway"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ROUTE_TABLE_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
VPC_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
CLUSTER = "aws:eks/cluster:Cluster"
ADDON = "aws:eks/addon:Addon"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
ACCESS_POLICY_ASSOCIATION = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE_POLICY_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
POLICY = "aws:iam/policy:Policy"
OIDC_PROVIDER = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"
KEY = "aws:kms/key:Key"
ALIAS = "aws:kms/alias:Alias"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
BUCKET = "aws:s3/bucket:Bucket"
BUCKET_OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"
HYPERPOD_CLUSTER = "aws-native:sagemaker:Cluster"


def existing(call: Call, token: str, id: str, *, service: str, operation: str, code: str, message: Said) -> Resource:
    """The resource with that id, or AWS's refusal."""
    found = call.account.find(token, id, region=call.region)
    if found is None:
        raise AwsError(service, operation, code, message)
    return found


def existing_vpc(call: Call, operation: str) -> Resource:
    """The VPC that the inputs name."""
    id = call.text("vpcId")
    return existing(call, VPC, id, service="EC2", operation=operation, code="InvalidVpcID.NotFound", message=ec2.VPC_EXISTS(id=id))


def existing_subnet(call: Call, id: str, operation: str, service: str = "EC2") -> Resource:
    """The subnet with that id."""
    return existing(
        call,
        SUBNET,
        id,
        service=service,
        operation=operation,
        code="InvalidSubnetID.NotFound",
        message=ec2.SUBNET_EXISTS(id=id),
    )


def existing_security_group(call: Call, id: str, operation: str, service: str = "EC2") -> Resource | None:
    """The security group with that id; None for those that AWS makes itself (a VPC's default group, an EKS cluster's group)."""
    made_by_aws = {item.outputs.get("defaultSecurityGroupId") for item in call.account.all(VPC)}
    made_by_aws |= {item.get("vpcConfig.clusterSecurityGroupId") for item in call.account.all(CLUSTER)}
    if id in made_by_aws:
        return None
    return existing(
        call,
        SECURITY_GROUP,
        id,
        service=service,
        operation=operation,
        code="InvalidGroup.NotFound",
        message=ec2.GROUP_EXISTS(id=id),
    )


def name_problem(call: Call, property: str, pattern: str, rule: WorldRule) -> dict[str, Said]:
    """A finding for `check` when a known name breaks the service's rule."""
    value = call.inputs.get(property)
    if value is None or isinstance(value, Unknown) or re.fullmatch(pattern, str(value)):
        return {}
    return {property: rule(property=property, value=value)}


def violation(operation: str, message: Said) -> AwsError:
    """EC2's refusal to delete what others need."""
    return AwsError("EC2", operation, "DependencyViolation", message)


def in_region(call: Call, token: str) -> list[Resource]:
    """Every resource of a type in the call's region."""
    return [item for item in call.account.all(token) if item.region == call.region]


def explain(call: Call, left: list[Resource]) -> None:
    """Warn of what no program made and still stands in the way: the service's own message does not name it."""
    for item in left:
        what = item.outputs.get("name") or item.outputs.get("serviceName") or item.id
        call.warn(f"{item.id} ({what}) was made by a controller or a service and is still in {call.id}: delete it by hand, then try again")


def needs(account: SimulatedAccount, tokens: tuple[str, ...], key: str, id: str) -> list[Resource]:
    """The resources of these types that name `id` in that output."""
    return [item for item in account.all(*tokens) if item.outputs.get(key) == id or id in (item.outputs.get(key) or [])]


class GenericType(ResourceType):
    """Any AWS resource without a model of its own: it gets an id and an ARN, and remembers its inputs."""

    def __init__(self, token: str) -> None:
        self.token = token
        _, module, self._kind = token.split(":")
        self._service = module.split("/")[0]

    def create(self, call: Call) -> Made:
        id = call.account.hex(self._kind.lower(), call.urn)
        return Made(id, {"arn": call.arn(self._service, f"{self._kind[0].lower()}{self._kind[1:]}/{id}")})
