"""Length distributions and traces: what was put in comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.sizing.trace import parse_trace, read_trace
from dpd_infra.plan.sizing.workload import Lengths, Workload

lengths = st.lists(st.integers(1, 100_000), min_size=1, max_size=300)


@given(lengths)
def test_measured_lengths_keep_their_mean_shares_and_largest(values: list[int]) -> None:
    found = Lengths.of_values(values)
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.largest == max(values)
    for border in (0, values[0], values[0] + 1, 100_001):
        assert found.share_from(border) == pytest.approx(sum(value >= border for value in values) / len(values))


@given(lengths, st.integers(1, 64))
def test_buckets_keep_the_whole_and_the_mean(values: list[int], points: int) -> None:
    buckets = Lengths.of_values(values).buckets(points)
    assert len(buckets) <= points
    assert sum(weight for weight, _ in buckets) == pytest.approx(1)
    assert sum(weight * length for weight, length in buckets) == pytest.approx(sum(values) / len(values), abs=0.5)


@given(lengths, st.integers(1, 100_000))
def test_the_parts_below_and_above_a_border_are_the_whole(values: list[int], border: int) -> None:
    found = Lengths.of_values(values)
    above, below = found.part(border), found.part(0, border)
    assert (len(above.values) if above else 0) + (len(below.values) if below else 0) == len(values)


@given(st.integers(1, 50_000), st.floats(0.05, 2))
def test_a_log_normal_has_the_mean_and_spread_that_were_asked_for(mean: int, variation: float) -> None:
    found = Lengths.of_mean(mean, variation)
    assert found.mean == pytest.approx(mean, rel=0.01, abs=0.6)
    if mean > 1000 and variation <= 0.5:
        square = sum(value**2 for value in found.values) / len(found.values)
        assert (square / found.mean**2 - 1) ** 0.5 == pytest.approx(variation, rel=0.05)


def test_percentiles_come_out_as_they_went_in() -> None:
    found = Lengths.of_percentiles({50: 2000, 90: 8000, 99: 16_000})
    for percent, length in ((50, 2000), (90, 8000), (99, 16_000)):
        assert found.percentile(percent) == pytest.approx(length, rel=0.02)
    assert found.largest == 16_000


@pytest.mark.parametrize("percentiles", [{}, {50: 100, 90: 50}, {101: 5}, {-1: 5}, {50: 0}])
def test_percentiles_that_cannot_be_are_refused(percentiles: dict[float, float]) -> None:
    with pytest.raises(ValueError, match=r"percentile|length"):
        Lengths.of_percentiles(percentiles)


@pytest.mark.parametrize("given_load", [{}, {"requests_per_second": 1, "concurrency": 1}, {"requests_per_second": 0}, {"concurrency": 0}])
def test_a_load_has_exactly_one_measure_of_how_much(given_load: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"requests_per_second|concurrency"):
        Workload(Lengths.constant(10), Lengths.constant(10), **given_load)


def test_a_shared_prefix_never_covers_a_whole_prompt() -> None:
    load = Workload(Lengths.constant(100), Lengths.constant(10), concurrency=1, shared_prefix_tokens=500)
    assert load.cached_tokens(100) == 99
    assert load.cached_tokens(5000) == 500


JSON_LINES = (
    '{"input_tokens": 100, "output_tokens": 20}\n\n{"input_tokens": 300, "output_tokens": 0}\n{"input_tokens": 50, "output_tokens": 5}\n'
)


def test_a_trace_of_json_lines_keeps_its_order_and_leaves_out_empty_answers() -> None:
    trace = parse_trace(JSON_LINES, "t")
    assert trace.inputs == (100, 50)
    assert trace.outputs == (20, 5)
    assert trace.output is not None
    assert trace.output.mean == 12.5


def test_a_trace_in_the_form_of_azures_public_ones(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,374,44\n2023-11-16 18:17:04.0319600,396,109\n")
    trace = read_trace(path)
    assert trace.inputs == (374, 396)
    assert trace.outputs == (44, 109)


def test_a_trace_of_numbers_is_prompts_alone() -> None:
    trace = parse_trace("100\n200\n", "t")
    assert trace.input.mean == 150
    assert trace.output is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("100\nmany\n", "t:2"),
        ('{"input_tokens": 1}\n', "t:1"),
        ('{"a": \n', "t:1"),
        ("a,b\n1,2\n", "t:2"),
        ("", "empty"),
        ("-5\n", "t:"),
        ('{"input_tokens": ' + "[" * 5000, "t:1"),
    ],
)
def test_a_bad_trace_names_the_line(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        parse_trace(text, "t")
