"""What AWS and Kubernetes would answer: the outputs of resources and the results of invokes, in one table each.

Only shapes matter here (an ARN where an ARN is, a list where a list is); a type that is missing gets an `arn` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

ACCOUNT = "111122223333"
REGION = "us-east-2"
DEPLOYER_SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/session"
DEPLOYER_ROLE = f"arn:aws:iam::{ACCOUNT}:role/deployer"
ISSUER = f"https://oidc.eks.{REGION}.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"

Inputs = Mapping[str, Any]
Outputs = dict[str, Any]


def _arn(service: str, kind: str, *, region: str = REGION, account: str = ACCOUNT) -> str:
    return f"arn:aws:{service}:{region}:{account}:{kind}"


def _eks_cluster(name: str, inputs: Inputs) -> Outputs:
    cluster = inputs.get("name", name)
    return {
        "arn": _arn("eks", f"cluster/{cluster}"),
        "endpoint": f"https://{cluster}.sk1.{REGION}.eks.amazonaws.com",
        "certificateAuthority": {"data": "Q0VSVElGSUNBVEU="},
        "identities": [{"oidcs": [{"issuer": ISSUER}]}],
        "vpcConfig": {**inputs.get("vpcConfig", {}), "clusterSecurityGroupId": f"sg-{cluster}", "vpcId": "vpc-mock"},
        "version": inputs.get("version", "1.33"),
        "status": "ACTIVE",
    }


def _addon(name: str, inputs: Inputs) -> Outputs:
    versions = {
        "vpc-cni": "v1.20.4-eksbuild.2",
        "kube-proxy": "v1.33.3-eksbuild.4",
        "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
        "amazon-sagemaker-hyperpod-inference": "v1.4.0-eksbuild.1",
    }
    return {
        "arn": _arn("eks", f"addon/{inputs['clusterName']}/{inputs['addonName']}/{name}"),
        "addonVersion": inputs.get("addonVersion") or versions.get(inputs["addonName"], "v9.9.9-eksbuild.1"),
    }


def _hyperpod_cluster(name: str, inputs: Inputs) -> Outputs:
    return {"clusterArn": _arn("sagemaker", f"cluster/{inputs.get('clusterName', name)}"), "clusterStatus": "InService"}


def _bucket(name: str, inputs: Inputs) -> Outputs:
    bucket = inputs.get("bucket", name)
    return {"arn": f"arn:aws:s3:::{bucket}", "bucket": bucket, "bucketRegionalDomainName": f"{bucket}.s3.{REGION}.amazonaws.com"}


def _role(name: str, inputs: Inputs) -> Outputs:
    role = inputs.get("name", name)
    return {"arn": f"arn:aws:iam::{ACCOUNT}:role/{role}", "name": role, "uniqueId": "AROAMOCK"}


def _oidc_provider(_: str, inputs: Inputs) -> Outputs:
    return {"arn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{str(inputs['url']).removeprefix('https://')}"}


OUTPUTS: dict[str, Callable[[str, Inputs], Outputs]] = {
    "aws:ec2/vpc:Vpc": lambda name, _: {"arn": _arn("ec2", f"vpc/vpc-{name}"), "defaultSecurityGroupId": "sg-default"},
    "aws:ec2/eip:Eip": lambda name, _: {"allocationId": f"eipalloc-{name}", "publicIp": "198.51.100.1"},
    "aws:ec2/subnet:Subnet": lambda name, _: {"arn": _arn("ec2", f"subnet/{name}"), "availabilityZoneId": "use2-az1"},
    "aws:eks/cluster:Cluster": _eks_cluster,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/accessEntry:AccessEntry": lambda name, _: {"accessEntryArn": _arn("eks", f"access-entry/{name}")},
    "aws:iam/role:Role": _role,
    "aws:iam/policy:Policy": lambda name, inputs: {"arn": f"arn:aws:iam::{ACCOUNT}:policy/{inputs.get('name', name)}"},
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _oidc_provider,
    "aws:kms/key:Key": lambda name, _: {"arn": _arn("kms", f"key/{name}"), "keyId": name},
    "aws:s3/bucket:Bucket": _bucket,
    "aws-native:sagemaker:Cluster": _hyperpod_cluster,
    "kubernetes:helm.sh/v3:Release": lambda name, _: {"status": {"status": "deployed", "name": name}},
}
"""Outputs by resource type, beside the inputs: what is not known before the resource exists."""

IDS: dict[str, Callable[[str, Inputs], str]] = {
    "aws:eks/cluster:Cluster": lambda name, inputs: inputs.get("name", name),
    "aws:iam/role:Role": lambda name, inputs: inputs.get("name", name),
    "aws:s3/bucket:Bucket": lambda name, inputs: inputs.get("bucket", name),
    "aws:cloudwatch/logGroup:LogGroup": lambda name, inputs: inputs.get("name", name),
    "aws-native:sagemaker:Cluster": lambda name, inputs: _hyperpod_cluster(name, inputs)["clusterArn"],
}
"""Ids by resource type; every other one is `<name>-id`."""

INVOKES: dict[str, Outputs] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {
        "accountId": ACCOUNT,
        "arn": DEPLOYER_SESSION,
        "id": ACCOUNT,
        "userId": "AROA:session",
    },
    "aws:iam/getSessionContext:getSessionContext": {
        "arn": DEPLOYER_SESSION,
        "id": DEPLOYER_SESSION,
        "issuerArn": DEPLOYER_ROLE,
        "issuerId": "AROA",
        "issuerName": "deployer",
        "sessionName": "session",
    },
    "aws:index/getPartition:getPartition": {
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "id": "aws",
        "reverseDnsPrefix": "com.amazonaws",
    },
    "aws:index/getRegion:getRegion": {"region": REGION, "name": REGION, "id": REGION, "description": "US East (Ohio)", "endpoint": ""},
}
"""Results by invoke token."""


def outputs_of(type_: str, name: str, inputs: Inputs) -> tuple[str, Outputs]:
    """The id and the outputs of a resource that was just made."""
    identity = IDS[type_](name, inputs) if type_ in IDS else f"{name}-id"
    if type_ in OUTPUTS:
        return identity, OUTPUTS[type_](name, inputs)
    package, module, kind = type_.split(":")
    if package != "aws":
        return identity, {}
    return identity, {"arn": _arn(module.split("/")[0], f"{kind.lower()}/{identity}")}
