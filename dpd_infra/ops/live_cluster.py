"""A live HyperPod cluster as the sections of a stack file: what they can say of it, and what they cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.plan.groups import plan_groups
from dpd_infra.render.hyperpod_cluster import render_cluster
from dpd_infra.spec.cluster import ClusterSpec, InstanceGroupSpec

_CLUSTER_EXTRAS = {
    "RestrictedInstanceGroups": "restricted instance groups",
    "ClusterRole": "a cluster role",
    "AutoScaling": "Karpenter autoscaling",
}
_GROUP_EXTRAS = {
    "InstanceRequirements": "several instance types",
    "OverrideVpcConfig": "a network of its own",
    "ScheduledUpdateConfig": "scheduled updates",
    "AutoPatchConfig": "automatic patches",
    "NetworkInterface": "a network interface type",
    "SlurmConfig": "Slurm",
}
"""Parts of a cluster and of a group that specs have no field for."""

_OURS = frozenset({"ExecutionRole", "LifeCycleConfig"})
"""Parts of a group that are always the platform's own."""


def reasons_to_keep(cluster: Mapping[str, Any]) -> list[str]:
    """What a stack file cannot say of a cluster, in words; empty where it can say all."""
    reasons = [words for key, words in _CLUSTER_EXTRAS.items() if cluster.get(key) and not _is_off(cluster[key])]
    for group in cluster.get("InstanceGroups") or []:
        name = group["InstanceGroupName"]
        reasons += [f"{words} (group {name})" for key, words in _GROUP_EXTRAS.items() if group.get(key)]
        if any("EbsVolumeConfig" not in storage for storage in group.get("InstanceStorageConfigs") or []):
            reasons.append(f"a file system among the storage of group {name}")
    return reasons


def settings_of(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """`cluster` of a stack file, without its name."""
    settings: dict[str, Any] = {}
    if cluster.get("NodeRecovery") == "None":
        settings["nodeRecovery"] = "None"
    if cluster.get("NodeProvisioningMode") != "Continuous":
        settings["continuousProvisioning"] = False
    tiered = cluster.get("TieredStorageConfig") or {}
    if tiered.get("Mode") == "Enable":
        settings["tieredStorage"] = {"memoryPercent": int(tiered.get("InstanceMemoryAllocationPercentage") or 20)}
    return settings


def groups_of(cluster: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`instanceGroups` of a stack file."""
    return {str(group["InstanceGroupName"]): _group(group) for group in cluster.get("InstanceGroups") or []}


def unmatched(cluster: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a stack file with these groups would change in the live ones, beside what is always the platform's own."""
    spec = ClusterSpec.from_yaml_data({**settings_of(cluster), "instanceGroups": dict(groups)})
    nowhere = {"eks_cluster_arn": "", "execution_role_arn": "", "lifecycle_uri": "", "security_group_ids": [], "subnet_ids": []}
    rendered = {group["InstanceGroupName"]: group for group in render_cluster(spec, name="x", tags={}, **nowhere)["InstanceGroups"]}
    notes = []
    for group in cluster.get("InstanceGroups") or []:
        name = group["InstanceGroupName"]
        for key, live, ours in _differences(group, rendered[name]):
            notes.append(f"up changes {key} of group {name} from {live} to {ours}")
    return notes


def _differences(live: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted({*live, *ours} - _OURS):
        before, after = _plain(live.get(key)) or None, _plain(ours.get(key)) or None
        if before != after:
            yield key, before, after


def _plain(value: Any) -> Any:
    """A value as it compares: order of lists, empty parts and the root volume's false mean nothing."""
    if isinstance(value, Mapping):
        return {
            key: _plain(part) for key, part in sorted(value.items()) if part not in (None, [], {}) and (key, part) != ("RootVolume", False)
        }
    if isinstance(value, list | tuple):
        return sorted((_plain(part) for part in value), key=str)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if group.get("InstanceType"):
        entry["instanceType"] = group["InstanceType"]
    entry["count"] = int(group.get("InstanceCount") or 0)
    for key, ours in (("MinInstanceCount", "minCount"), ("ThreadsPerCore", "threadsPerCore")):
        if group.get(key) is not None:
            entry[ours] = int(group[key])
    if group.get("TrainingPlanArn"):
        entry["trainingPlanArn"] = group["TrainingPlanArn"]
    if "Spot" in (group.get("CapacityRequirements") or {}):
        entry["capacity"] = "spot"
    entry |= _storage(group)
    kubernetes = group.get("KubernetesConfig") or {}
    if kubernetes.get("Labels"):
        entry["labels"] = dict(kubernetes["Labels"])
    if kubernetes.get("Taints"):
        entry["taints"] = [
            {key.lower(): taint[key] for key in ("Key", "Value", "Effect") if taint.get(key)} for taint in kubernetes["Taints"]
        ]
    checks = list(group.get("OnStartDeepHealthChecks") or [])
    if "instanceType" in entry and set(checks) != _default_checks(entry):
        entry["deepHealthChecks"] = checks
    return entry


def _storage(group: Mapping[str, Any]) -> dict[str, Any]:
    volumes = [storage["EbsVolumeConfig"] for storage in group.get("InstanceStorageConfigs") or [] if "EbsVolumeConfig" in storage]
    entry: dict[str, Any] = {}
    for volume in volumes:
        if volume.get("VolumeSizeInGB") and not volume.get("RootVolume"):
            entry["storageGib"] = int(volume["VolumeSizeInGB"])
        if volume.get("VolumeKmsKeyId"):
            entry["volumeKeyArn"] = volume["VolumeKmsKeyId"]
    return entry


def _default_checks(entry: Mapping[str, Any]) -> set[str]:
    """The checks that a group like this gets by itself."""
    spec = InstanceGroupSpec.from_yaml_data({key: value for key, value in entry.items() if key != "deepHealthChecks"})
    return {check.value for check in plan_groups({"group": spec})[0].deep_health_checks}


def _is_off(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("Mode") == "Disable"
