"""The plant of a simulation from an endpoint's serving side, and from the same GPUs colocated."""

from __future__ import annotations

from dpd_infra.plan.advice.plant import Plant
from dpd_infra.plan.sizing.buffer import buffer_chunks
from dpd_infra.plan.sizing.decode import decode_seconds
from dpd_infra.plan.sizing.outcome import ROUTER_OVERESTIMATE
from dpd_infra.plan.sizing.prefill import prefill_seconds
from dpd_infra.plan.sizing.rates import DECODE_CORRECTION, PREFILL_CORRECTION
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.step import MAX_BATCH, MAX_TOKENS
from dpd_infra.plan.sizing.transfer import transfer_seconds
from dpd_infra.plan.sizing.workload import Workload


def disaggregated_plant(
    serving: Serving, workload: Workload, routing_threshold: int = 0, overestimate: float = ROUTER_OVERESTIMATE
) -> Plant:
    """Prefillers and decoders of an endpoint, with AIConfigurator's corrections of their times.

    Raises `OutsideValidityError` when it is run where times are not modelled, ValueError for a buffer smaller than a chunk.
    """

    def alone(tokens: int) -> float:
        cached = workload.cached_tokens(tokens)
        return prefill_seconds(serving.model, serving.gpu, serving.tensor_parallel_size, tokens, cached)

    return Plant(
        prefillers=serving.prefillers,
        decoders=serving.decoders,
        prefill_seconds=lambda tokens: PREFILL_CORRECTION * alone(tokens),
        local_prefill_seconds=alone,
        transfer_seconds=lambda tokens: transfer_seconds(
            serving.model, serving.instance, tokens, serving.tensor_parallel_size, serving.kv_format
        ),
        step_seconds=lambda batch, context: DECODE_CORRECTION * _step(serving, batch, context),
        max_num_seqs=min(MAX_BATCH, serving.decode.max_num_seqs),
        kv_pool_tokens=serving.decode_budget.kv_pool_tokens,
        buffer_chunks=buffer_chunks(serving.pd_buffer_bytes, serving.chunk_bytes),
        chunk_tokens=serving.chunk_tokens,
        routing_threshold=routing_threshold,
        overestimate=overestimate,
    )


def colocated_plant(serving: Serving, workload: Workload, engines: int = 0) -> Plant:
    """`engines` engines that do both, by default as many as there are prefillers and decoders."""

    def alone(tokens: int) -> float:
        cached = workload.cached_tokens(tokens)
        return prefill_seconds(serving.model, serving.gpu, serving.tensor_parallel_size, tokens, cached)

    return Plant(
        prefillers=0,
        decoders=engines or serving.prefillers + serving.decoders,
        prefill_seconds=alone,
        local_prefill_seconds=alone,
        transfer_seconds=lambda _tokens: 0.0,
        step_seconds=lambda batch, context: _step(serving, batch, context),
        max_num_seqs=MAX_BATCH,
        kv_pool_tokens=serving.colocated_budget.kv_pool_tokens,
    )


def _step(serving: Serving, batch: int, context_tokens: int) -> float:
    tokens = min(MAX_TOKENS, context_tokens)
    return decode_seconds(serving.model, serving.gpu, serving.tensor_parallel_size, batch, tokens, serving.kv_format)
