"""The simulated pulumi-eks provider: its `Cluster` component, made of the same AWS resources."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Mapping
from concurrent import futures
from typing import Any

import grpc
import pulumi
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime.proto import provider_pb2

from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.eks import CLUSTER_POLICY
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.host import close_loop
from dpd_infra.rehearsal.provider import SimulatedProvider, sdk_version
from dpd_infra.rehearsal.world.rules import providers as rules

CLUSTER_COMPONENT = "eks:index:Cluster"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
_PASSED_ON = ("version", "deletionProtection", "enabledClusterLogTypes", "bootstrapSelfManagedAddons", "upgradePolicy")
"""Inputs of the component that its EKS cluster takes under the same name."""


class _Raw(pulumi.CustomResource):
    """A resource by type token and provider property names: what a provider sees, without any SDK."""

    def __init__(self, token: str, name: str, inputs: Mapping[str, Any], outputs: tuple[str, ...], opts: pulumi.ResourceOptions) -> None:
        super().__init__(token, name, {**dict.fromkeys(outputs), **inputs}, opts)

    def output(self, name: str) -> pulumi.Output[Any]:
        """One of the properties, by the provider's name."""
        return getattr(self, name)


class _EksCluster(pulumi.ComponentResource):
    """What `pulumi_eks.Cluster` makes when nodes are somebody else's: role, control plane, access entries, OIDC provider, two add-ons."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(CLUSTER_COMPONENT, name, {}, opts)
        role = self._child(base.ROLE, f"{name}-eksRole-role", {"assumeRolePolicy": json.dumps(_TRUST)}, "arn", "name")
        attachment = {"role": role.output("name"), "policyArn": CLUSTER_POLICY}
        attached = self._child(base.ROLE_POLICY_ATTACHMENT, f"{name}-eksRole-policy", attachment)
        self.cluster = self._child(
            base.CLUSTER,
            f"{name}-eksCluster",
            {
                **{key: inputs[key] for key in _PASSED_ON if inputs.get(key) is not None},
                **({"name": inputs["name"]} if inputs.get("name") else {}),
                "roleArn": role.output("arn"),
                "accessConfig": {"authenticationMode": inputs.get("authenticationMode") or "CONFIG_MAP"},
                "vpcConfig": self._network(inputs),
            },
            *("arn", "name", "endpoint", "version", "certificateAuthority", "accessConfig", "vpcConfig", "identities"),
            after=[attached],
        )
        issuer = self.cluster.output("identities").apply(lambda found: found[0]["oidcs"][0]["issuer"])
        eks_name = self.cluster.output("name")
        for entry, settings in (inputs.get("accessEntries") or {}).items():
            self._access(f"{name}-{entry}", settings)
        for addon in ("vpc-cni", "kube-proxy"):
            self._child(base.ADDON, f"{name}-{addon}", {"clusterName": eks_name, "addonName": addon})
        provider_arn: pulumi.Input[str] = ""
        if inputs.get("createOidcProvider"):
            identity = {"url": issuer, "clientIdLists": ["sts.amazonaws.com"]}
            provider_arn = self._child(base.OIDC_PROVIDER, f"{name}-oidcProvider", identity, "arn").output("arn")
        kubeconfig = pulumi.Output.all(eks_name, self.cluster.output("endpoint"), self.cluster.output("certificateAuthority")).apply(
            lambda known: _kubeconfig(*known)
        )
        group = self.cluster.output("vpcConfig").apply(lambda config: config["clusterSecurityGroupId"])
        self.state: dict[str, Any] = {
            "eksCluster": self.cluster,
            "clusterSecurityGroupId": group,
            "kubeconfig": kubeconfig,
            "kubeconfigJson": pulumi.Output.json_dumps(kubeconfig),
            "oidcProviderArn": provider_arn,
            "oidcProviderUrl": issuer,
            "oidcIssuer": issuer.apply(lambda url: url.removeprefix("https://")),
            "core": {"cluster": self.cluster, "endpoint": self.cluster.output("endpoint"), "kubeconfig": kubeconfig},
        }
        self.register_outputs(self.state)

    def _child(self, token: str, name: str, inputs: Mapping[str, Any], *outputs: str, after: list[pulumi.Resource] | None = None) -> _Raw:
        return _Raw(token, name, inputs, outputs, pulumi.ResourceOptions(parent=self, depends_on=after))

    @staticmethod
    def _network(inputs: Mapping[str, Any]) -> dict[str, Any]:
        groups = [inputs.get(key) for key in ("subnetIds", "privateSubnetIds", "publicSubnetIds")]
        subnets = pulumi.Output.all(*[group for group in groups if group is not None]).apply(
            lambda known: [subnet for group in known for subnet in group]
        )
        config: dict[str, Any] = {"subnetIds": subnets}
        for ours, theirs in (
            ("endpointPrivateAccess", "endpointPrivateAccess"),
            ("endpointPublicAccess", "endpointPublicAccess"),
            ("publicAccessCidrs", "publicAccessCidrs"),
        ):
            if inputs.get(ours) is not None:
                config[theirs] = inputs[ours]
        return config

    def _access(self, name: str, settings: Mapping[str, Any]) -> None:
        who = {"clusterName": self.cluster.output("name"), "principalArn": settings["principalArn"]}
        entry = self._child(base.ACCESS_ENTRY, name, who)
        for policy, association in (settings.get("accessPolicies") or {}).items():
            granted = {**who, "policyArn": association["policyArn"], "accessScope": association["accessScope"]}
            self._child(base.ACCESS_POLICY_ASSOCIATION, f"{name}-{policy}", granted, after=[entry])


def _kubeconfig(name: str, endpoint: str, authority: Mapping[str, str]) -> dict[str, Any]:
    exec_plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", name],
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": {"server": endpoint, "certificate-authority-data": authority["data"]}}],
        "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
        "current-context": "aws",
        "users": [{"name": "aws", "user": {"exec": exec_plugin}}],
    }


class _Components(Provider):
    def construct(
        self, name: str, resource_type: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        made = _EksCluster(name, inputs, options or pulumi.ResourceOptions())
        return ConstructResult(made.urn, made.state)


class EksProvider(SimulatedProvider):
    """pulumi-eks: only its `Cluster` component."""

    package = "eks"
    distribution = "pulumi-eks"
    engine_address = ""

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ProviderHandshakeResponse:
        self.engine_address = request.engine_address
        return super().Handshake(request, context)

    def construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> provider_pb2.ConstructResponse:
        if request.type != CLUSTER_COMPONENT:
            raise SimulatedError(rules.COMPONENT(token=request.type))
        given = set(request.inputs.fields)
        if not given & {"subnetIds", "privateSubnetIds", "publicSubnetIds"}:
            raise SimulatedError(rules.DEFAULT_VPC())
        servicer = ProviderServicer(_Components(sdk_version(self.distribution)), [], self.engine_address)

        def build() -> provider_pb2.ConstructResponse:
            loop = asyncio.new_event_loop()
            loop.set_default_executor(futures.ThreadPoolExecutor(max_workers=16))
            try:
                return loop.run_until_complete(servicer.Construct(request, context))  # pyright: ignore[reportArgumentType]
            finally:
                close_loop(loop)

        # The SDK keeps its settings in context variables: a copied context leaves the program's own alone.
        return contextvars.copy_context().run(build)
