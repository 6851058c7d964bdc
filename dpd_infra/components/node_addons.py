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
from dpd_infra.components._base import Component, handle_of, minutes
from dpd_infra.components._roles import MadeRole, make_role
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.handles import AddonsHandle, ClusterHandle, ControlPlaneHandle
from dpd_infra.plan.iam import RolePlan, fsx_csi_role, s3_csi_role
from dpd_infra.plan.iam.storage_roles import s3_csi_accounts
from dpd_infra.rules.parts import check_part
from dpd_infra.spec.addons import NodeAddonsSpec
from dpd_infra.stack import refuse_errors


class NodeAddons(Component):
    """What the inference operator needs in the cluster before it is installed.

    coredns comes first, and everything else waits for it: with continuous provisioning a HyperPod cluster is in service before it has
    a node, and coredns turns ACTIVE only on nodes. cert-manager follows, then the rest at one time (the order of the setup guide).
    """

    __slots__ = ("handle",)
    token = tokens.NODE_ADDONS

    addon_versions: pulumi.Output[dict[str, str]]
    """The version of each add-on that is made here, by name."""
    s3_csi_role_arn: pulumi.Output[str] | None
    """The role of the S3 CSI driver; None without model buckets."""
    fsx_csi_role_arn: pulumi.Output[str] | None
    """The role of the FSx CSI driver; None where somebody else made the driver."""
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
        existing: AddonsHandle | None = None,
        only: Sequence[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`model_buckets` are the names of the buckets that model pods may read; the S3 CSI driver reaches no other.

        `only` names the add-ons to make (None: all); `existing` stands for those that somebody else made.

        Raises `ValueError` for a malformed version of the S3 CSI driver, which decides who takes its role.
        """
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        cluster = handle_of(cluster, ClusterHandle, "cluster")
        existing = None if existing is None else handle_of(existing, AddonsHandle, "existing")
        s3_csi_accounts(spec.s3_csi_version)
        buckets = [f"arn:{account.partition}:s3:::{bucket}" for bucket in sorted(set(model_buckets))]
        refuse_errors(check_part(region=account.region, addons=spec))
        super().__init__(name, {"clusterName": control_plane.name}, opts)
        self._account, self._control_plane = account, control_plane

        made = {addon.name for addon in NODE_ADDONS} if only is None else set(only)
        before = (*cluster.resources, *control_plane.resources, *(existing.resources if existing else ()))
        s3_role = self._s3_role(spec, buckets) if buckets and S3_CSI.name in made else None
        fsx_role = self._fsx_role() if FSX_CSI.name in made else None
        timeout = spec.addon_timeout_minutes
        addons: list[aws.eks.Addon] = []
        # Each of the first two is waited for by all that come after it, where it is ours.
        for addon, version, limit in (
            (COREDNS, spec.coredns_version, spec.nodes_timeout_minutes),
            (CERT_MANAGER, spec.cert_manager_version, timeout if COREDNS.name in made else spec.nodes_timeout_minutes),
        ):
            if addon.name in made:
                addons.append(self._addon(addon, version, after=addons or before, timeout=limit))
        after = tuple(addons) or before
        addons += [
            self._addon(addon, version, after=after, timeout=timeout, role=role)
            for addon, version, role in (
                (S3_CSI, spec.s3_csi_version, s3_role),
                (FSX_CSI, spec.fsx_csi_version, fsx_role),
                (METRICS_SERVER, spec.metrics_server_version, None),
            )
            if addon.name in made
        ]

        names = [addon.name for addon in NODE_ADDONS if addon.name in made]
        self.addon_versions = pulumi.Output.all(*(addon.addon_version for addon in addons)).apply(
            lambda versions: dict(zip(names, versions, strict=True))
        )
        self.s3_csi_role_arn = s3_role.arn if s3_role else None
        self.fsx_csi_role_arn = fsx_role.arn if fsx_role else None
        self.handle = AddonsHandle(resources=tuple(addons) or before, versions=existing.versions if existing else {})
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
