"""Threshold, strategy, PD buffer, plot and second opinion."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import MODELS, ModelShape, find_model
from dpd_infra.plan.advice.buffer_use import buffer_use
from dpd_infra.plan.advice.plot import plot_svg, plot_text
from dpd_infra.plan.advice.second_opinion import HOW_TO_GET_IT, second_opinion, to_config
from dpd_infra.plan.advice.strategy import advise_strategy
from dpd_infra.plan.advice.threshold import MOST_PREFILL_UTILISATION, advise_threshold
from dpd_infra.plan.sizing.model_config import model_from_config
from dpd_infra.plan.sizing.outcome import ROUTER_OVERESTIMATE
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Lengths, Workload


def serving(name: str = "Llama-3.3-70B-Instruct", **changes: Any) -> Serving:
    model = find_model(name)
    assert model is not None
    return Serving(**({"model": model, "instance": INSTANCE_TYPES["ml.p5.48xlarge"], "max_model_len": 32_768} | changes))


MIXED = Workload(Lengths.of_mean(3000, 1.0), Lengths.constant(300), requests_per_second=4)


def test_the_routers_overestimate_is_that_of_the_sample() -> None:
    # "estimated_tokens=6750" for 6,035 real tokens: about 12 %.
    assert pytest.approx(1.12, abs=0.005) == ROUTER_OVERESTIMATE


def test_the_recommended_threshold_is_the_best_within_two_percent_and_leaves_the_routers_margin() -> None:
    advice = advise_threshold(serving(), MIXED)
    best = min(point.request_seconds for point in advice.points if point.prefill_utilisation <= MOST_PREFILL_UTILISATION)
    assert advice.recommended.request_seconds <= best * 1.02
    assert advice.recommended.prefill_utilisation <= MOST_PREFILL_UTILISATION
    assert advice.margin_tokens == advice.recommended.threshold_tokens - advice.recommended.prompt_tokens
    assert advice.recommended.threshold_tokens / advice.recommended.prompt_tokens == pytest.approx(1.12, abs=0.01)


def test_shares_fall_and_prefillers_relax_as_the_threshold_rises() -> None:
    points = advise_threshold(serving(), MIXED).points
    assert [point.threshold_tokens for point in points] == sorted({point.threshold_tokens for point in points})
    for low, high in pairwise(points):
        assert high.share_disaggregated <= low.share_disaggregated
        assert high.prefill_utilisation <= low.prefill_utilisation
        assert high.tpot_seconds >= low.tpot_seconds * (1 - 1e-9)


def test_the_default_is_always_compared() -> None:
    advice = advise_threshold(serving(), MIXED)
    assert advice.default.threshold_tokens == 4096
    assert advice.default.prompt_tokens == 3663


@settings(max_examples=25)
@given(st.integers(50, 20_000), st.floats(0, 1.5), st.floats(0.1, 10), st.integers(2, 800))
def test_any_load_gets_a_threshold(mean: int, variation: float, rate: float, answer: int) -> None:
    load = Workload(Lengths.of_mean(mean, variation), Lengths.constant(answer), requests_per_second=rate)
    advice = advise_threshold(serving(), load)
    assert advice.recommended in advice.points
    assert plot_text(advice).count("\n") == len(advice.points)
    ET.fromstring(plot_svg(advice, "a < b & c"))


def test_the_plot_marks_the_recommended_threshold() -> None:
    advice = advise_threshold(serving(), MIXED)
    marked = [line for line in plot_text(advice).splitlines() if line.startswith(">")]
    assert len(marked) == 1
    assert f"{advice.recommended.threshold_tokens:,}" in marked[0]
    svg = plot_svg(advice, "llama-70b")
    assert svg.count("<polyline") == 3
    assert "recommended" in svg


@pytest.mark.parametrize(
    ("prefillers", "path", "shared", "sessions", "expected"),
    [
        (1, "v1/chat/completions", 0, False, "prefixaware"),
        (1, "v1/completions", 3000, True, "prefixaware"),
        (3, "v1/completions", 3000, False, "kvaware"),
        (3, "v1/chat/completions", 3000, False, "roundrobin"),
        (3, "v1/chat/completions", 3000, True, "session"),
        (3, "v1/chat/completions", 0, False, "roundrobin"),
        (2, "v1/completions", 100, False, "roundrobin"),
    ],
)
def test_the_strategy_follows_from_prefillers_path_and_what_is_shared(
    prefillers: int, path: str, shared: int, *, sessions: bool, expected: str
) -> None:
    advice = advise_strategy(prefillers, path, shared, 6000, sessions=sessions)
    assert advice.recommended == expected
    assert advice.reasons
    # The sources contradict each other as soon as there is a choice.
    assert bool(advice.contradictions) == (prefillers > 1)


def test_the_strategys_contradictions_name_all_three_documents() -> None:
    text = " ".join(advise_strategy(2, "v1/completions", 0, 100).contradictions)
    assert "roundrobin" in text
    assert "ts-dpd" in text
    assert "blog" in text


def test_the_buffer_holds_what_the_guide_says_and_the_worst_case_is_named() -> None:
    load = Workload(Lengths.constant(6000), Lengths.constant(300), requests_per_second=2)
    use = buffer_use(serving(max_model_len=16_384), load)
    assert use.chunks == 819
    assert use.fits["median prompt, 6,000 tokens"] == 34
    assert use.fits["max-model-len, 16,384 tokens"] == 12
    assert use.worst_case_bytes == 10 * 1024**3
    assert use.worst_case_waits
    assert 0 < use.expected_share < 0.1


def test_a_load_that_is_not_kept_up_with_fills_any_buffer() -> None:
    use = buffer_use(serving(), Workload(Lengths.constant(6000), Lengths.constant(300), requests_per_second=20))
    assert use.expected_chunks == float("inf")
    assert "Failed to allocate memory object" in use.reasons[0]


def test_more_load_uses_more_of_the_buffer() -> None:
    shares = [
        buffer_use(serving(), Workload(Lengths.constant(6000), Lengths.constant(300), requests_per_second=rate)).expected_share
        for rate in (0.5, 1.0, 2.0, 2.5)
    ]
    assert shares == sorted(shares)
    assert len(set(shares)) == 4


def test_without_the_library_the_second_opinion_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpd_infra.plan.advice.second_opinion.find_spec", lambda _name: None)
    opinion = second_opinion(serving(), MIXED)
    assert opinion.compared == ()
    assert opinion.note == HOW_TO_GET_IT
    assert "dpd-infra[models]" in HOW_TO_GET_IT


def test_a_library_that_fails_is_quoted_and_the_report_goes_on() -> None:
    def estimate(*_args: Any, **_values: Any) -> Any:
        raise RuntimeError("no tables")

    assert second_opinion(serving(), MIXED, estimate).note == "AIConfigurator could not estimate this: no tables"


@pytest.mark.parametrize("shape", [shape for shape, _ in MODELS], ids=lambda shape: shape.name)
def test_the_config_written_for_the_library_reads_back_as_the_same_model(shape: ModelShape) -> None:
    read = model_from_config(to_config(shape), shape.name, "c")
    differing = {"source", "output_bias", "qkv_bias", "experts"}
    assert replace(read, **{name: getattr(shape, name) for name in differing}) == shape
    assert (read.experts is None) == (shape.experts is None)
    if read.experts and shape.experts:
        assert (read.experts.count, read.experts.active, read.experts.width) == (
            shape.experts.count,
            shape.experts.active,
            shape.experts.width,
        )
