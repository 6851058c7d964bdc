"""What HyperPod enforces of a cluster: what must stand before it, what it may use, and what cannot be changed afterwards."""

from __future__ import annotations

from dpd_infra.catalog.sources import (
    AWS_NATIVE_CLUSTER,
    CREATE_CLUSTER_API,
    EKS_PREREQUISITES_GUIDE,
    HYPERPOD_CHART,
    HYPERPOD_TERRAFORM,
    OPERATOR_NOTES,
    PREREQUISITES_GUIDE,
    Source,
    thread,
)
from dpd_infra.rehearsal.world.rule import WorldRule

_QUOTA_MESSAGES = Source("SageMaker: a quota is exceeded", "SageMaker AI developer guide, ResourceLimitExceeded of CreateTrainingJob")
_EFA_HEALTH = Source("HyperPod troubleshooting", "awslabs/agent-plugins, hyperpod-node-debugger, EFA and security groups", "2026-11-30")

NAME_IS_FREE = WorldRule(
    "hyperpod-name",
    "A cluster's name is unique in its region and account.",
    "Resource of type 'AWS::SageMaker::Cluster' with identifier '{name}' already exists.",
    AWS_NATIVE_CLUSTER,
)
NAME_FORM = WorldRule(
    "hyperpod-name-form",
    "A cluster's name has 1 to 63 letters, digits or inner hyphens.",
    "invalid value for {property} (1 to 63 letters, digits or inner hyphens): {value}",
    CREATE_CLUSTER_API,
    verbatim=False,
)
EKS_EXISTS = WorldRule(
    "hyperpod-eks", "The EKS cluster exists.", "EKS cluster {arn} does not exist.", EKS_PREREQUISITES_GUIDE, verbatim=False
)
EKS_MODE = WorldRule(
    "hyperpod-authentication-mode",
    "The EKS cluster's authentication mode is API or API_AND_CONFIG_MAP.",
    "EKS cluster {cluster} has authentication mode {mode}; HyperPod needs API or API_AND_CONFIG_MAP.",
    EKS_PREREQUISITES_GUIDE,
    verbatim=False,
)
EKS_VERSION = WorldRule(
    "hyperpod-kubernetes-version",
    "HyperPod orchestrates EKS clusters of certain Kubernetes versions.",
    "EKS cluster {cluster} runs Kubernetes {version}; HyperPod supports {first} to {last}.",
    EKS_PREREQUISITES_GUIDE,
    verbatim=False,
)
DEPENDENCIES = WorldRule(
    "hyperpod-dependencies",
    "HyperPod's dependency chart is on the EKS cluster before the HyperPod cluster is made.",
    "Dependencies are not installed on EKS cluster {cluster}: install the HyperPod Helm chart in kube-system first.",
    HYPERPOD_CHART,
    verbatim=False,
)
NETWORK_PLUGIN = WorldRule(
    "hyperpod-vpc-cni",
    "Nodes join through the VPC CNI, the only network plugin that HyperPod supports.",
    "Nodes did not join EKS cluster {cluster}: NetworkPluginNotReady, the add-on vpc-cni is missing.",
    EKS_PREREQUISITES_GUIDE,
    verbatim=False,
)
SUBNET_IN_VPC = WorldRule(
    "hyperpod-subnet-in-vpc",
    "Nodes stand in the VPC of their EKS cluster.",
    "Subnet {subnet} is not in the VPC of EKS cluster {cluster}.",
    EKS_PREREQUISITES_GUIDE,
    verbatim=False,
)
WAY_OUT = WorldRule(
    "hyperpod-way-out",
    "Nodes stand in private subnets and reach AWS's services, through NAT or interface endpoints.",
    "Instances in subnet {subnet} could not reach the service: its route table has no default route through a NAT gateway to the internet, "
    "and the VPC lacks interface endpoints.",
    HYPERPOD_TERRAFORM,
    verbatim=False,
)
EGRESS = WorldRule(
    "hyperpod-egress",
    "A security group of the nodes lets them out: a group that Pulumi makes has no rule of its own.",
    "Instances of group {group} could not reach the service: none of their security groups ({groups}) lets them out to others.",
    HYPERPOD_TERRAFORM,
    verbatim=False,
)
EFA_HEALTH = WorldRule(
    "hyperpod-efa-security-group",
    "A group of EFA nodes has a security group that lets all traffic in from itself and out to itself; 0.0.0.0/0 does not stand for it.",
    "EFA health checks did not run successfully",
    _EFA_HEALTH,
)
ONE_ZONE = WorldRule(
    "hyperpod-efa-one-zone",
    "EFA traffic crosses no availability zone: the nodes of an EFA group have one.",
    "Instance group {group} has EFA and subnets in several availability zones: {zones}.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
CAPACITY = WorldRule(
    "hyperpod-capacity",
    "Instances are to be had in the zones of the group's subnets.",
    "We currently do not have sufficient capacity for the requested instance type(s). Please try again.",
    thread("awslabs/awsome-distributed-ai", 204),
)
TYPE_QUOTA = WorldRule(
    "hyperpod-type-quota",
    "Instances of a type stay within the quota `ml.<type> for cluster usage`.",
    "The account-level service limit '{quota}' is {limit} Instances, with current utilization of {used} Instances and a request delta of "
    "{delta} Instances. Please contact AWS support to request an increase for this limit.",
    _QUOTA_MESSAGES,
)
SIZE_QUOTA = WorldRule(
    "hyperpod-instance-quotas",
    "Instances of one cluster, and of all clusters, stay within their quotas.",
    "The quota '{quota}' is {limit}, and {wanted} instances would be in use.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
VOLUME_QUOTA = WorldRule(
    "hyperpod-volume-quota",
    "A volume is no larger than the quota for EBS volumes of a cluster instance.",
    "The quota 'Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance' is {limit}; group {group} asks for {size} GB.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
ADDRESSES = WorldRule(
    "hyperpod-addresses",
    "A P5 node uses 81 addresses of its subnet, and a subnet cannot grow.",
    "Insufficient free addresses in {subnets}: {needed} needed, {there} there.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
INTERFACE_QUOTA = WorldRule(
    "hyperpod-network-interfaces",
    "Network interfaces of a region stay within the quota L-DF5E4CA3.",
    "You have reached the maximum number of network interfaces: the quota 'Network interfaces per Region' is {limit}, and {wanted} would "
    "be in use.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
UNIQUE_GROUPS = WorldRule(
    "hyperpod-group-names",
    "Groups of a cluster have different names.",
    "InstanceGroupName must be unique: {names}",
    CREATE_CLUSTER_API,
    verbatim=False,
)
ROLE_EXISTS = WorldRule(
    "hyperpod-role", "A group's role exists.", "Could not assume role {role}: it does not exist.", PREREQUISITES_GUIDE, verbatim=False
)
ROLE_TRUST = WorldRule(
    "hyperpod-role-trust",
    "A group's role trusts sagemaker.amazonaws.com.",
    "Could not assume role {role}: its trust policy does not let {service} assume it.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
ROLE_POLICIES = WorldRule(
    "hyperpod-role-policies",
    "A group's role has its policies before a node takes it.",
    "Role {role} of instance group {group} is not authorized to perform: no policy is attached.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
LIFECYCLE = WorldRule(
    "hyperpod-lifecycle-script",
    "The lifecycle script that a group names is in its bucket.",
    "Lifecycle script s3://{bucket}/{key} of instance group {group} does not exist.",
    HYPERPOD_TERRAFORM,
    verbatim=False,
)
NEEDS_CONTINUOUS = WorldRule(
    "hyperpod-continuous",
    "Spot capacity, a list of instance types and Karpenter need continuous provisioning.",
    "{what} needs NodeProvisioningMode Continuous.",
    OPERATOR_NOTES,
    verbatim=False,
)
NO_TAINTS_WITH_CHECKS = WorldRule(
    "hyperpod-taints-and-checks",
    "A group with deep health checks has no taints of its own.",
    "Instance group {group} has custom taints and deep health checks; it can have one of them.",
    EKS_PREREQUISITES_GUIDE,
    verbatim=False,
)
FIXED_IN_A_GROUP = WorldRule(
    "hyperpod-fixed-in-a-group",
    "A group's network and way of buying are fixed when it is made.",
    "{field} of instance group {group} cannot be changed after the group was made.",
    PREREQUISITES_GUIDE,
    verbatim=False,
)
REQUEST_SHAPE = WorldRule(
    "hyperpod-request",
    "A request has the shape that the service's model gives.",
    "{problem}",
    CREATE_CLUSTER_API,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
