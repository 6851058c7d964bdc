"""How an endpoint is registered decides how it changes: what replaces it, in which order, and which counts are not its own."""

from __future__ import annotations

from typing import Any

import pulumi_kubernetes as kubernetes
import pytest

import dpd_infra as dpd
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.testing import Recorded, run_program

SHORT: dict[str, Any] = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
    "instanceType": "ml.p5.48xlarge",
}
SCALED = {"autoscaling": {"minReplicaCount": 1, "maxReplicaCount": 2}}


def registered(**more: Any) -> Recorded:
    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}", cluster_identifier="1")
        facts = OperatorFacts(addon_version="v1.4.0-eksbuild.1")
        operator = dpd.OperatorHandle(facts, facts.addon_version, provider, "theirs", "us-east-2", (provider,))
        dpd.Endpoint("llama", EndpointSpec.model_validate(SHORT | more), operator=operator)

    return run_program(program).one("InferenceEndpointConfig")


def test_the_order_of_a_replacement_is_the_modes() -> None:
    assert registered().delete_before_replace is None
    assert registered(change={"mode": "blueGreen", "generation": 2}).delete_before_replace is None
    assert registered(change={"mode": "recreate"}).delete_before_replace is True


def test_the_number_of_recreations_is_what_replaces_it_and_nothing_where_there_was_none() -> None:
    key = "dpd-infra/recreations"
    for change, number in (({"recreations": 2}, "2"), ({"recreations": 0}, None), ({"mode": "blueGreen", "generation": 2}, None)):
        resource = registered(change=change)
        assert resource.inputs["metadata"]["annotations"].get(key) == number
        assert resource.replace_on_changes == (f'metadata.annotations["{key}"]',)
        # With it the Python SDK fails in every stack that has a transform.
        assert resource.replacement_trigger is None


def test_the_resource_keeps_its_place_in_the_state_when_its_name_changes() -> None:
    first, second = registered(), registered(change={"generation": 2})
    assert first.urn == second.urn
    assert (first.inputs["metadata"]["name"], second.inputs["metadata"]["name"]) == ("llama", "llama-g2")


@pytest.mark.parametrize(
    ("more", "ignored"),
    [
        ({}, ()),
        ({"prefill": SCALED}, ("spec.pdSpec.prefillSpec.replicas",)),
        ({"decode": SCALED}, ("spec.pdSpec.decodingSpec.replicas",)),
        ({"disaggregated": False, "colocated": SCALED}, ("spec.replicas",)),
        ({"routing": SCALED}, ()),
    ],
)
def test_only_the_replicas_of_what_is_autoscaled_are_left_to_the_autoscaler(more: dict[str, Any], ignored: tuple[str, ...]) -> None:
    assert registered(**more).ignore_changes == ignored
