"""What EC2, S3, IAM and EKS enforce of the resources around a cluster: quotas, what still stands in the way of a deletion, and roles."""

from __future__ import annotations

from dpd_infra.catalog.sources import EC2_ERRORS, EKS_USER_GUIDE, IAM_QUOTAS, IAM_USER_GUIDE, S3_ERRORS, VPC_USER_GUIDE, thread
from dpd_infra.rehearsal.world.rule import WorldRule

_LEFTOVERS = thread("pulumi/pulumi-eks", 382, 640, 779, 1226)

VPC_IN_USE = WorldRule(
    "vpc-dependents",
    "A VPC goes after all that stands in it, also after what controllers made there.",
    "The vpc '{id}' has dependencies and cannot be deleted.",
    _LEFTOVERS,
)
SUBNET_IN_USE = WorldRule(
    "subnet-dependents",
    "A subnet goes after every network interface in it.",
    "The subnet '{id}' has dependencies and cannot be deleted.",
    _LEFTOVERS,
)
GROUP_IN_USE = WorldRule(
    "security-group-dependents",
    "A security group goes after every network interface that carries it and every rule that names it.",
    "resource {id} has a dependent object",
    _LEFTOVERS,
)
MAPPED_ADDRESSES = WorldRule(
    "internet-gateway-dependents",
    "An internet gateway goes after the public addresses in its VPC.",
    "Network {vpc} has some mapped public address(es). Please unmap those public address(es) before detaching the gateway.",
    VPC_USER_GUIDE,
)
BUCKET_EMPTY = WorldRule(
    "bucket-empty",
    "A bucket goes when it is empty.",
    "The bucket you tried to delete is not empty",
    S3_ERRORS,
)
VPC_QUOTA = WorldRule("vpc-quota", "VPCs of a region stay within their quota.", "The maximum number of VPCs has been reached.", EC2_ERRORS)
ADDRESS_QUOTA = WorldRule(
    "elastic-address-quota",
    "Elastic addresses of a region stay within their quota.",
    "The maximum number of addresses has been reached.",
    EC2_ERRORS,
)
GATEWAY_QUOTA = WorldRule(
    "internet-gateway-quota",
    "Internet gateways of a region stay within their quota.",
    "The maximum number of internet gateways has been reached.",
    EC2_ERRORS,
)
SUBNET_FULL = WorldRule(
    "subnet-addresses",
    "What takes an address of a subnet finds one free there.",
    "The specified subnet does not have enough free addresses to satisfy the request.",
    EC2_ERRORS,
)
EKS_ROLE = WorldRule(
    "eks-role-trust",
    "The control plane's role exists and trusts eks.amazonaws.com.",
    "Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct",
    EKS_USER_GUIDE,
)
EKS_ROLE_POLICY = WorldRule(
    "eks-role-policy",
    "The control plane's role has its managed policy.",
    "The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policies [{policy}] "
    "are attached",
    EKS_USER_GUIDE,
)
POLICY_GRAMMAR = WorldRule("iam-grammar", "A policy follows IAM's grammar.", "{problem}", IAM_USER_GUIDE)
PRINCIPAL_EXISTS = WorldRule(
    "iam-principal",
    "A principal of this account that a policy names exists.",
    'Invalid principal in policy: "AWS":"{principal}"',
    IAM_USER_GUIDE,
)
POLICIES_PER_ROLE = WorldRule(
    "iam-policies-per-role",
    "A role has at most 10 managed policies, unless the quota was raised.",
    "Cannot exceed quota for PoliciesPerRole: {limit}",
    IAM_QUOTAS,
)
TRUST_SIZE = WorldRule(
    "iam-trust-size",
    "A trust policy has at most 2048 characters, white space not counted, unless the quota was raised.",
    "Cannot exceed quota for ACLSizePerRole: {limit}",
    IAM_QUOTAS,
)
POLICY_SIZE = WorldRule(
    "iam-policy-size",
    "A managed policy has at most 6144 characters, white space not counted.",
    "Cannot exceed quota for PolicySize: {limit}",
    IAM_QUOTAS,
)
INLINE_SIZE = WorldRule(
    "iam-inline-size",
    "The inline policies of a role have at most 10240 characters together, white space not counted.",
    "Maximum policy size of {limit} bytes exceeded for role {role}",
    IAM_QUOTAS,
)
ROLE_DETACHED = WorldRule(
    "iam-role-detached",
    "A role goes after its managed policies are detached.",
    "Cannot delete entity, must detach all policies first.",
    IAM_USER_GUIDE,
)
ROLE_WITHOUT_POLICIES = WorldRule(
    "iam-role-without-policies",
    "A role goes after its inline policies.",
    "Cannot delete entity, must delete policies first.",
    IAM_USER_GUIDE,
)
POLICY_DETACHED = WorldRule(
    "iam-policy-detached",
    "A managed policy goes when nothing has it attached.",
    "Cannot delete a policy attached to entities.",
    IAM_USER_GUIDE,
)
NETWORK_HAS_GATEWAY = WorldRule(
    "nat-gateway-needs-internet-gateway",
    "A public NAT gateway is made in a VPC that has its internet gateway.",
    "Network {vpc} has no Internet gateway attached",
    EC2_ERRORS,
)
ADDRESS_IN_USE = WorldRule(
    "elastic-address-in-use",
    "An elastic address is released after the NAT gateway that uses it.",
    "Address with allocation id [{id}] cannot be released because it is in use.",
    EC2_ERRORS,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
