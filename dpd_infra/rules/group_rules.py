"""Rules on instance groups: what keeps nodes from joining or pods from being scheduled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpd_infra.catalog.addons import OPERATOR_POD_SLOTS
from dpd_infra.catalog.sources import (
    CONSOLE_TROUBLESHOOTING,
    CREATE_CLUSTER_API,
    EKS_PREREQUISITES_GUIDE,
    HYPERPOD_CHART,
    KUBERNETES_DOCS,
    OPERATOR_CHART,
    OPERATOR_NOTES,
    PREREQUISITES_GUIDE,
)
from dpd_infra.plan.pieces import gpu_zone
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.vocabulary import Capacity, TaintEffect

if TYPE_CHECKING:
    from dpd_infra.spec.cluster import Taint

TOLERATED_TAINTS = frozenset({"nvidia.com/gpu"})
"""What the NVIDIA plugin tolerates; the EFA plugin tolerates `aws.amazon.com/efa`, and no key is tolerated by both, so any taint on a GPU
group blocks one of them (HyperPod dependencies chart)."""

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@rule(
    "DPD521",
    "Every group is in the GPU zone",
    severity=Severity.ERROR,
    why="EFA traffic cannot cross zones and the cluster has one subnet, in the GPU zone: nodes of another zone could not join, or could "
    "not reach the others over EFA.",
    sources=(PREREQUISITES_GUIDE,),
)
def groups_in_one_zone(stack: StackSubject) -> Iterator[Violation]:
    """A group with another zone."""
    if stack.platform is None:
        return
    zone = gpu_zone(stack.platform)
    for group in stack.groups:
        if zone is not None and group.spec.zone is not None and group.spec.zone != zone:
            yield Violation(
                stack.at("instanceGroups", group.name, "zone"),
                f"group {group.name} is in {group.spec.zone}, the GPU zone is {zone}",
                "remove zone: a group is in the GPU zone by itself",
                value=group.spec.zone,
                related=(stack.at("network", "zone"),),
            )


@rule(
    "DPD522",
    "Every group's instance type is known",
    severity=Severity.WARNING,
    why="What is not in this library's table cannot be checked: its GPUs, EFA devices, addresses and pods are not known here.",
    sources=(CREATE_CLUSTER_API,),
)
def group_types_are_known(stack: StackSubject) -> Iterator[Violation]:
    """A type outside the catalog."""
    for group in stack.groups:
        if group.kind is None:
            yield Violation(
                stack.at("instanceGroups", group.name, "instanceType"),
                f"{group.spec.instance_type} is not in the table of instance types",
                "check the name; if it is right, see to its addresses and pods yourself",
                value=group.spec.instance_type,
            )


@rule(
    "DPD523",
    "The operator's pods have somewhere to run",
    severity=Severity.ERROR,
    why=f"The operator's images are amd64 only, its add-on needs {OPERATOR_POD_SLOTS} free pod slots, and its pods tolerate no taints of "
    "yours: without a place it ends CREATE_FAILED or DEGRADED.",
    sources=(OPERATOR_CHART, CONSOLE_TROUBLESHOOTING),
)
def operator_has_a_place(stack: StackSubject) -> Iterator[Violation]:
    """No untainted amd64 group with a node."""
    if stack.groups and not any(group.carries_operator for group in stack.groups):
        yield Violation(
            stack.at("instanceGroups"),
            "no group can carry the operator: none has an untainted amd64 node",
            "add a system group: system: {instanceType: ml.c5.4xlarge, count: 2}",
        )


@rule(
    "DPD524",
    "A system group carries the operator and the add-ons",
    severity=Severity.WARNING,
    why="Without one, operator, router and add-ons share the GPU nodes, and the add-on was seen to take up to 40 minutes on GPU-only "
    "clusters; ml.c5.4xlarge is the smallest recommended type.",
    sources=(CONSOLE_TROUBLESHOOTING,),
)
def system_group(stack: StackSubject) -> Iterator[Violation]:
    """GPU groups only, all of a known type."""
    groups = stack.groups
    if any(group.kind is None for group in groups) or not any(group.carries_operator for group in groups):
        return
    if not any(not group.is_gpu and group.carries_operator for group in groups):
        yield Violation(
            stack.at("instanceGroups"), "every group is a GPU group", "add a system group: system: {instanceType: ml.c5.4xlarge, count: 2}"
        )


@rule(
    "DPD525",
    "GPU groups carry no taint that blocks the device plugins",
    severity=Severity.ERROR,
    why="The NVIDIA plugin tolerates nvidia.com/gpu only, the EFA plugin aws.amazon.com/efa only, and model pods have no tolerations "
    "before operator 3.7: with any other taint no pod ever gets a GPU and an EFA device there.",
    sources=(HYPERPOD_CHART,),
)
def gpu_group_taints(stack: StackSubject) -> Iterator[Violation]:
    """A NoSchedule or NoExecute taint on a GPU group."""
    for group in stack.groups:
        for index, taint in enumerate(group.spec.taints if group.is_gpu else ()):
            if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE:
                yield Violation(
                    stack.at("instanceGroups", group.name, "taints", index),
                    f"group {group.name}: taint {taint.key} keeps {_blocked_by(taint)} off the nodes",
                    "remove the taint; keep other pods away with node selectors and a system group",
                    value=taint.key,
                )


def _blocked_by(taint: Taint) -> str:
    return "the EFA device plugin" if taint.key in TOLERATED_TAINTS else "the NVIDIA device plugin"


@rule(
    "DPD526",
    "Deep health checks and taints exclude each other",
    severity=Severity.ERROR,
    why="HyperPod does not take custom taints on a group with deep health checks on: the checks use a taint of their own.",
    sources=(EKS_PREREQUISITES_GUIDE,),
)
def health_checks_without_taints(stack: StackSubject) -> Iterator[Violation]:
    """Both asked for on one group."""
    for group in stack.groups:
        if group.spec.deep_health_checks and group.spec.taints:
            yield Violation(
                stack.at("instanceGroups", group.name, "taints"),
                f"group {group.name} has deep health checks and taints",
                "drop the taints, or set deepHealthChecks: []",
                related=(stack.at("instanceGroups", group.name, "deepHealthChecks"),),
            )


@rule(
    "DPD527",
    "A group's minimum is not over its count",
    severity=Severity.ERROR,
    why="A group that can never reach its minimum rolls back after three hours.",
    sources=(CREATE_CLUSTER_API,),
)
def minimum_within_count(stack: StackSubject) -> Iterator[Violation]:
    """`minCount` over `count`."""
    for group in stack.groups:
        if group.spec.min_count is not None and group.spec.min_count > group.spec.count:
            yield Violation(
                stack.at("instanceGroups", group.name, "minCount"),
                f"group {group.name} wants {group.spec.min_count} nodes at least and {group.spec.count} in all",
                f"lower minCount to {group.spec.count} or less",
                value=group.spec.min_count,
                related=(stack.at("instanceGroups", group.name, "count"),),
            )


@rule(
    "DPD528",
    "Spot groups need continuous provisioning",
    severity=Severity.ERROR,
    why="HyperPod takes spot capacity only in clusters with continuous provisioning.",
    sources=(OPERATOR_NOTES,),
)
def spot_is_continuous(stack: StackSubject) -> Iterator[Violation]:
    """Spot without `cluster.continuousProvisioning`."""
    if stack.platform is None or stack.platform.cluster.continuous_provisioning:
        return
    for group in stack.groups:
        if group.spec.capacity is Capacity.SPOT:
            yield Violation(
                stack.at("instanceGroups", group.name, "capacity"),
                f"group {group.name} is spot, the cluster is not provisioned continuously",
                "remove cluster.continuousProvisioning: false",
                value="spot",
                related=(stack.at("cluster", "continuousProvisioning"),),
            )


@rule(
    "DPD529",
    "Training plans and keys are of the stack's region",
    severity=Severity.ERROR,
    why="Reserved capacity and KMS keys belong to one region: the group is refused at CreateCluster.",
    sources=(CREATE_CLUSTER_API, OPERATOR_NOTES),
)
def arns_in_region(stack: StackSubject) -> Iterator[Violation]:
    """An ARN that names another region."""
    if stack.platform is None:
        return
    zone = gpu_zone(stack.platform)
    region = stack.region or (zone[:-1] if zone else None)
    if region is None:
        return
    places: list[tuple[tuple[str, ...], str | None]] = []
    if stack.control_plane:
        places.append((("controlPlane", "secretsKeyArn"), stack.control_plane.secrets_key_arn))
    for group in stack.groups:
        places.append((("instanceGroups", group.name, "trainingPlanArn"), group.spec.training_plan_arn))
        places.append((("instanceGroups", group.name, "volumeKeyArn"), group.spec.volume_key_arn))
    for path, arn in places:
        if arn is not None and arn.split(":")[3] != region:
            yield Violation(
                stack.at(*path), f"the ARN is of {arn.split(':')[3]}, the stack is in {region}", f"name one of {region}", value=arn
            )


@rule(
    "DPD532",
    "Labels and tags are ones that Kubernetes and AWS take",
    severity=Severity.ERROR,
    why="A label value has 63 letters, digits, '-', '_' or '.' at most; the tag prefix aws: is reserved: both are refused while nodes or "
    "resources are made.",
    sources=(KUBERNETES_DOCS, CREATE_CLUSTER_API),
)
def labels_and_tags(stack: StackSubject) -> Iterator[Violation]:
    """A malformed label value, or a reserved tag key."""
    if stack.platform is None:
        return
    for group in stack.groups:
        for key, value in group.spec.labels.items():
            if len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
                yield Violation(
                    stack.at("instanceGroups", group.name, "labels", key),
                    f"{value!r} is not a Kubernetes label value",
                    "shorten it to 63 letters, digits, '-', '_' and '.'",
                    value=value,
                )
    for key, value in stack.platform.tags.items():
        if key.lower().startswith("aws:") or not 1 <= len(key) <= 128 or len(value) > 256:
            yield Violation(
                stack.at("tags", key),
                f"the tag {key!r} is not one that AWS takes",
                "use a key of 1 to 128 characters without the aws: prefix and a value of 256 at most",
                value=value,
            )
