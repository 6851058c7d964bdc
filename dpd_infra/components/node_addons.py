"""The add-ons that need nodes: coredns, cert-manager, the S3 and FSx CSI drivers and metrics-server.

None gets tolerations: their pods go where the operator's go, to nodes without taints of the user's own, and coredns turning ACTIVE shows
that such a node has passed its health checks. (AWS's Terraform modules tolerate every taint, and so cordoned and dead nodes too.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from dpd_infra.catalog.addons import CERT_MANAGER, COREDNS, FSX_CSI, METRICS_SERVER, NODE_ADDONS, S3_CSI, Addon
from dpd_infra.components import tokens
from dpd_infra.components._base import Component, minutes
from dpd_infra.components._roles import MadeRole, make_role
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.handles import Account, AddonsHandle, ClusterHandle, ControlPlaneHandle
from dpd_infra.plan.iam import RolePlan, fsx_csi_role, s3_csi_role
from dpd_infra.plan.iam.storage_roles import s3_csi_accounts
from dpd_infra.spec.addons import NodeAddonsSpec


class NodeAddons(Component):
    """What the inference operator needs in the cluster before it is installed.

    coredns comes first, and everything else waits for it: with continuous provisioning a HyperPod cluster is in service before it has
    a node, and coredns turns ACTIVE only on nodes. cert-manager follows, then the rest at one time (the order of the setup guide).
    """

    token = tokens.NODE_ADDONS

    addon_versions: pulumi.Output[dict[str, str]]
    """The version of each add-on by name."""
    s3_csi_role_arn: pulumi.Output[str] | None
    """The role of the S3 CSI driver; None without model buckets."""
    fsx_csi_role_arn: pulumi.Output[str]
    """The role of the FSx CSI driver."""
    handle: AddonsHandle

    def __init__(
        self,
        name: str,
        spec: NodeAddonsSpec,
        *,
        account: Account,
        control_plane: ControlPlaneHandle,
        cluster: ClusterHandle,
        model_buckets: Sequence[str] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`model_buckets` are the names of the buckets that model pods may read; the S3 CSI driver reaches no other.

        Raises `ValueError` for a malformed version of the S3 CSI driver, which decides who takes its role.
        """
        s3_csi_accounts(spec.s3_csi_version)
        buckets = [f"arn:{account.partition}:s3:::{bucket}" for bucket in sorted(set(model_buckets))]
        super().__init__(name, {"clusterName": control_plane.name}, opts)
        self._account, self._control_plane = account, control_plane

        nodes = (*cluster.resources, *control_plane.resources)
        coredns = self._addon(COREDNS, spec.coredns_version, after=nodes, timeout=spec.nodes_timeout_minutes)
        s3_role = self._s3_role(spec, buckets) if buckets else None
        fsx_role = self._fsx_role()
        timeout = spec.addon_timeout_minutes
        cert_manager = self._addon(CERT_MANAGER, spec.cert_manager_version, after=(coredns,), timeout=timeout)
        after = (coredns, cert_manager)
        addons = (
            coredns,
            cert_manager,
            self._addon(S3_CSI, spec.s3_csi_version, after=after, timeout=timeout, role=s3_role),
            self._addon(FSX_CSI, spec.fsx_csi_version, after=after, timeout=timeout, role=fsx_role),
            self._addon(METRICS_SERVER, spec.metrics_server_version, after=after, timeout=timeout),
        )

        self.addon_versions = pulumi.Output.all(*(addon.addon_version for addon in addons)).apply(
            lambda versions: dict(zip((addon.name for addon in NODE_ADDONS), versions, strict=True))
        )
        self.s3_csi_role_arn = s3_role.arn if s3_role else None
        self.fsx_csi_role_arn = fsx_role.arn
        self.handle = AddonsHandle(resources=addons)
        self.register_outputs(
            {"addonVersions": self.addon_versions, "s3CsiRoleArn": self.s3_csi_role_arn, "fsxCsiRoleArn": self.fsx_csi_role_arn}
        )

    def _addon(
        self, addon: Addon, version: str | None, *, after: Sequence[pulumi.Resource], timeout: int, role: MadeRole | None = None
    ) -> aws.eks.Addon:
        limit = minutes(timeout)
        return aws.eks.Addon(
            f"{self.pulumi_resource_name}-{addon.name}",
            cluster_name=self._control_plane.name,
            addon_name=addon.name,
            addon_version=version,
            service_account_role_arn=role.arn if role else None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            preserve=False,
            tags=aws_tags(self._account, addon.name),
            opts=self._child(
                depends_on=(*after, *(role.resources if role else ())), timeouts=pulumi.CustomTimeouts(create=limit, update=limit)
            ),
        )

    def _s3_role(self, spec: NodeAddonsSpec, buckets: Sequence[str]) -> MadeRole:
        account = self._account
        plan = self._identity().apply(
            lambda identity: s3_csi_role(
                region=account.region,
                partition=account.partition,
                bucket_arns=buckets,
                driver_version=spec.s3_csi_version,
                write=spec.s3_write,
                **identity,
            )
        )
        return self._role("s3-csi", plan)

    def _fsx_role(self) -> MadeRole:
        account = self._account
        plan = self._identity().apply(
            lambda identity: fsx_csi_role(region=account.region, account_id=account.account_id, partition=account.partition, **identity)
        )
        return self._role("fsx-csi", plan)

    def _role(self, purpose: str, plan: pulumi.Output[RolePlan]) -> MadeRole:
        account = self._account
        return make_role(
            self,
            f"{self.pulumi_resource_name}-{purpose}",
            plan,
            role_name=account.naming.role(purpose),
            account=account,
            suffix=f"{purpose}-role",
        )

    def _identity(self) -> pulumi.Output[dict[str, Any]]:
        return pulumi.Output.all(provider_arn=self._control_plane.oidc_provider_arn, issuer=self._control_plane.oidc_issuer)
