"""One formula for each number that may be left out: what fits, and no more than what is known to work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import AI_CONFIGURATOR, DPD_GUIDE, LMCACHE, VLLM, Confidence
from dpd_infra.plan.sizing.buffer import (
    CHUNK_TOKENS,
    DEFAULT_PD_BUFFER_BYTES,
    chunk_bytes,
    hold_and_wait_pd_buffer_bytes,
    minimum_pd_buffer_bytes,
    prefill_step_kv_bytes,
)
from dpd_infra.plan.sizing.memory import MARGIN_BYTES, engine_bytes, highest_gpu_memory_utilization, reserve_bytes
from dpd_infra.plan.sizing.outcome import disaggregated
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula
from dpd_infra.plan.sizing.serving import COLOCATED_GPU_MEMORY_UTILIZATION, PREFILL_MAX_NUM_SEQS, Serving
from dpd_infra.plan.sizing.step import MAX_BATCH
from dpd_infra.plan.sizing.workload import Workload

MOST_REPLICAS = 64
"""How far the search for enough replicas goes."""


@formula(
    "max(hold_and_wait_pd_buffer_bytes, whole chunks of the guide's 8 GiB, one prefill step), at most the prompts of max_model_len that "
    "fit beside vLLM's share; never below minimum_pd_buffer_bytes",
    Unit.BYTES,
    Confidence.MODELLED,
    DPD_GUIDE,
    LMCACHE,
)
def auto_pd_buffer_bytes(
    model: ModelShape,
    gpu: Gpu,
    tensor_parallel_size: int,
    gpu_memory_utilization: float,
    max_model_len: int,
    concurrent_prefills: int,
    kv_format: KvFormat = KvFormat.BF16,
    chunk_tokens: int = CHUNK_TOKENS,
    max_num_batched_tokens: int = 1,
) -> int:
    """PD_BUFFER_SIZE at a given share of the GPU for vLLM, a whole number of chunks. `concurrent_prefills`: prefillers times max-num-seqs.

    Where not one prompt of full length, or one prefill step, fits, it is their size all the same: the memory budget then says no.
    """
    prompt = minimum_pd_buffer_bytes(model, max_model_len, tensor_parallel_size, kv_format, chunk_tokens)
    chunk = chunk_bytes(model, tensor_parallel_size, kv_format, chunk_tokens)
    step = -(-prefill_step_kv_bytes(model, max_num_batched_tokens, tensor_parallel_size, kv_format) // chunk) * chunk
    wanted = hold_and_wait_pd_buffer_bytes(model, concurrent_prefills, max_model_len, tensor_parallel_size, kv_format, chunk_tokens)
    room = gpu.memory_bytes - engine_bytes(gpu, gpu_memory_utilization) - reserve_bytes(tensor_parallel_size) - MARGIN_BYTES
    most = max(room // prompt, 1) * prompt
    return max(min(max(wanted, DEFAULT_PD_BUFFER_BYTES // chunk * chunk), most), step)


@formula(
    "highest_gpu_memory_utilization with 1 GiB to spare, at most 0.9",
    Unit.RATIO,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="the guide's own value is 0.75",
)
def auto_gpu_memory_utilization(gpu: Gpu, pd_buffer_bytes: int, tensor_parallel_size: int) -> float:
    """`--gpu-memory-utilization` beside a PD buffer. Raises ValueError where the buffer leaves no room at all."""
    return min(COLOCATED_GPU_MEMORY_UTILIZATION, highest_gpu_memory_utilization(gpu, pd_buffer_bytes + MARGIN_BYTES, tensor_parallel_size))


@formula("min(512, sequences of context_tokens that the decoder's KV pool holds), at least 1", Unit.REQUESTS, Confidence.MODELLED, VLLM)
def auto_decode_max_num_seqs(serving: Serving, context_tokens: int) -> int:
    """`--max-num-seqs` of a decoder whose sequences have so many tokens."""
    at_least(1, context_tokens=context_tokens)
    return max(1, min(MAX_BATCH, serving.decode_budget.sequences(context_tokens)))


@formula(
    "min(16, guaranteed_requests of max_model_len tokens / prefillers), at least 1",
    Unit.REQUESTS,
    Confidence.MODELLED,
    LMCACHE,
    DPD_GUIDE,
    note="so many prompts of full length never wait for each other's chunks; 16 is the guide's own value",
)
def auto_prefill_max_num_seqs(serving: Serving) -> int:
    """`--max-num-seqs` of a prefiller: what hold_and_wait_pd_buffer_bytes asks for, solved for the sequences."""
    return max(1, min(PREFILL_MAX_NUM_SEQS, serving.held_prompts // serving.most_prefillers))


def auto_replicas(
    serving: Serving, workload: Workload, routing_threshold: int = 0, *, prefillers: bool = True, decoders: bool = True
) -> Serving | None:
    """The same with the fewest prefillers, and then the fewest decoders, that keep up with an open load; None where 64 of each do not.

    Only what is asked for changes. A closed load needs no more than one of each: its users wait. Raises `OutsideValidityError` where times
    are not modelled, ValueError where max-model-len leaves nothing of the load.
    """
    workload = serving.served(workload)
    if workload.requests_per_second is None:
        return replace(serving, prefillers=1 if prefillers else serving.prefillers, decoders=1 if decoders else serving.decoders)

    def keeps_up(prefill: int, decode: int) -> bool:
        return disaggregated(replace(serving, prefillers=prefill, decoders=decode), workload, routing_threshold).keeps_up

    most_prefill = MOST_REPLICAS if prefillers else serving.prefillers
    most_decode = MOST_REPLICAS if decoders else serving.decoders
    if not keeps_up(most_prefill, most_decode):
        return None
    decode = _fewest(lambda count: keeps_up(most_prefill, count)) if decoders else serving.decoders
    prefill = _fewest(lambda count: keeps_up(count, decode)) if prefillers else serving.prefillers
    return replace(serving, prefillers=prefill, decoders=decode)


def _fewest(enough: Callable[[int], bool]) -> int:
    """The smallest count that is enough; more is never less."""
    low, high = 1, MOST_REPLICAS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
