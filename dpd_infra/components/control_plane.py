"""The EKS control plane: the cluster, who may use it, the add-ons that need no nodes, and the provider of every Kubernetes resource."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from dpd_infra.catalog.addons import CONTROL_PLANE_ADDONS, VPC_CNI
from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of, minutes
from dpd_infra.components._cluster_access import access_policies, deployer_arn, kubernetes_provider, require_token
from dpd_infra.components._roles import MadeRole, make_role
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.handles import ControlPlaneHandle, NetworkHandle
from dpd_infra.plan.access import plan_access
from dpd_infra.plan.iam import CLUSTER_MANAGED_POLICIES, cluster_role
from dpd_infra.plan.iam.trust import AUDIENCE
from dpd_infra.rules.parts import check_part
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.control_plane import ControlPlaneSpec
from dpd_infra.stack import refuse_errors

KEY_DELETION_DAYS = 30
"""How long a deleted key can be taken back: the longest KMS allows, because a cluster's Secrets are lost with it."""

CREATE_TIMEOUT_MINUTES = 45
DELETE_TIMEOUT_MINUTES = 30
"""How long EKS may take: a cluster that is given up half-way is left to be imported or deleted by hand."""


class ControlPlane(Component):
    """An EKS cluster for HyperPod nodes.

    Whoever runs `pulumi up` gets cluster-admin access unless the spec says otherwise, by an access entry that follows the caller: where
    several principals deploy, name them all under `access` and set `deployerAccess: false`, or each deployer takes the entry from the last.
    """

    __slots__ = ("handle",)
    token = tokens.CONTROL_PLANE

    cluster_name: pulumi.Output[str]
    cluster_arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    version: pulumi.Output[str]
    oidc_provider_arn: pulumi.Output[str]
    oidc_issuer: pulumi.Output[str]
    """The issuer without `https://`."""
    cluster_security_group_id: pulumi.Output[str]
    """The group that EKS makes; HyperPod nodes do not carry it."""
    secrets_key_arn: pulumi.Output[str]
    cluster: aws.eks.Cluster
    kubernetes_provider: kubernetes.Provider
    handle: ControlPlaneHandle

    def __init__(
        self,
        name: str,
        spec: ControlPlaneSpec,
        *,
        account: Account,
        network: NetworkHandle,
        default_name: str,
        aws_settings: AwsSettings | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`default_name` is the cluster's name where the spec has none.

        `aws_settings` says how tokens are fetched; None: in the account's region with the credentials of the environment. Raises
        `ValueError` for settings that no token can be fetched with.
        """
        network = handle_of(network, NetworkHandle, "network")
        cluster_name = spec.name or default_name
        settings = aws_settings or AwsSettings(region=account.region)
        require_token(settings)
        refuse_errors(check_part(region=account.region, control_plane=spec))
        super().__init__(name, {"clusterName": cluster_name}, opts)
        self._at, self._account, self._spec, self._name_in_aws = name, account, spec, cluster_name

        self.secrets_key_arn = self._secrets_key()
        role = self._role()
        logs = self._log_group()
        self.cluster = self._cluster(network, role, logs)
        issuer = self.cluster.identities[0].oidcs[0].issuer
        oidc = self._oidc_provider(issuer)
        addons = {addon.name: self._addon(addon.name) for addon in CONTROL_PLANE_ADDONS}
        deployer = account.deployer_arn or deployer_arn(pulumi.InvokeOptions(parent=self)) if spec.deployer_access else None
        entries = plan_access(spec.access, deployer)
        access = access_policies(self, name, entries, cluster=self.cluster, account=account)
        self.kubernetes_provider = kubernetes_provider(
            self,
            f"{name}-kubernetes",
            cluster=self.cluster,
            cluster_name=cluster_name,
            generation=spec.generation,
            vpc_cni=addons[VPC_CNI.name],
            settings=settings,
            after=access,
        )

        self.cluster_name = self.cluster.name
        self.cluster_arn, self.endpoint, self.version = self.cluster.arn, self.cluster.endpoint, self.cluster.version
        self.oidc_provider_arn = oidc.arn
        self.oidc_issuer = issuer.apply(lambda url: url.removeprefix("https://"))
        self.cluster_security_group_id = self.cluster.vpc_config.cluster_security_group_id
        self.handle = ControlPlaneHandle(
            name=cluster_name,
            arn=self.cluster_arn,
            version=self.version,
            oidc_provider_arn=self.oidc_provider_arn,
            oidc_issuer=self.oidc_issuer,
            cluster_security_group_id=self.cluster_security_group_id,
            kubernetes_provider=self.kubernetes_provider,
            resources=(*access, *addons.values()),
            cluster_resource=self.cluster,
            endpoint=self.endpoint,
            certificate_authority=self.cluster.certificate_authority.data,
            vpc_id=self.cluster.vpc_config.vpc_id,
            generation=spec.generation,
        )
        self.register_outputs(
            {
                "clusterName": self.cluster_name,
                "clusterArn": self.cluster_arn,
                "endpoint": self.endpoint,
                "version": self.version,
                "oidcProviderArn": self.oidc_provider_arn,
                "oidcIssuer": self.oidc_issuer,
                "clusterSecurityGroupId": self.cluster_security_group_id,
                "secretsKeyArn": self.secrets_key_arn,
            }
        )

    def _secrets_key(self) -> pulumi.Output[str]:
        """The ARN of the key that encrypts Kubernetes Secrets: the given one, or one of our own under an alias."""
        if self._spec.secrets_key_arn:
            return pulumi.Output.from_input(self._spec.secrets_key_arn)
        # No key policy: KMS's default one leaves every decision to IAM, where the cluster's role is granted the key.
        key = aws.kms.Key(
            f"{self._at}-secrets",
            description=f"Kubernetes Secrets of the EKS cluster {self._name_in_aws}",
            enable_key_rotation=True,
            deletion_window_in_days=KEY_DELETION_DAYS,
            tags=aws_tags(self._account, "eks-secrets"),
            opts=self._child(protect=self._spec.protect),
        )
        aws.kms.Alias(
            f"{self._at}-secrets-alias",
            name=f"alias/{self._account.naming.scope}-eks-secrets",
            target_key_id=key.key_id,
            opts=self._child(),
        )
        return key.arn

    def _role(self) -> MadeRole:
        account, name = self._account, self._name_in_aws
        plan = self.secrets_key_arn.apply(
            lambda key: cluster_role(
                region=account.region, account_id=account.account_id, cluster_name=name, secrets_key_arn=key, partition=account.partition
            )
        )
        return make_role(
            self,
            f"{self._at}-role",
            plan,
            role_name=account.naming.role("eks-cluster"),
            managed_policies=CLUSTER_MANAGED_POLICIES,
            inline=True,
            account=account,
            suffix="eks-cluster",
        )

    def _log_group(self) -> tuple[pulumi.Resource, ...]:
        """The group EKS writes to: made beforehand, because EKS would make it itself and keep logs for ever."""
        if not self._spec.logs:
            return ()
        group = aws.cloudwatch.LogGroup(
            f"{self._at}-logs",
            name=f"/aws/eks/{self._name_in_aws}/cluster",
            retention_in_days=self._spec.log_retention_days,
            tags=aws_tags(self._account, "eks-logs"),
            opts=self._child(),
        )
        return (group,)

    def _cluster(self, network: NetworkHandle, role: MadeRole, logs: Sequence[pulumi.Resource]) -> aws.eks.Cluster:
        spec = self._spec
        return aws.eks.Cluster(
            f"{self._at}-cluster",
            name=self._name_in_aws,
            version=spec.version,
            role_arn=role.arn,
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": False},
            bootstrap_self_managed_addons=False,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=network.control_plane_subnet_ids,
                # The control plane carries the nodes' groups, as in AWS's Terraform modules (awsome-distributed-ai, module eks_cluster):
                # the EFA group's rule to itself is the way to kubelets and webhooks and back.
                security_group_ids=network.node_security_group_ids,
                endpoint_private_access=True,
                endpoint_public_access=bool(spec.public_access_cidrs),
                public_access_cidrs=list(spec.public_access_cidrs) or None,
            ),
            encryption_config={"provider": {"key_arn": self.secrets_key_arn}, "resources": ["secrets"]},
            enabled_cluster_log_types=sorted(log.value for log in spec.logs),
            deletion_protection=spec.deletion_protection,
            tags=aws_tags(self._account, "eks"),
            opts=self._child(
                depends_on=(*role.resources, *logs),
                protect=spec.protect,
                timeouts=pulumi.CustomTimeouts(create=minutes(CREATE_TIMEOUT_MINUTES), delete=minutes(DELETE_TIMEOUT_MINUTES)),
            ),
        )

    def _oidc_provider(self, issuer: pulumi.Output[str]) -> aws.iam.OpenIdConnectProvider:
        # No thumbprint: IAM trusts EKS's issuers by its own library of certificate authorities.
        return aws.iam.OpenIdConnectProvider(
            f"{self._at}-oidc", url=issuer, client_id_lists=[AUDIENCE], tags=aws_tags(self._account, "eks-oidc"), opts=self._child()
        )

    def _addon(self, addon: str) -> aws.eks.Addon:
        return aws.eks.Addon(
            f"{self._at}-{addon}",
            cluster_name=self.cluster.name,
            addon_name=addon,
            addon_version=self._spec.addon_versions.get(addon),
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=aws_tags(self._account, addon),
            opts=self._child(),
        )
