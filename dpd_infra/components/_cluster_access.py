"""The way into an EKS cluster's Kubernetes API: access entries with their policies, and the provider that stands behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from dpd_infra.catalog.addons import VPC_CNI
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.plan.access import EntryPlan
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.render.kubeconfig import kubeconfig, token_command
from dpd_infra.spec.aws import AwsSettings


def deployer_arn(options: pulumi.InvokeOptions, caller_arn: str | None = None) -> str:
    """The IAM principal behind whoever deploys: of an assumed role's session the role, because an access entry takes no session.

    `caller_arn` is what AWS calls whoever deploys; None: it is asked.
    """
    arn = aws.get_caller_identity(opts=options).arn if caller_arn is None else caller_arn
    return aws.iam.get_session_context(arn=arn, opts=options).issuer_arn


def access_policies(
    parent: pulumi.Resource, name: str, plans: Sequence[EntryPlan], *, cluster: aws.eks.Cluster, account: Account
) -> tuple[pulumi.Resource, ...]:
    """Make every entry and return its policies: once they stand, their principals may use the API."""
    inside = pulumi.ResourceOptions(parent=parent)
    associations: list[pulumi.Resource] = []
    for plan in plans:
        entry = aws.eks.AccessEntry(
            f"{name}-{plan.name}",
            cluster_name=cluster.name,
            principal_arn=plan.principal_arn,
            tags=aws_tags(account, plan.name),
            opts=inside,
        )
        associations += [
            aws.eks.AccessPolicyAssociation(
                f"{name}-{plan.name}-{right.policy}",
                cluster_name=cluster.name,
                principal_arn=plan.principal_arn,
                policy_arn=right.arn(account.partition),
                access_scope={"type": "namespace", "namespaces": list(right.namespaces)} if right.namespaces else {"type": "cluster"},
                opts=pulumi.ResourceOptions(parent=parent, depends_on=[entry]),
            )
            for right in plan.rights
        ]
    return tuple(associations)


def kubernetes_provider(
    parent: pulumi.Resource,
    name: str,
    *,
    cluster: aws.eks.Cluster,
    cluster_name: str,
    generation: int,
    vpc_cni: aws.eks.Addon,
    settings: AwsSettings,
    after: Sequence[pulumi.Resource],
) -> kubernetes.Provider:
    """The provider of every Kubernetes resource, once its user may use the API (`after`) and the VPC CNI is one that HyperPod takes."""
    endpoint = pulumi.Output.all(cluster.endpoint, vpc_cni.addon_version).apply(lambda known: _with_good_cni(*known))
    return provider_of(
        name,
        cluster_name=cluster_name,
        endpoint=endpoint,
        certificate_authority=cluster.certificate_authority.data,
        # By it alone the provider, and every resource with it, is replaced: a kubeconfig that a preview does not know replaces nothing.
        identifier=f"{cluster_name}-{generation}",
        settings=settings,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(after)),
    )


def provider_of(
    name: str,
    *,
    cluster_name: pulumi.Input[str],
    endpoint: pulumi.Input[str],
    certificate_authority: pulumi.Input[str],
    identifier: pulumi.Input[str],
    settings: AwsSettings,
    opts: pulumi.ResourceOptions,
) -> kubernetes.Provider:
    """A Kubernetes provider for any EKS cluster.

    `identifier` must be known in a preview: another one replaces every resource in the cluster.
    """
    require_token(settings)
    config = pulumi.Output.all(cluster_name, endpoint, certificate_authority).apply(
        lambda known: json.dumps(
            kubeconfig(cluster_name=known[0], endpoint=known[1], certificate_authority=known[2], settings=settings), sort_keys=True
        )
    )
    return kubernetes.Provider(name, kubeconfig=config, cluster_identifier=identifier, opts=opts)


def require_token(settings: AwsSettings) -> None:
    """Raises `pulumi.RunError` for settings with which `aws eks get-token` cannot be called."""
    try:
        token_command("any", settings)
    except ValueError as error:
        raise pulumi.RunError(str(error)) from error


def _with_good_cni(endpoint: str, vpc_cni_version: str) -> str:
    """The API's address. Raises `pulumi.RunError` for a VPC CNI below HyperPod's minimum, which stops every Kubernetes resource."""
    if wrong := below_minimum(vpc_cni_version, VPC_CNI.minimum):
        raise pulumi.RunError(f"the add-on {VPC_CNI.name}: {wrong}; pin a newer one, controlPlane.addonVersions.{VPC_CNI.name}")
    return endpoint
