"""A resource in a few words beside its name: what people look for in a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpd_infra.plan.tree import Registration

_Words = Callable[[Mapping[str, Any]], list[Any]]


def label(resource: Registration) -> str:
    """The words; empty where the name says enough."""
    words = _WORDS.get(resource.type) or _WORDS.get(resource.kind)
    found = [str(word) for word in words(resource.inputs) if isinstance(word, str | int) and word != ""] if words else []
    return " ".join(found)


def _groups(inputs: Mapping[str, Any]) -> list[Any]:
    listed = inputs.get("instanceGroups")
    groups = listed if isinstance(listed, list) else []
    return [", ".join(f"{group.get('instanceCount')} x {group.get('instanceType')}" for group in groups if isinstance(group, Mapping))]


def _of(*keys: str) -> _Words:
    def words(inputs: Mapping[str, Any]) -> list[Any]:
        found: list[Any] = []
        for key in keys:
            value: Any = inputs
            for step in key.split("."):
                value = value.get(step) if isinstance(value, Mapping) else None
            found.append(value)
        return found

    return words


_WORDS: Mapping[str, _Words] = {
    "aws:ec2/vpc:Vpc": _of("cidrBlock"),
    "aws:ec2/subnet:Subnet": _of("cidrBlock", "availabilityZone"),
    "aws:ec2/route:Route": _of("destinationCidrBlock"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _of("serviceName"),
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": _of("cidrBlock"),
    "aws:eks/cluster:Cluster": _of("name", "version"),
    "aws:eks/addon:Addon": _of("addonName", "addonVersion"),
    "aws:eks/accessEntry:AccessEntry": _of("principalArn"),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _of("policyArn"),
    "aws:iam/role:Role": _of("name"),
    "aws:iam/policy:Policy": _of("name"),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _of("policyArn"),
    "aws:s3/bucket:Bucket": _of("bucket"),
    "aws:s3/bucketObjectv2:BucketObjectv2": _of("key"),
    "aws:kms/alias:Alias": _of("name"),
    "aws:cloudwatch/logGroup:LogGroup": _of("name"),
    "aws-native:sagemaker:Cluster": _groups,
    "kubernetes:helm.sh/v3:Release": _of("chart", "namespace"),
    "kubernetes:core/v1:Namespace": _of("metadata.name"),
    "InferenceEndpointConfig": _of("metadata.namespace", "spec.modelName"),
    "pulumi:pulumi:StackReference": _of("name"),
}
