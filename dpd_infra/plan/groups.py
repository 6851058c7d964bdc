"""Instance groups as HyperPod is to see them: sorted by name, each a GPU or a system group, with their defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpd_infra.catalog.instance_types import Architecture, InstanceType, instance_type
from dpd_infra.spec.vocabulary import DeepHealthCheck

if TYPE_CHECKING:
    from dpd_infra.spec.cluster import InstanceGroupSpec

GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
"""The node label that carries a group's name; HyperPod sets it."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One instance group with what follows from its type."""

    name: str
    spec: InstanceGroupSpec
    kind: InstanceType | None
    """The type's facts; None for a type the catalog does not hold."""
    deep_health_checks: tuple[DeepHealthCheck, ...]

    @property
    def is_gpu(self) -> bool:
        """A GPU group has EFA; every other group is a system group."""
        return self.kind is not None and self.kind.gpus > 0

    @property
    def carries_operator(self) -> bool:
        """Whether the operator's pods can run there: its images are amd64 only, and it has no tolerations for a group's own taints."""
        amd64 = self.kind is None or self.kind.architecture is Architecture.AMD64
        return amd64 and self.spec.count > 0 and not self.spec.taints


def plan_groups(groups: Mapping[str, InstanceGroupSpec]) -> tuple[GroupPlan, ...]:
    """The groups in the order of their names: the order in a file is no identity, and CloudFormation compares lists by position."""
    return tuple(_plan(name, groups[name]) for name in sorted(groups))


def _plan(name: str, spec: InstanceGroupSpec) -> GroupPlan:
    kind = instance_type(spec.instance_type)
    checks = spec.deep_health_checks
    if checks is None:
        checks = tuple(DeepHealthCheck) if kind is not None and kind.gpus and not spec.taints else ()
    return GroupPlan(name, spec, kind, checks)
