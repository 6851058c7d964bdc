"""The DPD guide's own manifest comes out of the short form field for field."""

from __future__ import annotations

from dpd_infra.render.endpoint import endpoint_context, render_endpoint
from dpd_infra.render.provenance import OriginKind
from dpd_infra.spec.endpoint import EndpointSpec

EIGHT_GPUS = {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}

PUBLISHED = {
    "apiVersion": "inference.sagemaker.aws.amazon.com/v1",
    "kind": "InferenceEndpointConfig",
    "metadata": {"name": "dpd-test", "namespace": "default"},
    "spec": {
        "endpointName": "dpd-test",
        "instanceType": "ml.p5.48xlarge",
        "invocationEndpoint": "v1/chat/completions",
        "modelName": "Llama-3.3-70B-Instruct",
        "modelSourceConfig": {
            "modelSourceType": "s3",
            "modelLocation": "Llama-3.3-70B-Instruct",
            "s3Storage": {"bucketName": "my-models", "region": "us-east-2"},
        },
        "loadBalancer": {"healthCheckPath": "/health"},
        "metrics": {"enabled": True},
        "kvCacheSpec": {"enableL1Cache": True},
        "intelligentRoutingSpec": {"enabled": True, "routingStrategy": "prefixaware"},
        "pdSpec": {
            "prefillSpec": {"replicas": 1, "resources": EIGHT_GPUS},
            "decodingSpec": {"replicas": 1, "resources": EIGHT_GPUS},
            "routingThreshold": 4096,
        },
        "worker": {
            "image": "public.ecr.aws/deep-learning-containers/vllm:server-hyperpod-cuda-v1.1",
            "args": [
                *("--model", "/opt/ml/model", "--host", "0.0.0.0", "--port", "8000"),
                *("--tensor-parallel-size", "8", "--max-model-len", "16384", "--gpu-memory-utilization", "0.75"),
            ],
            "modelInvocationPort": {"containerPort": 8000, "name": "http"},
            "modelVolumeMount": {"name": "model-weights", "mountPath": "/opt/ml/model"},
            "resources": {
                "requests": {"cpu": "96", "memory": "1024Gi", "nvidia.com/gpu": "8"},
                "limits": {"cpu": "96", "memory": "1024Gi", "nvidia.com/gpu": "8"},
            },
            "environmentVariables": [
                {"name": "HF_HOME", "value": "/tmp/hf_home"},
                {"name": "PD_BUFFER_SIZE", "value": "8589934592"},
                {"name": "LMCACHE_SAVE_DECODE_CACHE", "value": "False"},
                {"name": "PYTHONHASHSEED", "value": "0"},
            ],
        },
    },
}

SHORT_FORM = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
    "instanceType": "ml.p5.48xlarge",
    "prefill": {"replicas": 1},
    "decode": {"replicas": 1},
    "routing": {"threshold": 4096, "strategy": "prefixaware"},
}

CONTEXT = endpoint_context("dpd-test", region="us-east-2", addon_version="v1.4.0-eksbuild.1")


def test_the_short_form_renders_to_the_published_manifest() -> None:
    assert render_endpoint("dpd-test", EndpointSpec.from_yaml_data(SHORT_FORM), CONTEXT).document == PUBLISHED


def test_every_default_of_the_published_manifest_names_its_source() -> None:
    rendered = render_endpoint("dpd-test", EndpointSpec.from_yaml_data(SHORT_FORM), CONTEXT)
    defaults = {path: origin for path, origin in rendered.provenance.origins.items() if origin.kind is OriginKind.DEFAULT}
    assert defaults
    assert [path for path, origin in defaults.items() if not origin.source] == []


def test_what_the_user_wrote_is_found_at_its_place_in_the_file() -> None:
    rendered = render_endpoint("dpd-test", EndpointSpec.from_yaml_data(SHORT_FORM), CONTEXT)
    origin = rendered.provenance.of(("spec", "pdSpec", "routingThreshold"))
    assert origin is not None
    assert (origin.kind, origin.path) == (OriginKind.FILE, ("config", "dpd-infra:endpoints", "dpd-test", "routing", "threshold"))


def test_the_buckets_region_follows_the_stacks() -> None:
    rendered = render_endpoint("dpd-test", EndpointSpec.from_yaml_data(SHORT_FORM), CONTEXT)
    origin = rendered.provenance.of(("spec", "modelSourceConfig", "s3Storage", "region"))
    assert origin is not None
    assert origin.path == ("config", "aws:region")
