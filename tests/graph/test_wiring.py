"""Wiring by hand: a component takes another one's handle, or the component itself, and says in one line what else it was given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws_native as aws_native
import pytest

import dpd_infra as dpd
from dpd_infra.plan.project import Project, use_project
from dpd_infra.testing import Answers
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
    return {"endpoint": dpd.Endpoint("llama", spec, operator=operator), "eks": eks}


def test_a_component_in_the_place_of_its_handle_is_taken_for_it(preview: bool) -> None:
    recording = run_program(by_hand, preview=preview)
    endpoint = recording.named("llama")
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


WITH_HANDLES: dict[str, Callable[[Any], Any]] = {
    "ControlPlane": lambda wrong: dpd.ControlPlane(
        "x", dpd.ControlPlaneSpec(private=True), account=ACCOUNT_FACTS, network=wrong, default_name="x"
    ),
    "Endpoint": lambda wrong: dpd.Endpoint("x", None, operator=wrong),  # pyright: ignore[reportArgumentType]
    "EndpointClients": lambda wrong: dpd.EndpointClients("x", endpoint=None, control_plane=wrong, account=ACCOUNT_FACTS),  # pyright: ignore[reportArgumentType]
    "GpuSubnet": lambda wrong: dpd.GpuSubnet("x", dpd.NetworkSpec(zone="us-east-2a"), account=ACCOUNT_FACTS, control_plane=wrong),
    "HyperPodCluster": lambda wrong: dpd.HyperPodCluster(
        "x",
        dpd.ClusterSpec(instance_groups=GROUPS),
        account=ACCOUNT_FACTS,
        network=wrong,
        control_plane=wrong,
        dependencies=(),
        default_name="x",
    ),
    "HyperPodDependencies": lambda wrong: dpd.HyperPodDependencies("x", dpd.DependenciesSpec(), account=ACCOUNT_FACTS, control_plane=wrong),
    "InferenceOperator": lambda wrong: dpd.InferenceOperator(
        "x", dpd.OperatorSpec(), account=ACCOUNT_FACTS, network=None, control_plane=wrong, cluster=wrong, addons=wrong
    ),
    "ModelStore": lambda wrong: dpd.ModelStore("x", dpd.ModelStoreSpec(), account=ACCOUNT_FACTS, control_plane=wrong),
    "NodeAddons": lambda wrong: dpd.NodeAddons("x", dpd.NodeAddonsSpec(), account=ACCOUNT_FACTS, control_plane=wrong, cluster=wrong),
    "Teams": lambda wrong: dpd.Teams("x", {}, account=ACCOUNT_FACTS, control_plane=wrong),
    "ClusterHandle.lookup": lambda wrong: dpd.ClusterHandle.lookup(CLUSTER_ARN, control_plane=wrong),
    "AddonsHandle.lookup": lambda wrong: dpd.AddonsHandle.lookup(wrong, ["coredns"], region="us-east-2"),
    "NetworkHandle.joined_to": lambda wrong: network_handle().joined_to(wrong),
}
"""Everything public that takes a handle, given something else."""
CLUSTER_ARN = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghij12"


def test_everything_public_that_takes_a_handle_is_tried() -> None:
    def takes_one(function: Any) -> bool:
        return any("Handle" in str(each.annotation) for name, each in inspect.signature(function).parameters.items() if name != "self")

    public = {name: getattr(dpd, name) for name in dpd.__all__}
    found = {name for name, each in public.items() if isinstance(each, type) and takes_one(each.__init__) and not name.endswith("Handle")}
    for name, each in public.items():
        if name.endswith("Handle"):
            methods = [method for method in vars(each) if not method.startswith("_") and callable(getattr(each, method))]
            found |= {f"{name}.{method}" for method in methods if takes_one(getattr(each, method))}
    assert found - {"Platform"} == set(WITH_HANDLES)


@pytest.mark.parametrize("wrong", ["net", 3, object()], ids=["a name", "a number", "anything"])
@pytest.mark.parametrize("what", WITH_HANDLES)
def test_what_is_no_handle_is_refused_in_one_line_by_everything_that_takes_one(what: str, wrong: Any) -> None:
    def program() -> Any:
        with use_project(Project(root=ROOT, chart_required=False)):
            return WITH_HANDLES[what](wrong)

    invokes = {"aws-native:sagemaker:getCluster": Answers().hyperpod_cluster(CLUSTER_ARN, "eks")}
    recording = run_program(program, expect=pulumi.RunError, invokes=invokes, preview=False)
    assert f"Handle, the `.handle` of the component it comes from, not {type(wrong).__name__}" in str(recording.error)
    assert not recording.custom


def test_clients_of_an_endpoint_take_the_control_plane_itself(preview: bool) -> None:
    def program() -> None:
        made = by_hand()
        eks = made["eks"]
        dpd.EndpointClients("clients", endpoint=made["endpoint"], control_plane=eks, account=ACCOUNT_FACTS)
        dpd.Teams("teams", {"search": dpd.TeamSpec()}, account=ACCOUNT_FACTS, control_plane=eks)
        dpd.ModelStore("store", dpd.ModelStoreSpec(), account=ACCOUNT_FACTS, control_plane=eks)

    groups = {"aws:ec2/getSecurityGroups:getSecurityGroups": {"ids": ["sg-1"], "arns": [], "vpcIds": [], "id": "x", "region": "us-east-2"}}
    recording = run_program(program, preview=preview, invokes=groups)
    if not preview:
        assert recording.depends_path(recording.named("clients-clients"), recording.named("eks-cluster"))
    assert recording.one("Namespace").provider == recording.one("pulumi:providers:kubernetes").urn


@pytest.mark.parametrize("account_id", ["", "1234", "12345678901a", "1234567890123"])
def test_an_account_id_that_is_none_is_refused(account_id: str) -> None:
    with pytest.raises(pulumi.RunError, match="12 digits"):
        dpd.Account(account_id=account_id, region="us-east-2", naming=ACCOUNT_FACTS.naming)


def test_a_platform_name_that_no_bucket_can_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="lower case"):
        dpd.Naming("Hand_X", "dev", "us-east-2")
