"""`dpd render` and `dpd schema`: the published example comes out field for field, and editors get the schema that stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dpd_infra.stack_schema import stack_file_schema
from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "llama_70b_two_p5" / "Pulumi.dev.yaml"

GPUS = {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
WORKER = {"cpu": "96", "memory": "1024Gi", "nvidia.com/gpu": "8"}

ARGUMENTS = "--model /opt/ml/model --host 0.0.0.0 --port 8000 --tensor-parallel-size 8 --max-model-len 16384 --gpu-memory-utilization 0.75"

# DPD guide: Llama 3.3 70B on two ml.p5.48xlarge. Bucket and region are the user's.
PUBLISHED: dict[str, Any] = {
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
            "prefillSpec": {"replicas": 1, "resources": GPUS},
            "decodingSpec": {"replicas": 1, "resources": GPUS},
            "routingThreshold": 4096,
        },
        "worker": {
            "image": "public.ecr.aws/deep-learning-containers/vllm:server-hyperpod-cuda-v1.1",
            "args": ARGUMENTS.split(),
            "modelInvocationPort": {"containerPort": 8000, "name": "http"},
            "modelVolumeMount": {"name": "model-weights", "mountPath": "/opt/ml/model"},
            "resources": {"requests": WORKER, "limits": WORKER},
            "environmentVariables": [
                {"name": "HF_HOME", "value": "/tmp/hf_home"},
                {"name": "PD_BUFFER_SIZE", "value": "8589934592"},
                {"name": "LMCACHE_SAVE_DECODE_CACHE", "value": "False"},
                {"name": "PYTHONHASHSEED", "value": "0"},
            ],
        },
    },
}


def dpd(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpd_infra", *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


def test_the_example_folder_renders_to_the_published_manifest() -> None:
    done = dpd("render", str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout) == PUBLISHED


def test_the_example_asks_for_no_more_than_name_source_type_replicas_threshold_and_strategy() -> None:
    [endpoint] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["config"]["dpd-infra:endpoints"].values()
    assert set(endpoint) == {"model", "instanceType", "prefill", "decode", "routing"}


def test_json_says_where_every_value_comes_from() -> None:
    data = json.loads(dpd("render", str(EXAMPLE), "--json").stdout)["endpoints"]["dpd-test"]
    assert data["manifest"] == PUBLISHED
    threshold = data["provenance"]["/spec/pdSpec/routingThreshold"]
    assert threshold["kind"] == "file"
    assert threshold["path"] == ["config", "dpd-infra:endpoints", "dpd-test", "routing", "threshold"]
    defaults = [origin for origin in data["provenance"].values() if origin["kind"] == "default"]
    assert defaults
    assert all(origin["source"] for origin in defaults)


def test_one_endpoint_of_several() -> None:
    done = dpd("render", "stacks/Pulumi.prod.yaml", "--endpoint", "qwen-72b-chat")
    assert [document["metadata"]["name"] for document in yaml.safe_load_all(done.stdout)] == ["qwen-72b-chat"]
    assert len(list(yaml.safe_load_all(dpd("render", "stacks/Pulumi.prod.yaml").stdout))) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("render", "no-such-file.yaml"),
        ("render", "stacks"),
        ("render", "stacks/Pulumi.dev.yaml", "--endpoint", "nobody"),
        ("render",),
        ("nonsense",),
    ],
)
def test_wrong_usage_ends_with_2_and_one_message(arguments: tuple[str, ...]) -> None:
    done = dpd(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_the_schema_that_stack_files_point_to_is_the_one_that_stands() -> None:
    kept = json.loads((ROOT / "stacks" / "stack.schema.json").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(stack_file_schema())), "run `make schema`"
    assert json.loads(dpd("schema").stdout) == kept


@pytest.mark.parametrize(
    "path", [*sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), *sorted((ROOT / "examples").glob("*/Pulumi.*.yaml"))], ids=str
)
def test_every_shipped_stack_file_fits_the_schema_and_points_to_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.split("=", 1)[1]).resolve() == ROOT / "stacks" / "stack.schema.json"
    jsonschema.validate(yaml.safe_load(text), stack_file_schema(), cls=jsonschema.Draft202012Validator)


def test_the_schema_is_a_schema_and_refuses_an_unknown_key() -> None:
    schema = stack_file_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    wrong = {"config": {"dpd-infra:endpoints": {"a": {"modle": {}}}}}
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(wrong))
