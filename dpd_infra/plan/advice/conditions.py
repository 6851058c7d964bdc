"""The documented conditions of disaggregation, each judged for one load: what speaks for it, what against, and how heavily."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from dpd_infra.catalog.sources import AI_CONFIGURATOR, DPD_BLOG, DPD_GUIDE, VLLM, Source
from dpd_infra.plan.advice.counterfactual import Counterfactual
from dpd_infra.plan.sizing.memory import Fit
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Workload

LARGE_PARAMETERS = 68_000_000_000
"""The guide's "dense 70B+": models sold as 70B have 70.6 billion parameters, the limit leaves a little room below."""
SMALL_PARAMETERS = 30_000_000_000
"""Below it a model is small ("small models typically do not benefit"); between the two nothing is documented."""
LONG_PROMPT_TOKENS = 4000
LEAST_RATE = 2.0
LONG_ANSWER_TOKENS = 256
"""The guide's inputs, requests a second and outputs."""
SHORT_ANSWER_TOKENS = 32
"""An answer that is over before anything can interrupt it."""
LOW_IN_FLIGHT = 2.0
"""Requests at one time below which prefill has nobody to interrupt ("not for low concurrency")."""
FEW, MANY = 0.10, 0.50
"""Shares of long prompts below which a load is one of short prompts, and from which on it is one of long prompts."""
LEAST_GAIN = 0.05
"""Gain in TPOT below which the model cannot tell the two ways apart."""


class Side(StrEnum):
    """What a condition says."""

    FOR = "for"
    AGAINST = "against"
    DECISIVE = "decisive against"
    """Enough by itself."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One condition as it stands with this load."""

    topic: str
    side: Side
    weight: int
    """0 to 100: reasons are listed by it."""
    text: str
    source: Source


def reasons(serving: Serving, workload: Workload, counterfactual: Counterfactual | None, nodes_available: int | None) -> tuple[Reason, ...]:
    """Every condition, heaviest first, those against before those for of the same weight."""
    found = [
        *_nodes(serving, nodes_available),
        *_memory(serving),
        *_purpose(workload),
        *_model(serving),
        *_lengths(workload),
        *_load(workload, counterfactual),
    ]
    if counterfactual is not None:
        found += _modelled(serving, counterfactual)
    return tuple(sorted(found, key=lambda reason: (-reason.weight, reason.side is Side.FOR)))


def _nodes(serving: Serving, nodes_available: int | None) -> Iterator[Reason]:
    if not serving.instance.dpd:
        yield Reason("nodes", Side.DECISIVE, 100, f"{serving.instance.name} is not one of the five types that DPD supports", DPD_GUIDE)
    if nodes_available is not None and nodes_available < 2:  # one for each role
        yield Reason("nodes", Side.DECISIVE, 99, "one node is not enough: prefill and decode each need a node of their own", DPD_BLOG)
    elif nodes_available is not None and serving.nodes > nodes_available:
        text = f"{_roles(serving)} fill {serving.nodes} nodes; there are {nodes_available}"
        yield Reason("nodes", Side.DECISIVE, 86, text, AI_CONFIGURATOR)


def _memory(serving: Serving) -> Iterator[Reason]:
    for role, budget in (("prefill", serving.prefill_budget), ("decode", serving.decode_budget)):
        if budget.sequence_fit(serving.max_model_len) is Fit.DOES_NOT_FIT:
            text = f"a {role} GPU holds {budget.kv_pool_tokens:,} tokens beside the weights, max-model-len is {serving.max_model_len:,}"
            yield Reason("memory", Side.DECISIVE, 97, f"{text}: vLLM does not start", VLLM)
            return


def _purpose(workload: Workload) -> Iterator[Reason]:
    if workload.offline:
        yield Reason("purpose", Side.DECISIVE, 98, "a batch job wants throughput, of which the same GPUs give more colocated", DPD_BLOG)
    elif workload.ttft_first:
        yield Reason("purpose", Side.DECISIVE, 90, "the first token comes later when prefill and decode are apart", DPD_BLOG)
    elif workload.streaming:
        yield Reason("purpose", Side.FOR, 40, "answers are streamed: an even flow of tokens is seen", DPD_BLOG)
    else:
        yield Reason("purpose", Side.AGAINST, 40, "answers are not streamed: nobody sees how evenly tokens come", DPD_BLOG)


def _model(serving: Serving) -> Iterator[Reason]:
    model, billions = serving.model, serving.model.parameters / 1e9
    if model.is_mixture:
        text = f"{model.name} is a mixture of experts ({model.active_parameters / 1e9:,.0f} of {billions:,.0f} billion parameters active)"
        yield Reason("model", Side.DECISIVE, 95, f"{text}: these typically do not benefit", DPD_GUIDE)
    elif model.parameters < SMALL_PARAMETERS:
        yield Reason(
            "model",
            Side.DECISIVE,
            94,
            f"{model.name} has {billions:,.1f} billion parameters: small models typically do not benefit",
            DPD_GUIDE,
        )
    elif model.parameters < LARGE_PARAMETERS:
        text = f"{model.name} has {billions:,.1f} billion parameters, fewer than the 70 billion that the guide asks for"
        yield Reason("model", Side.AGAINST, 70, text, DPD_GUIDE)
    else:
        yield Reason("model", Side.FOR, 70, f"{model.name} is dense with {billions:,.1f} billion parameters", DPD_GUIDE)


def _lengths(workload: Workload) -> Iterator[Reason]:
    share, mean = workload.input.share_from(LONG_PROMPT_TOKENS), workload.input.mean
    text = f"{share:.0%} of the prompts have {LONG_PROMPT_TOKENS:,} tokens or more (mean {mean:,.0f})"
    if share < FEW:
        yield Reason("prompts", Side.DECISIVE, 92, f"{text}: short prompts interrupt nobody for long", DPD_BLOG)
    elif share < MANY:
        yield Reason("prompts", Side.AGAINST, 60, f"{text}: whether that is enough must be measured", DPD_GUIDE)
    else:
        yield Reason("prompts", Side.FOR, 65, text, DPD_GUIDE)
    answer = workload.output.mean
    if answer < SHORT_ANSWER_TOKENS:
        text = f"answers of {answer:,.0f} tokens are over before an even flow matters"
        yield Reason("answers", Side.DECISIVE, 88, text, DPD_GUIDE)
    elif answer < LONG_ANSWER_TOKENS:
        text = f"answers of {answer:,.0f} tokens in the mean, fewer than the {LONG_ANSWER_TOKENS} that the guide asks for"
        yield Reason("answers", Side.AGAINST, 50, text, DPD_GUIDE)
    else:
        yield Reason("answers", Side.FOR, 50, f"answers of {answer:,.0f} tokens in the mean", DPD_GUIDE)


def _load(workload: Workload, counterfactual: Counterfactual | None) -> Iterator[Reason]:
    rate, in_flight = workload.requests_per_second, float(workload.concurrency or 0)
    if counterfactual is not None:
        together = counterfactual.colocated.outcome
        rate = rate or together.requests_per_second
        in_flight = in_flight or rate * together.request_seconds(workload.output.mean)
    if in_flight and in_flight < LOW_IN_FLIGHT:
        text = f"{in_flight:,.1f} requests at one time: prefill has hardly anybody to interrupt"
        yield Reason("load", Side.DECISIVE, 91, text, DPD_BLOG)
        return
    if rate is None:
        return
    if rate < LEAST_RATE:
        text = f"{rate:,.2f} requests a second, fewer than the {LEAST_RATE:g} that the guide asks for"
        yield Reason("load", Side.AGAINST, 55, text, DPD_GUIDE)
    else:
        yield Reason("load", Side.FOR, 55, f"{rate:,.1f} requests a second", DPD_GUIDE)


def _modelled(serving: Serving, counterfactual: Counterfactual) -> Iterator[Reason]:
    apart, together = counterfactual.disaggregated.outcome, counterfactual.colocated.outcome
    if not apart.keeps_up:
        side = Side.DECISIVE if together.keeps_up else Side.AGAINST
        text = f"{_roles(serving)} do not keep up ({apart.limited_by} gives way at {apart.requests_per_second:,.2f} requests a second)"
        tail = "; the same GPUs colocated do" if together.keeps_up else "; nor do the same GPUs colocated"
        yield Reason("capacity", side, 87, text + tail, AI_CONFIGURATOR)
        return
    if not together.keeps_up:
        yield Reason("capacity", Side.FOR, 80, "the same GPUs colocated do not keep up with this load", AI_CONFIGURATOR)
        return
    gain = counterfactual.tpot_gain
    text = f"TPOT {apart.tpot_seconds * 1000:,.1f} ms against {together.tpot_seconds * 1000:,.1f} ms on the same GPUs colocated"
    if gain <= -LEAST_GAIN:
        yield Reason("tpot", Side.DECISIVE, 85, f"{text}: nothing is won", AI_CONFIGURATOR)
    elif gain < LEAST_GAIN:
        yield Reason("tpot", Side.AGAINST, 75, f"{text}: no difference that the model can tell", AI_CONFIGURATOR)
    else:
        yield Reason("tpot", Side.FOR, 75, f"{text}, {gain:.0%} lower", AI_CONFIGURATOR)


def _roles(serving: Serving) -> str:
    prefillers = "prefiller" if serving.prefillers == 1 else "prefillers"
    decoders = "decoder" if serving.decoders == 1 else "decoders"
    return f"{serving.prefillers} {prefillers} and {serving.decoders} {decoders}"
