"""DPD100 to DPD299: environment, buffer, cache, memory."""

from __future__ import annotations

from tests.pure.rules.kit import Case, both, colocated, devices, endpoint, env, flag, more, platform, put, raw, role, stack

EFA = "vpc.amazonaws.com/efa"
REDIS = {"enableL2Cache": True, "l2CacheSpec": {"l2CacheBackend": "redis", "l2CacheLocalUrl": "redis://cache:6379"}}
NO_URL = {"enableL2Cache": True, "l2CacheSpec": {"l2CacheBackend": "redis"}}
TIERED = {"backend": "tieredstorage"}

CASES = (
    Case("DPD101", raw(env("PYTHONHASHSEED", "random")), raw(env("PYTHONHASHSEED", "7"))),
    Case(
        "DPD102",
        raw(colocated, env("PYTHONHASHSEED", None), put("spec|kvCacheSpec", REDIS)),
        raw(colocated, env("PYTHONHASHSEED", None)),
    ),
    Case("DPD103", raw(env("PD_BUFFER_SIZE", "8Gi")), raw(env("PD_BUFFER_SIZE", "8589934592"))),
    # 16,384 tokens are 64 chunks of 10,485,760 bytes: 671,088,640 bytes, to the byte.
    Case(
        "DPD104",
        raw(env("PD_BUFFER_SIZE", "671088639"), more("--max-num-batched-tokens", "4096")),
        raw(env("PD_BUFFER_SIZE", "671088640"), more("--max-num-batched-tokens", "4096")),
    ),
    Case(
        "DPD105",
        raw(put("spec|worker|image", "registry.example.com/vllm:1"), env("PD_BUFFER_SIZE", "8589934592")),
        raw(put("spec|worker|image", "registry.example.com/vllm:1"), env("PD_BUFFER_SIZE", "8587837440")),
    ),
    # 8 GiB are 819 chunks and hold 12 prompts of 64 chunks.
    Case("DPD106", raw(role("prefillSpec", "--max-num-seqs", "13")), raw(role("prefillSpec", "--max-num-seqs", "12"))),
    # 32,768 tokens of 40,960 bytes are 1,342,177,280 bytes.
    Case(
        "DPD107",
        raw(more("--max-num-batched-tokens", "32768"), env("PD_BUFFER_SIZE", "1342177279")),
        raw(more("--max-num-batched-tokens", "32768"), env("PD_BUFFER_SIZE", "1342177280")),
    ),
    Case("DPD108", raw(env("LMCACHE_SAVE_DECODE_CACHE", "True")), raw(env("LMCACHE_SAVE_DECODE_CACHE", None))),
    Case("DPD109", raw(env("LMCACHE_SAVE_UNFULL_CHUNK", "False")), raw(env("LMCACHE_SAVE_UNFULL_CHUNK", "True"))),
    Case("DPD110", raw(env("LMCACHE_TRANSFER_CHANNEL", "tcp")), raw(env("LMCACHE_TRANSFER_CHANNEL", "nixl"))),
    Case("DPD111", raw(env("NIXL_BACKEND", "LIBFABRIC")), raw(env("LMCACHE_NIXL_BACKENDS", '["LIBFABRIC"]'))),
    Case(
        "DPD112",
        raw(env("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128,expandable_segments:True")),
        raw(env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False")),
    ),
    Case(
        "DPD113",
        raw(put("spec|kvCacheSpec", REDIS), env("LMCACHE_REMOTE_URL", "redis://other:6379")),
        raw(env("LMCACHE_REMOTE_URL", "redis://other:6379")),
    ),
    Case("DPD114", raw(env("FI_PROVIDER", "tcp")), raw(env("FI_PROVIDER", "efa"), devices(EFA, 32, 32))),
    Case("DPD115", raw(env("FI_PROVIDER", "efa")), raw(env("FI_PROVIDER", "efa"), devices(EFA, 32, 32))),
    Case(
        "DPD116",
        raw(put("spec|pdSpec|prefillSpec|environmentVariables", [{"name": "X", "value": "1"}]), valid=False),
        raw(env("X", "1")),
    ),
    Case("DPD120", raw(put("spec|kvCacheSpec", NO_URL)), raw(put("spec|kvCacheSpec", REDIS))),
    Case("DPD121", raw(put("spec|kvCacheSpec", {"l2CacheSpec": REDIS["l2CacheSpec"]})), raw(put("spec|kvCacheSpec", REDIS))),
    Case(
        "DPD122",
        stack(endpoint("cache|l2", TIERED)),
        stack(endpoint("cache|l2", TIERED), platform("cluster|tieredStorage|memoryPercent", 20)),
    ),
    Case(
        "DPD123",
        stack(platform("cluster|tieredStorage|memoryPercent", 50), endpoint("prefill|resources|requests|memory", "1025Gi")),
        stack(platform("cluster|tieredStorage|memoryPercent", 50), endpoint("prefill|resources|requests|memory", "1024Gi")),
    ),
    # Eight ranks of 5 GB.
    Case("DPD124", raw(both("resources|limits|memory", "40G")), raw(both("resources|limits|memory", "41G"))),
    # One prompt of 16,384 tokens takes 671,088,640 bytes of a rank.
    Case("DPD125", raw(env("LMCACHE_MAX_LOCAL_CPU_SIZE", "0.67")), raw(env("LMCACHE_MAX_LOCAL_CPU_SIZE", "0.68"))),
    Case(
        "DPD126",
        raw(put("spec|kvCacheSpec|enableL1Cache", False), operator="v1.3.0-eksbuild.1"),
        raw(put("spec|kvCacheSpec|enableL1Cache", False)),
    ),
    Case(
        "DPD127",
        raw(put("spec|worker|image", "763104351884.dkr.ecr.us-east-2.amazonaws.com/djl-inference:0.36.0-lmi18.0.0-cu128")),
        raw(),
    ),
    Case(
        "DPD128",
        stack(endpoint("cache|l2", TIERED), platform("cluster|tieredStorage|memoryPercent", 20), platform("teams", {"a": {}, "b": {}})),
        stack(endpoint("cache|l2", TIERED), platform("cluster|tieredStorage|memoryPercent", 20), platform("teams", {"a": {}})),
    ),
    # 141.1 GB of weights: on two ranks 70.6 GB each, over 0.75 of 80 GiB (64.4 GB) and under 0.9 of it.
    Case(
        "DPD201",
        raw(flag("--tensor-parallel-size", "2"), devices("nvidia.com/gpu", 2, 2)),
        raw(flag("--tensor-parallel-size", "2"), devices("nvidia.com/gpu", 2, 2), flag("--gpu-memory-utilization", "0.9")),
    ),
    # Two ranks at 0.9 of 80 GiB leave 6,751,... bytes beside the weights: at 163,840 bytes a token some 41,000 tokens.
    Case(
        "DPD202",
        raw(
            flag("--tensor-parallel-size", "2"),
            devices("nvidia.com/gpu", 2, 2),
            flag("--gpu-memory-utilization", "0.9"),
            flag("--max-model-len", "65536"),
        ),
        raw(
            flag("--tensor-parallel-size", "2"),
            devices("nvidia.com/gpu", 2, 2),
            flag("--gpu-memory-utilization", "0.9"),
            flag("--max-model-len", "16384"),
        ),
    ),
    Case(
        "DPD203",
        raw(
            flag("--tensor-parallel-size", "2"),
            devices("nvidia.com/gpu", 2, 2),
            flag("--gpu-memory-utilization", "0.9"),
            flag("--max-model-len", "40960"),
        ),
        raw(
            flag("--tensor-parallel-size", "2"),
            devices("nvidia.com/gpu", 2, 2),
            flag("--gpu-memory-utilization", "0.9"),
            flag("--max-model-len", "16384"),
        ),
    ),
    # 0.75 of 80 GiB leaves 20 GiB.
    Case("DPD204", raw(env("PD_BUFFER_SIZE", "21474836481")), raw(env("PD_BUFFER_SIZE", "21474836480"))),
    # sizing.md: at 0.75 of 80 GB 8 GiB fits and 16 GiB is marginal.
    Case("DPD205", raw(env("PD_BUFFER_SIZE", "17179869184")), raw(env("PD_BUFFER_SIZE", "8589934592"))),
    Case(
        "DPD206",
        raw(flag("--gpu-memory-utilization", None)),
        raw(flag("--gpu-memory-utilization", None), more("--gpu_memory_utilization=0.75")),
    ),
    Case("DPD207", raw(flag("--max-model-len", "131073")), raw(flag("--max-model-len", "131072"))),
    Case(
        "DPD208",
        raw(more("--max-num-batched-tokens", "8192", "--no-enable-chunked-prefill")),
        raw(more("--max-num-batched-tokens", "8192")),
    ),
    Case("DPD209", raw(flag("--gpu-memory-utilization", "75")), raw(flag("--gpu-memory-utilization", "1"), flag("--max-model-len", "16k"))),
    # Replicas need a load; the rest needs a model and a GPU that are known.
    Case(
        "DPD211",
        raw(put("spec|modelName", "our-own"), put("spec|modelSourceConfig|modelLocation", "our-own")),
        raw(put("spec|modelName", "our-own")),
    ),
    Case(
        "DPD210",
        stack(endpoint("prefill", {"replicas": "auto"})),
        stack(endpoint("prefill", {"replicas": "auto"}), endpoint("load", {"concurrency": 8, "inputTokens": 6000, "outputTokens": 400})),
    ),
)
