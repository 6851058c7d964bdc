"""What a person may ask of the HyperPod cluster: its instance groups and how it heals."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.control_plane import KmsKeyArn
from dpd_infra.spec.network import Zone
from dpd_infra.spec.vocabulary import Capacity, DeepHealthCheck, TaintEffect

ClusterName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", min_length=1, max_length=63)]
"""The pattern of SageMaker cluster and instance group names (SageMaker CreateCluster)."""


class NodeRecovery(StrEnum):
    """Whether HyperPod replaces faulty nodes by itself (SageMaker CreateCluster)."""

    AUTOMATIC = "Automatic"
    NONE = "None"


class Taint(Spec):
    """One node taint."""

    key: str = Field(min_length=1)
    """The taint's key."""
    value: str = ""
    """The taint's value."""
    effect: TaintEffect
    """What it does."""


class InstanceGroupSpec(Spec):
    """One named set of equal nodes. Groups are keyed by name: the order in the file means nothing."""

    instance_type: str = Field(pattern=r"^ml\.[a-z0-9-]+\.[a-z0-9]+$", examples=["ml.p5.48xlarge"])
    """An instance type with its `ml.` prefix."""
    count: StrictInt = Field(ge=0, le=6758, examples=[1])
    """How many nodes (SageMaker CreateCluster: 0 to 6758)."""
    min_count: StrictInt | None = Field(default=None, ge=0, le=6758)
    """With fewer nodes than this after three hours the group rolls back (SageMaker CreateCluster). None: all of `count`."""
    zone: Zone | None = None
    """The group's zone. None: the GPU zone; any other is refused, because the cluster's subnet lies there."""
    deep_health_checks: tuple[DeepHealthCheck, ...] | None = None
    """What runs on a node before it takes work. None: both checks on GPU groups, none on system groups."""
    storage_gib: StrictInt = Field(default=500, ge=1, le=16384)
    """The additional EBS volume at /opt/sagemaker, which holds images and pod storage, GiB a node (SageMaker CreateCluster: 1 to 16384).
    The root volume cannot be sized."""
    volume_key_arn: KmsKeyArn | None = None
    """The KMS key of both volumes; it needs continuous provisioning and cannot be changed later (HyperPod guide to customer managed keys).
    None: a key that AWS owns."""
    capacity: Capacity = Capacity.ON_DEMAND
    """Spot or on demand."""
    training_plan_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/.+$")
    """A training plan whose reserved capacity the group uses; its region and zone must be the group's."""
    threads_per_core: StrictInt | None = Field(default=None, ge=1, le=2)
    """1 turns hyper-threading off (SageMaker CreateCluster: 1 or 2)."""
    labels: dict[str, str] = Field(default_factory=dict, max_length=50)
    """Kubernetes labels of its nodes (SageMaker CreateCluster: 50 at most)."""
    taints: tuple[Taint, ...] = Field(default=(), max_length=50)
    """Kubernetes taints of its nodes. A GPU group's must be ones that the device plugins tolerate."""
    image_release_version: str | None = Field(default=None, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")
    """The HyperPod image to stay on. None: the newest when the group is made."""


class TieredStorageSpec(Spec):
    """HyperPod's managed tiered KV cache storage: what L2 backend `tieredstorage` needs."""

    memory_percent: StrictInt = Field(default=20, ge=20, le=100)
    """The share of each node's memory, percent (AWS: 20 to 100; 20 is the default of AWS's own template)."""


class ClusterSettings(Spec):
    """The HyperPod cluster, apart from its groups."""

    name: ClusterName | None = None
    """Its name. None: the platform's name. A new name deletes the old cluster first."""
    node_recovery: NodeRecovery = NodeRecovery.AUTOMATIC
    """Whether faulty nodes are replaced by themselves."""
    continuous_provisioning: StrictBool = True
    """Let groups come up node by node, and retry capacity in the background. Spot groups need it."""
    tiered_storage: TieredStorageSpec | None = None
    """Tiered KV cache storage on the nodes' memory. None: off."""
    keep_outside_counts: StrictBool = True
    """Let node counts that an autoscaler or the console set stay when something else is edited; one that is edited is always the file's.
    Of groups that were not edited nothing is sent, so labels and taints that others set stay as well. False: whenever a group is edited,
    and after a refresh, every group gets what the file says."""
    protect: StrictBool = True
    """Have Pulumi refuse to delete or replace the cluster. aws-native deletes the old cluster before it makes a new one."""


class ClusterSpec(ClusterSettings):
    """The HyperPod cluster with its groups: what the component takes."""

    instance_groups: dict[ClusterName, InstanceGroupSpec] = Field(min_length=1, max_length=100)
    """The groups by name (SageMaker CreateCluster: 1 to 100)."""
