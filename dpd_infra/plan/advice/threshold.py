"""Which prompts should go to a prefiller: the effect of each threshold on both paths, and a recommended one with its margin."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from dpd_infra.catalog.sources import CRD_3_2, DPD_GUIDE
from dpd_infra.plan.sizing.outcome import ROUTER_OVERESTIMATE, disaggregated
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.transfer import transfer_seconds
from dpd_infra.plan.sizing.workload import Workload

DEFAULT_THRESHOLD = 4096
"""`routingThreshold` where nothing is said (CRD)."""

GRAIN_TOKENS = 256
"""Thresholds are recommended in whole chunks."""

MOST_PREFILL_UTILISATION = 0.8
"""Load of the prefillers above which queues grow fast: the wait of an M/G/1 queue is five times that at 0.4."""

CLOSE_ENOUGH = 0.02
"""Thresholds whose mean request time is this close to the best one's are taken as equal: the highest of them moves the fewest prompts."""

_POINTS = 16


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """The effect of one threshold."""

    threshold_tokens: int
    """In the router's estimated tokens, as `routingThreshold` is."""
    prompt_tokens: int
    """Real tokens from which on a prompt goes to a prefiller."""
    share_disaggregated: float
    ttft_seconds: float
    tpot_seconds: float
    request_seconds: float
    prefill_utilisation: float
    keeps_up: bool


@dataclass(frozen=True, slots=True)
class ThresholdAdvice:
    """A recommended threshold and what stands behind it."""

    recommended: ThresholdPoint
    default: ThresholdPoint
    """The CRD's default, 4,096."""
    points: tuple[ThresholdPoint, ...]
    overestimate: float
    margin_tokens: int
    """By how much the threshold is above the prompt length that is meant, for the router's over-estimate."""
    transfer_seconds: float
    """Of a prompt just at the threshold."""
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain data."""
        return {
            "recommended": asdict(self.recommended),
            "default": asdict(self.default),
            "points": [asdict(point) for point in self.points],
            "overestimate": self.overestimate,
            "margin_tokens": self.margin_tokens,
            "transfer_seconds": self.transfer_seconds,
            "reasons": list(self.reasons),
        }


def advise_threshold(serving: Serving, workload: Workload, overestimate: float = ROUTER_OVERESTIMATE) -> ThresholdAdvice:
    """Try thresholds over the lengths of a load and recommend one.

    Best is the lowest mean time from request to last token, among thresholds that keep up with the prefillers at most 80 % busy; of those
    within 2 % of it the highest. Raises `OutsideValidityError` where times are not modelled.
    """
    workload = serving.served(workload)
    points = tuple(_point(serving, workload, threshold, overestimate) for threshold in _candidates(workload, overestimate))
    default = _point(serving, workload, DEFAULT_THRESHOLD, overestimate)
    good = [point for point in points if point.keeps_up and point.prefill_utilisation <= MOST_PREFILL_UTILISATION]
    usable = good or [point for point in points if point.keeps_up] or list(points)
    best = min(usable, key=lambda point: (point.request_seconds, point.prefill_utilisation))
    close = [point for point in usable if point.request_seconds <= best.request_seconds * (1 + CLOSE_ENOUGH)]
    chosen = max(close or [best], key=lambda point: point.threshold_tokens)
    moved = 0.0
    if chosen.prompt_tokens:
        moved = transfer_seconds(serving.model, serving.instance, chosen.prompt_tokens, serving.tensor_parallel_size, serving.kv_format)
    return ThresholdAdvice(
        recommended=chosen,
        default=default,
        points=points,
        overestimate=overestimate,
        margin_tokens=chosen.threshold_tokens - chosen.prompt_tokens,
        transfer_seconds=moved,
        reasons=_reasons(chosen, default, good, overestimate),
    )


def _candidates(workload: Workload, overestimate: float) -> list[int]:
    longest = workload.input.percentile(99) * overestimate
    step = max(GRAIN_TOKENS, int(longest / _POINTS) // GRAIN_TOKENS * GRAIN_TOKENS)
    found = {0, DEFAULT_THRESHOLD, *range(step, int(longest) + step, step)}
    return sorted(found)


def _point(serving: Serving, workload: Workload, threshold: int, overestimate: float) -> ThresholdPoint:
    outcome = disaggregated(serving, workload, threshold, overestimate)
    border = threshold / overestimate
    return ThresholdPoint(
        threshold_tokens=threshold,
        prompt_tokens=-int(-border // 1),
        share_disaggregated=workload.input.share_from(border),
        ttft_seconds=outcome.ttft_seconds,
        tpot_seconds=outcome.tpot_seconds,
        request_seconds=outcome.request_seconds(workload.output.mean),
        prefill_utilisation=outcome.prefill_utilisation,
        keeps_up=outcome.keeps_up,
    )


def _reasons(chosen: ThresholdPoint, default: ThresholdPoint, good: list[ThresholdPoint], overestimate: float) -> tuple[str, ...]:
    reasons = [
        f"{chosen.share_disaggregated:.0%} of the requests go to a prefiller, which is then {chosen.prefill_utilisation:.0%} busy",
        f"the router estimates {overestimate - 1:.0%} too much ({DPD_GUIDE.reference}): it is met from {chosen.prompt_tokens:,} tokens on",
        f"a prompt just at the threshold is disaggregated: the CRD compares with >= ({CRD_3_2.reference})",
    ]
    if not good:
        reasons.append(f"no threshold keeps the prefillers below {MOST_PREFILL_UTILISATION:.0%}: add prefillers")
    if chosen.threshold_tokens != default.threshold_tokens:
        reasons.append(
            f"the default of {DEFAULT_THRESHOLD:,} sends {default.share_disaggregated:.0%} to a prefiller, mean request time "
            f"{_seconds(default.request_seconds)} against {_seconds(chosen.request_seconds)}"
        )
    return tuple(reasons)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if isfinite(seconds) else "without end (it does not keep up)"
