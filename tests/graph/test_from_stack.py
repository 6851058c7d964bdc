"""An operator of another stack: what its outputs make, and the one error for what they lack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

import dpd_infra as dpd
from dpd_infra.components.from_stack import NEEDED
from dpd_infra.plan.project import Project, use_project
from dpd_infra.spec.endpoint import EndpointSpec
from tests.conftest import ROOT
from tests.graph.recorder import Recording, run_program

STACK = "organization/platform/prod"
EXPORTED: dict[str, Any] = {
    "region": "us-east-2",
    "zone": "us-east-2a",
    "eksClusterName": "inference",
    "eksEndpoint": "https://x.example",
    "eksCertificateAuthority": "Q0E=",
    "kubernetesIdentifier": "inference-0",
    "hyperPodClusterName": "inference-hp",
    "hyperPodClusterArn": "arn:aws:sagemaker:us-east-2:111122223333:cluster/abc",
    "operatorAddonVersion": "v1.4.0-eksbuild.1",
    "closedNetwork": False,
}
SPEC = EndpointSpec.from_yaml_data(
    {
        "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "llama"}},
        "instanceType": "ml.p5.48xlarge",
    }
)


def record(exported: Mapping[str, Any], *, preview: bool = False, expects: str = "v1.4.0-eksbuild.1", fails: bool = False) -> Recording:
    def program() -> dict[str, Any]:
        operator = dpd.OperatorHandle.from_stack("platform", STACK, expects=dpd.OperatorFacts(addon_version=expects))
        dpd.Endpoint("llama", SPEC, operator=operator)
        return {"version": operator.addon_version, "cluster": operator.cluster_name}

    return run_program(
        program,
        preview=preview,
        config={"aws:region": "us-east-2"},
        stacks={STACK: exported},
        expect=pulumi.RunError if fails else None,
    )


def test_the_platform_exports_all_that_is_needed() -> None:
    def program() -> None:
        spec = dpd.StackSpec.from_file(ROOT / "stacks" / "Pulumi.dev.yaml")
        assert spec.platform is not None
        with use_project(Project(root=ROOT, chart_required=False)):
            platform = dpd.Platform("inference", spec.platform, aws_settings=spec.aws)
        for key, output in platform.outputs.items():
            pulumi.export(key, output)

    exported = run_program(program, preview=False, config={"aws:region": "us-east-2"}).exports
    assert set(NEEDED) <= set(exported)
    assert {key: type(exported[key]) for key in NEEDED} == dict(NEEDED)


def test_an_endpoint_goes_through_the_other_stacks_cluster(preview: bool) -> None:
    recording = record(EXPORTED, preview=preview)
    provider = recording.named("platform-kubernetes")
    assert provider.inputs["clusterIdentifier"] == "inference-0"
    assert json.loads(provider.inputs["kubeconfig"])["clusters"][0]["cluster"]["server"] == "https://x.example"
    assert recording.named("llama").provider == provider.urn
    assert recording.returned == {"version": "v1.4.0-eksbuild.1", "cluster": "inference-hp"}


def test_nothing_of_the_other_stack_is_registered_but_the_reference(preview: bool) -> None:
    recording = record(EXPORTED, preview=preview)
    assert {r.name for r in recording.custom} == {"platform", "platform-kubernetes", "llama"}
    assert recording.named("platform").read


def test_every_missing_and_mistyped_output_is_in_one_error_with_the_stack() -> None:
    exported = {key: value for key, value in EXPORTED.items() if key not in ("eksEndpoint", "closedNetwork")} | {"region": ["us-east-2"]}
    message = str(record(exported, fails=True).error)
    assert STACK in message
    for said in ("eksEndpoint is missing", "closedNetwork is missing", "region is ['us-east-2'], not text"):
        assert said in message
    assert "eksClusterName" not in message


def test_a_stack_without_outputs_says_all_that_is_needed() -> None:
    message = str(record({}, fails=True).error)
    assert all(f"{key} is missing" in message for key in NEEDED)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"operatorAddonVersion": "v1.3.0-eksbuild.1"}, "is at v1.3.0-eksbuild.1, older than v1.4.0-eksbuild.1"),
        ({"operatorAddonVersion": "latest"}, "operatorAddonVersion: 'latest' is not an add-on version"),
        ({"region": "us-west-2"}, "it is in us-west-2, this stack in us-east-2"),
        ({"closedNetwork": True}, "its network is closed"),
    ],
    ids=["older", "malformed", "region", "closed"],
)
def test_a_stack_that_is_not_what_was_promised_stops_the_manifest(change: Mapping[str, Any], said: str) -> None:
    recording = record({**EXPORTED, **change}, fails=True)
    assert said in str(recording.error)
    assert [r for r in recording.custom if r.name == "llama"] == []


def test_a_newer_operator_than_promised_is_taken() -> None:
    assert record({**EXPORTED, "operatorAddonVersion": "v1.5.0-eksbuild.1"}).returned["version"] == "v1.5.0-eksbuild.1"
