"""The short form refuses a bad value where it stands."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dpd_infra.catalog.images import DPD_IMAGE_PARTS, HYPERPOD_VLLM, LMCACHE_VLLM, worker_image
from dpd_infra.plan.endpoint_names import (
    NAME_AND_NAMESPACE_LIMIT,
    role_deployment_names,
    router_deployment_name,
    routing_service_name,
    routing_service_url,
)
from dpd_infra.spec.endpoint import EndpointSpec
from tests.pure.endpoint.test_render import MINIMAL


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"routing": {"threshold": -1}}, ("routing", "threshold")),
        ({"routing": {"threshold": "4096"}}, ("routing", "threshold")),
        ({"routing": {"strategy": "prefix"}}, ("routing", "strategy")),
        ({"prefill": {"replicas": 0}}, ("prefill", "replicas")),
        ({"prefill": {"replicas": True}}, ("prefill", "replicas")),
        ({"decode": {"image": "other"}}, ("decode", "image")),
        ({"instanceType": "p5.48xlarge"}, ("instanceType",)),
        ({"worker": {"gpuMemoryUtilization": 1.5}}, ("worker", "gpuMemoryUtilization")),
        ({"worker": {"gpu_memory_utilization": 0.5}}, ("worker", "gpu_memory_utilization")),
        ({"worker": {"environment": {"PYTHONHASHSEED": 0}}}, ("worker", "environment", "PYTHONHASHSEED")),
        ({"worker": {"environment": {"PD_BUFFER_SIZE": "1"}}}, ("worker",)),
        ({"endpointName": "-bad"}, ("endpointName",)),
        ({"namespace": "Team A"}, ("namespace",)),
        ({"cache": {"l2": {"backend": "disk"}}}, ("cache", "l2", "backend")),
        ({"dns": {"hostedZoneId": "123"}}, ("dns", "hostedZoneId")),
        ({"silence": [{"rule": "DPD014"}]}, ("silence", 0, "reason")),
        ({"model": {"name": "Llama", "huggingFace": {"modelId": "a/b", "revision": "main"}}}, ("model", "huggingFace", "revision")),
        ({"model": {"name": "Llama", "huggingFace": {"modelId": "a/b", "token": {"secretName": "x"}}}}, ("model", "huggingFace", "token")),
        ({"model": {"name": "Llama"}}, ("model",)),
        ({"model": {"name": "Llama", "s3": {"bucket": "my-models"}, "fsx": {"fileSystemId": "fs"}}}, ("model",)),
        ({"model": {"name": "Llama", "s3": {"bucket": "my-models"}, "location": "x"}}, ("model",)),
        ({"model": {"name": "Llama", "s3": {"bucket": "s3://my-models"}}}, ("model", "s3", "bucket")),
        ({"instanceTypes": ["ml.p5e.48xlarge"]}, ()),
        ({"instanceType": None}, ()),
        ({"overrides": {"metadata": {"name": "other"}}}, ()),
        ({"overrides": {"metadata": None}}, ()),
        ({"overrides": {"kind": "Pod"}}, ()),
        ({"overrides": {"status": {}}}, ()),
        ({"disaggregated": False, "instanceType": "ml.unknown.large"}, ()),
        ({"efa": "explicit", "instanceType": "ml.unknown.large"}, ()),
    ],
)
def test_a_bad_value_is_reported_where_it_stands(data: dict[str, Any], place: tuple[str | int, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        EndpointSpec.from_yaml_data(MINIMAL | data)
    assert place in [error["loc"][: len(place)] for error in caught.value.errors()]
    assert all(error["loc"][: len(place)] == place for error in caught.value.errors())


@pytest.mark.parametrize(
    "overrides", [{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"annotations": None}}, {"spec": {"replicas": 2}}]
)
def test_other_parts_of_the_manifest_may_be_overridden(overrides: dict[str, Any]) -> None:
    assert EndpointSpec.from_yaml_data(MINIMAL | {"overrides": overrides}).overrides == overrides


def test_what_was_written_comes_back_as_yaml_data() -> None:
    data = MINIMAL | {
        "routing": {"threshold": 0},
        "worker": {"environment": {"A": None}, "imageHolds": ["vllm", "efa"]},
        "prefill": {"args": ["--enforce-eager"]},
    }
    assert EndpointSpec.from_yaml_data(data).to_yaml_data() == data


def test_both_documented_images_hold_all_that_dpd_needs() -> None:
    for image in (HYPERPOD_VLLM, LMCACHE_VLLM):
        assert worker_image(image.reference) == image
        assert image.holds == DPD_IMAGE_PARTS
        assert (image.vllm, image.lmcache, image.nixl) == ("0.19.0", "0.4.3", "1.0.0")
    assert worker_image("example.com/own:1") is None


def test_the_operators_names_are_those_of_the_guide() -> None:
    assert role_deployment_names("dpd-test").prefill == "prefill-dpd-test"
    assert role_deployment_names("dpd-test").decode == "decode-dpd-test"
    assert router_deployment_name("dpd-test", "default") == "dpd-test-default-router"
    assert (
        routing_service_url("dpd-test", "default", "v1/chat/completions")
        == "http://dpd-test-default-routing-service.hyperpod-inference-system.svc.cluster.local:443/v1/chat/completions"
    )


def test_a_name_and_namespace_of_46_characters_make_a_service_name_of_63() -> None:
    name, namespace = "n" * 30, "s" * 16
    assert len(name) + len(namespace) == NAME_AND_NAMESPACE_LIMIT
    assert len(routing_service_name(name, namespace)) == 63
