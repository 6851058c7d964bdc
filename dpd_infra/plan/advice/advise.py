"""All advice on one endpoint and load: verdict, threshold, strategy, PD buffer, simulation of both ways, and a second opinion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.prices import DEFAULT_PRICES, PriceList
from dpd_infra.plan.advice.buffer_use import BufferUse, buffer_use
from dpd_infra.plan.advice.counterfactual import Targets
from dpd_infra.plan.advice.endpoint_plants import colocated_plant, disaggregated_plant
from dpd_infra.plan.advice.queueing import simulate
from dpd_infra.plan.advice.second_opinion import SecondOpinion, second_opinion
from dpd_infra.plan.advice.simulation_result import SimulationResult
from dpd_infra.plan.advice.strategy import StrategyAdvice, advise_strategy
from dpd_infra.plan.advice.threshold import ThresholdAdvice, advise_threshold
from dpd_infra.plan.advice.verdict import Verdict, judge
from dpd_infra.plan.sizing.calibration import OutsideValidityError
from dpd_infra.plan.sizing.quantity import json_ready
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Workload


@dataclass(frozen=True, slots=True)
class Question:
    """What advice is wanted on."""

    serving: Serving
    workload: Workload
    routing_threshold: int = 0
    invocation_endpoint: str = "v1/chat/completions"
    nodes_available: int | None = None
    targets: Targets | None = None
    sessions: bool = False
    """Requests of a conversation follow each other and carry a session id."""
    prices: PriceList = DEFAULT_PRICES
    simulated_requests: int = 2000
    """0 for no simulation."""
    seed: int = 0
    ask_library: bool = False
    """Whether to ask AIConfigurator too, which takes seconds."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The answers. Where times are not modelled, threshold, buffer use and simulations are None and the verdict says why."""

    verdict: Verdict
    strategy: StrategyAdvice
    threshold: ThresholdAdvice | None
    buffer: BufferUse | None
    disaggregated: SimulationResult | None
    colocated: SimulationResult | None
    not_simulated: str
    """Why there is no simulation; empty where there is one."""
    second_opinion: SecondOpinion | None

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain data."""
        data = {
            "verdict": self.verdict.to_dict(),
            "strategy": self.strategy.to_dict(),
            "threshold": self.threshold.to_dict() if self.threshold else None,
            "buffer": self.buffer.to_dict() if self.buffer else None,
            "simulation": {
                "disaggregated": self.disaggregated.to_dict() if self.disaggregated else None,
                "colocated": self.colocated.to_dict() if self.colocated else None,
                "not_simulated": self.not_simulated,
            },
            "second_opinion": self.second_opinion.to_dict() if self.second_opinion else None,
        }
        return json_ready(data)


def advise(question: Question) -> Advice:
    """Answer everything about one endpoint and load. The same question gives the same answer."""
    verdict = judge(
        question.serving,
        question.workload,
        routing_threshold=question.routing_threshold,
        nodes_available=question.nodes_available,
        targets=question.targets,
        prices=question.prices,
    )
    serving, load = verdict.serving, question.workload
    strategy = advise_strategy(
        serving.prefillers, question.invocation_endpoint, load.shared_prefix_tokens, load.input.mean, sessions=question.sessions
    )
    if verdict.counterfactual is None:
        return Advice(verdict, strategy, None, None, None, None, verdict.not_modelled, None)
    apart, together, why = _simulations(question, serving)
    return Advice(
        verdict,
        strategy,
        advise_threshold(serving, load),
        buffer_use(serving, load, question.routing_threshold) if serving.pd_buffer_bytes >= serving.chunk_bytes else None,
        apart,
        together,
        why,
        second_opinion(serving, load) if question.ask_library else None,
    )


def _simulations(question: Question, serving: Serving) -> tuple[SimulationResult | None, SimulationResult | None, str]:
    load, count = serving.served(question.workload), question.simulated_requests
    if count == 0:
        return None, None, "not asked for"
    try:
        apart = simulate(disaggregated_plant(serving, load, question.routing_threshold), load, count, question.seed)
        together = simulate(colocated_plant(serving, load), load, count, question.seed)
    except (OutsideValidityError, ValueError) as error:
        return None, None, str(error)
    return apart, together, ""
