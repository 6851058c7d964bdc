"""What a user left out: PD buffer, gpu-memory-utilization, max-num-seqs and replicas, from the same formulas as everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import AI_CONFIGURATOR, DPD_GUIDE, LMCACHE, VLLM, Confidence
from dpd_infra.plan.sizing.buffer import (
    CHUNK_TOKENS,
    DEFAULT_PD_BUFFER_BYTES,
    SUGGESTED_PD_BUFFER_BYTES,
    hold_and_wait_pd_buffer_bytes,
    minimum_pd_buffer_bytes,
)
from dpd_infra.plan.sizing.memory import MARGIN_BYTES, engine_bytes, highest_gpu_memory_utilization, reserve_bytes
from dpd_infra.plan.sizing.outcome import disaggregated
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula
from dpd_infra.plan.sizing.serving import COLOCATED_GPU_MEMORY_UTILIZATION, Serving
from dpd_infra.plan.sizing.step import MAX_BATCH
from dpd_infra.plan.sizing.workload import Workload

MOST_REPLICAS = 64
"""How far the search for enough replicas goes."""


@formula(
    "the smallest of 8, 16 and 32 GiB that is at least hold_and_wait_pd_buffer_bytes and fits; else the largest that fits; never below "
    "minimum_pd_buffer_bytes",
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
) -> int:
    """PD_BUFFER_SIZE at a given share of the GPU for vLLM. `concurrent_prefills`: prefillers times their max-num-seqs.

    Where none of the sizes fits, the guide's 8 GiB or one prompt of full length, whichever is larger: the memory budget then says no.
    """
    wanted = hold_and_wait_pd_buffer_bytes(model, concurrent_prefills, max_model_len, tensor_parallel_size, kv_format, chunk_tokens)
    least = minimum_pd_buffer_bytes(model, max_model_len, tensor_parallel_size, kv_format, chunk_tokens)
    room = gpu.memory_bytes - engine_bytes(gpu, gpu_memory_utilization) - reserve_bytes(tensor_parallel_size) - MARGIN_BYTES
    fitting = [size for size in SUGGESTED_PD_BUFFER_BYTES if size <= room]
    chosen = next((size for size in fitting if size >= wanted), fitting[-1] if fitting else DEFAULT_PD_BUFFER_BYTES)
    return max(chosen, least)


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


def auto_replicas(serving: Serving, workload: Workload, routing_threshold: int = 0) -> Serving | None:
    """The same with the fewest prefillers, and then the fewest decoders, that keep up with an open load; None where 64 of each do not.

    A closed load needs no more than one of each: its users wait. Raises `OutsideValidityError` where times are not modelled.
    """
    one = replace(serving, prefillers=1, decoders=1)
    if workload.requests_per_second is None:
        return one
    many = replace(serving, prefillers=MOST_REPLICAS, decoders=MOST_REPLICAS)
    if not disaggregated(many, workload, routing_threshold).keeps_up:
        return None
    decoders = _fewest(lambda count: disaggregated(replace(many, decoders=count), workload, routing_threshold).keeps_up)
    prefillers = _fewest(lambda count: disaggregated(replace(many, prefillers=count), workload, routing_threshold).keeps_up)
    return replace(serving, prefillers=prefillers, decoders=decoders)


def _fewest(enough: Callable[[int], bool]) -> int:
    return next(count for count in range(1, MOST_REPLICAS + 1) if enough(count))
