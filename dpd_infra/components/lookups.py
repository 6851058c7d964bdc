"""Handles of what is there already: read through data sources, held against what HyperPod and the operator need, and never changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pulumi
import pulumi_aws as aws

from dpd_infra.catalog.addons import NODE_ADDONS
from dpd_infra.catalog.operator_releases import ADDON_NAME, AddonVersion
from dpd_infra.components import _reads
from dpd_infra.components._base import handle_of
from dpd_infra.components._cluster_access import provider_of
from dpd_infra.components._live import as_issuer, live_settings, made_options, read, read_options
from dpd_infra.components.account import Account
from dpd_infra.components.handles import AddonsHandle, ClusterHandle, ControlPlaneHandle, NetworkHandle, OperatorHandle
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.plan.iam.trust import AUDIENCE
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.existing import ControlPlaneValues
from dpd_infra.spec.operator import OperatorFacts


def network(
    vpc_id: str,
    region: str,
    zone: str,
    gpu_subnets: list[str],
    control_plane_subnets: list[str],
    security_groups: list[str],
    opts: pulumi.ResourceOptions | None,
) -> NetworkHandle:
    """See `NetworkHandle.lookup`."""
    options = read_options("aws", opts)
    zones: dict[str, str] = {}
    for subnet in dict.fromkeys([*gpu_subnets, *control_plane_subnets]):
        with read(f"the subnet {subnet} in {region}"):
            found = aws.ec2.get_subnet(id=subnet, region=region, opts=options)
        if found.vpc_id != vpc_id:
            raise pulumi.RunError(f"the subnet {subnet} is in {found.vpc_id}, not in {vpc_id}: name subnets of one VPC")
        zones[subnet] = found.availability_zone
    if elsewhere := [f"{subnet} ({zones[subnet]})" for subnet in gpu_subnets if zones[subnet] != zone]:
        raise pulumi.RunError(
            f"EFA traffic cannot cross zones: the GPU subnets must be in {zone}, and these are not: {', '.join(elsewhere)}"
        )
    if control_plane_subnets and len({zones[subnet] for subnet in control_plane_subnets}) < 2:
        raise pulumi.RunError(f"EKS needs subnets in two zones: {', '.join(control_plane_subnets)} are all in one")
    return NetworkHandle(zone, vpc_id, gpu_subnets, control_plane_subnets, security_groups)


def control_plane(
    name: str,
    *,
    region: str,
    account: Account | None,
    aws_settings: AwsSettings | None,
    kubernetes_versions: Collection[str] | None,
    make_oidc_provider: bool,
    self_managed_cni: bool,
    generation: int,
    opts: pulumi.ResourceOptions | None,
) -> ControlPlaneHandle:
    """See `ControlPlaneHandle.lookup`."""
    live = _reads.eks_cluster(name, region, opts)
    if live.authentication_mode not in _reads.ACCESS_ENTRY_MODES:
        raise pulumi.RunError(
            f"the EKS cluster {name} has authentication mode {live.authentication_mode}, in which HyperPod cannot join it: its owner can "
            "change it to API_AND_CONFIG_MAP (and not back)"
        )
    if kubernetes_versions is not None and live.values.version not in kubernetes_versions:
        raise pulumi.RunError(
            f"the EKS cluster {name} runs Kubernetes {live.values.version}; what is to be made in it takes "
            f"{', '.join(sorted(kubernetes_versions))}"
        )
    if not self_managed_cni:
        _reads.require_good_cni(name, region, opts)
    provider_arn = None if make_oidc_provider else _reads.oidc_provider(name, live.values.oidc_issuer, opts)
    return _handle(name, live.arn, live.values, live_settings(aws_settings, region), provider_arn, account, generation, opts)


def control_plane_from_values(
    name: str,
    values: ControlPlaneValues,
    *,
    account: Account,
    aws_settings: AwsSettings | None,
    make_oidc_provider: bool,
    generation: int,
    opts: pulumi.ResourceOptions | None,
) -> ControlPlaneHandle:
    """See `ControlPlaneHandle.from_values`."""
    arn = f"arn:{account.partition}:eks:{account.region}:{account.account_id}:cluster/{name}"
    provider_arn = f"arn:{account.partition}:iam::{account.account_id}:oidc-provider/{as_issuer(values.oidc_issuer)}"
    settings = live_settings(aws_settings, account.region)
    return _handle(name, arn, values, settings, None if make_oidc_provider else provider_arn, account, generation, opts)


def cluster(arn: str, *, name: str | None, control_plane: ControlPlaneHandle | None, opts: pulumi.ResourceOptions | None) -> ClusterHandle:
    """See `ClusterHandle.lookup`."""
    found = _reads.hyperpod_cluster(arn, opts)
    seen: pulumi.Input[str] = arn
    if control_plane is not None:
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        seen = pulumi.Output.from_input(control_plane.arn).apply(lambda eks: _orchestrated_by(arn, _reads.eks_arn_of(found), eks))
    groups = {str(group.instance_group_name): str(group.instance_type) for group in found.instance_groups or []}
    return ClusterHandle(name or arn.rsplit("/", 1)[-1], seen, instance_groups=groups)


def addons(
    control_plane: ControlPlaneHandle,
    names: Sequence[str],
    *,
    region: str,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions | None,
) -> AddonsHandle:
    """See `AddonsHandle.lookup`."""
    control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
    minimums = {addon.name: addon.minimum for addon in NODE_ADDONS}
    versions = {name: _reads.addon_version(control_plane.name, name, region, after, opts) for name in names}

    def good(known: Mapping[str, str]) -> Mapping[str, str]:
        wrong = [f"{name} {problem}" for name, version in known.items() if (problem := below_minimum(version, minimums.get(name)))]
        if wrong:
            raise pulumi.RunError(f"add-ons that are there do not fit the inference operator: {'; '.join(wrong)}")
        return known

    return AddonsHandle(versions=pulumi.Output.all(**versions).apply(good) if versions else {})


def operator(
    cluster: str,
    *,
    region: str,
    eks_cluster: str | None,
    expects: OperatorFacts | None,
    aws_settings: AwsSettings | None,
    generation: int,
    opts: pulumi.ResourceOptions | None,
) -> OperatorHandle:
    """See `OperatorHandle.lookup`."""
    arn = cluster if cluster.startswith("arn:") else None
    label = cluster.rsplit("/", 1)[-1]
    if eks_cluster is None:
        eks_cluster = _reads.eks_arn_of(_reads.hyperpod_cluster(arn, opts)).rsplit("/", 1)[-1] if arn else cluster
    live = _reads.eks_cluster(eks_cluster, region, opts)
    with read(f"the add-on {ADDON_NAME} of the EKS cluster {eks_cluster}"):
        addon = aws.eks.get_addon(cluster_name=eks_cluster, addon_name=ADDON_NAME, region=region, opts=read_options("aws", opts))
    if arn is not None:
        _reads.require_operator_of(addon.configuration_values, arn)
    facts = expects or OperatorFacts(addon_version=addon.addon_version)
    if AddonVersion.parse(addon.addon_version) < AddonVersion.parse(facts.addon_version):
        raise pulumi.RunError(
            f"the add-on {ADDON_NAME} of {eks_cluster} is at {addon.addon_version}, older than {facts.addon_version}, which was expected"
        )
    provider = provider_of(
        f"{label}-kubernetes",
        cluster_name=eks_cluster,
        endpoint=live.values.endpoint,
        certificate_authority=live.values.certificate_authority,
        identifier=f"{eks_cluster}-{generation}",
        settings=live_settings(aws_settings, region),
        opts=made_options(opts),
    )
    return OperatorHandle(facts, addon.addon_version, provider, label, region)


def _handle(
    name: str,
    arn: str,
    values: ControlPlaneValues,
    settings: AwsSettings,
    oidc_provider_arn: str | None,
    account: Account | None,
    generation: int,
    opts: pulumi.ResourceOptions | None,
) -> ControlPlaneHandle:
    """The handle; `oidc_provider_arn` None: the provider is made."""
    made: tuple[pulumi.Resource, ...] = ()
    provider_arn: pulumi.Input[str] | None = oidc_provider_arn
    if provider_arn is None:
        oidc = aws.iam.OpenIdConnectProvider(
            f"{name}-oidc",
            url=f"https://{as_issuer(values.oidc_issuer)}",
            client_id_lists=[AUDIENCE],
            tags=dict(account.tags) if account else None,
            opts=made_options(opts, "aws"),
        )
        made, provider_arn = (oidc,), oidc.arn
    provider = provider_of(
        f"{name}-kubernetes",
        cluster_name=name,
        endpoint=values.endpoint,
        certificate_authority=values.certificate_authority,
        identifier=f"{name}-{generation}",
        settings=settings,
        opts=made_options(opts),
    )
    return ControlPlaneHandle(
        name=name,
        arn=arn,
        version=values.version,
        oidc_provider_arn=provider_arn,
        oidc_issuer=as_issuer(values.oidc_issuer),
        cluster_security_group_id=values.cluster_security_group_id,
        kubernetes_provider=provider,
        resources=made,
        endpoint=values.endpoint,
        certificate_authority=values.certificate_authority,
        vpc_id=values.vpc_id,
        generation=generation,
    )


def _orchestrated_by(arn: str, really: str, wanted: str) -> str:
    if really != wanted:
        raise pulumi.RunError(f"the HyperPod cluster {arn} is orchestrated by {really}, not by {wanted}")
    return arn
