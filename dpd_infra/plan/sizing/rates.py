"""Rates of engines, the prefill:decode ratio that matches them, the batch a decoder settles at, and the replicas a load needs."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from dpd_infra.catalog.sources import AI_CONFIGURATOR, Confidence
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula

PREFILL_CORRECTION = 1.1
"""Prefill of a disaggregated engine against the same prefill alone (AIConfigurator)."""
DECODE_CORRECTION = 1.08
"""The same for a decode step."""
TTFT_QUEUE_FACTOR = 1.8
"""Waiting at 15 to 20 requests in flight that AIConfigurator adds to a reported TTFT."""
PREFILL_SHARE = 0.9
"""Of the prefill rate: pipeline bubbles (AIConfigurator)."""
DECODE_SHARE = 0.92
"""Of the decode rate: batches that are not full (AIConfigurator)."""


@formula("batch / (1.1 * prefill_seconds)", Unit.REQUESTS_PER_SECOND, Confidence.MODELLED, AI_CONFIGURATOR)
def prefill_rate(prefill_seconds: float, batch: int = 1) -> float:
    """Prompts that one prefiller takes in a second."""
    _above_zero(prefill_seconds=prefill_seconds, batch=batch)
    return batch / (PREFILL_CORRECTION * prefill_seconds)


@formula("batch / (output_tokens * 1.08 * decode_seconds)", Unit.REQUESTS_PER_SECOND, Confidence.MODELLED, AI_CONFIGURATOR)
def decode_rate(batch: int, output_tokens: float, decode_seconds: float) -> float:
    """Answers of `output_tokens` tokens that one decoder finishes in a second while it runs `batch` of them."""
    _above_zero(batch=batch, output_tokens=output_tokens, decode_seconds=decode_seconds)
    return batch / (output_tokens * DECODE_CORRECTION * decode_seconds)


@formula(
    "min(prefillers * prefill_rate * 0.9, decoders * decode_rate * 0.92)", Unit.REQUESTS_PER_SECOND, Confidence.MODELLED, AI_CONFIGURATOR
)
def system_rate(prefillers: int, prefill_rate: float, decoders: int, decode_rate: float) -> float:
    """Requests that a disaggregated endpoint takes in a second: the slower of its two roles."""
    at_least(1, prefillers=prefillers, decoders=decoders)
    _above_zero(prefill_rate=prefill_rate, decode_rate=decode_rate)
    return min(prefillers * prefill_rate * PREFILL_SHARE, decoders * decode_rate * DECODE_SHARE)


@formula("decode_rate * 0.92 / (prefill_rate * 0.9)", Unit.RATIO, Confidence.MODELLED, AI_CONFIGURATOR)
def prefillers_per_decoder(prefill_rate: float, decode_rate: float) -> float:
    """Prefillers that one decoder keeps up with: round up for a ratio that is not bound by prefill."""
    _above_zero(prefill_rate=prefill_rate, decode_rate=decode_rate)
    return decode_rate * DECODE_SHARE / (prefill_rate * PREFILL_SHARE)


@formula("1.1 * 1.8 * prefill_seconds", Unit.SECONDS, Confidence.MODELLED, AI_CONFIGURATOR)
def reported_ttft_seconds(prefill_seconds: float) -> float:
    """TTFT that the library reports for a disaggregated endpoint."""
    return PREFILL_CORRECTION * TTFT_QUEUE_FACTOR * prefill_seconds


@formula("1.08 * decode_seconds", Unit.SECONDS, Confidence.MODELLED, AI_CONFIGURATOR)
def reported_tpot_seconds(decode_seconds: float) -> float:
    """TPOT that the library reports for a decoder."""
    return DECODE_CORRECTION * decode_seconds


@formula("ceil(requests_per_second / engine_rate)", Unit.REPLICAS, Confidence.MODELLED, AI_CONFIGURATOR)
def replicas(requests_per_second: float, engine_rate: float) -> int:
    """Engines that a rate needs, at least one."""
    at_least(0, requests_per_second=requests_per_second)
    _above_zero(engine_rate=engine_rate)
    return max(1, ceil(requests_per_second / engine_rate - 1e-9))


def steady_batch(requests_per_second: float, output_tokens: float, step_seconds: Callable[[int], float], limit: int) -> int | None:
    """The batch an engine settles at: the smallest whole batch with `batch >= rate * output_tokens * step_seconds(batch)` (Little's law).

    None where no batch up to `limit` keeps up: the queue grows without end.
    """
    at_least(0, requests_per_second=requests_per_second, output_tokens=output_tokens)
    at_least(1, limit=limit)

    def keeps_up(batch: int) -> bool:
        return batch >= requests_per_second * output_tokens * step_seconds(batch)

    if not keeps_up(limit):
        # The step grows a little faster than the batch where weights give way to computing: a smaller batch may still hold.
        return next((batch for batch in range(1, limit) if keeps_up(batch)), None)
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        if keeps_up(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _above_zero(**values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"{name} is {value:,}, and must be above 0")
