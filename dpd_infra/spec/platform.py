"""What a person may ask of a platform: everything that endpoints need."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from dpd_infra.spec.addons import NodeAddonsSpec
from dpd_infra.spec.base import Spec
from dpd_infra.spec.cluster import ClusterName, ClusterSettings, ClusterSpec, InstanceGroupSpec
from dpd_infra.spec.control_plane import ControlPlaneSpec
from dpd_infra.spec.dependencies import DependenciesSpec
from dpd_infra.spec.network import NetworkSpec
from dpd_infra.spec.operator import OperatorSpec

PlatformName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=40)]
"""Lower case, digits and single hyphens: it becomes part of bucket, role and cluster names."""

BucketName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
"""The name of an S3 bucket."""


class PlatformSpec(Spec):
    """Network, EKS control plane, HyperPod cluster and inference operator."""

    name: PlatformName = Field(examples=["inference"])
    """The platform's name: the default name of the EKS and the HyperPod cluster."""
    network: NetworkSpec = Field(examples=[{"zone": "us-east-2a"}])
    """The VPC."""
    control_plane: ControlPlaneSpec = Field(examples=[{"private": True}])
    """The EKS cluster."""
    dependencies: DependenciesSpec = DependenciesSpec()
    """The chart that HyperPod needs in the cluster."""
    instance_groups: dict[ClusterName, InstanceGroupSpec] = Field(
        min_length=1, max_length=100, examples=[{"gpu": {"instanceType": "ml.p5.48xlarge", "count": 2}}]
    )
    """The HyperPod cluster's groups by name."""
    cluster: ClusterSettings = ClusterSettings()
    """The HyperPod cluster, apart from its groups."""
    addons: NodeAddonsSpec = NodeAddonsSpec()
    """The add-ons that need nodes."""
    operator: OperatorSpec = OperatorSpec()
    """The inference operator."""
    model_buckets: tuple[BucketName, ...] = ()
    """The S3 buckets that model pods may read."""
    tags: dict[str, str] = Field(default_factory=dict, max_length=45)
    """AWS tags for every taggable resource (AWS: 50 at most, five are ours)."""

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The HyperPod cluster with its groups."""
        return ClusterSpec(instance_groups=self.instance_groups, **self.cluster.model_dump())
