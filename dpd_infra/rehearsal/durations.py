"""How long each kind of resource takes: minutes, low to high, with where it was read, or `assumed` where no document says.

A simulated account takes no time; these are what a timeline is drawn with. Upper ends of managed services are what a quiet day shows and no
limit: a create may go on until its timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.sources import DPD_GUIDE, OPERATOR_CHART, Source
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON

ASSUMED = "assumed"
"""The source of a number that no document gives."""

EKS_CREATION_TIME = Source("EKS: reduction in cluster creation time", "aws/containers-roadmap, issue 1227")
EKS_CREATE_CLUSTER = Source("EKS CreateCluster", "EKS API reference: in most cases it takes several minutes to create a cluster")
PUBLIC_ENDPOINT_README = Source("HyperPod inference with Terraform", "third-party README of a public endpoint, derived from AWS's modules")
HYPERPOD_WAIT_SCRIPT = Source(
    "HyperPod EKS Terraform modules: wait for nodes", "awslabs/awsome-distributed-ai, terraform-modules, 60 x 30 s"
)


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

_GROUP = Durations(Duration(0.05, 0.2), Duration(0.05, 0.2), Duration(0.05, 2, why="waits until no interface uses it"))
_BUCKET = Durations(Duration(0.05, 0.5), _CALL, Duration(0.05, 1))
_ADDON_WITHOUT_NODES = Durations(Duration(0.5, 2), Duration(0.5, 3), Duration(0.5, 2))
_ADDON = Durations(Duration(1, 4, why="its pods get ready on the nodes"), Duration(1, 4), Duration(0.5, 3))

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
    **dict.fromkeys(("vpc-cni", "kube-proxy", "eks-pod-identity-agent"), _ADDON_WITHOUT_NODES),
}
"""Add-ons by name; any other takes what an add-on with pods takes."""

KINDS: Mapping[str, Durations] = {
    "aws-native:sagemaker:Cluster": Durations(
        Duration(10, 60, why="instances, lifecycle scripts, deep health checks where they are on; a GPU node that fails them is replaced"),
        Duration(1, 60, why="new instances as in a create; labels and taints alone are quick"),
        Duration(5, 20),
    ),
    "aws:eks/cluster:Cluster": Durations(
        Duration(8, 15, EKS_CREATION_TIME, "the control plane"),
        Duration(3, 60, why="a new Kubernetes version at the high end"),
        Duration(3, 15),
    ),
    "aws:eks/addon:Addon": _ADDON,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _SECONDS,
    "aws:eks/accessEntry:AccessEntry": _SECONDS,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _SECONDS,
    "aws:cloudwatch/logGroup:LogGroup": _SECONDS,
    "aws:ec2/vpc:Vpc": Durations(Duration(0.1, 0.5), _CALL, Duration(0.05, 1)),
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": Durations(Duration(0.1, 0.5), _CALL, Duration(0.1, 0.5)),
    "aws:ec2/subnet:Subnet": Durations(Duration(0.1, 0.3), _CALL, Duration(0.05, 2, why="waits until no interface is left in it")),
    "aws:ec2/internetGateway:InternetGateway": Durations(Duration(0.05, 0.2), _CALL, Duration(0.1, 2)),
    "aws:ec2/natGateway:NatGateway": Durations(Duration(1.5, 3), _CALL, Duration(1, 5)),
    "aws:ec2/eip:Eip": _SECONDS,
    "aws:ec2/flowLog:FlowLog": _SECONDS,
    "aws:ec2/vpcPeeringConnection:VpcPeeringConnection": _SECONDS,
    "aws:ec2/routeTable:RouteTable": _SECONDS,
    "aws:ec2/route:Route": _SECONDS,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _SECONDS,
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _SECONDS,
    "aws:ec2/securityGroup:SecurityGroup": _GROUP,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _SECONDS,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _SECONDS,
    "aws:ec2/vpcEndpoint:VpcEndpoint": Durations(Duration(0.2, 3), Duration(0.1, 3), Duration(0.2, 5)),
    "aws:iam/role:Role": Durations(Duration(0.05, 0.3, why="with the time until it can be taken"), _CALL, _CALL),
    "aws:iam/rolePolicy:RolePolicy": _SECONDS,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _SECONDS,
    "aws:iam/policy:Policy": _SECONDS,
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _SECONDS,
    "aws:kms/key:Key": Durations(Duration(0.1, 0.5), _CALL, _CALL),
    "aws:kms/alias:Alias": _SECONDS,
    "aws:s3/bucket:Bucket": _BUCKET,
    "aws:s3/bucketPolicy:BucketPolicy": _SECONDS,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _SECONDS,
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _SECONDS,
    "aws:s3/bucketVersioning:BucketVersioning": _SECONDS,
    "aws:s3/bucketObjectv2:BucketObjectv2": _SECONDS,
    "aws:fsx/lustreFileSystem:LustreFileSystem": Durations(Duration(5, 20), Duration(1, 20), Duration(3, 15)),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": Durations(Duration(1, 10), Duration(1, 5), Duration(1, 10)),
    "kubernetes:helm.sh/v3:Release": Durations(
        Duration(0.1, 1, why="does not wait for pods: there is no node yet"), Duration(0.1, 2), Duration(0.1, 2)
    ),
    "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig": Durations(
        Duration(5, 30, DPD_GUIDE, "loading Llama 3.3 70B takes 5 to 10 minutes from cold S3; image pull and load balancer come on top"),
        Duration(5, 30, DPD_GUIDE, "pods start anew and load the model again"),
        Duration(1, 10, why="the operator takes down load balancer and SageMaker endpoint before its finalizer goes"),
    ),
    "kubernetes:batch/v1:Job": Durations(Duration(5, 60, why="copies a model"), Duration(5, 60), Duration(0.05, 1)),
    "kubernetes:core/v1:Namespace": Durations(_CALL, _CALL, Duration(0.1, 1)),
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
