"""A `pulumi_eks.Cluster` as control plane: the one room that knows pulumi-eks, and the checks of what it must have been made with."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_eks

from dpd_infra.components._cluster_access import provider_of
from dpd_infra.components._live import as_issuer, live_settings, made_options
from dpd_infra.components._reads import ACCESS_ENTRY_MODES
from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.stack import running_aws_settings


def control_plane(
    cluster: pulumi_eks.Cluster,
    *,
    region: str | None,
    aws_settings: AwsSettings | None,
    generation: int,
    opts: pulumi.ResourceOptions | None,
) -> ControlPlaneHandle:
    """See `ControlPlaneHandle.from_pulumi_eks`."""
    label = cluster.pulumi_resource_name
    settings = aws_settings or (live_settings(None, region) if region else running_aws_settings())
    eks: pulumi.Output[Any] = cluster.eks_cluster
    name, endpoint = eks.apply(lambda made: made.name), eks.apply(lambda made: made.endpoint)
    authority = eks.apply(lambda made: made.certificate_authority.data)
    # HyperPod takes the cluster by its ARN: a cluster that it could not join is stopped there.
    arn = eks.apply(
        lambda made: pulumi.Output.all(made.arn, made.access_config.authentication_mode).apply(lambda known: _joinable(label, *known))
    )
    provider = provider_of(
        f"{label}-hyperpod-kubernetes",
        cluster_name=name,
        endpoint=endpoint,
        certificate_authority=authority,
        # The resource's own name: the cluster's is not known in a preview.
        identifier=f"{label}-{generation}",
        settings=settings,
        opts=pulumi.ResourceOptions.merge(made_options(opts), pulumi.ResourceOptions(depends_on=[cluster])),
    )
    return ControlPlaneHandle(
        name=name,
        arn=arn,
        version=eks.apply(lambda made: made.version),
        oidc_provider_arn=cluster.oidc_provider_arn.apply(lambda found: _made(label, found)),
        oidc_issuer=cluster.oidc_issuer.apply(lambda found: as_issuer(_made(label, found))),
        cluster_security_group_id=eks.apply(lambda made: made.vpc_config.cluster_security_group_id),
        kubernetes_provider=provider,
        resources=(cluster,),
        # The component goes with the cluster in it.
        cluster_resource=cluster,
        endpoint=endpoint,
        certificate_authority=authority,
        vpc_id=eks.apply(lambda made: made.vpc_config.vpc_id),
        generation=generation,
    )


def _made(label: str, found: str | None) -> str:
    if not found:
        raise pulumi.RunError(
            f"{label} has no IAM OIDC provider, through which the operator's roles are taken: make it with create_oidc_provider=True"
        )
    return found


def _joinable(label: str, arn: str, mode: str) -> str:
    if mode not in ACCESS_ENTRY_MODES:
        raise pulumi.RunError(
            f"{label} has authentication mode {mode}, in which HyperPod cannot join it: "
            "make it with authentication_mode=AuthenticationMode.API"
        )
    return arn
