"""What a person may ask of a platform: everything that endpoints need."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from dpd_infra.spec.addons import NodeAddonsSpec
from dpd_infra.spec.base import Spec, section
from dpd_infra.spec.cluster import ClusterName, ClusterSettings, ClusterSpec, InstanceGroupSpec
from dpd_infra.spec.control_plane import ControlPlaneSpec
from dpd_infra.spec.dependencies import DependenciesSpec
from dpd_infra.spec.existing import ExistingSpec
from dpd_infra.spec.model_store import ModelStoreSpec
from dpd_infra.spec.network import NetworkSpec
from dpd_infra.spec.operator import OperatorFacts, OperatorSpec
from dpd_infra.spec.teams import TeamSpec
from dpd_infra.spec.vocabulary import Egress

PlatformName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=40)]
"""Lower case, digits and single hyphens: it becomes part of bucket, role and cluster names."""

BucketName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"), Field(examples=["my-models"])]
"""The name of an S3 bucket."""


TeamName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
"""A team's name: its namespace's, unless that has one of its own."""


class PlatformSpec(Spec):
    """Network, EKS control plane, HyperPod cluster and inference operator."""

    name: PlatformName = Field(examples=["inference-prod"])
    """The platform's name: the default name of the EKS and the HyperPod cluster."""
    existing: ExistingSpec = section()
    """What is there already. Its steps are read and never changed, and their own sections below are then left out."""
    network: NetworkSpec | None = Field(default=None, examples=[{"zone": "us-east-2a"}])
    """The VPC. Needed unless `existing` has the network, or both clusters."""
    control_plane: ControlPlaneSpec | None = Field(default=None, examples=[{"private": True}])
    """The EKS cluster. Needed unless `existing` has it."""
    dependencies: DependenciesSpec = section()
    """The chart that HyperPod needs in the cluster. An existing HyperPod cluster has it."""
    instance_groups: dict[ClusterName, InstanceGroupSpec] = Field(
        default_factory=dict, max_length=100, examples=[{"gpu": {"instanceType": "ml.p5.48xlarge", "count": 2}}]
    )
    """The HyperPod cluster's groups by name. Needed unless `existing` has the cluster."""
    cluster: ClusterSettings = section()
    """The HyperPod cluster, apart from its groups."""
    addons: NodeAddonsSpec = section()
    """The add-ons that need nodes."""
    operator: OperatorSpec = section()
    """The inference operator."""
    model_buckets: tuple[BucketName, ...] = ()
    """The S3 buckets that model pods may read."""
    model_store: ModelStoreSpec | None = None
    """A bucket for models, filled from the Hugging Face hub. None: models come from buckets that are there."""
    image_mirrors: dict[str, str] = Field(default_factory=dict)
    """Where images are pulled from instead, by the beginning of their references: `public.ecr.aws` to
    `111122223333.dkr.ecr.us-east-2.amazonaws.com/public`."""
    teams: dict[TeamName, TeamSpec] = Field(default_factory=dict)
    """Who shares the platform, each team in a namespace of its own."""
    tags: dict[str, str] = Field(default_factory=dict, max_length=45)
    """AWS tags for every taggable resource (AWS: 50 at most, five are ours)."""

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The HyperPod cluster with its groups."""
        return ClusterSpec(instance_groups=self.instance_groups, **self.cluster.model_dump())

    @property
    def operator_spec(self) -> OperatorSpec:
        """The operator as its component takes it: an existing one is adopted."""
        existing = self.existing.operator
        return OperatorSpec(adopt=True, addon_version=existing.addon_version) if existing else self.operator

    @property
    def operator_facts(self) -> OperatorFacts:
        """What endpoint rules read."""
        given = self.existing.network
        closed = given.closed if given else self.network is not None and self.network.egress is Egress.ENDPOINTS
        return OperatorFacts(addon_version=self.operator_spec.addon_version, closed_network=closed, image_mirrors=self.image_mirrors)
