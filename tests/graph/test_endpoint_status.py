"""What the operator says of an endpoint ends a deployment, is warned of, or lets it go on; a preview is never kept from anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

import dpd_infra as dpd
from tests.graph.recorder import UNKNOWN, Recording, run_program

RESOURCE = "InferenceEndpointConfig"
REASON = "model not found in s3://my-models/llama"


def condition(status: str, message: str) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "reason": "Reconciled", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def deployed(status: Mapping[str, Any], *, preview: bool = False, expect: type[BaseException] | None = None) -> Recording:
    """An endpoint whose operator says so, and something that takes its URL."""

    def program() -> dict[str, Any]:
        operator = dpd.OperatorHandle(
            facts=dpd.OperatorFacts(addon_version="v1.4.0-eksbuild.1"),
            addon_version="v1.4.0-eksbuild.1",
            kubernetes_provider=kubernetes.Provider("kubernetes", kubeconfig="{}"),
            cluster_name="hp",
            region="us-east-2",
        )
        data = {"model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models"}}, "instanceType": "ml.p5.48xlarge"}
        endpoint = dpd.Endpoint("llama", dpd.EndpointSpec.from_yaml_data(data), operator=operator)
        return {"url": endpoint.url, "endpoint": endpoint.endpoint_name}

    def outputs(type_: str, _name: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": status} if type_.endswith(RESOURCE) else {}

    return run_program(program, preview=preview, outputs=outputs, expect=expect)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"conditions": [condition("False", REASON)]}, REASON),
        ({"deploymentStatus": {"message": "0/2 nodes are available"}}, "0/2 nodes are available"),
        (
            {"deploymentStatus": {"reason": "ProgressDeadlineExceeded"}, "conditions": [condition("True", "not this")]},
            "ProgressDeadlineExceeded",
        ),
        ({}, "no more than that"),
    ],
)
def test_a_failed_deployment_ends_the_program_in_the_operators_words(said: dict[str, Any], words: str) -> None:
    recording = deployed({"state": "DeploymentFailed", **said}, expect=pulumi.RunError)
    assert f"endpoint llama: the operator says DeploymentFailed: {words}." in str(recording.error)
    assert "not this" not in str(recording.error)
    assert "pulumi up --refresh" in str(recording.error)
    assert recording.of_type(RESOURCE)


def test_what_is_still_going_on_is_warned_of() -> None:
    recording = deployed({"state": "DeploymentInProgress"})
    assert [text for text in recording.warnings() if "the operator says DeploymentInProgress" in text]


@pytest.mark.parametrize("status", [{"state": "DeploymentComplete"}, {}])
def test_what_serves_and_what_says_nothing_is_let_through(status: dict[str, Any]) -> None:
    recording = deployed(status)
    assert recording.returned["url"].startswith("http://")
    assert [text for text in recording.warnings() if "the operator says" in text] == []


def test_a_preview_of_a_failed_endpoint_shows_what_would_be_done() -> None:
    recording = deployed({"state": "DeploymentFailed"}, preview=True)
    assert recording.one(RESOURCE).inputs["spec"]["modelName"] == "Llama-3.3-70B-Instruct"
    assert recording.returned["url"] is not UNKNOWN
