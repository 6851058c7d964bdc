"""An account in which parts of an inference platform exist already, made by somebody else: what engine tests put beside ours."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base

CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
RELEASE = "kubernetes:helm.sh/v3:Release"

REGION = "us-east-2"
ACCOUNT = "123456789012"
OUR_EKS = "inference"
"""The name that an EKS cluster of ours has in these tests."""

VPC, GPU_SUBNET, SUBNET_A, SUBNET_B = "vpc-0a", "subnet-0a", "subnet-0b", "subnet-0c"
TABLE, EFA_GROUP, NODE_GROUP, CLUSTER_GROUP = "rtb-0a", "sg-0a", "sg-0b", "sg-0c"
THEIR_EKS, ISSUER = "their-eks", f"oidc.eks.{REGION}.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
HYPERPOD_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghij12"
NODE_ADDONS = {
    "coredns": "v1.12.4-eksbuild.1",
    "cert-manager": "v1.18.2-eksbuild.2",
    "aws-mountpoint-s3-csi-driver": "v1.14.1-eksbuild.1",
    "aws-fsx-csi-driver": "v1.6.0-eksbuild.1",
    "metrics-server": "v0.7.2-eksbuild.4",
}
GROUPS: dict[str, Any] = {
    "decode": {"instanceType": "ml.p5.48xlarge", "count": 1},
    "prefill": {"instanceType": "ml.p5.48xlarge", "count": 1},
    "system": {"instanceType": "ml.c5.4xlarge", "count": 2},
}


@dataclass
class Estate:
    """Which steps are theirs, with the account they stand in."""

    network: bool = False
    control_plane: bool = False
    cluster: bool = False
    operator: bool = False
    operator_version: str = "v1.4.0-eksbuild.1"
    vpc_cni_version: str = "v1.20.4-eksbuild.1"
    kubernetes_version: str = "1.33"
    authentication_mode: str = "API"
    addon_versions: dict[str, str] = field(default_factory=lambda: dict(NODE_ADDONS))
    oidc_provider: bool = True
    account: SimulatedAccount = field(default_factory=SimulatedAccount)

    def __post_init__(self) -> None:
        if self.network or self.control_plane:
            self._put_network()
        if self.control_plane:
            self._put_control_plane()
        for name in self.addons:
            self._put_addon(name, self.addon_versions[name])
        if self.cluster:
            self._put_cluster()
            if self.operator:
                self._put_addon(ADDON_NAME, self.operator_version)
        elif self.operator:
            self.account.operator_preinstalled = True
        self.before = {(item.type, item.id): copy.deepcopy(vars(item)) for item in self.account}

    @property
    def eks(self) -> str:
        """The name of the EKS cluster, theirs or ours."""
        return THEIR_EKS if self.control_plane else OUR_EKS

    @property
    def addons(self) -> tuple[str, ...]:
        """The add-ons that are theirs: all where a HyperPod cluster runs, coredns alone in a bare EKS cluster."""
        if self.cluster:
            return tuple(self.addon_versions)
        return ("coredns",) if self.control_plane else ()

    @property
    def existing(self) -> dict[str, Any]:
        """The stack file's section."""
        section: dict[str, Any] = {}
        if self.network:
            section["network"] = {
                "vpcId": VPC,
                "zone": f"{REGION}a",
                "gpuSubnetIds": [GPU_SUBNET],
                "controlPlaneSubnetIds": [SUBNET_A, SUBNET_B],
                "nodeSecurityGroupIds": [EFA_GROUP, NODE_GROUP],
            }
        if self.control_plane:
            section["controlPlane"] = {"name": THEIR_EKS}
        if self.cluster:
            section["cluster"] = {"arn": HYPERPOD_ARN, "name": "their-hyperpod", "instanceGroups": copy.deepcopy(GROUPS)}
        if self.operator:
            section["operator"] = {"addonVersion": self.operator_version}
        if self.addons:
            section["addons"] = True if len(self.addons) == len(NODE_ADDONS) else list(self.addons)
        return section

    @property
    def platform(self) -> dict[str, Any]:
        """The stack file's platform: what is theirs under `existing`, sections of its own for the rest."""
        platform: dict[str, Any] = {"name": OUR_EKS, "existing": self.existing}
        if not self.network and not self.control_plane:
            platform["network"] = {"zone": f"{REGION}a"}
        elif not self.network and not self.cluster:
            platform["network"] = {"zone": f"{REGION}a", "cidr": "10.50.0.0/16", "gpuCidr": "10.50.128.0/18", "routeTableId": TABLE}
        if not self.control_plane:
            platform["controlPlane"] = {"publicAccessCidrs": ["203.0.113.0/24"]}
        if not self.cluster:
            platform["instanceGroups"] = copy.deepcopy(GROUPS)
        if not self.addons or len(self.addons) < len(NODE_ADDONS):
            platform["modelBuckets"] = ["my-models"]
        return platform

    def changed(self) -> list[tuple[str, str]]:
        """What of theirs is no longer as it was."""
        now = {(item.type, item.id): vars(item) for item in self.account}
        return [key for key, fields in self.before.items() if now.get(key) != fields]

    def _put(self, token: str, identity: str, region: str = REGION, cluster: str = "", **outputs: Any) -> None:
        self.account.add(Resource(token, identity, {}, outputs, region=region, cluster=cluster))

    def _put_network(self) -> None:
        self._put(base.VPC, VPC, cidrBlock="10.50.0.0/16", mainRouteTableId="rtb-00", defaultSecurityGroupId="sg-00")
        for subnet, zone, block in ((GPU_SUBNET, "a", "10.50.64.0/18"), (SUBNET_A, "a", "10.50.0.0/20"), (SUBNET_B, "b", "10.50.16.0/20")):
            self._put(base.SUBNET, subnet, vpcId=VPC, availabilityZone=f"{REGION}{zone}", cidrBlock=block)
            self._put(base.ROUTE_TABLE_ASSOCIATION, f"rtbassoc-{subnet}", subnetId=subnet, routeTableId=TABLE)
        self._put(base.ROUTE_TABLE, TABLE, vpcId=VPC)
        self._put(base.ROUTE, f"r-{TABLE}", routeTableId=TABLE, destinationCidrBlock="0.0.0.0/0", natGatewayId="nat-0a")
        for group in (EFA_GROUP, NODE_GROUP):
            self._put(base.SECURITY_GROUP, group, vpcId=VPC, name=group)
        for rule, way in ((base.INGRESS_RULE, "in"), (base.EGRESS_RULE, "out")):
            itself = {"securityGroupId": EFA_GROUP, "referencedSecurityGroupId": EFA_GROUP, "ipProtocol": "-1"}
            self._put(rule, f"sgr-{way}-{EFA_GROUP}", **itself)
        self._put(base.EGRESS_RULE, f"sgr-{NODE_GROUP}", securityGroupId=NODE_GROUP, cidrIpv4="0.0.0.0/0", ipProtocol="-1")

    def _put_control_plane(self) -> None:
        authority = "LS0tLS1CRUdJTg=="
        self._put(
            base.CLUSTER,
            THEIR_EKS,
            name=THEIR_EKS,
            arn=f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{THEIR_EKS}",
            version=self.kubernetes_version,
            accessConfig={"authenticationMode": self.authentication_mode, "bootstrapClusterCreatorAdminPermissions": False},
            certificateAuthority={"data": authority},
            endpoint=f"https://their-eks.gr7.{REGION}.eks.amazonaws.com",
            identities=[{"oidcs": [{"issuer": f"https://{ISSUER}"}]}],
            vpcConfig={"clusterSecurityGroupId": CLUSTER_GROUP, "vpcId": VPC, "subnetIds": [SUBNET_A, SUBNET_B], "securityGroupIds": []},
            status="ACTIVE",
        )
        if self.oidc_provider:
            arn = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}"
            self._put(base.OIDC_PROVIDER, arn, region="", arn=arn, url=ISSUER, clientIdLists=["sts.amazonaws.com"])
        deployer = self.account.deployer_role_arn
        self._put(base.ACCESS_ENTRY, f"{THEIR_EKS}:{deployer}", clusterName=THEIR_EKS, principalArn=deployer)
        self._put(
            base.ACCESS_POLICY_ASSOCIATION,
            f"{THEIR_EKS}#{deployer}#{CLUSTER_ADMIN}",
            clusterName=THEIR_EKS,
            principalArn=deployer,
            policyArn=CLUSTER_ADMIN,
            accessScope={"type": "cluster"},
        )
        self._put_addon("vpc-cni", self.vpc_cni_version)

    def _put_addon(self, name: str, version: str) -> None:
        self._put(
            base.ADDON,
            f"{self.eks}:{name}",
            clusterName=self.eks,
            addonName=name,
            addonVersion=version,
            arn=f"arn:aws:eks:{REGION}:{ACCOUNT}:addon/{self.eks}/{name}/x",
            health="",
        )

    def _put_cluster(self) -> None:
        groups = [
            {"instanceGroupName": name, "instanceType": group["instanceType"], "instanceCount": group["count"]}
            for name, group in GROUPS.items()
        ]
        self._put(
            base.HYPERPOD_CLUSTER,
            HYPERPOD_ARN,
            clusterArn=HYPERPOD_ARN,
            clusterName="their-hyperpod",
            clusterStatus="InService",
            orchestrator={"eks": {"clusterArn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{self.eks}"}},
            vpcConfig={"subnets": [GPU_SUBNET], "securityGroupIds": [EFA_GROUP]},
            instanceGroups=groups,
        )
        if self.control_plane:
            self._put(
                RELEASE,
                "kube-system/hyperpod-dependencies",
                region="",
                cluster=THEIR_EKS,
                namespace="kube-system",
                chart="HyperPodHelmChart",
            )
