"""Handles of what is there: what is read, what is registered, and what is refused before anything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

import dpd_infra as dpd
from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.spec.existing import ControlPlaneValues
from dpd_infra.testing import Answers
from tests.graph.kit import ACCOUNT_FACTS
from tests.graph.mock_outputs import ACCOUNT, ISSUER
from tests.graph.recorder import UNKNOWN, Recording, run_program

ANSWERS = Answers()
REGION = "us-east-2"
OIDC = ISSUER.removeprefix("https://")
HYPERPOD = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghij12"
GET_CLUSTER, GET_ADDON = "aws:eks/getCluster:getCluster", "aws:eks/getAddon:getAddon"
GET_SUBNET, GET_HYPERPOD = "aws:ec2/getSubnet:getSubnet", "aws-native:sagemaker:getCluster"
ZONES = {"subnet-1": "us-east-2a", "subnet-2": "us-east-2a", "subnet-3": "us-east-2b"}
INVOKES: dict[str, Any] = {
    GET_SUBNET: lambda asked: {"id": asked["id"], "vpcId": "vpc-1", "availabilityZone": ZONES[str(asked["id"])]},
    GET_HYPERPOD: lambda asked: ANSWERS.hyperpod_cluster(str(asked["clusterArn"]), "my-eks", {"gpu": "ml.p5.48xlarge"}),
}


def record(
    program: Callable[[], Any],
    *,
    preview: bool = False,
    expect: type[BaseException] | None = None,
    invokes: Mapping[str, Any] | None = None,
) -> Recording:
    return run_program(program, preview=preview, config={"aws:region": REGION}, invokes={**INVOKES, **(invokes or {})}, expect=expect)


def refusal(program: Callable[[], Any], invokes: Mapping[str, Any] | None = None) -> str:
    """What is said in a preview, before anything is registered."""
    recording = record(program, preview=True, expect=pulumi.RunError, invokes=invokes)
    assert recording.custom == []
    return str(recording.error)


def control_plane(**options: Any) -> Callable[[], dict[str, Any]]:
    def program() -> dict[str, Any]:
        handle = dpd.ControlPlaneHandle.lookup("my-eks", region=REGION, **options)
        keys = ("name", "arn", "version", "oidc_provider_arn", "oidc_issuer", "cluster_security_group_id", "vpc_id", "endpoint")
        return {key: getattr(handle, key) for key in keys}

    return program


def test_an_eks_cluster_is_known_by_name_in_a_preview_already(preview: bool) -> None:
    recording = record(control_plane(), preview=preview)
    assert recording.returned == {
        "name": "my-eks",
        "arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/my-eks",
        "version": "1.33",
        "oidc_provider_arn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{OIDC}",
        "oidc_issuer": OIDC,
        "cluster_security_group_id": "sg-0123456789abcdef0",
        "vpc_id": "vpc-0123456789abcdef0",
        "endpoint": f"https://my-eks.sk1.{REGION}.eks.amazonaws.com",
    }


def test_the_kubernetes_provider_alone_is_registered_and_follows_the_stacks_credentials(preview: bool) -> None:
    config = {"aws:region": REGION, "aws:profile": "team"}
    recording = run_program(control_plane(generation=3), preview=preview, config=config, invokes=INVOKES)
    [provider] = recording.custom
    assert (provider.name, provider.inputs["clusterIdentifier"]) == ("my-eks-kubernetes", "my-eks-3")
    arguments = json.loads(provider.inputs["kubeconfig"])["users"][0]["user"]["exec"]["args"]
    assert arguments[arguments.index("--profile") + 1] == "team"
    assert arguments[arguments.index("--region") + 1] == REGION


def test_lookups_use_the_callers_provider_and_parent(preview: bool) -> None:
    def program() -> None:
        given = aws.Provider("given", region=REGION)
        component = pulumi.ComponentResource("test:index:Parent", "parent")
        dpd.ControlPlaneHandle.lookup(
            "my-eks", region=REGION, make_oidc_provider=True, opts=pulumi.ResourceOptions(parent=component, providers=[given])
        )

    recording = record(program, preview=preview)
    assert {r.name for r in recording.children(recording.named("parent"))} == {"my-eks-oidc", "my-eks-kubernetes"}
    assert recording.named("my-eks-oidc").provider == recording.named("given").urn


def test_an_oidc_provider_is_made_on_request_with_the_accounts_tags(preview: bool) -> None:
    recording = record(control_plane(make_oidc_provider=True, account=ACCOUNT_FACTS), preview=preview)
    oidc = recording.one("OpenIdConnectProvider").inputs
    assert (oidc["url"], oidc["clientIdLists"]) == (ISSUER, ["sts.amazonaws.com"])
    assert oidc["tags"] == ACCOUNT_FACTS.tags
    assert recording.returned["oidc_provider_arn"] == (UNKNOWN if preview else f"arn:aws:iam::{ACCOUNT}:oidc-provider/{OIDC}")


def answer(**changes: Any) -> dict[str, Any]:
    return {GET_CLUSTER: {**ANSWERS.eks_cluster("my-eks"), **changes}}


@pytest.mark.parametrize(
    ("invokes", "said"),
    [
        (answer(version="1.36"), "my-eks runs Kubernetes 1.36; what is to be made in it takes 1.32, 1.33, 1.34, 1.35"),
        (answer(accessConfigs=[{"authenticationMode": "CONFIG_MAP"}]), "my-eks has authentication mode CONFIG_MAP"),
        (
            {GET_ADDON: ANSWERS.eks_addon("my-eks", "vpc-cni", "v1.18.2-eksbuild.1")},
            "vpc-cni of the EKS cluster my-eks: v1.18.2-eksbuild.1",
        ),
    ],
    ids=["version", "authentication mode", "vpc-cni"],
)
def test_an_eks_cluster_that_hyperpod_cannot_join_is_refused(invokes: Mapping[str, Any], said: str) -> None:
    assert said in refusal(control_plane(), invokes)


def test_any_version_passes_where_nothing_is_made_in_it() -> None:
    assert record(control_plane(kubernetes_versions=None), invokes=answer(version="1.37")).returned["version"] == "1.37"


def test_a_self_managed_network_plugin_is_not_asked_for() -> None:
    recording = record(control_plane(self_managed_cni=True))
    assert [token for token, _ in recording.invokes if token == GET_ADDON] == []


def test_an_eks_cluster_from_plain_values_is_asked_nothing(preview: bool) -> None:
    values = ControlPlaneValues(
        version="1.34",
        endpoint="https://x.example",
        certificate_authority="Q0E=",
        oidc_issuer=OIDC,
        cluster_security_group_id="sg-1",
        vpc_id="vpc-1",
    )

    def program() -> dict[str, Any]:
        handle = dpd.ControlPlaneHandle.from_values("their-eks", values, account=ACCOUNT_FACTS)
        return {"arn": handle.arn, "oidc": handle.oidc_provider_arn, "version": handle.version}

    recording = record(program, preview=preview)
    assert recording.invokes == []
    assert recording.returned == {
        "arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/their-eks",
        "oidc": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{OIDC}",
        "version": "1.34",
    }


def network(**subnets: Any) -> Callable[[], Any]:
    return lambda: dpd.NetworkHandle.lookup("vpc-1", region=REGION, zone="us-east-2a", **subnets).gpu_subnet_ids


def test_a_network_by_ids_registers_nothing(preview: bool) -> None:
    recording = record(network(gpu_subnet_ids=["subnet-1"], control_plane_subnet_ids=["subnet-2", "subnet-3"]), preview=preview)
    assert recording.resources == []
    assert recording.returned == ["subnet-1"]


@pytest.mark.parametrize(
    ("subnets", "said"),
    [
        ({"gpu_subnet_ids": ["subnet-1", "subnet-3"]}, "the GPU subnets must be in us-east-2a, and these are not: subnet-3 (us-east-2b)"),
        ({"control_plane_subnet_ids": ["subnet-1", "subnet-2"]}, "EKS needs subnets in two zones"),
    ],
    ids=["gpu zone", "control plane zones"],
)
def test_subnets_in_the_wrong_zones_are_refused(subnets: Mapping[str, Any], said: str) -> None:
    assert said in refusal(network(**subnets))


def test_a_subnet_of_another_vpc_is_refused() -> None:
    elsewhere = {GET_SUBNET: {"id": "subnet-1", "vpcId": "vpc-2", "availabilityZone": "us-east-2a"}}
    assert "the subnet subnet-1 is in vpc-2, not in vpc-1" in refusal(network(gpu_subnet_ids=["subnet-1"]), elsewhere)


def test_a_hyperpod_cluster_by_arn_knows_its_groups(preview: bool) -> None:
    def program() -> dict[str, Any]:
        eks = dpd.ControlPlaneHandle.lookup("my-eks", region=REGION)
        handle = dpd.ClusterHandle.lookup(HYPERPOD, name="hp", control_plane=eks)
        return {"arn": handle.arn, "name": handle.name, "groups": dict(handle.instance_groups)}

    assert record(program, preview=preview).returned == {"arn": HYPERPOD, "name": "hp", "groups": {"gpu": "ml.p5.48xlarge"}}


def test_a_hyperpod_cluster_that_is_not_in_service_is_refused() -> None:
    failed = {GET_HYPERPOD: {"clusterArn": HYPERPOD, "clusterStatus": "Failed", "failureMessage": "no capacity"}}
    assert "is Failed, not InService: no capacity" in refusal(lambda: dpd.ClusterHandle.lookup(HYPERPOD), failed)


def operator(cluster: str, **options: Any) -> Callable[[], dict[str, Any]]:
    def program() -> dict[str, Any]:
        handle = dpd.OperatorHandle.lookup(cluster, region=REGION, **options)
        return {
            "version": handle.addon_version,
            "facts": handle.facts.addon_version,
            "cluster": handle.cluster_name,
            "region": handle.region,
        }

    return program


def test_an_operator_is_found_by_the_hyperpod_clusters_arn_or_name(preview: bool) -> None:
    by_arn = record(operator(HYPERPOD), preview=preview)
    assert by_arn.returned == {"version": "v1.4.0-eksbuild.1", "facts": "v1.4.0-eksbuild.1", "cluster": "abcdefghij12", "region": REGION}
    assert (GET_ADDON, "my-eks") in [(token, asked.get("clusterName")) for token, asked in by_arn.invokes]
    by_name = record(operator("hp", eks_cluster="other-eks"), preview=preview)
    assert {asked["clusterName"] for token, asked in by_name.invokes if token == GET_ADDON} == {"other-eks"}
    same_name = record(operator("hp"), preview=preview)
    assert {asked["clusterName"] for token, asked in same_name.invokes if token == GET_ADDON} == {"hp"}
    assert [r.name for r in same_name.custom] == ["hp-kubernetes"]


def test_an_operator_that_is_older_than_expected_or_serves_another_cluster_is_refused() -> None:
    expects = dpd.OperatorFacts(addon_version="v1.5.0-eksbuild.1")
    assert "is at v1.4.0-eksbuild.1, older than v1.5.0-eksbuild.1" in refusal(operator("my-eks", expects=expects))
    other = {
        GET_ADDON: {
            **ANSWERS.eks_addon("my-eks", ADDON_NAME),
            "configurationValues": json.dumps({"hyperpodClusterArn": HYPERPOD.replace("abcdefghij12", "other")}),
        }
    }
    assert "serves the HyperPod cluster" in refusal(operator(HYPERPOD), other)


def test_what_is_not_there_is_named_without_the_engines_words() -> None:
    def gone(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise RuntimeError("invocation of aws:eks/getCluster:getCluster returned an error: No cluster found for name: my-eks.")

    message = refusal(control_plane(), {GET_CLUSTER: gone})
    assert message.startswith(f"the EKS cluster my-eks in {REGION} was not found: ")
    assert "invocation" not in message
