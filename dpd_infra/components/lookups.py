"""Handles of what is there already: read through data sources, held against what HyperPod and the operator need, and never changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as aws_native

from dpd_infra.catalog.addons import NODE_ADDONS, VPC_CNI
from dpd_infra.catalog.operator_releases import ADDON_NAME, AddonVersion
from dpd_infra.components._cluster_access import provider_of
from dpd_infra.components._live import as_issuer, live_settings, made_options, read, read_options
from dpd_infra.components.handles import Account, AddonsHandle, ClusterHandle, ControlPlaneHandle, NetworkHandle, OperatorHandle
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.plan.iam.trust import AUDIENCE
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.existing import ControlPlaneValues
from dpd_infra.spec.operator import OperatorFacts

ACCESS_ENTRY_MODES = ("API", "API_AND_CONFIG_MAP")
"""The authentication modes in which HyperPod can make itself an access entry (HyperPod on EKS prerequisites)."""

_RUNNING = (
    aws_native.sagemaker.ClusterStatus.IN_SERVICE,
    aws_native.sagemaker.ClusterStatus.UPDATING,
    aws_native.sagemaker.ClusterStatus.SYSTEM_UPDATING,
)
"""In these states nodes serve; the others have none yet, or none any more."""


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """What EKS says of a cluster."""

    arn: str
    values: ControlPlaneValues
    authentication_mode: str


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
    live = _eks_cluster(name, region, opts)
    if live.authentication_mode not in ACCESS_ENTRY_MODES:
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
        _good_cni(name, region, opts)
    provider_arn = None if make_oidc_provider else _oidc_provider(name, live.values.oidc_issuer, opts)
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
    found = _hyperpod_cluster(arn, opts)
    seen: pulumi.Input[str] = arn
    if control_plane is not None:
        seen = pulumi.Output.from_input(control_plane.arn).apply(lambda eks: _orchestrated_by(arn, _eks_arn(found), eks))
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
    minimums = {addon.name: addon.minimum for addon in NODE_ADDONS}
    versions = {name: _addon_version(control_plane.name, name, region, after, opts) for name in names}

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
        eks_cluster = _eks_arn(_hyperpod_cluster(arn, opts)).rsplit("/", 1)[-1] if arn else cluster
    live = _eks_cluster(eks_cluster, region, opts)
    with read(f"the add-on {ADDON_NAME} of the EKS cluster {eks_cluster}"):
        addon = aws.eks.get_addon(cluster_name=eks_cluster, addon_name=ADDON_NAME, region=region, opts=read_options("aws", opts))
    if arn is not None:
        _serves(addon.configuration_values, arn)
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


def _eks_cluster(name: str, region: str, opts: pulumi.ResourceOptions | None) -> LiveCluster:
    with read(f"the EKS cluster {name} in {region}"):
        found = aws.eks.get_cluster(name=name, region=region, opts=read_options("aws", opts))
    values = ControlPlaneValues.model_construct(
        version=found.version,
        endpoint=found.endpoint,
        certificate_authority=found.certificate_authorities[0].data,
        oidc_issuer=as_issuer(found.identities[0].oidcs[0].issuer),
        cluster_security_group_id=found.vpc_config.cluster_security_group_id,
        vpc_id=found.vpc_config.vpc_id,
    )
    return LiveCluster(found.arn, values, found.access_configs[0].authentication_mode)


def _good_cni(name: str, region: str, opts: pulumi.ResourceOptions | None) -> None:
    with read(f"the add-on {VPC_CNI.name} of the EKS cluster {name}", "if it is not an EKS add-on, say selfManagedCni: true"):
        found = aws.eks.get_addon(cluster_name=name, addon_name=VPC_CNI.name, region=region, opts=read_options("aws", opts))
    if problem := below_minimum(found.addon_version, VPC_CNI.minimum):
        raise pulumi.RunError(f"the add-on {VPC_CNI.name} of the EKS cluster {name}: {problem}")


def _oidc_provider(name: str, issuer: str, opts: pulumi.ResourceOptions | None) -> str:
    with read(f"the IAM OIDC provider of the EKS cluster {name}", "if the account has none, say makeOidcProvider: true"):
        return aws.iam.get_open_id_connect_provider(url=f"https://{issuer}", opts=read_options("aws", opts)).arn


def _hyperpod_cluster(arn: str, opts: pulumi.ResourceOptions | None) -> aws_native.sagemaker.GetClusterResult:
    with read(f"the HyperPod cluster {arn}"):
        found = aws_native.sagemaker.get_cluster(cluster_arn=arn, opts=read_options("aws-native", opts))
    status = aws_native.sagemaker.ClusterStatus(found.cluster_status) if found.cluster_status else None
    if status not in _RUNNING:
        raise pulumi.RunError(
            f"the HyperPod cluster {arn} is {status.value if status else 'in no known state'}, not InService: "
            f"{found.failure_message or 'wait for it'}"
        )
    return found


def _eks_arn(found: aws_native.sagemaker.GetClusterResult) -> str:
    eks = found.orchestrator.eks if found.orchestrator else None
    if eks is None:
        raise pulumi.RunError(f"the HyperPod cluster {found.cluster_arn} is not orchestrated by EKS")
    return str(eks.cluster_arn)


def _orchestrated_by(arn: str, really: str, wanted: str) -> str:
    if really != wanted:
        raise pulumi.RunError(f"the HyperPod cluster {arn} is orchestrated by {really}, not by {wanted}")
    return arn


def _serves(configuration: str | None, arn: str) -> None:
    """Refuse an add-on that is configured for another HyperPod cluster; one whose configuration says nothing is let through."""
    try:
        values: Any = json.loads(configuration or "{}")
    except ValueError:
        return
    named = values.get("hyperpodClusterArn") if isinstance(values, Mapping) else None
    if named and named != arn:
        raise pulumi.RunError(f"the inference operator there serves the HyperPod cluster {named}, not {arn}")


def _addon_version(
    eks: pulumi.Input[str], addon: str, region: str, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions | None
) -> pulumi.Output[str]:
    plain = read_options("aws", opts)
    options = pulumi.InvokeOutputOptions(parent=plain.parent, provider=plain.provider, depends_on=list(after))
    found = aws.eks.get_addon_output(cluster_name=eks, addon_name=addon, region=region, opts=options)
    return found.apply(lambda live: live.addon_version)
