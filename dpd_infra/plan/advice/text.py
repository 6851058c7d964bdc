"""Advice as people read it."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from dpd_infra.plan.advice.advise import Advice
from dpd_infra.plan.advice.conditions import Side
from dpd_infra.plan.advice.counterfactual import Counterfactual, Way
from dpd_infra.plan.advice.plot import plot_text
from dpd_infra.plan.advice.second_opinion import SecondOpinion
from dpd_infra.plan.advice.simulation_result import SimulationResult, Spread

_MARKS = {Side.FOR: "+", Side.AGAINST: "-", Side.DECISIVE: "x"}
_LABEL, _COLUMN = 44, 27


def advice_text(name: str, advice: Advice, *, plot: bool = True) -> str:
    """The advice on one endpoint: verdict and reasons, both ways side by side, then how to do it."""
    verdict = advice.verdict
    lines = [f"{name}: {verdict.decision}"]
    if verdict.resized:
        lines.append(f"  with {verdict.serving.prefillers} prefillers: fewer do not keep up with this load")
    lines += [f"  {_MARKS[reason.side]} {reason.text} [{reason.source.reference}]" for reason in verdict.reasons]
    lines += [f"  {verdict.ttft}", f"  {verdict.throughput}"]
    if verdict.counterfactual is None:
        lines += ["", f"Not modelled: {verdict.not_modelled}"]
    else:
        lines += ["", *_both(verdict.counterfactual)]
    lines += ["", *_simulations(advice)]
    if advice.threshold is not None:
        lines += ["", f"Routing threshold: {advice.threshold.recommended.threshold_tokens:,}"]
        lines += [f"  {reason}" for reason in advice.threshold.reasons]
        if plot:
            lines += [f"  {line}" for line in plot_text(advice.threshold).splitlines()]
    lines += ["", f"Routing strategy: {advice.strategy.recommended}", *(f"  {reason}" for reason in advice.strategy.reasons)]
    lines += [f"  the sources disagree: {text}" for text in advice.strategy.contradictions]
    if advice.buffer is not None:
        lines += ["", f"PD buffer: {advice.buffer.chunks:,} chunks"]
        lines += [f"  {count:,} x {label}" for label, count in advice.buffer.fits.items()]
        lines += [f"  {reason}" for reason in advice.buffer.reasons]
    if advice.second_opinion is not None:
        lines += ["", *opinion_lines(advice.second_opinion)]
    return "\n".join(lines)


def opinion_lines(opinion: SecondOpinion) -> list[str]:
    """Both opinions side by side with their difference, or why there is none."""
    if not opinion.compared:
        return [opinion.note]
    lines = [f"Second opinion: AIConfigurator {opinion.version}"]
    lines += [
        f"  {each.what:<26} ours {each.ours:>9,.2f} {each.unit:<8}  theirs {each.theirs:>9,.2f} {each.unit:<8}  {each.difference:+.1%}"
        for each in opinion.compared
    ]
    return [*lines, f"  {opinion.note}"] if opinion.note else lines


def _both(found: Counterfactual) -> list[str]:
    apart, together = found.disaggregated, found.colocated
    rows = [
        ("output tokens a second", _pair(apart, together, lambda way: f"{way.outcome.output_tokens_per_second:,.0f}")),
        ("TPOT", _pair(apart, together, lambda way: f"{way.outcome.tpot_seconds * 1000:,.1f} ms")),
        ("TTFT", _pair(apart, together, lambda way: _seconds(way.outcome.ttft_seconds))),
        ("most requests a second", _pair(apart, together, lambda way: f"{way.most_requests_per_second:,.2f}")),
        ("keeps up with the load", _pair(apart, together, lambda way: "yes" if way.outcome.keeps_up else "no")),
    ]
    if apart.cost_per_hour is not None:
        rows.append(("USD an hour", _pair(apart, together, lambda way: f"{way.cost_per_hour or 0:,.2f}")))
        rows.append(("USD per million output tokens", _pair(apart, together, lambda way: f"{way.cost_per_million_tokens or 0:,.2f}")))
    gpus = apart.outcome.gpus
    return [_row(f"On the same {gpus} GPUs", ("disaggregated", "colocated")), *(_row(f"  {label}", pair) for label, pair in rows)]


def _simulations(advice: Advice) -> list[str]:
    apart, together = advice.disaggregated, advice.colocated
    if apart is None or together is None:
        return [f"No simulation: {advice.not_simulated}"]

    def spread(label: str, pick: Callable[[SimulationResult], Spread]) -> str:
        return _row(label, (_spread(pick(apart)), _spread(pick(together))))

    return [
        _row(f"Simulated, {apart.requests:,} requests (p50 / p90 / p99)", ("disaggregated", "colocated")),
        spread("  TTFT", lambda each: each.ttft_seconds),
        spread("  TPOT", lambda each: each.tpot_seconds),
        spread("  request", lambda each: each.request_seconds),
        _row("  waiting for prefill, buffer, decode (mean)", (_depths(apart), _depths(together))),
        _row("  share that waits for the PD buffer", (f"{apart.share_waiting_for_buffer:.1%}", "-")),
    ]


def _row(label: str, pair: tuple[str, str]) -> str:
    return f"{label:<{_LABEL}}{pair[0]:>{_COLUMN}}{pair[1]:>{_COLUMN}}"


def _pair(apart: Way, together: Way, text: Callable[[Way], str]) -> tuple[str, str]:
    return text(apart), text(together)


def _spread(spread: Spread) -> str:
    scale, unit = (1000, "ms") if spread.p99 < 1 else (1, "s")
    return f"{' / '.join(f'{value * scale:,.4g}' for value in (spread.p50, spread.p90, spread.p99))} {unit}"


def _depths(result: SimulationResult) -> str:
    return f"{result.prefill_queue:.1f}, {result.buffer_queue:.1f}, {result.decode_queue:.1f}"


def _seconds(seconds: float) -> str:
    if not isfinite(seconds):
        return "grows for ever"
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1000:,.0f} ms"
