"""What a platform's `existing` section becomes: handles of what is there, by lookup or from plain values."""

from __future__ import annotations

from dataclasses import replace

import pulumi

from dpd_infra.catalog.kubernetes_versions import HYPERPOD_VERSIONS, INFERENCE_ADDON_VERSIONS
from dpd_infra.components.account import Account
from dpd_infra.components.handles import AddonsHandle, ClusterHandle, ControlPlaneHandle, NetworkHandle
from dpd_infra.plan.pieces import Pieces
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.existing import ExistingCluster, ExistingSpec
from dpd_infra.spec.platform import PlatformSpec


def existing_network(existing: ExistingSpec, account: Account, opts: pulumi.ResourceOptions) -> NetworkHandle | None:
    """The network by ids; None where it is not there already."""
    given = existing.network
    if given is None:
        return None
    return NetworkHandle.lookup(
        given.vpc_id,
        region=account.region,
        zone=given.zone,
        gpu_subnet_ids=given.gpu_subnet_ids,
        control_plane_subnet_ids=given.control_plane_subnet_ids,
        node_security_group_ids=given.node_security_group_ids,
        opts=opts,
    )


def existing_control_plane(
    spec: PlatformSpec, made: Pieces, account: Account, settings: AwsSettings, opts: pulumi.ResourceOptions
) -> ControlPlaneHandle:
    """The EKS cluster by name, or from plain values; its Kubernetes version is held against what is to be made in it."""
    given = spec.existing.control_plane
    if given is None:
        raise ValueError("there is no existing.controlPlane")
    if given.values is not None:
        return ControlPlaneHandle.from_values(
            given.name,
            given.values,
            account=account,
            aws_settings=settings,
            make_oidc_provider=given.make_oidc_provider,
            generation=given.generation,
            opts=opts,
        )
    taken = [versions for needed, versions in ((made.cluster, HYPERPOD_VERSIONS), (made.operator, INFERENCE_ADDON_VERSIONS)) if needed]
    return ControlPlaneHandle.lookup(
        given.name,
        region=account.region,
        account=account,
        aws_settings=settings,
        kubernetes_versions=frozenset.intersection(*(frozenset(versions) for versions in taken)) if taken else None,
        make_oidc_provider=given.make_oidc_provider,
        # Nodes that run already have a network plugin that works.
        self_managed_cni=given.self_managed_cni or not made.cluster,
        generation=given.generation,
        opts=opts,
    )


def existing_cluster(given: ExistingCluster, control_plane: ControlPlaneHandle, opts: pulumi.ResourceOptions) -> ClusterHandle:
    """The HyperPod cluster by ARN."""
    found = ClusterHandle.lookup(given.arn, name=given.label, control_plane=control_plane, opts=opts)
    # Whatever uses its nodes needs the Kubernetes API.
    return replace(found, resources=control_plane.resources)


def existing_addons(
    existing: ExistingSpec, control_plane: ControlPlaneHandle, cluster: ClusterHandle, account: Account, opts: pulumi.ResourceOptions
) -> AddonsHandle:
    """The add-ons that are there: versions of EKS add-ons are read and held against the operator's minimums."""
    names = [name for name in existing.addon_names if name not in existing.self_managed_addons]
    return AddonsHandle.lookup(control_plane, names, region=account.region, after=(*control_plane.resources, *cluster.resources), opts=opts)
