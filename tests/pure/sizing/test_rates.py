"""Rate matching, replicas, cost and prices against the documented points."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpd_infra.catalog.prices import DEFAULT_PRICES, PriceList
from dpd_infra.plan.sizing.cost import cost_per_million_tokens, hourly_cost
from dpd_infra.plan.sizing.rates import (
    decode_rate,
    prefill_rate,
    prefillers_per_decoder,
    replicas,
    reported_tpot_seconds,
    reported_ttft_seconds,
    steady_batch,
    system_rate,
)

positive = st.floats(1e-3, 1e3)


def test_the_documented_ratio_of_the_benchmark_load() -> None:
    # Prefill of 4,096 tokens 169.6 ms, decode at batch 32 13.74 / 1.08 ms, 256 tokens out: "1.74 prefillers", 1235 tok/s, 13.74 ms.
    one_prefiller, one_decoder = prefill_rate(0.1696), decode_rate(32, 256, 0.01374 / 1.08)
    assert prefillers_per_decoder(one_prefiller, one_decoder) == pytest.approx(1.74, abs=0.01)
    assert system_rate(1, one_prefiller, 1, one_decoder) * 256 == pytest.approx(1235, rel=0.001)
    assert reported_tpot_seconds(0.01374 / 1.08) == pytest.approx(0.01374)
    assert reported_ttft_seconds(0.1696) == pytest.approx(1.1 * 1.8 * 0.1696)


@given(st.integers(1, 20), positive, st.integers(1, 20), positive)
def test_more_engines_never_serve_less(prefillers: int, prefill: float, decoders: int, decode: float) -> None:
    rate = system_rate(prefillers, prefill, decoders, decode)
    assert system_rate(prefillers + 1, prefill, decoders, decode) >= rate
    assert system_rate(prefillers, prefill, decoders + 1, decode) >= rate


@given(positive, positive)
def test_replicas_are_the_fewest_that_serve_the_rate(rate: float, engine: float) -> None:
    count = replicas(rate, engine)
    assert count * engine >= rate * (1 - 1e-6)
    assert count == 1 or (count - 1) * engine < rate * (1 + 1e-6)


@given(st.floats(0.1, 20), st.floats(1, 1000), st.floats(1e-3, 0.05), st.floats(1e-5, 1e-3))
def test_the_steady_batch_is_the_smallest_that_keeps_up(rate: float, output: float, base: float, slope: float) -> None:
    # A step of base + slope * batch settles at rate * output * base / (1 - rate * output * slope).
    assume(abs(rate * output * slope - 1) > 0.01)
    found = steady_batch(rate, output, lambda batch: base + slope * batch, 512)
    growth = rate * output * slope
    exact = rate * output * base / (1 - growth) if growth < 1 else float("inf")
    if exact > 512:
        assert found is None
    else:
        assert found is not None
        assert found - 1 < exact + 1e-6
        assert found >= exact - 1e-6


@pytest.mark.parametrize(
    "call", [lambda: prefill_rate(0), lambda: decode_rate(0, 256, 0.01), lambda: replicas(-1, 1), lambda: replicas(1, 0)]
)
def test_rates_of_nothing_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        call()  # type: ignore[operator]


def test_cost_of_a_million_tokens() -> None:
    # 100 USD an hour and 1,000 tokens a second: 3.6 million tokens an hour.
    assert cost_per_million_tokens(100, 1000) == pytest.approx(100 / 3.6)
    with pytest.raises(ValueError, match="tokens_per_second"):
        cost_per_million_tokens(100, 0)


def test_without_a_price_there_is_no_cost() -> None:
    assert DEFAULT_PRICES.per_hour == {}
    assert hourly_cost(DEFAULT_PRICES, "ml.p5.48xlarge", 16, 8) is None


def test_a_price_list_comes_from_a_dated_file_with_its_source(tmp_path: Path) -> None:
    data = {"date": "2026-11-01", "source": "our contract", "perHour": {"ml.p5.48xlarge": 60}}
    as_json, as_yaml = tmp_path / "prices.json", tmp_path / "prices.yaml"
    as_json.write_text(json.dumps(data))
    as_yaml.write_text("date: 2026-11-01\nsource: our contract\nperHour: {ml.p5.48xlarge: 60}\n")
    for path in (as_json, as_yaml):
        prices = PriceList.from_file(path)
        cost = hourly_cost(prices, "ml.p5.48xlarge", 16, 8)
        assert cost is not None
        assert cost.value == 120
        assert "2026-11-01" in cost.note
        assert "our contract" in str(cost.sources[0])


def test_a_price_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("a: [")
    with pytest.raises(ValueError, match="is no YAML"):
        PriceList.from_file(path)


@pytest.mark.parametrize("text", ["{", "[" * 5000 + "]" * 5000, '{"date": NaN}', "9" * 5000])
def test_a_price_file_of_json_that_is_none_or_no_price_list_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"is no JSON|has exactly the keys"):
        PriceList.from_file(path)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"date": "2026-11-01", "source": "x"},
        {"date": "November", "source": "x", "perHour": {}},
        {"date": "2026-11-01", "source": "", "perHour": {}},
        {"date": "2026-11-01", "source": "x", "perHour": {"ml.p5.48xlarge": 0}},
        {"date": "2026-11-01", "source": "x", "perHour": {"ml.p5.48xlarge": "60"}},
        {"date": "2026-11-01", "source": "x", "perHour": {"ml.p5.48xlarge": float("nan")}},
        {"date": "2026-11-01", "source": "x", "perHour": {"ml.p5.48xlarge": 1e308}},
        {"date": "2026-11-01", "source": "x", "perHour": []},
        {"date": "2026-11-01", "source": "x", "perHour": {}, "region": "us-east-2"},
    ],
)
def test_a_price_list_that_is_none_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"^prices"):
        PriceList.from_data(data, "prices")
