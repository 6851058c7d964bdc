"""What only fails when pods are made: words that no server reads, parts of a pod that Kubernetes refuses, names that AWS does not take."""

from __future__ import annotations

from tests.pure.rules.kit import Case, Edit, colocated, endpoint, flag, more, platform, put, raw, role, stack

LIVENESS = "spec|worker|probes|livenessProbe"
VOLUMES = "spec|kubernetes|volumes"
SCALING = "spec|pdSpec|autoScalingSpec|prefillAutoScaling"
WORKSPACE = "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1"
ZONE = "topology.kubernetes.io/zone"
HEALTH = {"path": "/health", "port": 8000}


def variable(**entry: object) -> Edit:
    return lambda document: document["spec"]["worker"]["environmentVariables"].append(entry)


def shell(script: str, *words: str) -> Edit:
    def edit(document: dict[str, object]) -> None:
        put("spec|worker|command", ["/bin/bash", "-c", script])(document)
        put("spec|worker|args", list(words))(document)

    return edit


def scaled(least: int, **trigger: object) -> Edit:
    full = {"serverAddress": WORKSPACE, "query": "sum(vllm:num_requests_waiting)", "targetValue": 4} | trigger
    return put(SCALING, {"minReplicaCount": least, "maxReplicaCount": 1, "prometheusTrigger": full})


CASES = (
    Case("DPD018", raw(more("--max-num-seqs 16")), raw(more("--max-num-seqs", "16"))),
    Case(
        "DPD019",
        raw(colocated, shell("exec vllm serve /opt/ml/model", "--tensor-parallel-size", "8")),
        raw(colocated, shell('exec vllm serve /opt/ml/model "$@"', "--", "--tensor-parallel-size", "8")),
    ),
    Case("DPD034", raw(put("spec|dataCapture|modelPod|enabled", True)), raw(put("spec|dataCapture|modelPod|enabled", False))),
    Case(
        "DPD035",
        raw(put("spec|pdSpec|topologySpec|availabilityZone", "use2-az1")),
        raw(
            put("spec|pdSpec|topologySpec|availabilityZone", "us-east-2a"),
            put(f"spec|pdSpec|prefillSpec|nodeSelector|{ZONE}", "us-east-2a"),
        ),
    ),
    Case(
        "DPD036",
        raw(put("spec|pdSpec|decodingSpec|nodeSelector|node.kubernetes.io/instance-type", "ml.p5en.48xlarge")),
        raw(put("spec|pdSpec|decodingSpec|nodeSelector|node.kubernetes.io/instance-type", "ml.p5.48xlarge")),
    ),
    # vLLM takes the beginning of a flag's name.
    Case("DPD037", raw(role("prefillSpec", "--max-num-sequ", "16")), raw(role("prefillSpec", "--max-num-seq", "16"))),
    Case("DPD129", raw(put("spec|kvCacheSpec|cacheConfigFile", "/etc/lmcache.yaml")), raw(put("spec|kvCacheSpec|cacheConfigFile", ""))),
    Case("DPD414", raw(flag("--model", "meta-llama/Llama-3.3-70B-Instruct")), raw(flag("--model", "/opt/ml/model/"))),
    Case(
        "DPD429",
        raw(put("spec|modelSourceConfig|s3Storage|bucketName", "s3://my-models/llama")),
        raw(put("spec|modelSourceConfig|s3Storage|bucketName", "my-models.llama")),
    ),
    Case(
        "DPD446",
        stack(endpoint("tls|outputS3Uri", "s3://our-certificates/llm")),
        stack(endpoint("tls|outputS3Uri", "s3://hyperpod-tls-ours/llm")),
    ),
    Case(
        "DPD454",
        stack(platform("operator|adopt", True), endpoint("dns", {"hostedZoneId": "Z0123456789ABC"})),
        stack(platform("operator|adopt", True), endpoint("tls|outputS3Uri", "s3://hyperpod-tls-ours/llm")),
    ),
    Case("DPD448", raw(scaled(1, activationTargetValue=2)), raw(scaled(0, activationTargetValue=2))),
    Case("DPD449", stack(endpoint("tags", {"aws:team": "a"})), stack(endpoint("tags", {"team": "a"}))),
    Case(
        "DPD450",
        raw(put(VOLUMES, [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}])),
        raw(put(VOLUMES, [{"name": "a", "emptyDir": {}}, {"name": "b"}])),
    ),
    Case(
        "DPD451",
        raw(put(LIVENESS, {"httpGet": HEALTH, "tcpSocket": {"port": 8000}, "initialDelaySeconds": 900})),
        raw(put(LIVENESS, {"httpGet": HEALTH, "initialDelaySeconds": 900})),
    ),
    Case(
        "DPD452",
        raw(variable(name="POD", value="a", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}})),
        raw(variable(name="POD", value="", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}})),
    ),
    Case(
        "DPD453",
        raw(put("spec|kubernetes|initContainers", [{"name": "wait", "image": "busybox:1.36"}] * 2)),
        raw(put("spec|kubernetes|initContainers", [{"name": "wait", "image": "busybox:1.36"}])),
    ),
    Case(
        "DPD456",
        raw(put(VOLUMES, [{"name": "a", "emptyDir": {"sizeLimit": "-1Gi"}}])),
        raw(put(VOLUMES, [{"name": "a", "emptyDir": {"sizeLimit": "0"}}])),
    ),
)
