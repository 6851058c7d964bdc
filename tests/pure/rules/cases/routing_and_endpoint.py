"""DPD300 to DPD499: routing, server, source, scaling, names, secrets."""

from __future__ import annotations

from typing import Any

from tests.pure.rules.kit import Case, colocated, drop, endpoint, env, flag, platform, put, raw, stack

CERTIFICATE = "arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012"
ROUTING = "spec|intelligentRoutingSpec"
HUB: dict[str, Any] = {
    "modelSourceType": "huggingface",
    "huggingFaceModel": {"modelId": "Qwen/Qwen2.5-72B-Instruct", "commitSHA": "0" * 40},
}
GATED = {"modelSourceType": "huggingface", "huggingFaceModel": {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "commitSHA": "0" * 40}}
TOKEN = {"tokenSecretRef": {"name": "hub", "key": "token"}}
PREFILL_SCALING = "spec|pdSpec|autoScalingSpec|prefillAutoScaling"
PROMETHEUS = {
    "serverAddress": "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1",
    "query": "sum(vllm:num_requests_waiting)",
    "targetValue": 4,
}
CLOUDWATCH = {"namespace": "AWS/SageMaker", "metricName": "Invocations", "targetValue": 4}


def scaling(**changes: Any) -> dict[str, Any]:
    """Autoscaling of one pod at most, so that other rules have nothing to say."""
    return {"maxReplicaCount": 1, "prometheusTrigger": PROMETHEUS, **changes}


def volumes(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": "weights"}}]}


CASES = (
    Case(
        "DPD301",
        raw(put(f"{ROUTING}|routingStrategy", "kvaware")),
        raw(put(f"{ROUTING}|routingStrategy", "kvaware"), put("spec|invocationEndpoint", "/v1/completions")),
    ),
    Case(
        "DPD302",
        raw(put("spec|pdSpec|prefillSpec|replicas", 2)),
        raw(put("spec|pdSpec|prefillSpec|replicas", 2), put(f"{ROUTING}|routingStrategy", "session")),
    ),
    Case("DPD303", raw(put("spec|pdSpec|routingThreshold", 16384)), raw(put("spec|pdSpec|routingThreshold", 16383))),
    Case("DPD304", raw(put("spec|pdSpec|routingThreshold", 0)), raw(put("spec|pdSpec|routingThreshold", 1))),
    Case("DPD305", raw(put("spec|pdSpec|routingThreshold", 3999)), raw(put("spec|pdSpec|routingThreshold", 4000))),
    Case(
        "DPD306",
        raw(put("spec|inferenceGateway|enabled", True), operator="v2.1.0-eksbuild.1"),
        raw(put("spec|inferenceGateway|enabled", True), put(f"{ROUTING}|enabled", False), operator="v2.1.0-eksbuild.1"),
    ),
    Case(
        "DPD307",
        raw(put("spec|inferenceGateway|enabled", True), drop(ROUTING), operator="v2.1.0-eksbuild.1"),
        raw(put("spec|inferenceGateway|enabled", True), drop(ROUTING), colocated, operator="v2.1.0-eksbuild.1"),
    ),
    Case(
        "DPD308",
        raw(put(f"{ROUTING}|routingStrategy", "kvaware"), put("spec|invocationEndpoint", "v1/completions")),
        raw(
            put(f"{ROUTING}|routingStrategy", "kvaware"),
            put("spec|invocationEndpoint", "v1/completions"),
            put("spec|worker|image", "registry.example.com/vllm:0.20.0"),
        ),
    ),
    Case("DPD309", raw(drop(f"{ROUTING}|enabled")), raw(drop(ROUTING))),
    Case(
        "DPD401",
        raw(put("spec|instanceTypes", ["ml.p5.48xlarge", "ml.p5en.48xlarge"])),
        raw(put("spec|instanceTypes", ["ml.p5.48xlarge", "ml.p5en.48xlarge"]), drop("spec|instanceType")),
    ),
    Case("DPD402", raw(flag("--port", None), put("spec|worker|modelInvocationPort|containerPort", 8080)), raw(flag("--port", None))),
    Case("DPD403", raw(put("spec|metrics|modelMetrics|port", 8080)), raw(put("spec|metrics|modelMetrics|port", 8000))),
    Case("DPD404", raw(), raw(put("spec|metrics|modelMetrics|port", 8000))),
    Case("DPD405", raw(put("spec|loadBalancer|healthCheckPath", "/healthz")), raw(put("spec|loadBalancer|healthCheckPath", "/ping"))),
    Case("DPD406", raw(put("spec|invocationEndpoint", "v1/chat/completion")), raw(put("spec|invocationEndpoint", "/v1/completions"))),
    Case("DPD407", raw(flag("--host", "127.0.0.1")), raw(flag("--host", None))),
    Case("DPD408", raw(flag("--model", "/models/llama")), raw(flag("--model", "/opt/ml/model/llama"))),
    Case(
        "DPD409",
        raw(put("spec|worker|probes", {"readinessProbe": {"httpGet": {"path": "/health", "port": 8080}}})),
        raw(put("spec|worker|probes", {"readinessProbe": {"httpGet": {"path": "/health", "port": "http"}}})),
    ),
    Case(
        "DPD410",
        raw(put("spec|worker|probes", {"livenessProbe": {"httpGet": {"path": "/health", "port": 8000}, "initialDelaySeconds": 60}})),
        raw(put("spec|worker|probes", {"livenessProbe": {"httpGet": {"path": "/health", "port": 8000}, "initialDelaySeconds": 600}})),
    ),
    Case("DPD411", raw(put("spec|maxDeployTimeInSeconds", 600)), raw(put("spec|maxDeployTimeInSeconds", 601))),
    Case(
        "DPD412",
        raw(put("spec|dnsConfig", {"hostedZoneId": "Z1234567890ABC"})),
        raw(
            put("spec|dnsConfig", {"hostedZoneId": "Z1234567890ABC"}),
            put("spec|tlsConfig|customCertificateConfig", {"acmArn": CERTIFICATE, "domainName": "llm.example.com"}),
        ),
    ),
    Case(
        "DPD413",
        stack(endpoint("tls", {"certificateArn": CERTIFICATE.replace("us-east-2", "us-east-1"), "domainName": "llm.example.com"})),
        stack(endpoint("tls", {"certificateArn": CERTIFICATE, "domainName": "llm.example.com"})),
    ),
    Case("DPD420", raw(drop("spec|modelSourceConfig|s3Storage")), raw()),
    Case(
        "DPD421",
        raw(put("spec|modelSourceConfig|fsxStorage", {"fileSystemId": "fs-1"})),
        raw(
            drop("spec|modelSourceConfig|s3Storage"),
            put("spec|modelSourceConfig|modelSourceType", "fsx"),
            put("spec|modelSourceConfig|fsxStorage", {"fileSystemId": "fs-1"}),
        ),
    ),
    Case("DPD422", stack(endpoint("model|s3|region", "us-west-2")), stack(endpoint("model|s3|region", "us-east-2"))),
    Case("DPD423", stack(platform("modelBuckets", ["other-models"])), stack(platform("modelBuckets", ["other-models", "my-models"]))),
    Case(
        "DPD424",
        raw(put("spec|modelSourceConfig", GATED)),
        raw(put("spec|modelSourceConfig", {**GATED, "huggingFaceModel": {**GATED["huggingFaceModel"], **TOKEN}})),
    ),
    Case(
        "DPD425",
        raw(put("spec|modelSourceConfig", HUB), drop("spec|modelSourceConfig|huggingFaceModel|commitSHA")),
        raw(put("spec|modelSourceConfig", HUB)),
    ),
    Case(
        "DPD426",
        raw(put("spec|modelSourceConfig", {"modelSourceType": "kubernetesVolume"}), put("spec|kubernetes", volumes("weights"))),
        raw(put("spec|modelSourceConfig", {"modelSourceType": "kubernetesVolume"}), put("spec|kubernetes", volumes("model-weights"))),
    ),
    Case("DPD427", raw(put("spec|kubernetes", volumes("shm"))), raw(put("spec|kubernetes", volumes("shm-cache")))),
    Case(
        "DPD428",
        raw(put("spec|kubernetes|volumes", [{"name": "ib", "hostPath": {"path": "/dev/infiniband/"}}])),
        raw(put("spec|kubernetes|volumes", [{"name": "nvme", "hostPath": {"path": "/opt/dlami/nvme"}}])),
    ),
    Case("DPD430", raw(env("VLLM_API_KEY", "correct horse battery")), raw(env("MAX_TOKEN", "16384"))),
    Case(
        "DPD431",
        raw(put("metadata|annotations", {"kueue.x-k8s.io/queue-name": "team-a"})),
        raw(put("metadata|labels", {"kueue.x-k8s.io/queue-name": "team-a"})),
    ),
    Case("DPD432", raw(put("spec|InitialReplicaCount", 2), colocated), raw(put("spec|replicas", 2), colocated)),
    Case(
        "DPD433",
        raw(put(PREFILL_SCALING, scaling(cloudWatchTrigger={**CLOUDWATCH, "dimensions": [{"name": "EndpointName", "value": "dpd.test"}]}))),
        raw(put(PREFILL_SCALING, scaling(cloudWatchTrigger={**CLOUDWATCH, "dimensions": [{"name": "EndpointName", "value": "dpd-test"}]}))),
    ),
    Case(
        "DPD434",
        raw(put(PREFILL_SCALING, scaling(prometheusTrigger={**PROMETHEUS, "query": "vllm_num_requests_waiting"}))),
        raw(put(PREFILL_SCALING, scaling(prometheusTrigger={**PROMETHEUS, "query": "my_vllm_thing + vllm:num_requests_waiting"}))),
    ),
    Case("DPD435", raw(put(PREFILL_SCALING, scaling(minReplicaCount=2))), raw(put(PREFILL_SCALING, scaling(minReplicaCount=1)))),
    Case("DPD436", raw(put(PREFILL_SCALING, {"maxReplicaCount": 1})), raw(put(PREFILL_SCALING, scaling()))),
    Case(
        "DPD437",
        raw(put(PREFILL_SCALING, scaling(prometheusTrigger={**PROMETHEUS, "serverAddress": ""}))),
        raw(put(PREFILL_SCALING, scaling(prometheusTriggerList=[PROMETHEUS], prometheusTrigger={}))),
    ),
    Case(
        "DPD438",
        raw(put(PREFILL_SCALING, scaling(prometheusTriggerList=[PROMETHEUS]))),
        raw(put(PREFILL_SCALING, scaling(cloudWatchTriggerList=[CLOUDWATCH]))),
    ),
    Case("DPD439", raw(put(PREFILL_SCALING, scaling(minReplicaCount=0))), raw(put(PREFILL_SCALING, scaling(minReplicaCount=0)), colocated)),
    Case(
        "DPD440",
        raw(put("spec|loadBalancer|idleTimeoutSeconds", 300), operator="v1.3.0-eksbuild.1", valid=False),
        raw(put("spec|loadBalancer|idleTimeoutSeconds", 300), operator="v1.4.0-eksbuild.1"),
    ),
    Case("DPD441", raw(put("metadata|name", "70b.llama")), raw(put("metadata|name", "llama-70b"))),
    Case(
        "DPD442",
        stack(
            endpoint("endpointName", "chat"),
            put(
                "dpd-infra:endpoints|other",
                {"model": {"name": "m", "s3": {"bucket": "my-models"}}, "instanceType": "ml.p5.48xlarge", "endpointName": "chat"},
            ),
        ),
        stack(
            endpoint("endpointName", ""),
            put(
                "dpd-infra:endpoints|other",
                {"model": {"name": "m", "s3": {"bucket": "my-models"}}, "instanceType": "ml.p5.48xlarge", "endpointName": ""},
            ),
        ),
    ),
    Case(
        "DPD443",
        stack(endpoint("silence", [{"rule": "DPD999", "reason": "no such rule"}])),
        stack(endpoint("silence", [{"rule": "DPD106", "reason": "our prompts are short"}])),
    ),
    Case(
        "DPD444",
        raw(put("spec|dataCapture", {"sagemakerEndpoint": {"enabled": True}}), put("spec|endpointName", "")),
        raw(put("spec|dataCapture", {"loadBalancer": {"enabled": True}}), put("spec|endpointName", "")),
    ),
    Case(
        "DPD445",
        stack(endpoint("dataCapture", {"modelPod": {"enabled": True}})),
        stack(endpoint("dataCapture", {"modelPod": {"enabled": True}}), platform("addons|s3Write", True)),
    ),
    Case(
        "DPD455",
        stack(endpoint("dataCapture", {})),
        stack(endpoint("dataCapture", {"sagemakerEndpoint": {"enabled": False}})),
    ),
    Case(
        "DPD447",
        raw(
            put("metadata|labels", {"kueue.x-k8s.io/queue-name": "team-a"}),
            companions=(
                {"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {"resourceGroups": [{"coveredResources": ["cpu"]}]}},
            ),
        ),
        raw(
            put("metadata|labels", {"kueue.x-k8s.io/queue-name": "team-a"}),
            companions=(
                {
                    "kind": "ClusterQueue",
                    "metadata": {"name": "all"},
                    "spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"]}]},
                },
            ),
        ),
    ),
)
