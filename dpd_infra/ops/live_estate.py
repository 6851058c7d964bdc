"""What is there, described: a HyperPod cluster with its EKS cluster, network and add-ons, read from AWS by its APIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from dpd_infra.catalog.operator_releases import ADDON_NAME


class EstateUnreadable(Exception):
    """What was looked for is not there, or is not a HyperPod cluster on EKS; the message says what."""


@dataclass(frozen=True, slots=True)
class LiveAddon:
    """One EKS add-on."""

    version: str
    has_role: bool = False
    """Whether it has a role of its own, by its service account or by pod identity."""


@dataclass(frozen=True, slots=True)
class LiveEstate:
    """A HyperPod cluster and what it stands on."""

    region: str
    cluster_arn: str
    cluster: Mapping[str, Any]
    """The request that would make it, in the spelling of SageMaker's CreateCluster; groups with what cannot be asked for left out."""
    eks_name: str
    vpc_id: str
    zones: Mapping[str, str]
    """The zone of each subnet of the HyperPod cluster."""
    has_oidc_provider: bool
    addons: Mapping[str, LiveAddon] = field(default_factory=dict)
    """The EKS add-ons by name."""
    operator_configuration: Mapping[str, Any] = field(default_factory=dict)
    """The configuration values of the inference operator's add-on; empty where there is none."""


_GROUP_KEYS = {"TargetCount": "InstanceCount", "MinCount": "MinInstanceCount"}
"""What DescribeCluster calls otherwise than CreateCluster."""

_STATE_KEYS = frozenset(
    {
        "CurrentCount",
        "Status",
        "TrainingPlanStatus",
        "CurrentImageId",
        "DesiredImageId",
        "CurrentImageReleaseVersion",
        "DesiredImageReleaseVersion",
        "ImageVersionStatus",
        "ActiveOperations",
        "TargetStateCount",
        "SoftwareUpdateStatus",
        "ActiveSoftwareUpdateConfig",
        "InstanceTypeDetails",
    }
)
"""What DescribeCluster tells of a group beside what was asked for (botocore, ClusterInstanceGroupDetails)."""


def describe(cluster: str, clients: Mapping[str, Any]) -> LiveEstate:
    """Read a HyperPod cluster, by name or ARN, and what it stands on. Nothing is changed.

    `clients` are boto3's for sagemaker, eks, ec2 and iam. Raises `EstateUnreadable`, and whatever boto3 raises for missing rights.
    """
    found = clients["sagemaker"].describe_cluster(ClusterName=cluster)
    eks_arn = found.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if not eks_arn:
        raise EstateUnreadable(f"the HyperPod cluster {cluster} is not orchestrated by EKS")
    eks_name = eks_arn.rsplit("/", 1)[-1]
    eks = clients["eks"].describe_cluster(name=eks_name)["cluster"]
    subnets = found.get("VpcConfig", {}).get("Subnets") or []
    described = clients["ec2"].describe_subnets(SubnetIds=subnets)["Subnets"] if subnets else []
    issuer = eks["identity"]["oidc"]["issuer"].removeprefix("https://")
    providers = clients["iam"].list_open_id_connect_providers()["OpenIDConnectProviderList"]
    addons, configuration = _addons(eks_name, clients["eks"])
    return LiveEstate(
        region=found["ClusterArn"].split(":")[3],
        cluster_arn=found["ClusterArn"],
        cluster=as_request(found),
        eks_name=eks_name,
        vpc_id=eks["resourcesVpcConfig"]["vpcId"],
        zones={subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in described},
        has_oidc_provider=any(provider["Arn"].endswith(f"/{issuer}") for provider in providers),
        addons=addons,
        operator_configuration=configuration,
    )


def as_request(found: Mapping[str, Any]) -> dict[str, Any]:
    """DescribeCluster's answer as the request of CreateCluster that would make the same."""
    kept = ("ClusterName", "VpcConfig", "Orchestrator", "NodeRecovery", "NodeProvisioningMode", "TieredStorageConfig")
    also = ("RestrictedInstanceGroups", "AutoScaling", "ClusterRole")
    request = {key: found[key] for key in (*kept, *also) if found.get(key)}
    request["InstanceGroups"] = [_group(group) for group in found.get("InstanceGroups") or []]
    return request


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    request = {_GROUP_KEYS.get(key, key): value for key, value in group.items() if key not in _STATE_KEYS and value not in (None, [], {})}
    kubernetes = request.pop("KubernetesConfig", None)
    if kubernetes:
        asked = {
            name: kubernetes.get(f"Desired{name}") or kubernetes.get(f"Current{name}") or kubernetes.get(name)
            for name in ("Labels", "Taints")
        }
        request["KubernetesConfig"] = {name: value for name, value in asked.items() if value}
    return {key: value for key, value in request.items() if value != {}}


def _addons(eks_name: str, client: Any) -> tuple[dict[str, LiveAddon], dict[str, Any]]:
    addons: dict[str, LiveAddon] = {}
    configuration: dict[str, Any] = {}
    for page in client.get_paginator("list_addons").paginate(clusterName=eks_name):
        for name in page["addons"]:
            addon = client.describe_addon(clusterName=eks_name, addonName=name)["addon"]
            has_role = bool(addon.get("serviceAccountRoleArn") or addon.get("podIdentityAssociations"))
            addons[name] = LiveAddon(addon["addonVersion"], has_role)
            if name == ADDON_NAME:
                configuration = read_configuration(addon.get("configurationValues"))
    return addons, configuration


def read_configuration(text: str | None) -> dict[str, Any]:
    """The configuration values of an add-on, which EKS keeps as JSON or YAML text. Raises `EstateUnreadable` for anything else."""
    try:
        values = yaml.safe_load(text) if text else {}
    except yaml.YAMLError as error:
        raise EstateUnreadable(f"the configuration values of {ADDON_NAME} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise EstateUnreadable(f"the configuration values of {ADDON_NAME} are not an object")
    return values
