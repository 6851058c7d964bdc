"""Every endpoint that the short form accepts renders to a manifest that the CRD takes, and every value's origin is known."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from dpd_infra.catalog.crd.validate import validate_document
from dpd_infra.render.endpoint import RenderedManifest, endpoint_context, render_endpoint
from dpd_infra.render.provenance import OriginKind, json_pointer, leaves
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Path
from dpd_infra.spec.inference_endpoint_config import InferenceEndpointConfig
from tests.pure.crd.raw_crd import judge
from tests.pure.endpoint.specs import endpoints

PROPERTY = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

MINIMAL: dict[str, Any] = {"model": {"name": "Llama", "s3": {"bucket": "my-models", "prefix": "llama"}}, "instanceType": "ml.p5.48xlarge"}


def rendered(data: dict[str, Any], name: str = "llama") -> RenderedManifest:
    context = endpoint_context(name, region="us-east-2", addon_version="v1.4.0-eksbuild.1")
    return render_endpoint(name, EndpointSpec.from_yaml_data(data), context)


def spec_of(data: dict[str, Any]) -> dict[str, Any]:
    return rendered(MINIMAL | data).document["spec"]


def at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


@PROPERTY
@given(endpoints())
def test_what_is_rendered_is_valid_by_the_facts_and_by_the_raw_crd(data: dict[str, Any]) -> None:
    document = rendered(data).document
    assert validate_document(document) == []
    assert judge(document) == []


@PROPERTY
@given(endpoints())
def test_the_models_of_the_whole_resource_take_it_and_give_it_back(data: dict[str, Any]) -> None:
    document = rendered(data).document
    assert InferenceEndpointConfig.from_manifest(document).to_manifest() == document


@PROPERTY
@given(endpoints())
@example(MINIMAL | {"worker": {"tensorParallelSize": 1}})
def test_every_leaf_has_an_origin_and_every_origin_points_into_the_file(data: dict[str, Any]) -> None:
    manifest = rendered(data)
    origins = manifest.provenance.origins
    assert set(origins) == {path for path, _ in leaves(manifest.document)}
    file = {"config": {"aws:region": "us-east-2", "dpd-infra:endpoints": {"llama": data}}}
    for path, origin in origins.items():
        written = at(file, origin.path)  # raises where an origin points at nothing
        assert origin.setting[: len(origin.path)] == origin.path or origin.path == ("config", "aws:region")
        if origin.kind is OriginKind.DEFAULT:
            assert origin.source, path
        elif origin.kind is OriginKind.OVERRIDE:
            assert written == at(manifest.document, path)


@PROPERTY
@given(endpoints())
def test_rendering_is_a_function_of_the_endpoint_alone(data: dict[str, Any]) -> None:
    first, second = rendered(data), rendered(copy.deepcopy(data))
    assert list(leaves(first.document)) == list(leaves(second.document))
    assert list(first.provenance.origins.items()) == list(second.provenance.origins.items())


@PROPERTY
@given(endpoints())
def test_to_the_colocated_twin_and_back_loses_nothing(data: dict[str, Any]) -> None:
    apart = {**data, "disaggregated": True, "colocated": {**data.get("colocated", {}), "gpus": 8}}
    spec = EndpointSpec.from_yaml_data(apart)
    twin = spec.model_copy(update={"disaggregated": False})
    back = twin.model_copy(update={"disaggregated": True})
    context = endpoint_context("llama", region="us-east-2", addon_version="v1.4.0-eksbuild.1")
    assert render_endpoint("llama", back, context) == render_endpoint("llama", spec, context)
    document = render_endpoint("llama", twin, context).document
    assert "pdSpec" not in document["spec"]
    assert judge(document) == []


@pytest.mark.parametrize(
    ("said", "value", "place", "written"),
    [
        ("namespace", "team-a", "metadata.namespace", "team-a"),
        ("endpointName", "", "spec.endpointName", ""),
        ("model.version", "7", "spec.modelVersion", "7"),
        ("model.prefetch", True, "spec.modelSourceConfig.prefetchEnabled", True),
        ("invocationEndpoint", "v1/completions", "spec.invocationEndpoint", "v1/completions"),
        ("prefill.replicas", 3, "spec.pdSpec.prefillSpec.replicas", 3),
        ("decode.replicas", 2, "spec.pdSpec.decodingSpec.replicas", 2),
        ("prefill.args", ["--max-num-seqs", "16"], "spec.pdSpec.prefillSpec.args", ["--max-num-seqs", "16"]),
        ("decode.gpus", 4, "spec.pdSpec.decodingSpec.resources.requests", {"nvidia.com/gpu": "4"}),
        (
            "decode.resources",
            {"requests": {"cpu": 90}},
            "spec.pdSpec.decodingSpec.resources",
            {"requests": {"nvidia.com/gpu": "8", "cpu": 90}, "limits": {"nvidia.com/gpu": "8"}},
        ),
        ("prefill.autoscaling", {"maxReplicaCount": 3}, "spec.pdSpec.autoScalingSpec", {"prefillAutoScaling": {"maxReplicaCount": 3}}),
        ("decode.autoscaling", {"maxReplicaCount": 3}, "spec.pdSpec.autoScalingSpec", {"decodingAutoScaling": {"maxReplicaCount": 3}}),
        ("routing.threshold", 0, "spec.pdSpec.routingThreshold", 0),
        ("routing.strategy", "kvaware", "spec.intelligentRoutingSpec.routingStrategy", "kvaware"),
        ("routing.autoscaling", {"minReplicaCount": 2}, "spec.intelligentRoutingSpec.autoScalingSpec", {"minReplicaCount": 2}),
        ("cache.l1", False, "spec.kvCacheSpec", {"enableL1Cache": False}),
        (
            "cache.l2",
            {"backend": "redis", "url": "redis://cache:6379"},
            "spec.kvCacheSpec",
            {
                "enableL1Cache": True,
                "enableL2Cache": True,
                "l2CacheSpec": {"l2CacheBackend": "redis", "l2CacheLocalUrl": "redis://cache:6379"},
            },
        ),
        ("cache.pdBufferBytes", 2**34, "spec.worker.environmentVariables.1", {"name": "PD_BUFFER_SIZE", "value": "17179869184"}),
        (
            "placement",
            {"sameZone": True, "zone": "us-east-2a", "placementGroup": "near"},
            "spec.pdSpec.topologySpec",
            {"sameAZ": True, "availabilityZone": "us-east-2a", "placementGroup": "near"},
        ),
        ("worker.port", 9000, "spec.worker.modelInvocationPort.containerPort", 9000),
        ("worker.gpuMemoryUtilization", 0.9, "spec.worker.args.11", "0.9"),
        ("worker.args", ["--enforce-eager"], "spec.worker.args.12", "--enforce-eager"),
        ("worker.mountPath", "/models", "spec.worker.args.1", "/models"),
        ("worker.resources.requests", {"cpu": "64"}, "spec.worker.resources.requests.cpu", "64"),
        ("worker.requestLimits", {"maxConcurrentRequests": 64}, "spec.worker.requestLimits", {"maxConcurrentRequests": 64}),
        ("worker.probes", {"startupProbe": {"failureThreshold": 90}}, "spec.worker.probes", {"startupProbe": {"failureThreshold": 90}}),
        ("loadBalancer.algorithm", "round_robin", "spec.loadBalancer.routingAlgorithm", "round_robin"),
        ("metrics.port", 8000, "spec.metrics.modelMetrics", {"port": 8000}),
        ("metrics.scrapeIntervalSeconds", 30, "spec.metrics.metricsScrapeIntervalSeconds", 30),
        ("dns.hostedZoneId", "Z1", "spec.dnsConfig", {"hostedZoneId": "Z1"}),
        (
            "tls",
            {"certificateArn": "arn:aws:acm:us-east-2:123456789012:certificate/0a", "domainName": "llm.example.com"},
            "spec.tlsConfig.customCertificateConfig",
            {"acmArn": "arn:aws:acm:us-east-2:123456789012:certificate/0a", "domainName": "llm.example.com"},
        ),
        ("dataCapture", {"modelPod": {"enabled": True}}, "spec.dataCapture", {"modelPod": {"enabled": True}}),
        ("serviceAccount", "reader", "spec.kubernetes.serviceAccountName", "reader"),
        ("tags", {"team": "a"}, "spec.tags", [{"name": "team", "value": "a"}]),
        ("annotations", {"a": "b"}, "metadata.annotations", {"a": "b"}),
        ("nothing", ..., "spec.pdSpec.topologySpec", ...),
    ],
)
def test_what_is_said_stands_at_its_place_in_the_manifest(said: str, value: Any, place: str, written: Any) -> None:
    data: dict[str, Any] = copy.deepcopy(MINIMAL)
    if value is not ...:
        *way, last = said.split(".")
        holder = data
        for step in way:
            holder = holder.setdefault(step, {})
        holder[last] = value
    found: Any = rendered(data).document
    for step in place.split("."):
        found = found[int(step)] if isinstance(found, list) else found.get(step, ...)
    assert found == written


def test_the_colocated_twin_has_the_replicas_of_both_roles_and_nothing_of_dpd() -> None:
    spec = spec_of({"disaggregated": False, "prefill": {"replicas": 3}, "decode": {"replicas": 1}})
    assert spec["replicas"] == 4
    assert "pdSpec" not in spec
    assert [entry["name"] for entry in spec["worker"]["environmentVariables"]] == ["HF_HOME", "PYTHONHASHSEED"]
    assert spec["instanceType"] == "ml.p5.48xlarge"


def test_the_colocated_twin_of_roles_with_groups_may_run_on_the_nodes_of_either() -> None:
    spec = spec_of({"disaggregated": False, "prefill": {"instanceGroup": "front"}, "decode": {"instanceGroup": "back"}})
    assert "instanceType" not in spec
    terms = spec["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    kind = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.p5.48xlarge"]}
    assert [term["matchExpressions"] for term in terms] == [
        [kind, {"key": "sagemaker.amazonaws.com/instance-group-name", "operator": "In", "values": [group]}] for group in ("front", "back")
    ]


def test_a_roles_instance_group_is_a_node_selector() -> None:
    spec = spec_of({"prefill": {"instanceGroup": "front", "nodeSelector": {"team": "a"}}})
    assert spec["pdSpec"]["prefillSpec"]["nodeSelector"] == {"sagemaker.amazonaws.com/instance-group-name": "front", "team": "a"}
    assert "nodeSelector" not in spec["pdSpec"]["decodingSpec"]


@pytest.mark.parametrize(
    ("kind", "efa", "gpus", "devices"),
    [
        ("ml.p5.48xlarge", "documented", 8, None),
        ("ml.p5.48xlarge", "explicit", 8, "32"),
        ("ml.p5en.48xlarge", "explicit", 8, "16"),
        ("ml.p6-b200.48xlarge", "explicit", 8, "8"),
        ("ml.p6-b300.48xlarge", "explicit", 8, "16"),
        ("ml.p5.48xlarge", "fraction", 4, "16"),
        ("ml.p6-b200.48xlarge", "fraction", 2, "2"),
    ],
)
def test_roles_ask_for_efa_as_the_endpoint_says(kind: str, efa: str, gpus: int, devices: str | None) -> None:
    spec = spec_of({"instanceType": kind, "efa": efa, "prefill": {"gpus": gpus}})
    resources = spec["pdSpec"]["prefillSpec"]["resources"]
    wanted = {"nvidia.com/gpu": str(gpus)} | ({"vpc.amazonaws.com/efa": devices} if devices else {})
    assert resources == {"limits": wanted, "requests": wanted}


def test_the_tensor_parallel_size_follows_the_roles_gpus() -> None:
    args = spec_of({"prefill": {"gpus": 4}, "decode": {"gpus": 4}})["worker"]["args"]
    assert args[args.index("--tensor-parallel-size") + 1] == "4"


def test_environment_replaces_adds_and_leaves_out_by_name() -> None:
    secret = {"secretKeyRef": {"name": "keys", "key": "api"}}
    spec = spec_of({"worker": {"environment": {"HF_HOME": "/data", "PYTHONHASHSEED": None, "API_KEY": secret}}})
    assert spec["worker"]["environmentVariables"] == [
        {"name": "HF_HOME", "value": "/data"},
        {"name": "PD_BUFFER_SIZE", "value": "8589934592"},
        {"name": "LMCACHE_SAVE_DECODE_CACHE", "value": "False"},
        {"name": "API_KEY", "valueFrom": secret},
    ]


def test_kueue_is_written_as_labels() -> None:
    document = rendered(MINIMAL | {"labels": {"team": "a"}, "kueue": {"queueName": "team-a", "priorityClass": "inference"}}).document
    assert document["metadata"]["labels"] == {
        "team": "a",
        "kueue.x-k8s.io/queue-name": "team-a",
        "kueue.x-k8s.io/priority-class": "inference",
    }
    assert "annotations" not in document["metadata"]


@pytest.mark.parametrize(
    ("model", "source"),
    [
        (
            {"fsx": {"fileSystemId": "fs-1", "dnsName": "fs-1.fsx"}, "location": "llama"},
            {"modelSourceType": "fsx", "modelLocation": "llama", "fsxStorage": {"fileSystemId": "fs-1", "dnsName": "fs-1.fsx"}},
        ),
        (
            {"huggingFace": {"modelId": "a/b", "revision": "0" * 40, "token": {"secretName": "hf", "key": "value"}}},
            {
                "modelSourceType": "huggingface",
                "huggingFaceModel": {"modelId": "a/b", "commitSHA": "0" * 40, "tokenSecretRef": {"name": "hf", "key": "value"}},
            },
        ),
        (
            {"huggingFace": {"modelId": "a/b", "token": {"configKey": "dpd-infra:token"}}},
            {
                "modelSourceType": "huggingface",
                "huggingFaceModel": {"modelId": "a/b", "tokenSecretRef": {"name": "llama-hugging-face-token", "key": "token"}},
            },
        ),
        (
            {"s3": {"bucket": "other", "region": "eu-north-1"}},
            {"modelSourceType": "s3", "s3Storage": {"bucketName": "other", "region": "eu-north-1"}},
        ),
    ],
)
def test_each_source_of_a_model(model: dict[str, Any], source: dict[str, Any]) -> None:
    assert spec_of({"model": {"name": "Llama", **model}})["modelSourceConfig"] == source


def test_a_volume_source_takes_the_name_of_the_workers_volume() -> None:
    model = {"name": "Llama", "kubernetesVolume": {"volume": {"persistentVolumeClaim": {"claimName": "weights"}}}}
    spec = spec_of({"model": model, "worker": {"volumeName": "weights"}})
    assert spec["kubernetes"]["volumes"] == [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}]
    assert spec["worker"]["modelVolumeMount"]["name"] == "weights"


def test_the_deploy_time_is_written_only_where_it_is_said() -> None:
    assert "maxDeployTimeInSeconds" not in spec_of({})
    assert spec_of({"timeouts": {"deployMinutes": 90}})["maxDeployTimeInSeconds"] == 5400


def test_the_idle_timeout_is_a_field_of_operator_3_3() -> None:
    document = rendered(MINIMAL | {"loadBalancer": {"idleTimeoutSeconds": 300}}).document
    assert [problem.pointer for problem in validate_document(document, "3.2")] == ["/spec/loadBalancer/idleTimeoutSeconds"]
    assert validate_document(document, "3.3") == []


def test_a_json_pointer_escapes_its_steps() -> None:
    assert json_pointer(("requests", "nvidia.com/gpu", 0, "a~b")) == "/requests/nvidia.com~1gpu/0/a~0b"


def test_a_place_where_nothing_stands_has_the_origin_of_what_is_around_it() -> None:
    provenance = rendered(MINIMAL | {"routing": {"threshold": 1}}).provenance
    origin = provenance.of(("spec", "pdSpec", "routingThreshold", "x"))
    assert origin is not None
    assert origin.path[3:] == ("routing", "threshold")
    whole = provenance.of(("spec", "pdSpec"))
    assert whole is not None
    assert whole.setting[3:] == ("prefill", "replicas")
