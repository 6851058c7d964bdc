"""Whether to disaggregate: the verdict with its reasons in order of weight, and the same GPUs colocated always beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dpd_infra.catalog.prices import DEFAULT_PRICES, PriceList
from dpd_infra.catalog.sources import DPD_BLOG
from dpd_infra.plan.advice.conditions import LEAST_GAIN, Reason, Side, reasons
from dpd_infra.plan.advice.counterfactual import Counterfactual, Targets, compare
from dpd_infra.plan.sizing.calibration import OutsideValidityError
from dpd_infra.plan.sizing.outcome import disaggregated
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Workload

MOST_PREFILLERS = 16
"""How far the search for enough prefillers goes."""


class Decision(StrEnum):
    """What to do."""

    DISAGGREGATE = "disaggregate"
    DO_NOT = "do not disaggregate"
    MEASURE_FIRST = "measure first"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one endpoint and load."""

    decision: Decision
    reasons: tuple[Reason, ...]
    """Heaviest first."""
    serving: Serving
    """What it is about: as asked, or with as many prefillers as the load needs."""
    resized: bool
    """Whether prefillers were added to what was asked."""
    counterfactual: Counterfactual | None
    not_modelled: str
    """Why there is no counterfactual; empty where there is one."""

    @property
    def ttft(self) -> str:
        """What happens to the first token: it comes later."""
        published = f"AWS measured it modestly worse ({DPD_BLOG.reference})"
        if self.counterfactual is None:
            return f"TTFT gets worse: {published}"
        apart, together = self.counterfactual.disaggregated.outcome, self.counterfactual.colocated.outcome
        if self.counterfactual.ttft_loss_seconds <= 0:
            return f"TTFT gets worse: {published}; the model sees no difference here"
        return (
            f"TTFT gets worse: {_time(apart.ttft_seconds)} against {_time(together.ttft_seconds)} on the same GPUs colocated; {published}"
        )

    @property
    def throughput(self) -> str:
        """What happens to throughput: a gain is only named where the model shows one that it can tell apart."""
        if self.counterfactual is None:
            return "throughput: not modelled; AWS's gains compare 16 GPUs with 8"
        both = self.counterfactual
        apart, together = both.disaggregated, both.colocated
        most = (
            f"the most that the GPUs serve is {apart.most_requests_per_second:,.1f} requests a second against "
            f"{together.most_requests_per_second:,.1f} colocated"
        )
        now = (
            f"{apart.outcome.output_tokens_per_second:,.0f} against {together.outcome.output_tokens_per_second:,.0f} output tokens a second"
        )
        if both.throughput_gain > LEAST_GAIN:
            return f"throughput: {now} for these users, because each answer is finished sooner; {most}"
        if both.throughput_gain < -LEAST_GAIN:
            return f"throughput gets worse: {now}; {most}"
        return f"no gain in throughput: {now}; {most}"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "decision": self.decision.value,
            "reasons": [
                {"topic": each.topic, "side": each.side.value, "weight": each.weight, "text": each.text, "source": str(each.source)}
                for each in self.reasons
            ],
            "prefillers": self.serving.prefillers,
            "decoders": self.serving.decoders,
            "resized": self.resized,
            "ttft": self.ttft,
            "throughput": self.throughput,
            "counterfactual": self.counterfactual.to_dict() if self.counterfactual else None,
            "not_modelled": self.not_modelled,
        }


def judge(
    serving: Serving,
    workload: Workload,
    *,
    routing_threshold: int = 0,
    nodes_available: int | None = None,
    targets: Targets | None = None,
    prices: PriceList = DEFAULT_PRICES,
) -> Verdict:
    """Judge one endpoint under one load.

    Where an open load is too much for the prefillers asked for, the verdict is about as many as it needs, up to the nodes available.
    """
    workload = serving.served(workload)
    sized = serving
    both: Counterfactual | None = None
    missing = ""
    try:
        sized = _enough_prefillers(serving, workload, routing_threshold, nodes_available)
        both = compare(sized, workload, routing_threshold, targets, prices)
    except OutsideValidityError as error:
        missing = str(error)
    found = reasons(sized, workload, both, nodes_available)
    against = {reason.side for reason in found}
    if Side.DECISIVE in against:
        decision = Decision.DO_NOT
    elif Side.AGAINST in against or both is None:
        decision = Decision.MEASURE_FIRST
    else:
        decision = Decision.DISAGGREGATE
    return Verdict(decision, found, sized, sized.prefillers != serving.prefillers, both, missing)


def _enough_prefillers(serving: Serving, workload: Workload, routing_threshold: int, nodes_available: int | None) -> Serving:
    """The same with more prefillers, where an open load asks for them and they are enough; else as it was."""
    if workload.requests_per_second is None:
        return serving
    for count in range(serving.prefillers, MOST_PREFILLERS + 1):
        more = replace(serving, prefillers=count)
        if nodes_available is not None and count > serving.prefillers and more.nodes > nodes_available:
            break
        if disaggregated(more, workload, routing_threshold).keeps_up:
            return more
    return serving


def _time(seconds: float) -> str:
    if seconds == float("inf"):
        return "an endless queue"
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1000:,.0f} ms"
