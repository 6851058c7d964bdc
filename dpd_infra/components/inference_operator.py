"""The inference operator: its roles, its certificate bucket, and the EKS add-on; or the add-on that a HyperPod cluster came with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from dpd_infra.catalog.operator_releases import ADDON_NAME, AddonVersion
from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of, minutes
from dpd_infra.components._buckets import make_bucket
from dpd_infra.components._roles import MadeRole, make_role
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.handles import AddonsHandle, ClusterHandle, ControlPlaneHandle, NetworkHandle, OperatorHandle
from dpd_infra.plan.iam import (
    INFERENCE_MANAGED_POLICIES,
    RolePlan,
    hosted_zone_arn,
    inference_execution_role,
    keda_role,
    load_balancer_controller_role,
)
from dpd_infra.render.addon_values import canonical_json, render_operator_configuration
from dpd_infra.rules.parts import check_part
from dpd_infra.spec.operator import OperatorFacts, OperatorSpec
from dpd_infra.stack import refuse_errors


class InferenceOperator(Component):
    """What turns an InferenceEndpointConfig into running pods.

    Endpoints depend on the add-on, so they are deleted before it: with the operator gone their finalizers would never be taken off, and
    the operator's definitions would hang (add-on troubleshooting). The add-on makes its own namespace.
    """

    __slots__ = ("handle",)
    token = tokens.INFERENCE_OPERATOR

    addon_version: pulumi.Output[str]
    """The version that is really there. Fails where it is older than the spec says, and so does all that needs it."""
    execution_role_arn: pulumi.Output[str] | None
    """The role of the operator and of the endpoints' SageMaker models; None for an adopted add-on."""
    tls_bucket: pulumi.Output[str] | None
    """The bucket with the endpoints' certificates; None for an adopted add-on."""
    addon: aws.eks.Addon | None
    """The add-on; None for an adopted one."""
    handle: OperatorHandle

    def __init__(
        self,
        name: str,
        spec: OperatorSpec,
        *,
        account: Account,
        network: NetworkHandle | None,
        control_plane: ControlPlaneHandle,
        cluster: ClusterHandle,
        addons: AddonsHandle,
        facts: OperatorFacts | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """With `spec.adopt` nothing is made: the add-on's version is read, after the HyperPod cluster that brings it is there.

        `network` None: the control plane's VPC. `facts` is what endpoints are told; None: the spec's version alone.
        Raises `pulumi.RunError` where neither handle knows the VPC and the load balancer controller's role needs it.
        """
        network = None if network is None else handle_of(network, NetworkHandle, "network")
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        cluster = handle_of(cluster, ClusterHandle, "cluster")
        addons = handle_of(addons, AddonsHandle, "addons")
        facts = facts or spec.facts
        vpc_id = network.vpc_id if network else control_plane.vpc_id
        if vpc_id is None and spec.load_balancer_controller and not spec.adopt:
            raise pulumi.RunError(
                "the load balancer controller's role names the VPC: give a network, or a control plane that knows its VPC"
            )
        bucket_name = spec.tls_bucket or account.naming.tls_bucket(account.account_id)
        refuse_errors(check_part(region=account.region, operator=spec))
        super().__init__(name, {"clusterName": cluster.name}, opts)
        self._account, self._control_plane = account, control_plane

        before = (*addons.resources, *cluster.resources, *control_plane.resources, *(network.resources if network else ()))
        if spec.adopt:
            self.addon, self.execution_role_arn, self.tls_bucket = None, None, None
            version, ready = self._adopted_version(before), before
        else:
            self.addon = self._install(name, spec, vpc_id, cluster, addons, bucket_name, before)
            version, ready = self.addon.addon_version, (self.addon,)

        self.addon_version = version.apply(lambda real: _at_least(real, facts.addon_version))
        self.handle = OperatorHandle(
            facts=facts,
            addon_version=self.addon_version,
            kubernetes_provider=control_plane.kubernetes_provider,
            cluster_name=cluster.name,
            region=account.region,
            resources=ready,
        )
        self.register_outputs(
            {"addonVersion": self.addon_version, "executionRoleArn": self.execution_role_arn, "tlsBucket": self.tls_bucket}
        )

    def _install(
        self,
        name: str,
        spec: OperatorSpec,
        vpc_id: pulumi.Input[str] | None,
        cluster: ClusterHandle,
        addons: AddonsHandle,
        bucket_name: str,
        before: Sequence[pulumi.Resource],
    ) -> aws.eks.Addon:
        account = self._account
        execution = self._execution_role(name, spec, bucket_name)
        load_balancer = self._load_balancer_role(name, vpc_id) if spec.load_balancer_controller and vpc_id is not None else None
        keda = self._keda_role(name) if spec.keda else None
        bucket = make_bucket(self, f"{name}-tls", bucket_name=bucket_name, versioned=False, account=account, suffix="endpoint-certificates")
        self.execution_role_arn, self.tls_bucket = execution.arn, bucket.bucket.bucket

        arguments = pulumi.Output.all(
            execution_role_arn=execution.arn,
            tls_bucket=bucket_name,
            cluster_arn=cluster.arn,
            load_balancer_role_arn=load_balancer.arn if load_balancer else None,
            keda_role_arn=keda.arn if keda else None,
        )
        # Add-ons that somebody else made and that are too old have no versions here, and so stop the operator.
        configuration = pulumi.Output.all(arguments, addons.versions).apply(
            lambda known: canonical_json(render_operator_configuration(spec, **known[0]))
        )
        roles = (resource for role in (execution, load_balancer, keda) if role for resource in role.resources)
        limit = minutes(spec.create_timeout_minutes)
        return aws.eks.Addon(
            f"{name}-addon",
            cluster_name=self._control_plane.name,
            addon_name=ADDON_NAME,
            addon_version=spec.addon_version,
            configuration_values=configuration,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            preserve=False,
            tags=aws_tags(account, "inference-operator"),
            opts=self._child(depends_on=(*before, *roles, *bucket.resources), timeouts=pulumi.CustomTimeouts(create=limit, update=limit)),
        )

    def _execution_role(self, name: str, spec: OperatorSpec, bucket_name: str) -> MadeRole:
        """The one role whose name is not free: the operator may pass on only roles named `SageMakerHyperPodInference*`."""
        partition = self._account.partition
        reach: dict[str, Any] = {
            "certificate_arns": spec.certificate_arns,
            "hosted_zone_arns": [hosted_zone_arn(zone, partition) for zone in spec.hosted_zone_ids],
            "data_capture_bucket_arns": [f"arn:{partition}:s3:::{bucket}" for bucket in spec.data_capture_buckets],
            "key_arns": spec.data_capture_key_arns,
        }
        reach |= {"tls_bucket_name": bucket_name, **self._place()}
        plan = self._identity().apply(lambda known: inference_execution_role(**reach, **known))
        return make_role(
            self,
            f"{name}-execution",
            plan,
            role_name=self._account.naming.inference_role("execution"),
            managed_policies=INFERENCE_MANAGED_POLICIES,
            account=self._account,
            suffix="inference-execution-role",
        )

    def _load_balancer_role(self, name: str, vpc_id: pulumi.Input[str]) -> MadeRole:
        plan = self._identity(vpc_id=vpc_id).apply(lambda known: load_balancer_controller_role(**self._place(), **known))
        return self._controller_role(name, "load-balancer-controller", plan)

    def _keda_role(self, name: str) -> MadeRole:
        plan = self._identity().apply(lambda known: keda_role(**self._place(), **known))
        return self._controller_role(name, "keda", plan)

    def _controller_role(self, name: str, purpose: str, plan: pulumi.Output[RolePlan]) -> MadeRole:
        account = self._account
        return make_role(self, f"{name}-{purpose}", plan, role_name=account.naming.role(purpose), account=account, suffix=f"{purpose}-role")

    def _place(self) -> dict[str, Any]:
        account = self._account
        return {"region": account.region, "account_id": account.account_id, "partition": account.partition}

    def _identity(self, **more: pulumi.Input[str]) -> pulumi.Output[dict[str, Any]]:
        cluster = self._control_plane
        return pulumi.Output.all(provider_arn=cluster.oidc_provider_arn, issuer=cluster.oidc_issuer, **more)

    def _adopted_version(self, after: Sequence[pulumi.Resource]) -> pulumi.Output[str]:
        found = aws.eks.get_addon_output(
            cluster_name=self._control_plane.name,
            addon_name=ADDON_NAME,
            opts=pulumi.InvokeOutputOptions(parent=self, depends_on=list(after)),
        )
        return found.apply(lambda addon: addon.addon_version)


def _at_least(real: str, promised: str) -> str:
    """The real version, or `pulumi.RunError` where it is older than what endpoints were checked against."""
    if AddonVersion.parse(real) < AddonVersion.parse(promised):
        message = (
            f"the add-on {ADDON_NAME} is at {real}, older than {promised}, which its endpoints were checked against: "
            f"raise the add-on, or write addonVersion: {real} and let the endpoints be checked against that"
        )
        raise pulumi.RunError(message)
    return real
