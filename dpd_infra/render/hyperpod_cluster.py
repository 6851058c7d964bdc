"""The HyperPod cluster: the request of SageMaker's CreateCluster, and the same request as aws-native's arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpd_infra.plan.groups import GroupPlan, plan_groups
from dpd_infra.render.lifecycle import ENTRY_POINT
from dpd_infra.spec.vocabulary import Capacity

if TYPE_CHECKING:
    from dpd_infra.spec.cluster import ClusterSpec

Request = dict[str, Any]
"""Plain data in the spelling of the SageMaker API; leaves may be opaque objects such as outputs, which are never looked into."""

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_FREE_KEYS = frozenset({"Labels"})
"""Fields whose value is a map with keys of the user's own."""


def render_cluster(
    spec: ClusterSpec,
    *,
    name: str,
    eks_cluster_arn: Any,
    execution_role_arn: Any,
    lifecycle_uri: Any,
    security_group_ids: Any,
    subnet_ids: Any,
    tags: Mapping[str, str],
    counts: Mapping[str, int] | None = None,
) -> Request:
    """The CreateCluster request of a cluster. `counts` is how many nodes a group is to have instead of what its spec says, by name.

    Groups come sorted by name: their order is no identity, so a group added before another moves nothing. NodeRecovery is always sent,
    because an update that carries TieredStorageConfig alone is refused (AWS blog on managed tiered KV cache).
    """
    request: Request = {
        "ClusterName": name,
        "InstanceGroups": [_counted(group, counts or {}) for group in planned_groups(spec, execution_role_arn, lifecycle_uri)],
        "VpcConfig": {"SecurityGroupIds": security_group_ids, "Subnets": subnet_ids},
        "Orchestrator": {"Eks": {"ClusterArn": eks_cluster_arn}},
        "NodeRecovery": spec.node_recovery.value,
    }
    if spec.continuous_provisioning:
        request["NodeProvisioningMode"] = "Continuous"
    if spec.tiered_storage is not None:
        request["TieredStorageConfig"] = {"Mode": "Enable", "InstanceMemoryAllocationPercentage": spec.tiered_storage.memory_percent}
    if tags:
        request["Tags"] = [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
    return request


def planned_groups(spec: ClusterSpec, execution_role_arn: Any, lifecycle_uri: Any) -> list[Request]:
    """The groups of that request as the spec says them."""
    return [_group(group, execution_role_arn, lifecycle_uri) for group in plan_groups(spec.instance_groups)]


def _counted(group: Request, counts: Mapping[str, int]) -> Request:
    name = group["InstanceGroupName"]
    return group | {"InstanceCount": counts[name]} if name in counts else group


def native_arguments(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as arguments of `pulumi_aws_native.sagemaker.Cluster`.

    The same structure in snake_case: `VolumeSizeInGB` becomes `volume_size_in_gb`, `SourceS3Uri` becomes `source_s3_uri`.
    """
    return {_snake(key): dict(value) if key in _FREE_KEYS else _native(value) for key, value in request.items()}


def _native(value: Any) -> Any:
    if isinstance(value, Mapping):
        return native_arguments(value)
    if isinstance(value, list):
        return [_native(item) for item in value]
    return value


def _snake(name: str) -> str:
    return _WORD.sub("_", name).lower()


def _group(group: GroupPlan, execution_role_arn: Any, lifecycle_uri: Any) -> Request:
    spec = group.spec
    request: Request = {
        "InstanceGroupName": group.name,
        "InstanceType": spec.instance_type,
        "InstanceCount": spec.count,
        "ExecutionRole": execution_role_arn,
        "LifeCycleConfig": {"SourceS3Uri": lifecycle_uri, "OnCreate": ENTRY_POINT},
        "InstanceStorageConfigs": _storage(group),
    }
    optional = {
        "MinInstanceCount": spec.min_count,
        "ThreadsPerCore": spec.threads_per_core,
        "TrainingPlanArn": spec.training_plan_arn,
        "ImageReleaseVersion": spec.image_release_version,
        "OnStartDeepHealthChecks": [check.value for check in group.deep_health_checks] or None,
        "KubernetesConfig": _kubernetes(group) or None,
        # On demand is what a group gets without the field. A training plan's capacity is neither, and the field is immutable.
        "CapacityRequirements": {"Spot": {}} if spec.capacity is Capacity.SPOT else None,
    }
    return request | {key: value for key, value in optional.items() if value is not None}


def _storage(group: GroupPlan) -> list[Request]:
    """The additional volume, and the root volume only to give it the key.

    A configuration without RootVolume is the volume at /opt/sagemaker and must carry a size; with RootVolume it must carry a key and
    no size, which the service determines (SageMaker CreateCluster, ClusterEbsVolumeConfig). RootVolume is written out in both: an
    omitted false would come back from a refresh as a change.
    """
    key, size = group.spec.volume_key_arn, group.spec.storage_gib
    additional: Request = {"VolumeSizeInGB": size, "RootVolume": False}
    if key is None:
        return [{"EbsVolumeConfig": additional}]
    return [
        {"EbsVolumeConfig": additional | {"VolumeKmsKeyId": key}},
        {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": key}},
    ]


def _kubernetes(group: GroupPlan) -> Request:
    """Labels and taints; an empty value of a taint is left out, because the API takes none shorter than one character."""
    request: Request = {}
    if group.spec.labels:
        request["Labels"] = {key: group.spec.labels[key] for key in sorted(group.spec.labels)}
    if group.spec.taints:
        request["Taints"] = [
            {"Key": taint.key, "Effect": taint.effect.value} | ({"Value": taint.value} if taint.value else {})
            for taint in group.spec.taints
        ]
    return request
