"""How long each kind of resource takes: minutes, low to high, with where it was read, or `assumed` where no document says.

A simulated account takes no time; these are what a timeline is drawn with. Most are what Terraform printed of real accounts, "Creation
complete after 9m46s": the same API calls and the same waits. Upper ends of managed services are what a quiet day shows and no limit: a
create may go on until its timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.sources import DPD_GUIDE, OPERATOR_CHART, Source, thread
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON

ASSUMED = "assumed"
"""The source of a number that no document gives."""

EKS_CREATION_TIME = Source("EKS: reduction in cluster creation time", "aws/containers-roadmap, issue 1227")
PUBLIC_ENDPOINT_README = Source("HyperPod inference with Terraform", "third-party README of a public endpoint, derived from AWS's modules")
HYPERPOD_WAIT_SCRIPT = Source(
    "HyperPod EKS Terraform modules: wait for nodes", "awslabs/awsome-distributed-ai, terraform-modules, 60 x 30 s"
)
APPLY_LOGS = Source(
    "Terraform apply logs of VPCs and EKS clusters",
    "public repositories; one is of cluster ep-eks-cluster, 90 resources, 2023-05-09",
)
DESTROY_LOGS = Source("Terraform destroy logs of VPCs and EKS clusters", "public repositories; one is of cluster-sg, 2025-06-13")
VPC_LOGS = thread("DevopsArtFactory/terraform-provisioning", 4, 5, 7)
ROLE_LOGS = thread("DevopsArtFactory/terraform-provisioning", 46)
GROUP_RULE_LOGS = thread("hashicorp-education/learn-terraform-variables", 6)
CLUSTER_DESTROY_LOG = thread("terraform-aws-modules/terraform-aws-eks", 815)
SMALL_DESTROY_LOG = thread("agones-dev/agones", 1790)
LUSTRE_LOG = thread("turbot/steampipe-plugin-aws", 906)
ASSOCIATION_TIMEOUT = thread("aws-samples/amazon-eks-machine-learning-with-terraform-and-kubeflow", 112)
AGENT_LOG = thread("aws-samples/eks-blueprints-for-terraform-workshop", 10)
HYPERPOD_PROVISIONING = Source("alchemy: AWS SageMaker Cluster", "alchemy.run/providers/aws/sagemaker/cluster: 10 to 25 minutes")


@dataclass(frozen=True, slots=True)
class Duration:
    """Minutes that something takes."""

    low: float
    high: float
    source: Source | str = ASSUMED
    why: str = ""
    """What the time is spent on, where that is not plain."""

    @property
    def middle(self) -> float:
        """The number that pictures are drawn with."""
        return (self.low + self.high) / 2

    @property
    def assumed(self) -> bool:
        """Whether no document gives it."""
        return self.source == ASSUMED


@dataclass(frozen=True, slots=True)
class Durations:
    """Minutes of one kind of resource by what is done to it."""

    create: Duration
    update: Duration
    delete: Duration


INSTANT = Duration(0, 0)
"""What is not a resource of any service: components, providers, the stack."""

_CALL = Duration(0.02, 0.2, why="one API call")
_SECONDS = Durations(_CALL, _CALL, _CALL)

_ROUTING = Durations(Duration(0.02, 0.05, APPLY_LOGS, "1 to 2 seconds"), _CALL, Duration(0.02, 0.05, DESTROY_LOGS, "a second"))
_RULE = Durations(Duration(0.03, 0.2, GROUP_RULE_LOGS, "2 to 10 seconds"), _CALL, Duration(0.02, 0.1, SMALL_DESTROY_LOG, "1 to 4 seconds"))
_ATTACHMENT = Durations(Duration(0.01, 0.1, ROLE_LOGS, "up to 4 seconds"), _CALL, Duration(0.01, 0.05, CLUSTER_DESTROY_LOG, "a second"))

_GROUP = Durations(
    Duration(0.03, 0.1, APPLY_LOGS, "2 to 3 seconds"),
    Duration(0.05, 0.2),
    Duration(0.02, 2, SMALL_DESTROY_LOG, "1 to 2 seconds; waits until no interface uses it: how long is assumed"),
)
_BUCKET = Durations(Duration(0.02, 0.2, APPLY_LOGS, "1 to 6 seconds"), _CALL, Duration(0.05, 1))
_ADDON_WITHOUT_NODES = Durations(Duration(0.5, 1.2, APPLY_LOGS, "34 to 66 seconds, with nodes"), Duration(0.5, 3), Duration(0.5, 2))
_ADDON = Durations(
    Duration(0.5, 4, APPLY_LOGS, "45 seconds for a storage driver; how long pods take to get ready on new nodes is assumed"),
    Duration(1, 4),
    Duration(0.1, 3, DESTROY_LOGS, "9 seconds for a storage driver; the high end is assumed"),
)

ADDONS: Mapping[str, Durations] = {
    "coredns": Durations(
        Duration(0.5, 30, HYPERPOD_WAIT_SCRIPT, "DEGRADED until the first node has joined"), Duration(1, 4), Duration(0.5, 2)
    ),
    OPERATOR_ADDON: Durations(
        # startupProbe initialDelaySeconds 180, and what GPU-only clusters were seen to need.
        Duration(3, 40, PUBLIC_ENDPOINT_README, "the manager's startup probe alone begins after 3 minutes (operator chart)"),
        Duration(3, 15, OPERATOR_CHART, "the manager starts anew: its startup probe begins after 3 minutes"),
        Duration(1, 5),
    ),
    "eks-pod-identity-agent": Durations(Duration(0.5, 1.2, AGENT_LOG, "46 seconds"), Duration(0.5, 3), Duration(0.5, 2)),
    **dict.fromkeys(("vpc-cni", "kube-proxy"), _ADDON_WITHOUT_NODES),
}
"""Add-ons by name; any other takes what an add-on with pods takes."""

KINDS: Mapping[str, Durations] = {
    "aws-native:sagemaker:Cluster": Durations(
        Duration(
            10,
            60,
            HYPERPOD_PROVISIONING,
            "instances and lifecycle scripts; deep health checks, and the new node where they fail, are assumed to take up to an hour",
        ),
        Duration(1, 60, why="new instances as in a create; labels and taints alone are quick"),
        Duration(5, 20),
    ),
    "aws:eks/cluster:Cluster": Durations(
        Duration(8, 15, EKS_CREATION_TIME, "the control plane; 9 minutes on average, and apply logs show 8 to 11"),
        Duration(3, 60, EKS_CREATION_TIME, "a new Kubernetes version at the high end, more than 45 minutes; the low end is assumed"),
        Duration(1, 10, CLUSTER_DESTROY_LOG, "9 minutes; other logs show 1 to 6"),
    ),
    "aws:eks/addon:Addon": _ADDON,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _SECONDS,
    "aws:eks/accessEntry:AccessEntry": _SECONDS,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _SECONDS,
    "aws:cloudwatch/logGroup:LogGroup": Durations(Duration(0.01, 0.05, APPLY_LOGS, "up to 2 seconds"), _CALL, _CALL),
    "aws:ec2/vpc:Vpc": Durations(
        Duration(0.2, 0.5, VPC_LOGS, "21 to 22 seconds with DNS host names; as little as 11 elsewhere"),
        _CALL,
        Duration(0.02, 0.3, DESTROY_LOGS, "1 to 15 seconds"),
    ),
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": Durations(Duration(0.1, 0.5), _CALL, Duration(0.1, 0.5)),
    "aws:ec2/subnet:Subnet": Durations(
        Duration(0.05, 0.2, thread("terraform-aws-modules/terraform-aws-eks", 2203), "1 to 10 seconds, the longest for a public one"),
        _CALL,
        Duration(0.03, 2, SMALL_DESTROY_LOG, "2 seconds; waits until no interface is left in it: how long is assumed"),
    ),
    "aws:ec2/internetGateway:InternetGateway": Durations(
        Duration(0.02, 0.05, VPC_LOGS, "a second"),
        _CALL,
        Duration(0.02, 7, DESTROY_LOGS, "a second; minutes while a public address is left"),
    ),
    "aws:ec2/natGateway:NatGateway": Durations(
        Duration(1.4, 2.2, APPLY_LOGS, "1m25s to 2m5s"), _CALL, Duration(0.6, 1.6, DESTROY_LOGS, "37 seconds to 1m34s")
    ),
    "aws:ec2/eip:Eip": Durations(
        Duration(0.01, 0.05, VPC_LOGS, "up to 2 seconds"), _CALL, Duration(0.01, 0.2, DESTROY_LOGS, "up to 9 seconds")
    ),
    "aws:ec2/flowLog:FlowLog": _SECONDS,
    "aws:ec2/vpcPeeringConnection:VpcPeeringConnection": _SECONDS,
    "aws:ec2/routeTable:RouteTable": _ROUTING,
    "aws:ec2/route:Route": _ROUTING,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _ROUTING,
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _SECONDS,
    "aws:ec2/securityGroup:SecurityGroup": _GROUP,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _RULE,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _RULE,
    "aws:ec2/vpcEndpoint:VpcEndpoint": Durations(
        Duration(0.1, 2, APPLY_LOGS, "6 to 8 seconds for a gateway, 1m53s for an interface"), Duration(0.1, 3), Duration(0.2, 5)
    ),
    "aws:iam/role:Role": Durations(
        Duration(0.02, 0.2, ROLE_LOGS, "1 to 7 seconds"), _CALL, Duration(0.01, 0.1, CLUSTER_DESTROY_LOG, "1 to 3 seconds")
    ),
    "aws:iam/rolePolicy:RolePolicy": _SECONDS,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _ATTACHMENT,
    "aws:iam/policy:Policy": _SECONDS,
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": Durations(Duration(0.01, 0.05, ROLE_LOGS, "a second"), _CALL, _CALL),
    "aws:kms/key:Key": Durations(Duration(0.2, 0.5, APPLY_LOGS, "16 to 29 seconds"), _CALL, _CALL),
    "aws:kms/alias:Alias": _SECONDS,
    "aws:s3/bucket:Bucket": _BUCKET,
    "aws:s3/bucketPolicy:BucketPolicy": Durations(Duration(0.02, 0.3, APPLY_LOGS, "16 seconds at most"), _CALL, _CALL),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Durations(
        Duration(0.2, 1, APPLY_LOGS, "more than 10 seconds; the high end is assumed"), Duration(0.2, 1), _CALL
    ),
    "aws:s3/bucketLogging:BucketLogging": _SECONDS,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _SECONDS,
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _SECONDS,
    "aws:s3/bucketVersioning:BucketVersioning": Durations(Duration(0.01, 0.05, APPLY_LOGS, "1 to 2 seconds"), _CALL, _CALL),
    "aws:s3/bucketObjectv2:BucketObjectv2": _SECONDS,
    "aws:fsx/lustreFileSystem:LustreFileSystem": Durations(
        Duration(5, 20, LUSTRE_LOG, "6 minutes; the high end is assumed, one with EFA takes long"), Duration(1, 20), Duration(3, 15)
    ),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": Durations(
        Duration(1, 30, ASSOCIATION_TIMEOUT, "10 minutes are not always enough; the low end is assumed"), Duration(1, 5), Duration(1, 10)
    ),
    "kubernetes:helm.sh/v3:Release": Durations(
        Duration(0.1, 1, APPLY_LOGS, "22 to 56 seconds with pods; less where it does not wait for them: there is no node yet"),
        Duration(0.1, 2),
        Duration(0.02, 2, thread("terraform-aws-modules/terraform-aws-vpc", 296), "1 to 3 seconds; the high end, with hooks, is assumed"),
    ),
    "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig": Durations(
        Duration(5, 30, DPD_GUIDE, "loading Llama 3.3 70B takes 5 to 10 minutes from cold S3; image pull and load balancer come on top"),
        Duration(5, 30, DPD_GUIDE, "pods start anew and load the model again"),
        Duration(1, 10, why="the operator takes down load balancer and SageMaker endpoint before its finalizer goes"),
    ),
    "kubernetes:batch/v1:Job": Durations(Duration(5, 60, why="copies a model"), Duration(5, 60), Duration(0.05, 1)),
    "kubernetes:core/v1:Namespace": Durations(Duration(0.02, 0.05, APPLY_LOGS, "1 to 2 seconds"), _CALL, Duration(0.1, 1)),
    "eks:index:Cluster": Durations(INSTANT, INSTANT, INSTANT),
}
"""By type token. Kubernetes objects that are not named are one API call; any other type is assumed to take up to a minute."""

_OTHER = Duration(0.05, 1, why="a kind that the table does not have")
_ANY = Durations(_OTHER, _OTHER, _OTHER)


def durations_of(token: str, inputs: Mapping[str, Any]) -> Durations:
    """The minutes of one resource, by its type and, for an EKS add-on, its name."""
    if token.startswith(("pulumi:", "dpd:")):
        return Durations(INSTANT, INSTANT, INSTANT)
    if token == "aws:eks/addon:Addon":  # noqa: S105 - a type token
        return ADDONS.get(str(inputs.get("addonName")), _ADDON)
    if token in KINDS:
        return KINDS[token]
    return _SECONDS if token.startswith("kubernetes:") else _ANY


def is_known(token: str) -> bool:
    """Whether the table says something of this type by name."""
    return token in KINDS or token.startswith(("pulumi:", "dpd:", "kubernetes:"))
