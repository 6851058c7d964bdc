"""Handles of what carries the nodes: the network and the EKS cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.catalog.kubernetes_versions import SUPPORTED_VERSIONS
from dpd_infra.components._base import handle_of
from dpd_infra.components.account import Account
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.existing import ControlPlaneValues

if TYPE_CHECKING:
    # Only users of pulumi-eks load it.
    import pulumi_eks


@dataclass(frozen=True, slots=True)
class NetworkHandle:
    """A VPC with one GPU zone."""

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
    """What must stand before a node starts: the NAT route, the S3 gateway endpoint, the security group rules, the GPU subnet's routes."""

    def joined_to(self, control_plane: ControlPlaneHandle) -> NetworkHandle:
        """The same network, whose nodes also carry the EKS cluster's own group.

        An EKS cluster that does not carry the nodes' groups reaches its nodes by that group's rule to itself.
        """
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        groups = pulumi.Output.all(self.node_security_group_ids, control_plane.cluster_security_group_id)
        return replace(self, node_security_group_ids=groups.apply(lambda known: [*known[0], known[1]]))

    @classmethod
    def lookup(
        cls,
        vpc_id: str,
        *,
        region: str,
        zone: str,
        gpu_subnet_ids: Sequence[str] = (),
        control_plane_subnet_ids: Sequence[str] = (),
        node_security_group_ids: Sequence[str] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> NetworkHandle:
        """A network of somebody else's, by ids. Its subnets are read, and nothing is registered.

        Raises `pulumi.RunError` where a subnet is not in the VPC, a GPU subnet is not in `zone`, or the others are all in one zone.
        """
        from dpd_infra.components import lookups  # noqa: PLC0415 - lookups make handles

        return lookups.network(
            vpc_id, region, zone, list(gpu_subnet_ids), list(control_plane_subnet_ids), list(node_security_group_ids), opts
        )


@dataclass(frozen=True, slots=True)
class ControlPlaneHandle:
    """An EKS cluster whose Kubernetes API may be used."""

    name: pulumi.Input[str]
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
    """The EKS cluster, or the component that holds it, where this program makes it: what lives in it need not be deleted when it goes."""
    endpoint: pulumi.Input[str] | None = None
    """The address of the Kubernetes API, where known."""
    certificate_authority: pulumi.Input[str] | None = None
    """The API's certificate authority, base64, where known."""
    vpc_id: pulumi.Input[str] | None = None
    """The cluster's VPC, where known."""
    generation: int = 0
    """The `generation` of its spec: what every Kubernetes resource is made for."""

    @classmethod
    def lookup(
        cls,
        name: str,
        *,
        region: str,
        account: Account | None = None,
        aws_settings: AwsSettings | None = None,
        kubernetes_versions: Collection[str] | None = SUPPORTED_VERSIONS,
        make_oidc_provider: bool = False,
        self_managed_cni: bool = False,
        generation: int = 0,
        opts: pulumi.ResourceOptions | None = None,
    ) -> ControlPlaneHandle:
        """An EKS cluster that is there, by name.

        Read and never changed: what is registered is the Kubernetes provider `<name>-kubernetes` and, on request, the IAM OIDC provider of
        its issuer with the account's tags. Whoever deploys must have cluster-admin access already. Raises `pulumi.RunError` where the
        cluster is not there, does not take access entries (HyperPod needs them), has another Kubernetes version than `kubernetes_versions`
        (None: any), a VPC CNI below HyperPod's minimum (unless self-managed), or no OIDC provider.
        """
        from dpd_infra.components import lookups  # noqa: PLC0415 - lookups make handles

        return lookups.control_plane(
            name,
            region=region,
            account=account,
            aws_settings=aws_settings,
            kubernetes_versions=kubernetes_versions,
            make_oidc_provider=make_oidc_provider,
            self_managed_cni=self_managed_cni,
            generation=generation,
            opts=opts,
        )

    @classmethod
    def from_values(
        cls,
        name: str,
        values: ControlPlaneValues,
        *,
        account: Account,
        aws_settings: AwsSettings | None = None,
        make_oidc_provider: bool = False,
        generation: int = 0,
        opts: pulumi.ResourceOptions | None = None,
    ) -> ControlPlaneHandle:
        """An EKS cluster that is there, from plain values: nothing is looked up. What is registered is as for `lookup`."""
        from dpd_infra.components import lookups  # noqa: PLC0415 - lookups make handles

        return lookups.control_plane_from_values(
            name,
            values,
            account=account,
            aws_settings=aws_settings,
            make_oidc_provider=make_oidc_provider,
            generation=generation,
            opts=opts,
        )

    @classmethod
    def from_pulumi_eks(
        cls,
        cluster: pulumi_eks.Cluster,
        *,
        region: str | None = None,
        aws_settings: AwsSettings | None = None,
        generation: int = 0,
        opts: pulumi.ResourceOptions | None = None,
    ) -> ControlPlaneHandle:
        """A `pulumi_eks.Cluster` of the user's program.

        It needs `authentication_mode` API (or API_AND_CONFIG_MAP) and `create_oidc_provider=True`; where it has not, whatever needs them
        fails with what to change. `region` None: that of the stack's configuration. The Kubernetes provider is one of our own, because
        pulumi-eks's is replaced whenever a preview does not know the cluster's address.
        """
        from dpd_infra.components import pulumi_eks_adapter  # noqa: PLC0415 - it makes handles

        return pulumi_eks_adapter.control_plane(cluster, region=region, aws_settings=aws_settings, generation=generation, opts=opts)
