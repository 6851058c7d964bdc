"""What components of plugins answer: `pulumi_eks.Cluster`, with the EKS cluster in it, and whatever a test says of others.

A plugin makes a component's children itself, on the engine's side. Here is no plugin, so the program's own registration is all that is
recorded, and the children that its outputs lead to are only answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpd_infra.testing.answers import Answers

PULUMI_EKS_CLUSTER = "eks:index:Cluster"
_EKS_CLUSTER = "aws:eks/cluster:Cluster"


@dataclass(frozen=True, slots=True)
class Child:
    """A resource that a component's output is."""

    type: str
    name: str
    id: str
    state: Mapping[str, Any]


def remote_outputs(answers: Answers, type_: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A component's outputs, children as `Child`; none for a type that is not known here."""
    return _pulumi_eks(answers, name, inputs) if type_ == PULUMI_EKS_CLUSTER else {}


def _pulumi_eks(answers: Answers, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """As pulumi-eks 4 has it: a name that is left out is made up, and the OIDC provider is there where it was asked for."""
    cluster = str(inputs.get("name") or f"{name}-eksCluster")
    wanted = {
        "name": cluster,
        "version": inputs.get("version"),
        "accessConfig": {"authenticationMode": inputs.get("authenticationMode") or "CONFIG_MAP"},
        "vpcConfig": {"subnetIds": [*inputs.get("subnetIds", ()), *inputs.get("privateSubnetIds", ())]},
    }
    given = {key: value for key, value in wanted.items() if value is not None}
    identity, outputs = answers.resource(_EKS_CLUSTER, cluster, given)
    if vpc := inputs.get("vpcId"):
        outputs["vpcConfig"]["vpcId"] = vpc
    issuer = outputs["identities"][0]["oidcs"][0]["issuer"]
    url = issuer.removeprefix("https://")
    oidc = inputs.get("createOidcProvider") is True
    return {
        "eksCluster": Child(_EKS_CLUSTER, f"{name}-eksCluster", identity, {**given, **outputs}),
        "clusterSecurityGroupId": outputs["vpcConfig"]["clusterSecurityGroupId"],
        "kubeconfig": {"apiVersion": "v1", "kind": "Config"},
        "kubeconfigJson": '{"apiVersion":"v1","kind":"Config"}',
        "oidcProviderArn": answers.arn("iam", f"oidc-provider/{url}", region="") if oidc else "",
        "oidcProviderUrl": issuer,
        "oidcIssuer": url,
    }
