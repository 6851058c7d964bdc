"""How full the PD buffer gets: what fits at worst, what is expected, and from when on prefills wait for chunks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpd_infra.plan.sizing.buffer import buffer_chunks, guaranteed_requests, hold_and_wait_pd_buffer_bytes, request_chunks
from dpd_infra.plan.sizing.outcome import ROUTER_OVERESTIMATE, disaggregated
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.transfer import transfer_seconds
from dpd_infra.plan.sizing.workload import Workload

FULL_LOG_LINE = "Failed to allocate memory object, retrying..."
"""What the decoder logs while a prefill waits for chunks (DPD guide, LMCache 0.4.3)."""


@dataclass(frozen=True, slots=True)
class BufferUse:
    """The PD buffer of one decoder under a load."""

    chunks: int
    fits: dict[str, int]
    """Requests that fit at one time, by what length they have."""
    worst_case_bytes: int
    """Buffer at which no prefill ever waits for another one's chunks."""
    worst_case_waits: bool
    """Whether as many prefills of full length as max-num-seqs allows could wait for each other."""
    expected_chunks: float
    """Chunks in use in the mean while the decoder takes prompts in at once; infinite where the load is not kept up with."""
    expected_share: float
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The use as plain data."""
        return asdict(self)


def buffer_use(serving: Serving, workload: Workload, routing_threshold: int = 0, overestimate: float = ROUTER_OVERESTIMATE) -> BufferUse:
    """How a load uses the PD buffer.

    Raises `OutsideValidityError` where times are not modelled, ValueError for a buffer below one chunk.
    """
    workload = serving.served(workload)
    chunks = buffer_chunks(serving.pd_buffer_bytes, serving.chunk_bytes)
    lengths = {
        f"median prompt, {workload.input.percentile(50):,} tokens": workload.input.percentile(50),
        f"p95 prompt, {workload.input.percentile(95):,} tokens": workload.input.percentile(95),
        f"longest prompt, {workload.input.largest:,} tokens": workload.input.largest,
        f"max-model-len, {serving.max_model_len:,} tokens": serving.max_model_len,
    }
    fits = {
        label: guaranteed_requests(
            serving.model, serving.pd_buffer_bytes, tokens, serving.tensor_parallel_size, serving.kv_format, serving.chunk_tokens
        )
        for label, tokens in lengths.items()
    }
    concurrent = serving.concurrent_prefills
    worst = hold_and_wait_pd_buffer_bytes(
        serving.model, concurrent, serving.max_model_len, serving.tensor_parallel_size, serving.kv_format, serving.chunk_tokens
    )
    outcome = disaggregated(serving, workload, routing_threshold, overestimate)
    remote = workload.input.part(routing_threshold / overestimate)
    expected = 0.0
    if remote is not None:
        each = remote.mean_of(lambda tokens: float(request_chunks(tokens, serving.chunk_tokens)))
        share = len(remote.values) / len(workload.input.values)
        moved = transfer_seconds(serving.model, serving.instance, round(remote.mean), serving.tensor_parallel_size, serving.kv_format)
        arriving = outcome.requests_per_second * share / serving.decoders * each * (moved + outcome.tpot_seconds)
        # A prompt takes its chunks while it is prefilled: half of them in the mean.
        running = serving.prefillers * outcome.prefill_utilisation / serving.decoders * each / 2
        expected = arriving + running if outcome.keeps_up else float("inf")
    waits = worst > serving.pd_buffer_bytes
    return BufferUse(chunks, fits, worst, waits, expected, expected / chunks, _reasons(serving, expected, chunks, concurrent, waits=waits))


def _reasons(serving: Serving, expected: float, chunks: int, concurrent: int, *, waits: bool) -> tuple[str, ...]:
    reasons: list[str] = []
    if expected == float("inf"):
        reasons.append(f"the load is not kept up with: the buffer fills whatever its size, and the decoder logs `{FULL_LOG_LINE}`")
    elif expected > chunks:
        reasons.append(f"more chunks are in use than there are: the decoder logs `{FULL_LOG_LINE}` all the time")
    else:
        reasons.append(
            f"{expected:,.1f} of {chunks:,} chunks in use in the mean while the decoder has a place free; once its "
            f"{serving.decode.max_num_seqs} sequences are all taken, prompts stay in the buffer, it fills and the decoder logs "
            f"`{FULL_LOG_LINE}`"
        )
    if waits:
        reasons.append(
            f"worst case: {concurrent} prefills of {serving.max_model_len:,} tokens at once need more chunks than there are; each is given "
            "some of its chunks and waits for the rest (LMCache 0.4.3 gives them one at a time)"
        )
    return tuple(reasons)
