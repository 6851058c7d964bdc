"""What a load gets from an endpoint in the mean: throughput, TTFT, TPOT and what holds it back, disaggregated and colocated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpd_infra.plan.sizing.decode import decode_seconds
from dpd_infra.plan.sizing.prefill import prefill_seconds
from dpd_infra.plan.sizing.quantity import at_least
from dpd_infra.plan.sizing.rates import DECODE_CORRECTION, DECODE_SHARE, PREFILL_CORRECTION, PREFILL_SHARE, steady_batch
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.step import MAX_BATCH
from dpd_infra.plan.sizing.transfer import transfer_seconds
from dpd_infra.plan.sizing.workload import Lengths, Workload

ROUTER_OVERESTIMATE = 6750 / 6035
"""The router's own token estimate over the real tokens, in the sample of the DPD guide: about 1.12."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Means of one way to serve a load."""

    name: str
    engines: int
    gpus: int
    keeps_up: bool
    """Whether the load is served without a queue that grows for ever. Where it is not, rates are the most that is served."""
    limited_by: str
    """What would give way first: `prefill`, `decode` or `users` (a closed load that nothing holds back)."""
    requests_per_second: float
    output_tokens_per_second: float
    tpot_seconds: float
    ttft_seconds: float
    """Infinite for an open load that is not kept up with."""
    batch: float
    """Sequences that decode at one time on one engine."""
    prefill_utilisation: float
    """Share of its time that an engine which prefills spends on it."""

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """Output tokens a second and GPU."""
        return self.output_tokens_per_second / self.gpus

    def request_seconds(self, output_tokens: float) -> float:
        """From a request to the end of its answer."""
        return self.ttft_seconds + max(0.0, output_tokens - 1) * self.tpot_seconds


@dataclass(frozen=True, slots=True)
class _Prompts:
    """The prompts of one path: their share of the requests, and mean and mean square of their prefill time."""

    share: float
    mean_tokens: float
    seconds: float
    square: float

    @classmethod
    def of(cls, serving: Serving, workload: Workload, lengths: Lengths | None) -> _Prompts:
        if lengths is None:
            return cls(0.0, 0.0, 0.0, 0.0)

        def one(tokens: int) -> float:
            cached = workload.cached_tokens(tokens)
            return prefill_seconds(serving.model, serving.gpu, serving.tensor_parallel_size, tokens, cached)

        times = [(weight, one(tokens)) for weight, tokens in lengths.buckets()]
        seconds, square = sum(weight * time for weight, time in times), sum(weight * time**2 for weight, time in times)
        return cls(len(lengths.values) / len(workload.input.values), lengths.mean, seconds, square)


def disaggregated(serving: Serving, workload: Workload, routing_threshold: int = 0, overestimate: float = ROUTER_OVERESTIMATE) -> Outcome:
    """Prefillers and decoders, with the router's threshold: shorter prompts are prefilled by the decoder itself.

    Rates as AIConfigurator matches them: prefill 1.1 times and decode 1.08 times as long as alone, and 0.9 and 0.92 of the rates that
    follow. Raises `OutsideValidityError` where times are not modelled.
    """
    at_least(0, routing_threshold=routing_threshold)
    workload = serving.served(workload)
    border = routing_threshold / overestimate
    remote = _Prompts.of(serving, workload, workload.input.part(border))
    local = _Prompts.of(serving, workload, workload.input.part(0, border))
    prefill = PREFILL_CORRECTION * remote.seconds
    output, context = workload.output.mean, _context(workload)
    limit = min(MAX_BATCH, serving.decode_limit(context))
    move = _move(serving, remote.mean_tokens)
    most_prefills = serving.prefillers * PREFILL_SHARE / (remote.share * prefill) if remote.share else float("inf")

    def step(batch: float) -> float:
        return DECODE_CORRECTION * _step(serving, batch, context)

    if workload.concurrency is not None:
        batch = min(limit, workload.concurrency / serving.decoders)
        stall = batch * local.share * local.seconds
        most_decodes = serving.decoders * DECODE_SHARE * batch / (stall + output * step(batch))
        rate = min(most_prefills, most_decodes)
        tpot = step(batch) + max(0.0, batch - 1) * local.share * local.seconds / output
        least = remote.share * (prefill + move) + local.share * local.seconds + step(batch)
        ttft = max(least, workload.concurrency / rate - (output - 1) * tpot)
        limited = "prefill" if most_prefills < most_decodes else "users" if batch < limit else "decode"
        return _outcome("disaggregated", serving, workload, rate, tpot, ttft, batch, rate / most_prefills * PREFILL_SHARE, limited=limited)

    rate = workload.requests_per_second or 0.0
    stalled = rate / serving.decoders * local.share * local.seconds
    found = None if stalled >= 1 else steady_batch(rate / serving.decoders, output, lambda b: step(b) / (1 - stalled), limit)
    utilisation = rate / most_prefills * PREFILL_SHARE
    if found is None or rate > most_prefills:
        full = serving.decoders * DECODE_SHARE * limit / (limit * local.share * local.seconds + output * step(limit))
        served = min(most_prefills, full, rate)
        limited = "prefill" if most_prefills < full else "decode"
        tpot = step(limit if found is None else found) / max(1e-9, 1 - min(stalled, 1 - 1e-9))
        batch = limit if found is None else found
        return _outcome("disaggregated", serving, workload, served, tpot, float("inf"), batch, utilisation, limited=limited, keeps_up=False)
    tpot = step(found) / (1 - stalled)
    wait = _wait(rate * remote.share / serving.prefillers, PREFILL_CORRECTION**2 * remote.square, prefill) if remote.share else 0.0
    local_wait = _wait(rate * local.share / serving.decoders, local.square, local.seconds) if local.share else 0.0
    ttft = remote.share * (wait + prefill + move) + local.share * (local_wait + local.seconds) + tpot
    limited = "prefill" if utilisation / PREFILL_SHARE > found / limit else "decode"
    return _outcome("disaggregated", serving, workload, rate, tpot, ttft, found, utilisation, limited=limited)


def colocated(serving: Serving, workload: Workload, engines: int = 0) -> Outcome:
    """`engines` engines that each prefill and decode; as many as there are prefillers and decoders by default: the same GPUs.

    While an engine prefills a prompt its other answers stand still, which is what chunked prefill amounts to in the mean.
    """
    workload = serving.served(workload)
    count = engines or serving.prefillers + serving.decoders
    prompts = _Prompts.of(serving, workload, workload.input)
    output, context = workload.output.mean, _context(workload)
    limit = min(MAX_BATCH, serving.colocated_limit(context))

    def step(batch: float) -> float:
        return _step(serving, batch, context)

    def outcome(rate: float, tpot: float, ttft: float, batch: float, busy: float, limited: str, *, keeps_up: bool = True) -> Outcome:
        return _outcome("colocated", serving, workload, rate, tpot, ttft, batch, busy, engines=count, limited=limited, keeps_up=keeps_up)

    if workload.concurrency is not None:
        batch = min(limit, workload.concurrency / count)
        rate = count * batch / (max(1.0, batch) * prompts.seconds + output * step(batch))
        tpot = step(batch) + max(0.0, batch - 1) * prompts.seconds / output
        ttft = max(prompts.seconds + step(batch), workload.concurrency / rate - (output - 1) * tpot)
        return outcome(rate, tpot, ttft, batch, rate / count * prompts.seconds, "users" if batch < limit else "decode")

    rate = workload.requests_per_second or 0.0
    busy = rate / count * prompts.seconds
    found = None if busy >= 1 else steady_batch(rate / count, output, lambda b: step(b) / (1 - busy), limit)
    if found is None:
        most = count * limit / (limit * prompts.seconds + output * step(limit))
        limited = "prefill" if limit * prompts.seconds > output * step(limit) else "decode"
        return outcome(min(most, rate), step(limit) + limit * prompts.seconds / output, float("inf"), limit, busy, limited, keeps_up=False)
    tpot = step(found) / (1 - busy)
    ttft = _wait(rate / count, prompts.square, prompts.seconds) + prompts.seconds + tpot
    return outcome(rate, tpot, ttft, found, busy, "prefill" if busy > found / limit else "decode")


def _outcome(
    name: str,
    serving: Serving,
    workload: Workload,
    rate: float,
    tpot: float,
    ttft: float,
    batch: float,
    utilisation: float,
    *,
    limited: str,
    keeps_up: bool = True,
    engines: int = 0,
) -> Outcome:
    count = engines or serving.prefillers + serving.decoders
    gpus = count * serving.tensor_parallel_size
    return Outcome(name, count, gpus, keeps_up, limited, rate, rate * workload.output.mean, tpot, ttft, batch, min(1.0, utilisation))


def _context(workload: Workload) -> int:
    """The mean context of a decode step: the prompt and half of the answer."""
    return round(workload.input.mean + workload.output.mean / 2)


def _step(serving: Serving, batch: float, context_tokens: int) -> float:
    """A decode step at a batch that need not be whole: between its neighbours."""
    low = max(1, int(batch))
    time: Callable[[int], float] = lambda b: decode_seconds(  # noqa: E731  # one call with five arguments the same
        serving.model, serving.gpu, serving.tensor_parallel_size, b, context_tokens, serving.kv_format
    )
    if batch <= low or low >= MAX_BATCH:
        return time(low)
    return time(low) + (time(low + 1) - time(low)) * (batch - low)


def _move(serving: Serving, tokens: float) -> float:
    return (
        transfer_seconds(serving.model, serving.instance, round(tokens), serving.tensor_parallel_size, serving.kv_format) if tokens else 0.0
    )


def _wait(rate: float, mean_square_seconds: float, mean_seconds: float) -> float:
    """Mean wait of an M/G/1 queue (Pollaczek-Khinchine); infinite where it does not keep up."""
    busy = rate * mean_seconds
    return rate * mean_square_seconds / (2 * (1 - busy)) if busy < 1 else float("inf")
