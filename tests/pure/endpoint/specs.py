"""Endpoints as a stack file may hold them, made at random: every part of the short form, within what it accepts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
WORDS = st.from_regex(r"[A-Za-z0-9]{1,10}", fullmatch=True)
DPD_TYPES = ["ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.p5en.48xlarge", "ml.p6-b200.48xlarge", "ml.p6-b300.48xlarge"]
QUANTITIES = st.integers(1, 64) | st.from_regex(r"[1-9][0-9]{0,3}(Gi|Mi|m)?", fullmatch=True)
PORTS = st.integers(1, 65535)
LABELS = st.dictionaries(WORDS, WORDS, max_size=2)


def some(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of these keys."""
    return st.fixed_dictionaries({}, optional=parts)


CLOUD_WATCH = some(
    name=WORDS,
    namespace=WORDS,
    metricName=WORDS,
    metricType=st.sampled_from(["Value", "Average"]),
    targetValue=st.integers(0, 100) | st.floats(0, 100),
    dimensions=st.lists(st.fixed_dictionaries({"name": WORDS, "value": WORDS}), max_size=2),
)
AUTOSCALING = some(
    minReplicaCount=st.integers(0, 3),
    maxReplicaCount=st.integers(1, 9),
    pollingInterval=st.integers(0, 60),
    cloudWatchTrigger=CLOUD_WATCH,
    cloudWatchTriggerList=st.lists(CLOUD_WATCH, max_size=2),
    prometheusTrigger=some(
        serverAddress=st.just("https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1"),
        query=st.just("sum(vllm:num_requests_waiting)"),
    ),
)
RESOURCES = some(
    requests=st.dictionaries(st.sampled_from(["cpu", "memory", "hugepages-2Mi"]), QUANTITIES, max_size=2),
    limits=st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES, max_size=2),
)
AUTO = st.just("auto")
ROLE = some(
    replicas=st.integers(1, 8) | AUTO,
    maxNumSeqs=st.integers(1, 512) | AUTO,
    instanceGroup=NAMES,
    nodeSelector=LABELS,
    args=st.lists(st.sampled_from(["--max-num-seqs", "16", "--enforce-eager"]), max_size=3),
    gpus=st.integers(1, 8),
    resources=RESOURCES,
    autoscaling=AUTOSCALING,
)
TOKEN = st.fixed_dictionaries({"secretName": NAMES, "key": WORDS}) | st.fixed_dictionaries({"configKey": NAMES})
SOURCE = st.one_of(
    st.fixed_dictionaries(
        {"s3": st.fixed_dictionaries({"bucket": st.just("my-models")}, optional={"prefix": WORDS, "region": st.just("eu-north-1")})}
    ),
    st.fixed_dictionaries(
        {"fsx": st.fixed_dictionaries({"fileSystemId": WORDS}, optional={"dnsName": WORDS, "mountName": WORDS})},
        optional={"location": WORDS},
    ),
    st.fixed_dictionaries(
        {
            "huggingFace": st.fixed_dictionaries(
                {"modelId": st.just("meta-llama/Llama-3.3")}, optional={"revision": st.just("0a" * 20), "token": TOKEN}
            )
        }
    ),
    st.fixed_dictionaries(
        {"kubernetesVolume": st.just({"volume": {"persistentVolumeClaim": {"claimName": "weights"}}})}, optional={"location": WORDS}
    ),
)
PROBE = some(httpGet=st.just({"path": "/health", "port": 8000}), periodSeconds=st.integers(1, 60), failureThreshold=st.integers(1, 9))
ENVIRONMENT = st.dictionaries(
    st.sampled_from(["HF_HOME", "PYTHONHASHSEED", "LMCACHE_SAVE_DECODE_CACHE", "NCCL_DEBUG", "VLLM_LOGGING_LEVEL"]),
    st.none() | st.text("abc019", max_size=5) | st.just({"secretKeyRef": {"name": "settings", "key": "value"}}),
    max_size=3,
)
WORKER = some(
    image=st.just("lmcache/vllm-openai:v0.4.3"),
    imageHolds=st.just(["vllm", "lmcache", "nixl", "efa"]),
    port=PORTS,
    tensorParallelSize=st.integers(1, 8),
    maxModelLen=st.integers(1, 131072),
    gpuMemoryUtilization=st.floats(0.1, 1) | AUTO,
    args=st.lists(st.sampled_from(["--kv-cache-dtype", "fp8", "--trust-remote-code"]), max_size=3),
    command=st.lists(WORDS, min_size=1, max_size=2),
    environment=ENVIRONMENT,
    resources=RESOURCES,
    probes=some(livenessProbe=PROBE, readinessProbe=PROBE, startupProbe=PROBE),
    requestLimits=some(maxConcurrentRequests=st.integers(1, 64), maxQueueSize=st.integers(0, 64), overflowStatusCode=st.integers(400, 599)),
    mountPath=st.just("/models"),
    volumeName=NAMES,
)
CAPTURE = st.fixed_dictionaries(
    {"enabled": st.booleans()},
    optional={
        "initialSamplingPercentage": st.integers(0, 100),
        "captureOptions": st.lists(st.fixed_dictionaries({"captureMode": st.sampled_from(["Input", "Output"])}), min_size=1, max_size=2),
        "captureContentTypeHeader": some(csvContentTypes=st.just(["text/csv"]), jsonContentTypes=st.just(["application/json"])),
    },
)
OVERRIDES = some(
    metadata=some(labels=LABELS, annotations=LABELS),
    spec=some(
        replicas=st.none() | st.integers(1, 4),
        modelVersion=st.none() | WORDS,
        metrics=st.none() | some(enabled=st.booleans(), modelMetrics=some(port=st.integers(1024, 65535))),
        worker=some(
            workingDir=st.none() | WORDS,
            environmentVariables=st.lists(
                st.fixed_dictionaries({"name": st.sampled_from(["HF_HOME", "PYTHONHASHSEED", "EXTRA"]), "value": st.none() | WORDS}),
                max_size=2,
                unique_by=lambda entry: entry["name"],
            ),
        ),
    ),
)
LENGTHS = st.integers(1, 20_000) | st.fixed_dictionaries({"mean": st.floats(1, 20_000)}, optional={"variation": st.floats(0, 2)})
LENGTHS = LENGTHS | st.just({"percentiles": {"p50": 2000, "p90": 8000, "p99.9": 16_000}})
LOAD = st.fixed_dictionaries({"inputTokens": LENGTHS, "outputTokens": LENGTHS}).flatmap(
    lambda lengths: (
        st.fixed_dictionaries({"requestsPerSecond": st.floats(0.01, 50)}, optional={"arrivals": st.just("bursty")}).map(
            lambda amount: lengths | amount
        )
        | st.integers(1, 500).map(lambda users: lengths | {"concurrency": users, "sharedPrefixTokens": 300})
    )
)
PARTS = {
    "load": LOAD,
    "namespace": NAMES,
    "endpointName": st.just("") | WORDS,
    "disaggregated": st.booleans(),
    "prefill": ROLE,
    "decode": ROLE,
    "colocated": some(replicas=st.integers(0, 8), gpus=st.integers(1, 8), args=st.just(["--max-num-seqs", "64"]), autoscaling=AUTOSCALING),
    "routing": some(
        threshold=st.integers(0, 100_000),
        strategy=st.sampled_from(["prefixaware", "kvaware", "session", "roundrobin"]),
        enabled=st.booleans(),
        autoscaling=AUTOSCALING,
    ),
    "worker": WORKER,
    "cache": some(
        l1=st.booleans(),
        l2=st.fixed_dictionaries({"backend": st.sampled_from(["redis", "tieredstorage"])}, optional={"url": WORDS}),
        configFile=st.just("/etc/lmcache.yaml"),
        pdBufferBytes=st.integers(1, 2**36) | AUTO,
    ),
    "placement": some(sameZone=st.booleans(), zone=st.just("us-east-2a"), placementGroup=WORDS),
    "efa": st.sampled_from(["documented", "explicit", "fraction"]),
    "invocationEndpoint": st.sampled_from(["v1/completions", "invocations"]),
    "loadBalancer": some(healthCheckPath=st.just("/ready"), algorithm=st.sampled_from(["least_outstanding_requests", "round_robin"])),
    "tls": st.fixed_dictionaries(
        {"certificateArn": st.just("arn:aws:acm:us-east-2:123456789012:certificate/0a-b1"), "domainName": st.just("llm.example.com")},
        optional={"outputS3Uri": st.just("s3://certificates/x")},
    ),
    "dns": st.just({"hostedZoneId": "Z123"}),
    "dataCapture": some(
        s3Uri=st.just("s3://captured/x"),
        loadBalancer=st.fixed_dictionaries({"enabled": st.booleans()}),
        sagemakerEndpoint=CAPTURE,
        modelPod=CAPTURE,
    ),
    "metrics": some(
        enabled=st.booleans(), scrapeIntervalSeconds=st.integers(5, 300), path=st.just("/metrics"), port=st.integers(1024, 65535)
    ),
    "serviceAccount": NAMES,
    "kueue": st.fixed_dictionaries({"queueName": NAMES}, optional={"priorityClass": NAMES}),
    "tags": LABELS,
    "labels": LABELS,
    "annotations": LABELS,
    "timeouts": some(deployMinutes=st.integers(1, 600), deleteMinutes=st.integers(1, 60)),
    "overrides": OVERRIDES,
    "silence": st.lists(st.fixed_dictionaries({"rule": st.just("DPD014"), "reason": WORDS}), max_size=1),
}

AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}]
    }
}


@st.composite
def endpoints(draw: st.DrawFn) -> dict[str, Any]:
    """The plain data of one endpoint of a stack file."""
    data: dict[str, Any] = {
        "model": {"name": "Llama-3.3-70B-Instruct", **draw(some(version=WORDS, prefetch=st.booleans())), **draw(SOURCE)}
    }
    chosen = draw(st.lists(st.sampled_from(sorted(PARTS)), max_size=6, unique=True))
    data |= {name: draw(PARTS[name]) for name in chosen}
    nodes = st.fixed_dictionaries({"instanceType": st.sampled_from(DPD_TYPES)}) | st.fixed_dictionaries(
        {"instanceTypes": st.lists(st.sampled_from(DPD_TYPES), min_size=1, max_size=2, unique=True)}
    )
    counts_are_given = data.get("efa", "documented") == "documented" and (
        data.get("disaggregated", True) or "gpus" in data.get("colocated", {})
    )
    if counts_are_given:
        nodes = nodes | st.just({"nodeAffinity": AFFINITY})
    return data | draw(nodes)
