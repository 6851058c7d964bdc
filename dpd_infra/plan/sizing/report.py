"""The sizing of one endpoint as a report: sections of quantities, what could not be modelled, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dpd_infra.catalog.prices import DEFAULT_PRICES, PriceList
from dpd_infra.plan.sizing.buffer import (
    buffer_chunks,
    chunk_bytes,
    guaranteed_requests,
    hold_and_wait_pd_buffer_bytes,
    minimum_pd_buffer_bytes,
    prefill_step_kv_bytes,
    request_buffer_bytes,
    unpadded_requests,
    used_buffer_bytes,
)
from dpd_infra.plan.sizing.calibration import OutsideValidityError
from dpd_infra.plan.sizing.cost import cost_per_million_tokens, hourly_cost
from dpd_infra.plan.sizing.decode import decode_efficiency, decode_floor_seconds, decode_seconds
from dpd_infra.plan.sizing.kv_cache import kv_bytes, kv_bytes_per_token, sequence_kv_bytes
from dpd_infra.plan.sizing.memory import Fit, MemoryBudget
from dpd_infra.plan.sizing.outcome import disaggregated
from dpd_infra.plan.sizing.prefill import prefill_mfu, prefill_seconds
from dpd_infra.plan.sizing.published import PublishedPoint, published_points
from dpd_infra.plan.sizing.quantity import Quantity, Unit, human, json_ready
from dpd_infra.plan.sizing.rates import (
    DECODE_SHARE,
    PREFILL_SHARE,
    decode_rate,
    prefill_rate,
    prefillers_per_decoder,
    replicas,
    reported_tpot_seconds,
    system_rate,
)
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.step import MAX_BATCH
from dpd_infra.plan.sizing.transfer import line_share, transfer_seconds
from dpd_infra.plan.sizing.workload import Workload


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report."""

    title: str
    quantities: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class SizingReport:
    """All numbers of one endpoint."""

    serving: Serving
    workload: Workload | None
    sections: tuple[Section, ...]
    problems: tuple[str, ...]
    """What does not fit, worst first, in one sentence each."""
    not_modelled: tuple[str, ...]
    """Which numbers are missing, and why."""
    published: tuple[PublishedPoint, ...] = field(default=())
    """Published figures of the same set-up beside ours."""

    def quantity(self, name: str) -> Quantity | None:
        """The first quantity of that name."""
        return next((each for section in self.sections for each in section.quantities if each.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        sections = [{"title": section.title, "quantities": [each.to_dict() for each in section.quantities]} for section in self.sections]
        data = {
            "model": self.serving.model.name,
            "instance_type": self.serving.instance.name,
            "tensor_parallel_size": self.serving.tensor_parallel_size,
            "prefillers": self.serving.prefillers,
            "decoders": self.serving.decoders,
            "sections": sections,
            "problems": self.problems,
            "not_modelled": self.not_modelled,
            "published": [point.to_dict() for point in self.published],
        }
        return json_ready(data)


def size_endpoint(serving: Serving, workload: Workload | None = None, prices: PriceList = DEFAULT_PRICES) -> SizingReport:
    """Size one endpoint; with a load also its times, rates and cost. Never fails for what is not modelled: it says so in the report."""
    sections = [_kv_section(serving, workload), _buffer_section(serving, workload)]
    sections += [_memory_section("Memory of a prefill GPU", serving.prefill_budget, serving)]
    sections += [_memory_section("Memory of a decode GPU", serving.decode_budget, serving)]
    missing: list[str] = []
    served = None
    if workload is not None:
        served = serving.served(workload)
        for section in (_time_section, _rate_section):
            try:
                sections.append(section(serving, served))
            except OutsideValidityError as error:
                if str(error) not in missing:
                    missing.append(str(error))
    cost, why = _cost_section(serving, served, prices)
    if cost:
        sections.append(cost)
    missing.extend(why)
    return SizingReport(serving, workload, tuple(sections), problems(serving, workload), tuple(missing), published_points(serving))


def _of(label: str, quantity: Quantity) -> Quantity:
    return replace(quantity, label=label)


def _kv_section(serving: Serving, workload: Workload | None) -> Section:
    model, ranks, kv_format = serving.model, serving.tensor_parallel_size, serving.kv_format
    quantities = [
        kv_bytes_per_token.quantity(model, ranks, kv_format),
        chunk_bytes.quantity(model, ranks, kv_format, serving.chunk_tokens),
        _of("max-model-len", sequence_kv_bytes.quantity(model, serving.max_model_len, ranks, kv_format)),
    ]
    if workload is not None:
        mean = round(workload.input.mean)
        quantities.append(_of(f"prompt of {mean:,} tokens", kv_bytes.quantity(model, mean, ranks, kv_format)))
        quantities.append(
            _of(f"prompt of {mean:,} tokens", request_buffer_bytes.quantity(model, mean, ranks, kv_format, serving.chunk_tokens))
        )
    return Section("KV cache, each rank", tuple(quantities))


def _buffer_section(serving: Serving, workload: Workload | None) -> Section:
    model, ranks, kv_format, chunk = serving.model, serving.tensor_parallel_size, serving.kv_format, serving.chunk_tokens
    size = serving.pd_buffer_bytes
    lengths = {"max-model-len": serving.max_model_len}
    if workload is not None:
        lengths |= {"mean prompt": round(workload.input.mean), "p95 prompt": workload.input.percentile(95)}
    quantities: list[Quantity] = []
    if size >= serving.chunk_bytes:
        quantities += [buffer_chunks.quantity(size, serving.chunk_bytes), used_buffer_bytes.quantity(size, serving.chunk_bytes)]
        for label, tokens in lengths.items():
            held = guaranteed_requests.quantity(model, size, tokens, ranks, kv_format, chunk)
            quantities.append(_of(f"{label}, {tokens:,} tokens", held))
    mean = lengths.get("mean prompt", serving.max_model_len)
    concurrent = serving.concurrent_prefills
    quantities += [
        _of(f"{mean:,} tokens", unpadded_requests.quantity(model, size, mean, ranks, kv_format)),
        minimum_pd_buffer_bytes.quantity(model, serving.max_model_len, ranks, kv_format, chunk),
        prefill_step_kv_bytes.quantity(model, serving.prefill.max_num_batched_tokens, ranks, kv_format),
        hold_and_wait_pd_buffer_bytes.quantity(model, concurrent, serving.max_model_len, ranks, kv_format, chunk),
    ]
    return Section("PD buffer, each rank", tuple(quantities))


def _memory_section(title: str, budget: MemoryBudget, serving: Serving) -> Section:
    del serving
    return Section(title, budget.explain())


def _time_section(serving: Serving, workload: Workload) -> Section:
    model, gpu, ranks, kv_format = serving.model, serving.gpu, serving.tensor_parallel_size, serving.kv_format
    prompt, context = round(workload.input.mean), _context(workload)
    batch = max(1, round(disaggregated(serving, workload).batch))
    cached = workload.cached_tokens(prompt)
    quantities = [
        prefill_seconds.quantity(model, gpu, ranks, prompt, cached),
        prefill_mfu.quantity(model, gpu, ranks, prompt),
        decode_floor_seconds.quantity(model, gpu, ranks, batch, context, kv_format),
        decode_seconds.quantity(model, gpu, ranks, batch, context, kv_format),
        decode_efficiency.quantity(model, gpu, ranks, batch, context, kv_format),
        reported_tpot_seconds.quantity(decode_seconds(model, gpu, ranks, batch, context, kv_format)),
    ]
    if serving.instance.efa_bytes_per_second_per_gpu:
        quantities.insert(2, transfer_seconds.quantity(model, serving.instance, prompt, ranks, kv_format))
    return Section(f"Times: prompt {prompt:,}, batch {batch}, context {context:,} tokens", tuple(quantities))


def _rate_section(serving: Serving, workload: Workload) -> Section:
    model, gpu, ranks = serving.model, serving.gpu, serving.tensor_parallel_size
    seconds = workload.input.mean_of(lambda tokens: prefill_seconds(model, gpu, ranks, tokens, workload.cached_tokens(tokens)))
    context = _context(workload)
    # Of an open load the decoder's rate is that of all its places; of a closed one there are no more sequences than users.
    users = workload.concurrency / serving.decoders if workload.concurrency is not None else MAX_BATCH
    batch = max(1, min(serving.decode_limit(context), round(users)))
    step = decode_seconds(model, gpu, ranks, batch, context, serving.kv_format)
    one_prefiller, one_decoder = prefill_rate(seconds), decode_rate(batch, workload.output.mean, step)
    quantities = [
        prefill_rate.quantity(seconds),
        decode_rate.quantity(batch, workload.output.mean, step),
        prefillers_per_decoder.quantity(one_prefiller, one_decoder),
        system_rate.quantity(serving.prefillers, one_prefiller, serving.decoders, one_decoder),
    ]
    if workload.requests_per_second is not None:
        rate = workload.requests_per_second
        quantities.append(_of("prefill", replicas.quantity(rate, one_prefiller * PREFILL_SHARE)))
        quantities.append(_of("decode", replicas.quantity(rate, one_decoder * DECODE_SHARE)))
        if serving.instance.efa_bytes_per_second_per_gpu:
            move = transfer_seconds(model, serving.instance, round(workload.input.mean), ranks, serving.kv_format)
            quantities.append(line_share.quantity(rate / serving.decoders, move))
    return Section("Rates", tuple(quantities))


def _cost_section(serving: Serving, workload: Workload | None, prices: PriceList) -> tuple[Section | None, list[str]]:
    hourly = hourly_cost(prices, serving.instance.name, serving.gpus, serving.instance.gpus)
    if hourly is None:
        return None, [f"cost: no price of {serving.instance.name} is known; prices are an input ({prices.source.reference})"]
    quantities = [hourly]
    if workload is not None:
        try:
            result = disaggregated(serving, workload)
        except OutsideValidityError:
            return Section("Cost", (hourly,)), []
        quantities.append(cost_per_million_tokens.quantity(hourly.value, result.output_tokens_per_second))
    return Section("Cost", tuple(quantities)), []


def problems(serving: Serving, workload: Workload | None = None, *, colocated: bool = False) -> tuple[str, ...]:
    """What does not fit, and what only just does. `colocated`: one kind of pod does both, without a PD buffer."""
    found: list[str] = []
    too_long = workload.input.share_from(serving.max_model_len) if workload else 0.0
    if too_long:
        found.append(
            f"{too_long:.1%} of the prompts leave no room for an answer in max-model-len {serving.max_model_len:,}: vLLM refuses them"
        )
    if colocated:
        serving = replace(serving, pd_buffer_bytes=0)
    budgets = {"prefill": serving.prefill_budget, "decode": serving.decode_budget} if not colocated else {"pod": serving.decode_budget}
    for role, budget in budgets.items():
        if budget.kv_pool_bytes <= 0:
            found.append(f"{role}: weights and activations do not fit vLLM's share of the GPU, {_size(-budget.kv_pool_bytes)} are missing")
        elif budget.sequence_fit(serving.max_model_len) is Fit.DOES_NOT_FIT:
            found.append(
                f"{role}: the KV pool holds {budget.kv_pool_tokens:,} tokens, fewer than max-model-len {serving.max_model_len:,}: "
                "vLLM does not start"
            )
        if budget.buffer_fit is Fit.DOES_NOT_FIT:
            found.append(f"{role}: the PD buffer does not fit beside vLLM's share, {_size(-budget.headroom_bytes)} are missing")
        elif budget.buffer_fit is Fit.MARGINAL:
            found.append(f"{role}: only {_size(budget.headroom_bytes)} stay free beside vLLM's share and the PD buffer")
    if colocated:
        return tuple(found)
    smallest = minimum_pd_buffer_bytes(
        serving.model, serving.max_model_len, serving.tensor_parallel_size, serving.kv_format, serving.chunk_tokens
    )
    if serving.pd_buffer_bytes < smallest:
        found.append(f"the PD buffer is smaller than one prompt of max-model-len needs ({_size(smallest)})")
    worst = smallest * serving.prefillers * serving.prefill.max_num_seqs
    if smallest <= serving.pd_buffer_bytes < worst:
        found.append(f"worst case only: as many prefills of full length as max-num-seqs allows need {_size(worst)} of PD buffer at once")
    return tuple(found)


def _size(count: float) -> str:
    return human(count, Unit.BYTES)


def _context(workload: Workload) -> int:
    return round(workload.input.mean + workload.output.mean / 2)
