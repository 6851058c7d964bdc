"""The same GPUs without disaggregation: what both ways give a load, and the most that either can serve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from dpd_infra.catalog.prices import DEFAULT_PRICES, PriceList
from dpd_infra.plan.sizing.cost import cost_per_million_tokens, hourly_cost
from dpd_infra.plan.sizing.outcome import Outcome, colocated, disaggregated
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Workload

_SHARPNESS = 0.01
"""How exactly the most that can be served is searched."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What counts as served, where the user says so."""

    ttft_seconds: float | None = None
    tpot_seconds: float | None = None

    def met_by(self, outcome: Outcome) -> bool:
        """Whether an outcome keeps up and is within the targets."""
        if not outcome.keeps_up:
            return False
        in_time = self.ttft_seconds is None or outcome.ttft_seconds <= self.ttft_seconds
        return in_time and (self.tpot_seconds is None or outcome.tpot_seconds <= self.tpot_seconds)


@dataclass(frozen=True, slots=True)
class Way:
    """One of the two ways to use the GPUs."""

    outcome: Outcome
    most_requests_per_second: float
    """Highest rate that is kept up with, within the targets; 0 where no rate is."""
    cost_per_hour: float | None
    cost_per_million_tokens: float | None

    def to_dict(self) -> dict[str, Any]:
        """The way as plain data."""
        return asdict(self.outcome) | {
            "most_requests_per_second": self.most_requests_per_second,
            "cost_per_hour": self.cost_per_hour,
            "cost_per_million_tokens": self.cost_per_million_tokens,
        }


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """Disaggregated and colocated on the same number of GPUs."""

    disaggregated: Way
    colocated: Way

    @property
    def tpot_gain(self) -> float:
        """How much lower TPOT is disaggregated, as a share; negative where it is higher."""
        return 1 - self.disaggregated.outcome.tpot_seconds / self.colocated.outcome.tpot_seconds

    @property
    def throughput_gain(self) -> float:
        """How much more output tokens a second this load gets disaggregated, as a share."""
        return self.disaggregated.outcome.output_tokens_per_second / self.colocated.outcome.output_tokens_per_second - 1

    @property
    def most_gain(self) -> float:
        """How much higher the most that can be served is disaggregated, as a share."""
        together = self.colocated.most_requests_per_second
        return self.disaggregated.most_requests_per_second / together - 1 if together else 0.0

    @property
    def ttft_loss_seconds(self) -> float:
        """How much later the first token comes disaggregated."""
        return self.disaggregated.outcome.ttft_seconds - self.colocated.outcome.ttft_seconds

    def to_dict(self) -> dict[str, Any]:
        """Both ways as plain data."""
        return {
            "disaggregated": self.disaggregated.to_dict(),
            "colocated": self.colocated.to_dict(),
            "tpot_gain": self.tpot_gain,
            "throughput_gain": self.throughput_gain,
            "most_gain": self.most_gain,
            "ttft_loss_seconds": self.ttft_loss_seconds,
        }


def compare(
    serving: Serving,
    workload: Workload,
    routing_threshold: int = 0,
    targets: Targets | None = None,
    prices: PriceList = DEFAULT_PRICES,
) -> Counterfactual:
    """Both ways on the GPUs of an endpoint. Raises `OutsideValidityError` where times are not modelled."""
    goal = targets or Targets()

    def apart(load: Workload) -> Outcome:
        return disaggregated(serving, load, routing_threshold)

    def together(load: Workload) -> Outcome:
        return colocated(serving, load)

    return Counterfactual(
        _way(apart, workload, goal, serving, prices),
        _way(together, workload, goal, serving, prices),
    )


def most_requests_per_second(run: Callable[[Workload], Outcome], workload: Workload, targets: Targets) -> float:
    """The highest rate of a load that is kept up with and within the targets; 0 where even the smallest is not."""

    def met(rate: float) -> bool:
        return targets.met_by(run(replace(workload, requests_per_second=rate, concurrency=None)))

    low, high = 0.0, 0.125
    while met(high):
        low, high = high, 2 * high
    while high - low > _SHARPNESS * high and high > _SHARPNESS * _SHARPNESS:
        middle = (low + high) / 2
        low, high = (middle, high) if met(middle) else (low, middle)
    return low


def _way(run: Callable[[Workload], Outcome], workload: Workload, targets: Targets, serving: Serving, prices: PriceList) -> Way:
    outcome = run(workload)
    hourly = hourly_cost(prices, serving.instance.name, outcome.gpus, serving.instance.gpus)
    per_million = cost_per_million_tokens(hourly.value, outcome.output_tokens_per_second) if hourly else None
    most = most_requests_per_second(run, workload, targets)
    return Way(outcome, most, hourly.value if hourly else None, per_million)
