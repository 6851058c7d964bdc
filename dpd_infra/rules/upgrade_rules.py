"""Rules on the platform on the way from one stack to another: what is refused, what is torn down, and what must be there first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpd_infra.catalog.operator_needs import OPERATOR_NEEDS
from dpd_infra.catalog.operator_releases import AddonVersion
from dpd_infra.catalog.sources import (
    AWS_NATIVE_CLUSTER,
    CREATE_CLUSTER_API,
    CUSTOMER_KEYS_GUIDE,
    EKS_PREREQUISITES_GUIDE,
    EKS_USER_GUIDE,
    OPERATOR_NOTES,
    PREREQUISITES_GUIDE,
    RELEASE_NOTES,
    TIERED_CACHE_BLOG,
    UPDATE_CLUSTER_GUIDE,
    VPC_USER_GUIDE,
)
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.rules.wide_subjects import UpgradeSubject
from dpd_infra.spec.existing import ExistingSpec
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import hashable

_WAY_OUT = "keep the old value; for a change build a second platform under another name, move the endpoints, then take the old one down"


@rule(
    "DPD601",
    "The clusters stay where they are and keep their names",
    severity=Severity.ERROR,
    why="Name, network and EKS cluster of a HyperPod cluster are fixed when it is made: a change deletes the cluster and all of its GPU "
    "nodes before a new one is "
    "asked for, and the capacity may not come back. `protect` stops the update there.",
    sources=(AWS_NATIVE_CLUSTER, EKS_PREREQUISITES_GUIDE, PREREQUISITES_GUIDE, VPC_USER_GUIDE),
)
def clusters_stay(change: UpgradeSubject) -> Iterator[Violation]:
    """Another cluster name, EKS name, region, zone or address block."""
    for path, before, after, what in _fixed_values(change):
        if before is not None and after is not None and before != after:
            yield Violation(
                path,
                f"{what} changes from {before} to {after}: the HyperPod cluster and its nodes would be replaced",
                _WAY_OUT,
                value=after,
            )


def _fixed_values(change: UpgradeSubject) -> Iterator[tuple[Path, Any, Any, str]]:
    yield ("config", "aws:region"), change.old.region, change.new.region, "the region"
    old, new = change.old.platform, change.new.platform
    if old is None or new is None:
        return
    at = change.new.at
    if old.existing.cluster is None and new.existing.cluster is None:
        name = ("cluster", "name") if new.cluster.name else ("name",)
        yield at(*name), old.cluster.name or old.name, new.cluster.name or new.name, "the HyperPod cluster's name"
    if old.control_plane is not None and new.control_plane is not None:
        name = ("controlPlane", "name") if new.control_plane.name else ("name",)
        yield at(*name), old.control_plane.name or old.name, new.control_plane.name or new.name, "the EKS cluster's name"
    if old.network is not None and new.network is not None:
        yield at("network", "zone"), old.network.zone, new.network.zone, "the GPU zone"
        yield at("network", "cidr"), old.network.cidr, new.network.cidr, "the VPC's block"
        yield at("network", "gpuCidr"), old.network.gpu_cidr or "none", new.network.gpu_cidr or "none", "the GPU subnet's block"
    if old.existing.cluster is None and new.existing.cluster is None:
        yield from _fixed_existing(old.existing, new.existing, at)


def _fixed_existing(old: ExistingSpec, new: ExistingSpec, at: Callable[..., Path]) -> Iterator[tuple[Path, Any, Any, str]]:
    """What a HyperPod cluster of ours was made with of somebody else's network and EKS cluster."""
    if old.network is not None and new.network is not None:
        for field, key, what in (
            ("gpu_subnet_ids", "gpuSubnetIds", "the GPU subnets"),
            ("node_security_group_ids", "nodeSecurityGroupIds", "the nodes' security groups"),
        ):
            before, after = (", ".join(sorted(getattr(network, field))) for network in (old.network, new.network))
            yield at("existing", "network", key), before, after, what
    if old.control_plane is not None and new.control_plane is not None:
        yield at("existing", "controlPlane", "name"), old.control_plane.name, new.control_plane.name, "the EKS cluster"
        if old.control_plane.values is not None and new.control_plane.values is not None:
            for field, key, what in (
                ("vpc_id", "vpcId", "the EKS cluster's VPC"),
                ("cluster_security_group_id", "clusterSecurityGroupId", "the EKS cluster's security group"),
            ):
                before, after = (getattr(plane.values, field) for plane in (old.control_plane, new.control_plane))
                yield at("existing", "controlPlane", "values", key), before, after, what


@rule(
    "DPD602",
    "Kubernetes goes up one minor version at a time",
    severity=Severity.ERROR,
    why="EKS takes the next minor version only, and no way leads back.",
    sources=(EKS_USER_GUIDE,),
)
def kubernetes_steps(change: UpgradeSubject) -> Iterator[Violation]:
    """A version that is skipped, or an older one."""
    old, new = change.old.platform, change.new.platform
    if old is None or new is None or old.control_plane is None or new.control_plane is None:
        return
    before, after = _minor(old.control_plane.version), _minor(new.control_plane.version)
    if before is None or after is None or before[0] != after[0] or after[1] - before[1] in {0, 1}:
        return
    step = f"{before[0]}.{before[1] + 1}"
    fix = f"write {step} and update, then go on from there" if after > before else f"keep {old.control_plane.version}"
    what = f"Kubernetes goes from {old.control_plane.version} to {new.control_plane.version}"
    yield Violation(change.new.at("controlPlane", "version"), what, fix, value=new.control_plane.version)


@rule(
    "DPD603",
    "What was chosen when a thing was made stays",
    severity=Severity.ERROR,
    why="How a group's capacity is bought, the key of its volumes and the key of an EKS cluster's Secrets are fixed when it is made: the "
    "update is refused, or, for "
    "the EKS cluster, replaces it.",
    sources=(OPERATOR_NOTES, CUSTOMER_KEYS_GUIDE, EKS_USER_GUIDE),
)
def choices_stay(change: UpgradeSubject) -> Iterator[Violation]:
    """Another capacity or volume key for a group that is there, or another key for Secrets."""
    old, new = change.old.platform, change.new.platform
    if old is None or new is None:
        return
    for name in sorted(set(old.instance_groups) & set(new.instance_groups)):
        before, after = old.instance_groups[name], new.instance_groups[name]
        for field, key in (("capacity", "capacity"), ("volume_key_arn", "volumeKeyArn")):
            was, will = getattr(before, field), getattr(after, field)
            if was != will:
                yield Violation(
                    change.new.at("instanceGroups", name, key),
                    f"group {name}: {key} changes from {was or 'none'} to {will or 'none'}",
                    f"keep it, and add a group of another name with the new one; move the pods, then take {name} out",
                    value=will,
                )
    if (
        old.control_plane is not None
        and new.control_plane is not None
        and old.control_plane.secrets_key_arn != new.control_plane.secrets_key_arn
    ):
        yield Violation(
            change.new.at("controlPlane", "secretsKeyArn"),
            "the key of the EKS cluster's Secrets changes",
            _WAY_OUT,
            value=new.control_plane.secrets_key_arn,
        )


@rule(
    "DPD604",
    "Groups keep their nodes",
    severity=Severity.WARNING,
    why="A group is known by its name: one that is renamed or left out loses its nodes, and one of another type gets all of its nodes "
    "anew; what ran there stops, and "
    "the capacity may not come back.",
    sources=(UPDATE_CLUSTER_GUIDE, CREATE_CLUSTER_API),
)
def groups_keep_nodes(change: UpgradeSubject) -> Iterator[Violation]:
    """A group of another type, renamed or left out."""
    old, new = change.old.platform, change.new.platform
    if old is None or new is None:
        return
    gone = [name for name in old.instance_groups if name not in new.instance_groups]
    added = [name for name in new.instance_groups if name not in old.instance_groups]
    twins: dict[Any, str] = {}
    for name in added if gone else ():
        twins.setdefault(hashable(new.instance_groups[name].model_dump()), name)
    for name in sorted(gone):
        group = old.instance_groups[name]
        twin = twins.get(hashable(group.model_dump())) if twins else None
        what = f"group {name} is renamed {twin}" if twin else f"group {name} is left out"
        fix = (
            f"keep the name {name}: a label can tell its nodes apart"
            if twin
            else f"see that nothing runs on its {group.count} nodes any more"
        )
        yield Violation(
            change.new.at("instanceGroups", twin) if twin else change.new.at("instanceGroups"),
            f"{what}: its {group.count} nodes are deleted",
            fix,
        )
    for name in sorted(set(old.instance_groups) & set(new.instance_groups)):
        before, after = old.instance_groups[name].instance_type, new.instance_groups[name].instance_type
        if before != after:
            yield Violation(
                change.new.at("instanceGroups", name, "instanceType"),
                f"group {name} changes from {before} to {after} nodes",
                f"add a group of {after} under another name, move the pods, then take {name} out",
                value=after,
            )


@rule(
    "DPD607",
    "The operator is not set back",
    severity=Severity.WARNING,
    why="An older operator's CRD lacks fields that stored endpoints hold, and no document describes a way back.",
    sources=(RELEASE_NOTES,),
)
def operator_goes_up(change: UpgradeSubject) -> Iterator[Violation]:
    """An older add-on version."""
    versions = _versions(change)
    if versions is not None and versions[1] < versions[0]:
        yield Violation(
            _version_place(change.new),
            f"the add-on goes from {versions[0]} back to {versions[1]}",
            f"keep {versions[0]}",
            value=str(versions[1]),
        )


@rule(
    "DPD608",
    "What a newer operator needs is there before it",
    severity=Severity.WARNING,
    why="A newer operator that lacks a permission or a setting starts, and then fails at the endpoints: certificates, tags or data "
    "capture stop working.",
    sources=(RELEASE_NOTES,),
)
def operator_needs(change: UpgradeSubject) -> Iterator[Violation]:
    """IAM actions and settings of the releases on the way, where their roles are not this library's."""
    versions = _versions(change)
    if versions is None or _is_ours(change.new):
        return
    for need in OPERATOR_NEEDS:
        if versions[0] < AddonVersion.parse(need.addon_version) <= versions[1]:
            yield Violation(
                _version_place(change.new),
                f"operator {need.release} needs {need.what}{f' for {need.only_for}' if need.only_for else ''}",
                f"{need.fix} before the add-on is raised to {versions[1]} [{need.source}]",
                value=str(versions[1]),
            )


@rule(
    "DPD609",
    "Tiered storage is not changed alone",
    severity=Severity.WARNING,
    why="SageMaker refuses an update-cluster call that carries TieredStorageConfig alone. NodeRecovery always stands in the request "
    "here, but whether CloudFormation "
    "sends what did not change is not documented.",
    sources=(TIERED_CACHE_BLOG,),
)
def tiered_storage_alone(change: UpgradeSubject) -> Iterator[Violation]:
    """Tiered storage switched or resized, with nothing else of the cluster changed."""
    old, new = change.old.platform, change.new.platform
    if old is None or new is None or old.cluster.tiered_storage == new.cluster.tiered_storage:
        return
    if old.instance_groups == new.instance_groups and old.cluster.node_recovery == new.cluster.node_recovery:
        yield Violation(
            change.new.at("cluster", "tieredStorage"),
            "tiered storage is all that changes of the cluster",
            "change a group in the same update (its count or a label), or be ready to repeat it",
        )


def _minor(version: str) -> tuple[int, int] | None:
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _versions(change: UpgradeSubject) -> tuple[AddonVersion, AddonVersion] | None:
    if change.old.operator is None or change.new.operator is None:
        return None
    return AddonVersion.parse(change.old.operator.addon_version), AddonVersion.parse(change.new.operator.addon_version)


def _is_ours(stack: StackSubject) -> bool:
    """Whether the operator's roles are made by this library, which brings what each release needs."""
    return stack.platform is not None and not stack.platform.operator_spec.adopt


def _version_place(stack: StackSubject) -> Path:
    if stack.platform is None:
        return ("config", "dpd-infra:operator", "addonVersion")
    return stack.at("existing", "operator", "addonVersion") if stack.platform.existing.operator else stack.at("operator", "addonVersion")
