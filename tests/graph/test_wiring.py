"""Wiring by hand: a component takes another one's handle, or the component itself, and says in one line what else it was given."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws_native as aws_native
import pytest

import dpd_infra as dpd
from dpd_infra.plan.project import Project, use_project
from tests.conftest import ROOT
from tests.graph.kit import ACCOUNT_FACTS, network_handle
from tests.graph.recorder import run_program

GROUPS = {"system": dpd.InstanceGroupSpec(instance_type="ml.c5.4xlarge", count=2)}


def by_hand(*, native: aws_native.Provider | None = None) -> dict[str, Any]:
    """Every component, each given the one before it and not its handle."""
    options = pulumi.ResourceOptions(providers=[native]) if native else None
    network: Any = dpd.Network("net", dpd.NetworkSpec(zone="us-east-2a"), account=ACCOUNT_FACTS, cluster_name="eks")
    eks: Any = dpd.ControlPlane("eks", dpd.ControlPlaneSpec(private=True), account=ACCOUNT_FACTS, network=network, default_name="eks")
    with use_project(Project(root=ROOT, chart_required=False)):
        chart = dpd.HyperPodDependencies("chart", dpd.DependenciesSpec(), account=ACCOUNT_FACTS, control_plane=eks)
    cluster: Any = dpd.HyperPodCluster(
        "hyperpod",
        dpd.ClusterSpec(instance_groups=GROUPS),
        account=ACCOUNT_FACTS,
        network=network,
        control_plane=eks,
        dependencies=chart.resources,
        default_name="hyperpod",
        opts=options,
    )
    addons: Any = dpd.NodeAddons("addons", dpd.NodeAddonsSpec(), account=ACCOUNT_FACTS, control_plane=eks, cluster=cluster)
    operator: Any = dpd.InferenceOperator(
        "operator", dpd.OperatorSpec(), account=ACCOUNT_FACTS, network=network, control_plane=eks, cluster=cluster, addons=addons
    )
    spec = dpd.EndpointSpec.from_yaml_data(
        {"model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models"}}, "instanceType": "ml.p5.48xlarge"}
    )
    return {"endpoint": dpd.Endpoint("llama", spec, operator=operator)}


def test_a_component_in_the_place_of_its_handle_is_taken_for_it(preview: bool) -> None:
    recording = run_program(by_hand, preview=preview)
    endpoint = recording.named("llama-config")
    assert recording.depends_path(endpoint, recording.named("hyperpod-cluster"))
    assert recording.depends_path(recording.named("hyperpod-cluster"), recording.named("chart-release"))


def test_without_an_aws_native_provider_one_is_made_for_the_accounts_region(preview: bool) -> None:
    recording = run_program(by_hand, preview=preview)
    provider = recording.one("pulumi:providers:aws-native")
    assert provider.inputs["region"] == ACCOUNT_FACTS.region
    assert recording.named("hyperpod-cluster").provider == provider.urn


def test_the_callers_aws_native_provider_is_the_one_that_is_used(preview: bool) -> None:
    recording = run_program(lambda: by_hand(native=aws_native.Provider("own", region="us-east-2")), preview=preview)
    assert recording.one("pulumi:providers:aws-native").name == "own"
    assert recording.named("hyperpod-cluster").provider == recording.one("pulumi:providers:aws-native").urn


@pytest.mark.parametrize("wrong", [None, "net", network_handle()], ids=["nothing", "a name", "the handle of another kind"])
def test_anything_else_is_named_in_one_line_and_registers_nothing(wrong: Any, preview: bool) -> None:
    def program() -> Any:
        return dpd.NodeAddons("addons", dpd.NodeAddonsSpec(), account=ACCOUNT_FACTS, control_plane=wrong, cluster=wrong)

    recording = run_program(program, preview=preview, expect=pulumi.RunError)
    assert "control_plane takes a ControlPlaneHandle" in str(recording.error)
    assert not recording.custom


@pytest.mark.parametrize("account_id", ["", "1234", "12345678901a", "1234567890123"])
def test_an_account_id_that_is_none_is_refused(account_id: str) -> None:
    with pytest.raises(pulumi.RunError, match="12 digits"):
        dpd.Account(account_id=account_id, region="us-east-2", naming=ACCOUNT_FACTS.naming)


def test_a_platform_name_that_no_bucket_can_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="lower case"):
        dpd.Naming("Hand_X", "dev", "us-east-2")
