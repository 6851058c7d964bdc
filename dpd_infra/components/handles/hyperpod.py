"""Handles of HyperPod: the cluster, the add-ons that need its nodes, and the inference operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.components.handles.foundation import ControlPlaneHandle
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.operator import OperatorFacts


@dataclass(frozen=True, slots=True)
class ClusterHandle:
    """A HyperPod cluster."""

    name: pulumi.Input[str]
    arn: pulumi.Input[str]
    execution_role_arn: pulumi.Input[str] | None = None
    """The nodes' role; None where the cluster is somebody else's."""
    instance_groups: Mapping[str, str] = field(default_factory=dict)
    """Instance type by group name, as far as known."""
    resources: tuple[pulumi.Resource, ...] = ()
    """What must stand before anything needs its nodes."""

    @classmethod
    def lookup(
        cls,
        arn: str,
        *,
        name: str | None = None,
        control_plane: ControlPlaneHandle | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> ClusterHandle:
        """A HyperPod cluster that is there, by ARN; `name` is for outputs (the ARN does not hold it). Nothing is registered.

        Raises `pulumi.RunError` where it is not there or not in service. With `control_plane` its ARN is known only once the cluster is
        seen to be orchestrated by that EKS cluster.
        """
        from dpd_infra.components import lookups  # noqa: PLC0415 - lookups make handles

        return lookups.cluster(arn, name=name, control_plane=control_plane, opts=opts)


@dataclass(frozen=True, slots=True)
class AddonsHandle:
    """The add-ons that need nodes, ACTIVE."""

    resources: tuple[pulumi.Resource, ...] = ()
    versions: pulumi.Input[Mapping[str, str]] = field(default_factory=dict)
    """Versions of those that somebody else made; not known where one is below the operator's minimum."""

    @classmethod
    def lookup(
        cls,
        control_plane: ControlPlaneHandle,
        names: Sequence[str],
        *,
        region: str,
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> AddonsHandle:
        """EKS add-ons that are there: their versions are read once `after` stands, and one below its minimum stops the operator."""
        from dpd_infra.components import lookups  # noqa: PLC0415 - lookups make handles

        return lookups.addons(control_plane, names, region=region, after=after, opts=opts)


@dataclass(frozen=True, slots=True)
class OperatorHandle:
    """An inference operator that takes endpoints."""

    facts: OperatorFacts
    """What rules know of it before anything is registered."""
    addon_version: pulumi.Input[str]
    """The version that is really there; a mismatch with the facts stops the endpoint's manifest."""
    kubernetes_provider: kubernetes.Provider
    cluster_name: pulumi.Input[str]
    """The HyperPod cluster's name."""
    region: str
    resources: tuple[pulumi.Resource, ...] = ()
    """What must stand before an InferenceEndpointConfig is made: the add-on, ACTIVE."""

    @classmethod
    def lookup(
        cls,
        cluster: str,
        *,
        region: str,
        eks_cluster: str | None = None,
        expects: OperatorFacts | None = None,
        aws_settings: AwsSettings | None = None,
        generation: int = 0,
        opts: pulumi.ResourceOptions | None = None,
    ) -> OperatorHandle:
        """The operator of a HyperPod cluster that is there, by the cluster's name or ARN.

        An ARN leads to the EKS cluster. A name does not (no data source finds a HyperPod cluster by name): `eks_cluster` names it, and None
        takes the EKS cluster of the same name, which is what platforms of this library have. `expects` None: what is really there. What is
        registered is the Kubernetes provider `<cluster>-kubernetes`. Raises `pulumi.RunError` where either is not there, the operator is
        older than `expects`, or it serves another HyperPod cluster than the ARN.
        """
        from dpd_infra.components import lookups  # noqa: PLC0415 - lookups make handles

        return lookups.operator(
            cluster,
            region=region,
            eks_cluster=eks_cluster,
            expects=expects,
            aws_settings=aws_settings,
            generation=generation,
            opts=opts,
        )

    @classmethod
    def from_stack(
        cls,
        name: str,
        stack: str,
        *,
        expects: OperatorFacts,
        aws_settings: AwsSettings | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> OperatorHandle:
        """The operator of another stack's platform, by what that stack exports (`Platform.outputs`).

        `name` names the StackReference here, `stack` is `organisation/project/stack`. Rules go by `expects`; what the stack really has is
        compared with it on the way to the first manifest. A missing or mistyped output fails with the stack and every such key.
        """
        from dpd_infra.components import from_stack  # noqa: PLC0415 - it makes handles

        return from_stack.operator(name, stack, expects=expects, aws_settings=aws_settings, opts=opts)
