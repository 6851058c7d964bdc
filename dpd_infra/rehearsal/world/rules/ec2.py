"""What EC2 enforces of a network's parts: what they refer to exists, is there once, and fits into what it is part of."""

from __future__ import annotations

from dpd_infra.catalog.sources import EC2_ERRORS, VPC_USER_GUIDE, Source, thread
from dpd_infra.rehearsal.world.rule import WorldRule

_TERRAFORM_POST = Source("What Terraform says of a route whose NAT gateway failed", "a public blog post that quotes its output")

VPC_EXISTS = WorldRule(
    "vpc-exists",
    "The VPC that a request names exists.",
    "The vpc ID '{id}' does not exist",
    thread("kubernetes-sigs/aws-load-balancer-controller", 1188),
)
SUBNET_EXISTS = WorldRule(
    "subnet-exists",
    "The subnet that a request names exists.",
    "The subnet ID '{id}' does not exist",
    thread("terraform-aws-modules/terraform-aws-ec2-instance", 20),
)
GROUP_EXISTS = WorldRule(
    "security-group-exists",
    "The security group that a request names exists.",
    "The security group '{id}' does not exist",
    thread("hashicorp/terraform", 23499),
)
ROUTE_TABLE_EXISTS = WorldRule(
    "route-table-exists",
    "The route table that a request names exists.",
    "The routeTable ID '{id}' does not exist",
    thread("C2Devel/terraform-examples", 8),
)
ADDRESS_EXISTS = WorldRule(
    "elastic-address-exists",
    "The elastic address that a NAT gateway takes exists.",
    "The allocation ID '{id}' does not exist",
    thread("hashicorp/terraform", 1815, 6970),
)
NAT_GATEWAY_EXISTS = WorldRule(
    "nat-gateway-exists",
    "The NAT gateway that a route leads to exists.",
    "The natGateway ID '{id}' does not exist",
    _TERRAFORM_POST,
)
GATEWAY_EXISTS = WorldRule(
    "internet-gateway-exists",
    "The internet gateway that a route leads to exists.",
    "The gateway ID '{id}' does not exist",
    EC2_ERRORS,
    verbatim=False,
)
ONE_GATEWAY = WorldRule(
    "one-internet-gateway",
    "A VPC has at most one internet gateway.",
    "Network {vpc} already has an internet gateway attached",
    thread("binlab/terraform-aws-vault-ha-raft", 54),
)
CIDR_BLOCK = WorldRule(
    "cidr-block",
    "An address block is one: a network's first address and the length of its prefix.",
    "Value ({block}) for parameter cidrBlock is invalid. This is not a valid CIDR block.",
    VPC_USER_GUIDE,
    verbatim=False,
)
VPC_BLOCKS = WorldRule(
    "vpc-blocks-apart",
    "A further address block of a VPC overlaps none that it has.",
    "The CIDR '{block}' overlaps a CIDR block of {vpc}",
    VPC_USER_GUIDE,
    verbatim=False,
)
VPC_BLOCK_IN_USE = WorldRule(
    "vpc-block-in-use",
    "An address block leaves its VPC after the subnets in it.",
    "The vpc {vpc} currently has a subnet within CIDR block {block}",
    thread("hashicorp/terraform-provider-aws", 29077),
)
SUBNET_IN_BLOCK = WorldRule(
    "subnet-in-block",
    "A subnet lies in an address block of its VPC.",
    "The CIDR '{block}' is invalid.",
    thread("pulumi/pulumi-awsx", 111),
)
SUBNETS_APART = WorldRule(
    "subnets-apart",
    "A subnet overlaps no other of its VPC.",
    "The CIDR '{block}' conflicts with another subnet",
    thread("hashicorp/terraform", 33470),
)
ZONE_EXISTS = WorldRule(
    "subnet-zone",
    "A subnet's availability zone is one of its region.",
    "Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: "
    "{zones}.",
    thread("crossplane-contrib/provider-aws", 1048),
)
GROUP_NAME = WorldRule(
    "security-group-name",
    "A security group's name is unique in its VPC.",
    "The security group '{name}' already exists for VPC '{vpc}'",
    thread("hashicorp/terraform", 15428),
)
GROUP_RULE = WorldRule(
    "security-group-rule",
    "A security group has a rule once.",
    'the specified rule "peer: {peer}, {ports}, ALLOW" already exists',
    thread("lucidsoftware/cumulus", 101),
)
ROUTE_ONCE = WorldRule(
    "route-once",
    "A route table has one route to a destination.",
    "The route identified by {destination} already exists.",
    thread("terraform-aws-modules/terraform-aws-vpc", 108),
)
ROUTE_TABLE_IN_USE = WorldRule(
    "route-table-dependents",
    "A route table goes after its associations.",
    "The routeTable '{id}' has dependencies and cannot be deleted.",
    thread("hashicorp/terraform-provider-aws", 5931),
)
ONE_ROUTE_TABLE = WorldRule(
    "one-route-table",
    "A subnet has one route table.",
    "the specified association for route table {id} conflicts with an existing association",
    thread("hashicorp/terraform-provider-aws", 38960),
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
