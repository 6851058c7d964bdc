"""What people hit in the field: every reported input that `check` can see gets the verdict it must get, and so does its kind."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpd_infra.spec.finding import Finding, Severity
from tests.pure.rules.kit import Raw, Stack, both, colocated, devices, drop, env, flag, more, platform, put, raw, role, stack

EFA = "vpc.amazonaws.com/efa"
GPU = "nvidia.com/gpu"
DJL = "763104351884.dkr.ecr.us-east-2.amazonaws.com/djl-inference:0.36.0-lmi18.0.0-cu128"
KUEUE = "kueue.x-k8s.io/queue-name"
QUEUES = (
    {"kind": "LocalQueue", "metadata": {"name": "team-a", "namespace": "default"}, "spec": {"clusterQueue": "gpus"}},
    {"kind": "ClusterQueue", "metadata": {"name": "gpus"}, "spec": {"resourceGroups": [{"coveredResources": [GPU]}]}},
)
SCALING = "spec|pdSpec|autoScalingSpec|prefillAutoScaling"
WATCHED = {"namespace": "AWS/SageMaker", "metricName": "Invocations", "targetValue": 4}
AMP = "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1"


def queried(query: str) -> dict[str, object]:
    return {"maxReplicaCount": 1, "prometheusTrigger": {"serverAddress": AMP, "query": query, "targetValue": 4}}


def watched(name: str) -> dict[str, object]:
    return {"maxReplicaCount": 1, "cloudWatchTrigger": {**WATCHED, "dimensions": [{"name": "EndpointName", "value": name}]}}


SMALL_NODE = (
    colocated,
    put("spec|instanceType", "ml.g5.2xlarge"),
    put("spec|worker|resources|requests", {"cpu": "30000m", "memory": "100Gi", GPU: 1}),
    put("spec|worker|resources|limits", {GPU: 1}),
)
DJL_IMAGE = (
    colocated,
    put("spec|worker|image", DJL),
    drop("spec|worker|args"),
    drop("spec|kvCacheSpec"),
    drop("spec|intelligentRoutingSpec"),
)


@dataclass(frozen=True)
class Row:
    """One report."""

    report: str
    rule: str
    given: Raw | Stack
    severity: Severity
    """Of the verdict that is asked for."""
    says: tuple[str, ...]
    """What the verdict must name."""


E, W, A = Severity.ERROR, Severity.WARNING, Severity.ADVICE

ROWS = (
    # The small inputs, each as it is stated.
    Row(
        "aws-ai-infra-helper trouble 3: 30 vCPU and 100Gi on ml.g5.2xlarge, cpu",
        "DPD024",
        raw(*SMALL_NODE),
        E,
        ("30000m", "8 vCPUs", "ml.g5.2xlarge"),
    ),
    Row("aws-ai-infra-helper trouble 3: 30 vCPU and 100Gi on ml.g5.2xlarge, memory", "DPD024", raw(*SMALL_NODE), E, ("100Gi", "32 GiB")),
    Row(
        "ml-container-creator: Kueue's queue as an annotation",
        "DPD431",
        raw(put("metadata|annotations", {KUEUE: "team-a"})),
        E,
        (KUEUE, "annotation"),
    ),
    Row("ml-container-creator: EFA count hard-coded 1", "DPD026", raw(devices(EFA, 1, 1)), W, ("1 EFA devices", "32")),
    Row(
        "Curvine blog: LMCACHE_REMOTE_URL set beside enableL2Cache",
        "DPD113",
        raw(
            put("spec|kvCacheSpec", {"enableL2Cache": True, "l2CacheSpec": {"l2CacheBackend": "tieredstorage"}}),
            env("LMCACHE_REMOTE_URL", "curvine://cache:1"),
        ),
        W,
        ("LMCACHE_REMOTE_URL",),
    ),
    Row(
        "AWS's S3 example: containerPort 8000 with a DJL image",
        "DPD402",
        raw(*DJL_IMAGE),
        E,
        ("8000", "8080"),
    ),
    Row(
        "genai-hosting-examples: containerPort 8080 with vLLM and no --port",
        "DPD402",
        raw(flag("--port", None), put("spec|worker|modelInvocationPort|containerPort", 8080)),
        E,
        ("8080", "8000"),
    ),
    Row(
        "the same: a metrics port that is not the server's", "DPD403", raw(put("spec|metrics|modelMetrics|port", 8080)), E, ("8080", "8000")
    ),
    Row(
        "Public Endpoint with Terraform: add-on values without an alb role",
        "DPD535",
        stack(platform("operator|configuration", {"alb": {"serviceAccount": None}})),
        E,
        ("alb", "roleArn"),
    ),
    Row("hyperpod-quickstart: Kubernetes 1.31", "DPD502", stack(platform("controlPlane|version", "1.31")), E, ("1.31",)),
    Row("hyperpod-quickstart: Kubernetes 1.29", "DPD502", stack(platform("controlPlane|version", "1.29")), E, ("1.29",)),
    Row(
        "awsome tfvars: a training plan of another region",
        "DPD529",
        stack(
            put("aws:region", "us-west-2"),
            platform("network|zone", "us-west-2a"),
            platform("instanceGroups|gpu|trainingPlanArn", "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"),
        ),
        E,
        ("us-east-1", "us-west-2"),
    ),
    Row(
        "awsome terraform.tfvars: a /28 for P5 workers",
        "DPD504",
        stack(platform("network|cidr", "10.192.0.0/16"), platform("network|gpuCidr", "10.1.0.0/28")),
        E,
        ("addresses",),
    ),
    Row(
        "pulumi-eks #1564: a GPU group in another zone",
        "DPD521",
        stack(platform("instanceGroups|gpu|zone", "us-east-2b")),
        E,
        ("us-east-2b", "us-east-2a"),
    ),
    Row("pulumi-eks #1593: roles may be in two zones", "DPD020", raw(put("spec|pdSpec|topologySpec", {"sameAZ": False})), W, ("zones",)),
    Row(
        "eks-data-addons #53: EFA plugin 0.5.5 on ml.p6-b200",
        "DPD534",
        stack(
            platform("instanceGroups|gpu|instanceType", "ml.p6-b200.48xlarge"),
            platform("dependencies|values", {"aws-efa-k8s-device-plugin": {"image": {"tag": "v0.5.5"}}}),
        ),
        E,
        ("v0.5.5", "ml.p6"),
    ),
    Row("vllm #41814: NIXL_BACKEND", "DPD111", raw(env("NIXL_BACKEND", "LIBFABRIC")), W, ("NIXL_BACKEND", "not read by anything")),
    Row(
        "vllm #50832: VLLM_NIXL_BACKEND",
        "DPD111",
        raw(env("VLLM_NIXL_BACKEND", "LIBFABRIC")),
        W,
        ("VLLM_NIXL_BACKEND", "not read by anything"),
    ),
    Row(
        "nixl #1754: expandable segments",
        "DPD112",
        raw(env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")),
        E,
        ("expandable_segments:True",),
    ),
    Row("nixl #1226: 32 EFA devices against 8", "DPD025", raw(devices(EFA, 32, 8)), E, ("32", "8")),
    Row(
        "LMCache #2510: LMCACHE_SAVE_UNFULL_CHUNK=False",
        "DPD109",
        raw(env("LMCACHE_SAVE_UNFULL_CHUNK", "False")),
        W,
        ("LMCACHE_SAVE_UNFULL_CHUNK",),
    ),
    Row(
        "LMCache #1215: 32,768 batched tokens into 1 GiB",
        "DPD107",
        raw(more("--max-num-batched-tokens", "32768"), env("PD_BUFFER_SIZE", "1073741824")),
        E,
        ("1,342,177,280", "1,073,741,824"),
    ),
    Row("LMCache #1878: L1 cache with 16Gi of memory", "DPD124", raw(both("resources|limits|memory", "16Gi")), W, ("16 GiB", "8 x 5 GB")),
    Row("LMCache #2593: transfer channel tcp", "DPD110", raw(env("LMCACHE_TRANSFER_CHANNEL", "tcp")), E, ("'tcp'",)),
    Row(
        "vllm #16118: max-model-len over the KV pool",
        "DPD202",
        raw(
            flag("--tensor-parallel-size", "2"),
            devices(GPU, 2, 2),
            flag("--gpu-memory-utilization", "0.9"),
            flag("--max-model-len", "65536"),
        ),
        E,
        ("--max-model-len", "65,536", "10.00 GiB"),
    ),
    Row(
        "production-stack #1045: kvaware with chat",
        "DPD301",
        raw(put("spec|intelligentRoutingSpec|routingStrategy", "kvaware")),
        W,
        ("kvaware", "v1/chat/completions"),
    ),
    Row(
        "infra-deployments #14074: a queue that does not cover EFA",
        "DPD447",
        raw(put("metadata|labels", {KUEUE: "team-a"}), devices(EFA, 32, 32), companions=QUEUES),
        E,
        (EFA, GPU),
    ),
    Row(
        "kthena #868: vllm_ for vllm:", "DPD434", raw(put(SCALING, queried("vllm_num_requests_waiting"))), W, ("vllm_num_requests_waiting",)
    ),
    Row(
        "genai-hosting-examples jumpstart: another EndpointName",
        "DPD433",
        raw(put(SCALING, watched("dpd.test"))),
        E,
        ("dpd.test", "dpd-test"),
    ),
    # Their kinds: the same fault in other clothes.
    Row("a role that asks for all of a node's processors", "DPD024", raw(both("resources|requests|cpu", 192)), E, ("192", "192 vCPUs")),
    Row("a role that asks for more EFA devices than there are", "DPD024", raw(devices(EFA, 33, 33)), E, ("33", "32 EFA devices")),
    Row("more GPUs than the node has", "DPD024", raw(devices(GPU, 16, 16)), E, ("16", "8 GPUs")),
    Row(
        "Kueue's priority as an annotation",
        "DPD431",
        raw(put("metadata|annotations", {"kueue.x-k8s.io/priority-class": "high"})),
        E,
        ("priority-class",),
    ),
    Row("a setting of one role for both", "DPD113", raw(env("LMCACHE_PD_ROLE", "sender")), W, ("LMCACHE_PD_ROLE",)),
    Row("the buffer under its other name", "DPD113", raw(env("LMCACHE_NIXL_BUFFER_SIZE", "1")), W, ("LMCACHE_NIXL_BUFFER_SIZE",)),
    Row("--port of a role moved alone", "DPD402", raw(role("decodingSpec", "--port", "9000")), E, ("8000", "9000")),
    Row(
        "a health path of another server",
        "DPD405",
        raw(put("spec|loadBalancer|healthCheckPath", "/v2/health/ready")),
        E,
        ("/v2/health/ready",),
    ),
    Row(
        "PyTorch's new name of its allocator",
        "DPD112",
        raw(env("PYTORCH_ALLOC_CONF", "expandable_segments:true")),
        E,
        ("PYTORCH_ALLOC_CONF",),
    ),
    Row("EFA switched off by variable", "DPD114", raw(env("FI_PROVIDER", "sockets")), E, ("FI_PROVIDER",)),
    Row(
        "ai-on-sagemaker #134: EFA chosen and never requested",
        "DPD115",
        raw(env("FI_EFA_USE_DEVICE_RDMA", "1")),
        W,
        ("FI_EFA_USE_DEVICE_RDMA",),
    ),
    Row(
        "LMCache #1337: a buffer smaller than the longest prompt",
        "DPD104",
        raw(env("PD_BUFFER_SIZE", "536870912")),
        E,
        ("536,870,912", "671,088,640"),
    ),
    Row("LMCache #1337: a buffer without a number", "DPD103", raw(env("PD_BUFFER_SIZE", "8 GiB")), E, ("'8 GiB'",)),
    Row("LMCache #1133: a random hash seed", "DPD101", raw(env("PYTHONHASHSEED", "random")), E, ("'random'",)),
    Row("LMCache #1133: no hash seed", "DPD101", raw(env("PYTHONHASHSEED", None)), E, ("not set",)),
    Row(
        "LMCache #1142: another tensor-parallel size on one role",
        "DPD009",
        raw(role("decodingSpec", "--tensor_parallel_size=4")),
        E,
        ("8", "4"),
    ),
    Row(
        "vllm #43523: more ranks than heads divide",
        "DPD011",
        raw(flag("--tensor-parallel-size", "6"), devices(GPU, 6, 6)),
        E,
        ("64 attention heads", "6"),
    ),
    Row(
        "hyperpod-cli #386: a misspelt health label",
        "DPD027",
        raw(both("nodeSelector", {"sagemaker.amazonaws.com/deep-health-check": "Passed"})),
        E,
        ("deep-health-check",),
    ),
    Row(
        "hyperpod-cli #399: a type without ml.",
        "DPD027",
        raw(both("nodeSelector", {"node.kubernetes.io/instance-type": "p5.48xlarge"})),
        E,
        ("prefix",),
    ),
    Row(
        "hyperpod-cli #430: InitialReplicaCount", "DPD432", raw(colocated, put("spec|InitialReplicaCount", 2)), W, ("InitialReplicaCount",)
    ),
    Row(
        "aws-do-eks #63: /dev/infiniband",
        "DPD428",
        raw(put("spec|kubernetes|volumes", [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}])),
        W,
        ("/dev/infiniband",),
    ),
    Row(
        "awsome #1230: huge pages",
        "DPD028",
        raw(both("resources|limits|hugepages-2Mi", "2Gi"), both("resources|requests|hugepages-2Mi", "2Gi")),
        W,
        ("hugepages-2Mi",),
    ),
    Row("kserve #5987: a connector of one's own", "DPD014", raw(more("--kv-transfer-config", "{}")), W, ("--kv-transfer-config",)),
    Row(
        "ai-on-sagemaker #142: 14 pods a node starve the add-ons",
        "DPD533",
        stack(
            platform("instanceGroups|system", {"instanceType": "ml.m5.xlarge", "count": 1}),
            platform("instanceGroups|gpu|taints", [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]),
        ),
        E,
        ("14 pod slots", "13"),
    ),
)


def verdicts(row: Row) -> list[Finding]:
    return [
        finding
        for finding in row.given.findings
        if finding.rule == row.rule
        and finding.severity is row.severity
        and all(word in f"{finding.what} {finding.fix}" for word in row.says)
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.report)
def test_a_reported_input_gets_its_verdict(row: Row) -> None:
    assert verdicts(row), [f"{finding.severity} {finding.rule} {finding.what}" for finding in row.given.findings]


def test_the_first_good_kubernetes_version_is_named() -> None:
    (finding,) = [finding for finding in stack(platform("controlPlane|version", "1.29")).findings if finding.rule == "DPD502"]
    assert '"1.32" (the first good one)' in finding.fix


def test_secondary_blocks_and_small_subnets_of_the_control_plane_are_no_fault() -> None:
    given = stack(platform("network|cidr", "10.192.0.0/16"), platform("network|gpuCidr", "10.1.0.0/16"))
    assert [finding.rule for finding in given.findings if finding.rule.startswith("DPD50")] == []


def test_no_add_on_that_the_operator_needs_can_be_left_out() -> None:
    for key in ("certManagerVersion", "fsxCsiVersion", "s3CsiVersion", "metricsServerVersion"):
        found = stack(platform(f"addons|{key}", None)).findings
        assert [finding for finding in found if finding.severity is Severity.ERROR and key in str(finding.path)]


def test_a_plain_http_port_443_is_nothing_to_report() -> None:
    assert [finding.rule for finding in raw().findings if finding.severity is not Severity.ADVICE] == []


@pytest.mark.parametrize("image", ["lmcache/vllm-openai:v0.4.4", "public.ecr.aws/deep-learning-containers/vllm:server-hyperpod-cuda-v1.2"])
def test_a_later_tag_is_not_known_rather_than_wrong(image: str) -> None:
    (finding,) = [finding for finding in raw(put("spec|worker|image", image)).findings if finding.rule == "DPD042"]
    assert finding.severity is Severity.WARNING
    assert "is not known" in finding.what
    assert "2026-07-10" in finding.what


def test_kueue_is_content_where_the_queue_covers_everything() -> None:
    covering = ({**QUEUES[1], "spec": {"resourceGroups": [{"coveredResources": ["cpu"]}, {"coveredResources": [GPU, EFA]}]}}, QUEUES[0])
    given = raw(put("metadata|labels", {KUEUE: "team-a"}), devices(EFA, 32, 32), companions=covering)
    assert [finding.rule for finding in given.findings if finding.severity is not Severity.ADVICE] == []


def test_whether_an_operator_before_3_2_is_meant_is_said_with_the_add_on_that_has_it() -> None:
    given = raw(put("spec|modelCacheConfig", {"imageCache": {"enabled": True}}), operator="v1.3.0-eksbuild.1")
    (finding,) = [finding for finding in given.findings if finding.rule == "DPD440"]
    assert "spec.modelCacheConfig" in finding.what
    assert "operator 3.3" in finding.what
    assert "v1.4.0-eksbuild.1" in finding.fix
