"""One question each to AWS about what is there already: the answer, or one clear error where it is not there or not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as aws_native

from dpd_infra.catalog.addons import VPC_CNI
from dpd_infra.components._live import as_issuer, read, read_options
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.spec.existing import ControlPlaneValues

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


def eks_cluster(name: str, region: str, opts: pulumi.ResourceOptions | None) -> LiveCluster:
    """An EKS cluster by name."""
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


def require_good_cni(name: str, region: str, opts: pulumi.ResourceOptions | None) -> None:
    """Refuse a VPC CNI below the minimum of HyperPod."""
    with read(f"the add-on {VPC_CNI.name} of the EKS cluster {name}", "if it is not an EKS add-on, say selfManagedCni: true"):
        found = aws.eks.get_addon(cluster_name=name, addon_name=VPC_CNI.name, region=region, opts=read_options("aws", opts))
    if problem := below_minimum(found.addon_version, VPC_CNI.minimum):
        raise pulumi.RunError(f"the add-on {VPC_CNI.name} of the EKS cluster {name}: {problem}")


def oidc_provider(name: str, issuer: str, opts: pulumi.ResourceOptions | None) -> str:
    """The ARN of the IAM OIDC provider of a cluster's issuer."""
    with read(f"the IAM OIDC provider of the EKS cluster {name}", "if the account has none, say makeOidcProvider: true"):
        return aws.iam.get_open_id_connect_provider(url=f"https://{issuer}", opts=read_options("aws", opts)).arn


def hyperpod_cluster(arn: str, opts: pulumi.ResourceOptions | None) -> aws_native.sagemaker.GetClusterResult:
    """A HyperPod cluster by ARN. One whose nodes do not serve is refused."""
    with read(f"the HyperPod cluster {arn}"):
        found = aws_native.sagemaker.get_cluster(cluster_arn=arn, opts=read_options("aws-native", opts))
    status = aws_native.sagemaker.ClusterStatus(found.cluster_status) if found.cluster_status else None
    if status not in _RUNNING:
        raise pulumi.RunError(
            f"the HyperPod cluster {arn} is {status.value if status else 'in no known state'}, not InService: "
            f"{found.failure_message or 'wait for it'}"
        )
    return found


def eks_arn_of(found: aws_native.sagemaker.GetClusterResult) -> str:
    """The ARN of the EKS cluster that orchestrates a HyperPod cluster. One of Slurm is refused."""
    eks = found.orchestrator.eks if found.orchestrator else None
    if eks is None:
        raise pulumi.RunError(f"the HyperPod cluster {found.cluster_arn} is not orchestrated by EKS")
    return str(eks.cluster_arn)


def require_operator_of(configuration: str | None, arn: str) -> None:
    """Refuse an add-on that is configured for another HyperPod cluster; one whose configuration says nothing is let through."""
    try:
        values: Any = json.loads(configuration or "{}")
    except ValueError:
        return
    named = values.get("hyperpodClusterArn") if isinstance(values, Mapping) else None
    if named and named != arn:
        raise pulumi.RunError(f"the inference operator there serves the HyperPod cluster {named}, not {arn}")


def addon_version(
    eks: pulumi.Input[str], addon: str, region: str, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions | None
) -> pulumi.Output[str]:
    """The version of an EKS add-on, read once `after` stands."""
    plain = read_options("aws", opts)
    options = pulumi.InvokeOutputOptions(parent=plain.parent, provider=plain.provider, depends_on=list(after))
    found = aws.eks.get_addon_output(cluster_name=eks, addon_name=addon, region=region, opts=options)
    return found.apply(lambda live: live.addon_version)
