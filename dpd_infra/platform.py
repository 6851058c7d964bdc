"""The composition: a platform's spec becomes network, EKS, HyperPod and operator, wired in the one order that works."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from dpd_infra.components import tokens
from dpd_infra.components._base import Component
from dpd_infra.components.control_plane import ControlPlane
from dpd_infra.components.dependencies import HyperPodDependencies
from dpd_infra.components.handles import Account, OperatorHandle
from dpd_infra.components.hyperpod_cluster import HyperPodCluster
from dpd_infra.components.inference_operator import InferenceOperator
from dpd_infra.components.network import Network
from dpd_infra.components.node_addons import NodeAddons
from dpd_infra.components.providers import Providers, aws_providers
from dpd_infra.plan.names import Naming
from dpd_infra.rules.check import check
from dpd_infra.rules.subject import StackSubject
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.stack import refuse_errors, running_aws_settings


class Platform(Component):
    """Everything that endpoints need, from an empty account: network, EKS, HyperPod cluster, add-ons and inference operator."""

    token = tokens.PLATFORM

    network: Network
    control_plane: ControlPlane
    dependencies: HyperPodDependencies
    cluster: HyperPodCluster
    addons: NodeAddons
    inference_operator: InferenceOperator
    operator: OperatorHandle
    """What endpoints take."""
    outputs: dict[str, pulumi.Output]
    """What other stacks need, by camelCase name: export them."""

    def __init__(
        self,
        name: str,
        spec: PlatformSpec,
        *,
        aws_settings: AwsSettings | None = None,
        providers: Providers | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Providers follow the standard `aws:` configuration unless `aws_settings` or ready `providers` are given.

        Raises `StackRefused` for a spec that breaks a rule, before anything is registered.
        """
        settings = aws_settings or running_aws_settings()
        refuse_errors(check(StackSubject(region=settings.region, platform=spec, operator=spec.operator.facts)))
        providers = providers or aws_providers(name, settings)
        super().__init__(
            name,
            {"name": spec.name, "region": settings.region},
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=providers.all)),
        )
        account = self._account(spec, settings, providers)

        below = pulumi.ResourceOptions(parent=self)
        eks_name = spec.control_plane.name or spec.name
        self.network = Network(f"{name}-network", spec.network, account=account, cluster_name=eks_name, opts=below)
        self.control_plane = ControlPlane(
            f"{name}-control-plane",
            spec.control_plane,
            account=account,
            network=self.network.handle,
            default_name=spec.name,
            aws_settings=settings,
            opts=below,
        )
        self.dependencies = HyperPodDependencies(
            f"{name}-dependencies", spec.dependencies, account=account, control_plane=self.control_plane.handle, opts=below
        )
        self.cluster = HyperPodCluster(
            f"{name}-cluster",
            spec.cluster_spec,
            account=account,
            network=self.network.handle,
            control_plane=self.control_plane.handle,
            dependencies=self.dependencies.resources,
            default_name=spec.name,
            opts=below,
        )
        self.addons = NodeAddons(
            f"{name}-addons",
            spec.addons,
            account=account,
            control_plane=self.control_plane.handle,
            cluster=self.cluster.handle,
            model_buckets=spec.model_buckets,
            opts=below,
        )
        self.inference_operator = InferenceOperator(
            f"{name}-operator",
            spec.operator,
            account=account,
            network=self.network.handle,
            control_plane=self.control_plane.handle,
            cluster=self.cluster.handle,
            addons=self.addons.handle,
            opts=below,
        )
        self.operator = self.inference_operator.handle
        self.outputs = self._outputs(settings)
        self.register_outputs(self.outputs)

    def _account(self, spec: PlatformSpec, settings: AwsSettings, providers: Providers) -> Account:
        invoke = pulumi.InvokeOptions(provider=providers.aws)
        return Account(
            account_id=aws.get_caller_identity(opts=invoke).account_id,
            region=settings.region,
            naming=Naming(spec.name, pulumi.get_stack(), settings.region),
            partition=aws.get_partition(opts=invoke).partition,
            tags={**spec.tags, "dpd-infra:platform": spec.name, "dpd-infra:stack": pulumi.get_stack()},
        )

    def _outputs(self, settings: AwsSettings) -> dict[str, pulumi.Output]:
        return {
            "region": pulumi.Output.from_input(settings.region),
            "zone": pulumi.Output.from_input(self.network.handle.zone),
            "vpcId": self.network.vpc_id,
            "eksClusterName": self.control_plane.cluster_name,
            "hyperPodClusterName": self.cluster.cluster_name,
            "hyperPodClusterArn": self.cluster.cluster_arn,
            "operatorAddonVersion": pulumi.Output.from_input(self.operator.addon_version),
        }
