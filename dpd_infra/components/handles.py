"""Handles: what one component needs of another, however that came to be.

A handle carries typed outputs, plain facts that names and rules need before anything is registered, the resources to depend on, and,
where Kubernetes is spoken to, the provider. It is built by our component, by a lookup, from another stack, or from plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.plan.names import Naming
from dpd_infra.spec.operator import OperatorFacts


@dataclass(frozen=True, slots=True)
class Account:
    """Where everything is made: known before anything is registered, so that names are plain text."""

    account_id: str
    """Twelve digits, as plain text: bucket names carry them, and a name must be known in the preview."""
    region: str
    """The AWS region."""
    naming: Naming
    """Names of account-wide things."""
    partition: str = "aws"
    """`aws`, `aws-us-gov` or `aws-cn`."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """AWS tags for every taggable resource."""


@dataclass(frozen=True, slots=True)
class NetworkHandle:
    """A VPC with one GPU subnet."""

    zone: str
    """The GPU zone."""
    vpc_id: pulumi.Input[str]
    gpu_subnet_ids: pulumi.Input[list[str]]
    """The subnet of the HyperPod nodes; all in the GPU zone."""
    control_plane_subnet_ids: pulumi.Input[list[str]]
    """Private subnets in two zones or more."""
    node_security_group_ids: pulumi.Input[list[str]]
    """What the nodes carry: the EFA group (all traffic to and from itself) and the group with the way out."""
    resources: tuple[pulumi.Resource, ...] = ()
    """What must stand before a node starts: the NAT route, the S3 gateway endpoint, the security group rules."""


@dataclass(frozen=True, slots=True)
class ControlPlaneHandle:
    """An EKS cluster whose Kubernetes API may be used."""

    name: str
    """The cluster's name."""
    arn: pulumi.Input[str]
    version: pulumi.Input[str]
    """The Kubernetes version, `1.33`."""
    oidc_provider_arn: pulumi.Input[str]
    """The IAM OIDC provider of the cluster's issuer."""
    oidc_issuer: pulumi.Input[str]
    """The issuer without `https://`."""
    cluster_security_group_id: pulumi.Input[str]
    kubernetes_provider: kubernetes.Provider
    """Every Kubernetes resource goes through it."""
    resources: tuple[pulumi.Resource, ...] = ()
    """What must stand before anything uses the cluster: access entries with their policies, and the add-ons that need no nodes."""
    cluster_resource: pulumi.Resource | None = None
    """The EKS cluster itself, where it is ours: what lives in it need not be deleted when it goes."""


@dataclass(frozen=True, slots=True)
class ClusterHandle:
    """A HyperPod cluster."""

    name: str
    arn: pulumi.Input[str]
    execution_role_arn: pulumi.Input[str] | None = None
    """The nodes' role; None where the cluster is somebody else's."""
    instance_groups: Mapping[str, str] = field(default_factory=dict)
    """Instance type by group name, as far as known."""
    resources: tuple[pulumi.Resource, ...] = ()
    """What must stand before anything needs its nodes."""


@dataclass(frozen=True, slots=True)
class AddonsHandle:
    """The add-ons that need nodes, ACTIVE."""

    resources: tuple[pulumi.Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorHandle:
    """An inference operator that takes endpoints."""

    facts: OperatorFacts
    """What rules know of it before anything is registered."""
    addon_version: pulumi.Input[str]
    """The version that is really there; a mismatch with the facts stops the endpoint's manifest."""
    kubernetes_provider: kubernetes.Provider
    cluster_name: str
    """The HyperPod cluster's name."""
    region: str
    resources: tuple[pulumi.Resource, ...] = ()
    """What must stand before an InferenceEndpointConfig is made: the add-on, ACTIVE."""
