"""DPD001 to DPD099: disaggregation, roles, placement, fit."""

from __future__ import annotations

from typing import Any

from tests.pure.rules.kit import Case, both, colocated, devices, drop, endpoint, flag, more, platform, put, raw, role, stack

EFA = "vpc.amazonaws.com/efa"
GPU = "nvidia.com/gpu"
OTHER_GPU = {"instanceType": "ml.p5.48xlarge", "count": 2}


def affinity(key: str) -> dict[str, Any]:
    """Nodes by one label of theirs."""
    expression = {"key": key, "operator": "In", "values": ["ml.p5.48xlarge"]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


CASES = (
    Case("DPD001", raw(put("spec|instanceType", "ml.g6e.48xlarge")), raw(put("spec|instanceType", "ml.p6-b300.48xlarge"))),
    Case(
        "DPD002",
        stack(platform("operator", {"addonVersion": "v1.2.1-eksbuild.1"})),
        stack(platform("operator", {"addonVersion": "v1.2.1-eksbuild.1"}), endpoint("disaggregated", False)),
    ),
    Case("DPD003", raw(operator="v1.3.0-eksbuild.1"), raw(operator="v1.4.0-eksbuild.1")),
    Case(
        "DPD004",
        raw(put("metadata|name", "n" * 40), put("metadata|namespace", "abcdefg")),
        raw(put("metadata|name", "n" * 40), put("metadata|namespace", "abcdef")),
    ),
    Case("DPD005", stack(endpoint("prefill|instanceGroup", "system")), stack(endpoint("prefill|instanceGroup", "gpu"))),
    Case("DPD006", stack(endpoint("prefill|replicas", 3)), stack(endpoint("prefill|replicas", 2))),
    Case(
        "DPD007",
        raw(drop(f"spec|pdSpec|prefillSpec|resources|requests|{GPU}")),
        raw(put(f"spec|pdSpec|prefillSpec|resources|requests|{GPU}", 8)),
    ),
    Case("DPD008", raw(put("spec|pdSpec|decodingSpec|replicas", 2)), raw(put("spec|pdSpec|prefillSpec|replicas", 2))),
    Case("DPD009", raw(role("prefillSpec", "-tp", "4")), raw(role("prefillSpec", "-tp=8"))),
    Case("DPD010", raw(flag("--tensor-parallel-size", "4")), raw(flag("--tensor-parallel-size", "4"), more("--pipeline-parallel-size=2"))),
    Case(
        "DPD011",
        raw(flag("--tensor-parallel-size", "6"), devices(GPU, 6, 6)),
        raw(flag("--tensor-parallel-size", "4"), devices(GPU, 4, 4)),
    ),
    Case("DPD012", raw(role("decodingSpec", "--kv-cache-dtype", "fp8")), raw(more("--kv-cache-dtype", "fp8"))),
    Case(
        "DPD013",
        raw(more("--max-num-seqs", "8", "--max_num_seqs=16")),
        raw(more("--max-num-seqs", "8"), role("prefillSpec", "--max-num-seqs", "16")),
    ),
    Case(
        "DPD014",
        raw(more("--kv-transfer-config", '{"kv_role": "kv_both"}')),
        raw(more("--kv-transfer-config", '{"kv_role": "kv_both"}'), colocated),
    ),
    Case("DPD015", raw(more("--enforce-eager")), raw(more("--enforce-eager"), role("decodingSpec", "--no-enforce-eager"))),
    Case("DPD016", raw(put("spec|replicas", 2)), raw(put("spec|replicas", 2), colocated)),
    Case(
        "DPD017",
        raw(put(f"spec|pdSpec|decodingSpec|resources|requests|{EFA}", "32")),
        raw(devices(EFA, 32, 32)),
    ),
    Case("DPD020", raw(put("spec|pdSpec|topologySpec", {"sameAZ": False})), raw(put("spec|pdSpec|topologySpec", {"sameAZ": True}))),
    Case("DPD021", stack(endpoint("placement|zone", "us-east-2b")), stack(endpoint("placement|zone", "us-east-2a"))),
    Case(
        "DPD022",
        raw(put("spec|pdSpec|topologySpec", {"placementGroup": "mine"})),
        raw(put("spec|pdSpec|topologySpec", {"availabilityZone": "us-east-2a"})),
    ),
    Case("DPD023", stack(platform("instanceGroups|gpu|count", 2)), stack(platform("instanceGroups|gpu|count", 3))),
    Case(
        "DPD024",
        raw(both("resources|requests|memory", "2048Gi")),
        raw(both("resources|requests|memory", "2000Gi"), both("resources|requests|cpu", "190")),
    ),
    Case("DPD025", raw(devices(EFA, 32, 8)), raw(devices(EFA, 32, 32))),
    Case("DPD026", raw(devices(EFA, 1, 1)), raw(devices(EFA, 16, 16), devices(GPU, 4, 4), flag("--tensor-parallel-size", "4"))),
    Case(
        "DPD027",
        raw(both("nodeSelector", {"sagemaker.amazonaws.com/deep-health-check": "passed"})),
        raw(both("nodeSelector", {"sagemaker.amazonaws.com/deep-health-check-status": "Passed", "team": "mine"})),
    ),
    Case(
        "DPD028",
        raw(both("resources|requests|hugepages-2Mi", "5120Mi"), both("resources|limits|hugepages-2Mi", "5120Mi")),
        raw(both("resources|requests|memory", "5120Mi")),
    ),
    Case(
        "DPD029",
        raw(put(f"spec|worker|resources|requests|{EFA}", "32"), put(f"spec|worker|resources|limits|{EFA}", "32")),
        raw(put(f"spec|worker|resources|requests|{EFA}", "32"), put(f"spec|worker|resources|limits|{EFA}", "32"), devices(EFA, 32, 32)),
    ),
    Case(
        "DPD030",
        raw(drop("spec|instanceType"), put("spec|instanceTypes", ["ml.p5e.48xlarge", "ml.p5en.48xlarge"])),
        raw(drop("spec|instanceType"), put("spec|instanceTypes", ["ml.p5en.48xlarge"])),
    ),
    Case(
        "DPD031",
        raw(drop("spec|instanceType"), put("spec|nodeAffinity", affinity("team"))),
        raw(drop("spec|instanceType"), put("spec|nodeAffinity", affinity("node.kubernetes.io/instance-type"))),
    ),
    Case(
        "DPD032",
        raw(put("metadata|labels", {"kueue.x-k8s.io/queue-name": "team-a"})),
        raw(put("metadata|labels", {"kueue.x-k8s.io/queue-name": "team-a"}), colocated),
    ),
    Case(
        "DPD033",
        stack(platform("instanceGroups|other", OTHER_GPU), endpoint("prefill|instanceGroup", "gpu")),
        # The only group of the type: the other role has no choice.
        stack(endpoint("prefill|instanceGroup", "gpu")),
    ),
    Case(
        "DPD040",
        raw(put("spec|modelName", "Qwen3-32B"), put("spec|modelSourceConfig|modelLocation", "Qwen3-32B")),
        raw(put("spec|modelName", "Qwen2-5-72B"), put("spec|modelSourceConfig|modelLocation", "Qwen2.5-72B-Instruct")),
    ),
    Case("DPD041", raw(role("decodingSpec", "--max-num-seqs", "65")), raw(role("decodingSpec", "--max-num-seqs", "64"))),
    Case(
        "DPD042",
        stack(endpoint("worker|image", "registry.example.com/mine:1"), endpoint("worker|imageHolds", ["vllm", "lmcache", "nixl"])),
        stack(endpoint("worker|image", "registry.example.com/mine:1"), endpoint("worker|imageHolds", ["vllm", "lmcache", "nixl", "efa"])),
    ),
    Case(
        "DPD043",
        raw(put("spec|worker|image", "lmcache/vllm-openai:latest")),
        raw(put("spec|worker|image", "lmcache/vllm-openai@sha256:" + "0" * 64)),
    ),
)
