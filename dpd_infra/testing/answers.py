"""What AWS and Kubernetes would answer: the outputs of resources and the results of data sources.

Shapes are real (an ARN where an ARN is, a list where a list is), values are made up from names; a type that is not in the table gets an
ARN alone where it is AWS's. What a program asks beyond that is given to `run_program` as `outputs` and `invokes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.kubernetes_versions import DEFAULT_VERSION
from dpd_infra.catalog.operator_releases import ADDON_NAME, DEFAULT_ADDON_VERSION

ACCOUNT_ID = "111122223333"
"""The account: the one that AWS's documentation uses in examples."""

REGION = "us-east-2"
"""The region, where the program's configuration names none."""

ADDON_VERSIONS: Mapping[str, str] = {
    "vpc-cni": "v1.20.4-eksbuild.2",
    "kube-proxy": "v1.33.3-eksbuild.4",
    "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
    ADDON_NAME: DEFAULT_ADDON_VERSION,
}
"""What EKS would choose for an add-on whose version is left to it; stand-ins, except that the operator's is this library's default."""

_OTHER_ADDON_VERSION = "v9.9.9-eksbuild.1"
_ISSUER_ID = "0123456789ABCDEF0123456789ABCDEF"

Inputs = Mapping[str, Any]
Outputs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A value that a provider marks as secret."""

    value: Any


def secret(value: Any) -> SecretValue:
    """Mark a part of `outputs`, `invokes` or `stacks` as secret, as a provider or another stack would."""
    return SecretValue(value)


@dataclass(frozen=True)
class Answers:
    """Answers for one account and region."""

    account_id: str = ACCOUNT_ID
    region: str = REGION
    partition: str = "aws"

    @property
    def issuer(self) -> str:
        """The OIDC issuer of every EKS cluster."""
        return f"https://oidc.eks.{self.region}.amazonaws.com/id/{_ISSUER_ID}"

    @property
    def deployer_role_arn(self) -> str:
        """Whose credentials the program runs with: a role."""
        return self.arn("iam", "role/deployer", region="")

    @property
    def deployer_session_arn(self) -> str:
        """The session of that role, as STS names it."""
        return self.arn("sts", "assumed-role/deployer/session", region="")

    def arn(self, service: str, resource: str, *, region: str | None = None, account: str | None = None) -> str:
        """An ARN in this account and region; `region` or `account` "" for a service that has none there."""
        where = self.region if region is None else region
        return f"arn:{self.partition}:{service}:{where}:{self.account_id if account is None else account}:{resource}"

    def made_id(self, name: str) -> str:
        """The id that AWS gives to a resource whose id follows from nothing."""
        return f"{name}-id"

    def key_id(self, name: str) -> str:
        """The id of a KMS key."""
        return name

    def assigned(self, prefix: str, name: str) -> str:
        """Another id that AWS makes up beside the resource's own, as `sg-…` of an EKS cluster."""
        return f"{prefix}-{name}"

    def resource(self, type_: str, name: str, inputs: Inputs) -> tuple[str, Outputs]:
        """The id and the outputs of a resource that was just made: what is not known before it exists."""
        identity = _IDS[type_](self, name, inputs) if type_ in _IDS else self.made_id(name)
        if type_ in _OUTPUTS:
            return identity, _OUTPUTS[type_](self, name, inputs)
        package, module, kind = type_.split(":")
        if package != "aws":
            return identity, {}
        return identity, {"arn": self.arn(module.split("/")[0], f"{kind.lower()}/{identity}")}

    def invoke(self, token: str, arguments: Inputs) -> Outputs | None:
        """The result of a data source; None for one that is not in the table."""
        return _INVOKES[token](self, arguments) if token in _INVOKES else None

    def eks_cluster(self, name: str, *, vpc_id: str = "vpc-0123456789abcdef0") -> Outputs:
        """An EKS cluster that HyperPod can join, as `aws.eks.get_cluster` tells of it."""
        return {
            "id": name,
            "name": name,
            "arn": self.arn("eks", f"cluster/{name}"),
            "version": DEFAULT_VERSION,
            "endpoint": f"https://{name}.sk1.{self.region}.eks.amazonaws.com",
            "status": "ACTIVE",
            "certificateAuthorities": [{"data": "Q0VSVElGSUNBVEU="}],
            "identities": [{"oidcs": [{"issuer": self.issuer}]}],
            "accessConfigs": [{"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}],
            "vpcConfig": {"vpcId": vpc_id, "clusterSecurityGroupId": "sg-0123456789abcdef0", "subnetIds": []},
        }

    def eks_addon(self, cluster: str, addon: str, version: str | None = None) -> Outputs:
        """An EKS add-on, as `aws.eks.get_addon` tells of it; `version` None: what EKS would choose."""
        return {
            "id": f"{cluster}:{addon}",
            "clusterName": cluster,
            "addonName": addon,
            "addonVersion": version or ADDON_VERSIONS.get(addon, _OTHER_ADDON_VERSION),
            "arn": self.arn("eks", f"addon/{cluster}/{addon}/{addon}"),
            "configurationValues": "",
        }

    def hyperpod_cluster(self, arn: str, eks_cluster: str, instance_groups: Mapping[str, str] | None = None) -> Outputs:
        """A HyperPod cluster in service, as `aws_native.sagemaker.get_cluster` tells of it; `instance_groups` is types by group name."""
        groups = (instance_groups or {}).items()
        return {
            "clusterArn": arn,
            "clusterStatus": "InService",
            "orchestrator": {"eks": {"clusterArn": self.arn("eks", f"cluster/{eks_cluster}")}},
            "instanceGroups": [{"instanceGroupName": name, "instanceType": kind} for name, kind in groups],
        }


@dataclass(frozen=True)
class StandIns(Answers):
    """Answers that say of every id that AWS would make up whose it is: `<inference-network-vpc.id>`."""

    def made_id(self, name: str) -> str:
        """The resource's name with `.id`, in pointed brackets."""
        return f"<{name}.id>"

    def key_id(self, name: str) -> str:
        """The same of a KMS key."""
        return self.made_id(name)

    def assigned(self, prefix: str, name: str) -> str:
        """The same with what kind of id it is."""
        return f"<{name}.{prefix}>"


def _eks_cluster(answers: Answers, name: str, inputs: Inputs) -> Outputs:
    cluster = inputs.get("name", name)
    return {
        "arn": answers.arn("eks", f"cluster/{cluster}"),
        "endpoint": f"https://{cluster}.sk1.{answers.region}.eks.amazonaws.com",
        "certificateAuthority": {"data": "Q0VSVElGSUNBVEU="},
        "identities": [{"oidcs": [{"issuer": answers.issuer}]}],
        "vpcConfig": {
            **inputs.get("vpcConfig", {}),
            "clusterSecurityGroupId": answers.assigned("sg", cluster),
            "vpcId": answers.assigned("vpc", cluster),
        },
        "version": inputs.get("version", DEFAULT_VERSION),
        "status": "ACTIVE",
    }


def _addon(answers: Answers, name: str, inputs: Inputs) -> Outputs:
    addon = inputs["addonName"]
    return {
        "arn": answers.arn("eks", f"addon/{inputs['clusterName']}/{addon}/{name}"),
        "addonVersion": inputs.get("addonVersion") or ADDON_VERSIONS.get(addon, _OTHER_ADDON_VERSION),
    }


def _hyperpod_arn(answers: Answers, name: str, inputs: Inputs) -> str:
    return answers.arn("sagemaker", f"cluster/{inputs.get('clusterName', name)}")


def _bucket(answers: Answers, name: str, inputs: Inputs) -> Outputs:
    bucket = inputs.get("bucket", name)
    arn = answers.arn("s3", bucket, region="", account="")
    return {"arn": arn, "bucket": bucket, "bucketRegionalDomainName": f"{bucket}.s3.{answers.region}.amazonaws.com"}


def _role(answers: Answers, name: str, inputs: Inputs) -> Outputs:
    role = inputs.get("name", name)
    return {"arn": answers.arn("iam", f"role/{role}", region=""), "name": role, "uniqueId": "AROAMOCK"}


def _oidc_provider(answers: Answers, _: str, inputs: Inputs) -> Outputs:
    return {"arn": answers.arn("iam", f"oidc-provider/{str(inputs['url']).removeprefix('https://')}", region="")}


_OUTPUTS: dict[str, Callable[[Answers, str, Inputs], Outputs]] = {
    "aws:ec2/vpc:Vpc": lambda answers, name, _: {
        "arn": answers.arn("ec2", f"vpc/{answers.made_id(name)}"),
        "defaultSecurityGroupId": "sg-default",
        "mainRouteTableId": answers.made_id(f"{name}-main-routes"),
    },
    "aws:ec2/eip:Eip": lambda answers, name, _: {"allocationId": answers.assigned("eipalloc", name), "publicIp": "198.51.100.1"},
    "aws:ec2/subnet:Subnet": lambda answers, name, _: {
        "arn": answers.arn("ec2", f"subnet/{answers.made_id(name)}"),
        "availabilityZoneId": "use2-az1",
    },
    "aws:ec2/vpcEndpoint:VpcEndpoint": lambda answers, name, _: {
        "arn": answers.arn("ec2", f"vpc-endpoint/{answers.made_id(name)}"),
        "prefixListId": answers.assigned("pl", name),
        "state": "available",
    },
    "aws:eks/cluster:Cluster": _eks_cluster,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/accessEntry:AccessEntry": lambda answers, name, _: {"accessEntryArn": answers.arn("eks", f"access-entry/{name}")},
    "aws:iam/role:Role": _role,
    "aws:iam/policy:Policy": lambda answers, name, inputs: {"arn": answers.arn("iam", f"policy/{inputs.get('name', name)}", region="")},
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _oidc_provider,
    "aws:kms/key:Key": lambda answers, name, _: {"arn": answers.arn("kms", f"key/{answers.key_id(name)}"), "keyId": answers.key_id(name)},
    "aws:s3/bucket:Bucket": _bucket,
    "aws-native:sagemaker:Cluster": lambda answers, name, inputs: {
        "clusterArn": _hyperpod_arn(answers, name, inputs),
        "clusterStatus": "InService",
    },
    "kubernetes:helm.sh/v3:Release": lambda _, name, __: {"status": {"status": "deployed", "name": name}},
}

_IDS: dict[str, Callable[[Answers, str, Inputs], str]] = {
    "aws:eks/cluster:Cluster": lambda _, name, inputs: inputs.get("name", name),
    "aws:iam/role:Role": lambda _, name, inputs: inputs.get("name", name),
    "aws:s3/bucket:Bucket": lambda _, name, inputs: inputs.get("bucket", name),
    "aws:cloudwatch/logGroup:LogGroup": lambda _, name, inputs: inputs.get("name", name),
    "aws-native:sagemaker:Cluster": _hyperpod_arn,
}

_INVOKES: dict[str, Callable[[Answers, Inputs], Outputs]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": lambda answers, _: {
        "accountId": answers.account_id,
        "arn": answers.deployer_session_arn,
        "id": answers.account_id,
        "userId": "AROA:session",
    },
    "aws:iam/getSessionContext:getSessionContext": lambda answers, _: {
        "arn": answers.deployer_session_arn,
        "id": answers.deployer_session_arn,
        "issuerArn": answers.deployer_role_arn,
        "issuerId": "AROA",
        "issuerName": "deployer",
        "sessionName": "session",
    },
    "aws:index/getPartition:getPartition": lambda answers, _: {
        "partition": answers.partition,
        "dnsSuffix": "amazonaws.com",
        "id": answers.partition,
        "reverseDnsPrefix": "com.amazonaws",
    },
    "aws:index/getRegion:getRegion": lambda answers, _: {
        "region": answers.region,
        "name": answers.region,
        "id": answers.region,
        "description": answers.region,
        "endpoint": f"ec2.{answers.region}.amazonaws.com",
    },
    "aws:ec2/getSecurityGroups:getSecurityGroups": lambda answers, asked: {
        "id": answers.region,
        "region": answers.region,
        "ids": [answers.assigned("sg", "load-balancer")],
        "arns": [answers.arn("ec2", "security-group/load-balancer")],
        "vpcIds": [],
        "filters": asked.get("filters", []),
        "tags": {},
    },
    # An object that the program under test may have written in an earlier run: here there was none.
    "aws:s3/getObject:getObject": lambda _, asked: {"bucket": asked["bucket"], "key": asked["key"], "body": ""},
    "aws:eks/getCluster:getCluster": lambda answers, asked: answers.eks_cluster(str(asked["name"])),
    "aws:eks/getAddon:getAddon": lambda answers, asked: answers.eks_addon(str(asked["clusterName"]), str(asked["addonName"])),
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": lambda answers, asked: _oidc_provider(answers, "", asked),
}
