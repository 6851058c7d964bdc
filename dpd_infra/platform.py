"""The composition: a platform's spec becomes network, EKS, HyperPod and operator, each made or found, wired in the one order that works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pulumi
import pulumi_aws as aws

from dpd_infra.components import tokens
from dpd_infra.components._base import Component
from dpd_infra.components._cluster_access import deployer_arn
from dpd_infra.components.account import Account
from dpd_infra.components.control_plane import ControlPlane
from dpd_infra.components.dependencies import HyperPodDependencies, chart_of
from dpd_infra.components.existing import existing_addons, existing_cluster, existing_control_plane, existing_network
from dpd_infra.components.gpu_subnet import GpuSubnet
from dpd_infra.components.handles import AddonsHandle, ClusterHandle, ControlPlaneHandle, NetworkHandle, OperatorHandle
from dpd_infra.components.hyperpod_cluster import HyperPodCluster
from dpd_infra.components.inference_operator import InferenceOperator
from dpd_infra.components.model_store import ModelStore, require_tokens
from dpd_infra.components.network import Network
from dpd_infra.components.node_addons import NodeAddons
from dpd_infra.components.providers import Providers, aws_providers
from dpd_infra.components.teams import Teams
from dpd_infra.plan.names import Naming
from dpd_infra.plan.pieces import NetworkPiece, Pieces, pieces
from dpd_infra.plan.project import current_project
from dpd_infra.rules.check import check
from dpd_infra.rules.parts import whole_is_checked
from dpd_infra.rules.subject import StackSubject
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.network import NetworkSpec
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.stack import platform_missing, refuse_errors, running_aws_settings


class Platform(Component):
    """Everything that endpoints need: network, EKS, HyperPod cluster, add-ons and inference operator, as far as they are not there already.

    Each step that is made is an attribute, and None where `existing` has it.
    """

    __slots__ = ("operator",)
    token = tokens.PLATFORM

    network: Network | GpuSubnet | None = None
    control_plane: ControlPlane | None = None
    dependencies: HyperPodDependencies | None = None
    cluster: HyperPodCluster | None = None
    addons: NodeAddons | None = None
    inference_operator: InferenceOperator
    """The operator, installed or adopted."""
    model_store: ModelStore | None = None
    teams: Teams | None = None
    operator: OperatorHandle
    """What endpoints take."""
    outputs: dict[str, pulumi.Output[Any]]
    """What other stacks need, by camelCase name: export them all."""

    def __init__(
        self,
        name: str,
        spec: PlatformSpec | None,
        *,
        aws_settings: AwsSettings | None = None,
        providers: Providers | None = None,
        hugging_face_tokens: Mapping[str, pulumi.Input[str]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Providers follow the standard `aws:` configuration unless `aws_settings` or ready `providers` are given.

        `hugging_face_tokens` has the secrets that the model store's models name, by their configuration keys. Raises `StackRefused` for a
        spec that breaks a rule, and for None, which a stack without a platform has, before anything is registered; and `pulumi.RunError`
        for a secret that is not given, and for what `existing` names and is not there.
        """
        if spec is None:
            raise platform_missing()
        settings = aws_settings or running_aws_settings()
        refuse_errors(check(StackSubject(region=settings.region, platform=spec, operator=spec.operator_facts)))
        if spec.model_store is not None:
            require_tokens(spec.model_store, hugging_face_tokens or {})
        made = pieces(spec)
        if made.cluster:
            chart_of(spec.dependencies, current_project())
        providers = providers or aws_providers(name, settings)
        super().__init__(
            name,
            {"name": spec.name, "region": settings.region},
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=providers.all)),
        )
        self._at, self._spec, self._made, self._settings = name, spec, made, settings
        self._account, self._below = _account(spec, settings, providers), pulumi.ResourceOptions(parent=self)

        with whole_is_checked():
            network, control_plane = self._network_and_control_plane(spec.network)
            cluster = self._cluster(network, control_plane)
            addons = self._addons(control_plane, cluster)
            self.inference_operator = InferenceOperator(
                f"{name}-operator",
                spec.operator_spec,
                account=self._account,
                network=network,
                control_plane=control_plane,
                cluster=cluster,
                addons=addons,
                facts=spec.operator_facts,
                opts=self._below,
            )
            self.operator = self._with_teams_and_models(control_plane, cluster, addons, hugging_face_tokens or {})
        self.outputs = _outputs(spec, self._made, settings, network, control_plane, cluster, self.operator)
        self.register_outputs(self.outputs)

    def _network_and_control_plane(self, network: NetworkSpec | None) -> tuple[NetworkHandle | None, ControlPlaneHandle]:
        """An EKS cluster of ours stands in the network; an existing one says which VPC it is in, and the GPU subnet is put there."""
        spec, account, name = self._spec, self._account, self._at
        given = existing_network(spec.existing, account, self._below)
        if self._made.control_plane and spec.control_plane is not None:
            if self._made.network is NetworkPiece.OWN and network is not None:
                eks_name = spec.control_plane.name or spec.name
                self.network = Network(f"{name}-network", network, account=account, cluster_name=eks_name, opts=self._below)
                given = self.network.handle
            if given is None:
                raise ValueError("an EKS cluster of ours has a network")
            self.control_plane = ControlPlane(
                f"{name}-control-plane",
                spec.control_plane,
                account=account,
                network=given,
                default_name=spec.name,
                aws_settings=self._settings,
                opts=self._below,
            )
            return given, self.control_plane.handle
        control_plane = existing_control_plane(spec, self._made, account, self._settings, self._below)
        if self._made.network is NetworkPiece.IN_EXISTING_VPC and network is not None:
            self.network = GpuSubnet(f"{name}-network", network, account=account, control_plane=control_plane, opts=self._below)
            given = self.network.handle
        return given, control_plane

    def _cluster(self, network: NetworkHandle | None, control_plane: ControlPlaneHandle) -> ClusterHandle:
        spec, account, name = self._spec, self._account, self._at
        if spec.existing.cluster is not None:
            return existing_cluster(spec.existing.cluster, control_plane, self._below)
        if network is None:
            raise ValueError("a HyperPod cluster of ours has a network")
        self.dependencies = HyperPodDependencies(
            f"{name}-dependencies",
            spec.dependencies,
            account=account,
            control_plane=control_plane,
            image_mirrors=spec.image_mirrors,
            opts=self._below,
        )
        self.cluster = HyperPodCluster(
            f"{name}-cluster",
            spec.cluster_spec,
            account=account,
            network=network,
            control_plane=control_plane,
            dependencies=self.dependencies.resources,
            default_name=spec.name,
            opts=self._below,
        )
        return self.cluster.handle

    def _addons(self, control_plane: ControlPlaneHandle, cluster: ClusterHandle) -> AddonsHandle:
        spec, account = self._spec, self._account
        there = existing_addons(spec.existing, control_plane, cluster, account, self._below)
        if not self._made.node_addons:
            return there
        store = spec.model_store
        own_bucket = [store.bucket or account.naming.model_bucket(account.account_id)] if store is not None else []
        self.addons = NodeAddons(
            f"{self._at}-addons",
            spec.addons,
            account=account,
            control_plane=control_plane,
            cluster=cluster,
            model_buckets=(*spec.model_buckets, *own_bucket),
            existing=there,
            only=self._made.node_addons,
            opts=self._below,
        )
        return self.addons.handle

    def _with_teams_and_models(
        self,
        control_plane: ControlPlaneHandle,
        cluster: ClusterHandle,
        addons: AddonsHandle,
        tokens_by_key: Mapping[str, pulumi.Input[str]],
    ) -> OperatorHandle:
        """The operator's handle, which waits for the teams' namespaces and for the models that are copied."""
        spec, operator = self._spec, self.inference_operator.handle
        resources = list(operator.resources)
        if spec.teams:
            self.teams = Teams(f"{self._at}-teams", spec.teams, account=self._account, control_plane=control_plane, opts=self._below)
            resources += self.teams.resources
        if spec.model_store is not None:
            self.model_store = ModelStore(
                f"{self._at}-store",
                spec.model_store,
                account=self._account,
                control_plane=control_plane,
                after=(*cluster.resources, *addons.resources, *(self.teams.resources if self.teams else ())),
                hugging_face_tokens=tokens_by_key,
                image_mirrors=spec.image_mirrors,
                opts=self._below,
            )
            resources += self.model_store.resources
        return replace(operator, resources=tuple(resources))


def _account(spec: PlatformSpec, settings: AwsSettings, providers: Providers) -> Account:
    """Everything that is asked of AWS beforehand: a data source in the middle of the program waits for all that was begun until then."""
    invoke = pulumi.InvokeOptions(provider=providers.aws)
    identity = aws.get_caller_identity(opts=invoke)
    control_plane = spec.control_plane if spec.existing.control_plane is None else None
    enters = control_plane is not None and control_plane.deployer_access
    return Account(
        account_id=identity.account_id,
        region=settings.region,
        naming=Naming(spec.name, pulumi.get_stack(), settings.region),
        partition=aws.get_partition(opts=invoke).partition,
        tags={**spec.tags, "dpd-infra:platform": spec.name, "dpd-infra:stack": pulumi.get_stack()},
        deployer_arn=deployer_arn(invoke, identity.arn) if enters else None,
    )


def _outputs(
    spec: PlatformSpec,
    made: Pieces,
    settings: AwsSettings,
    network: NetworkHandle | None,
    control_plane: ControlPlaneHandle,
    cluster: ClusterHandle,
    operator: OperatorHandle,
) -> dict[str, pulumi.Output[Any]]:
    identifier = spec.control_plane.name or spec.name if made.control_plane and spec.control_plane else control_plane.name
    values: dict[str, pulumi.Input[Any] | None] = {
        "region": settings.region,
        "zone": network.zone if network else None,
        "vpcId": network.vpc_id if network else control_plane.vpc_id,
        "eksClusterName": control_plane.name,
        "eksEndpoint": control_plane.endpoint,
        "eksCertificateAuthority": control_plane.certificate_authority,
        "kubernetesIdentifier": f"{identifier}-{control_plane.generation}",
        "hyperPodClusterName": cluster.name,
        "hyperPodClusterArn": cluster.arn,
        "operatorAddonVersion": operator.addon_version,
        "closedNetwork": operator.facts.closed_network,
    }
    return {key: pulumi.Output.from_input(value) for key, value in values.items() if value is not None}
