"""The simulation against queueing theory, against the closed forms of sizing, and against what must always hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import find_model
from dpd_infra.plan.advice.endpoint_plants import colocated_plant, disaggregated_plant
from dpd_infra.plan.advice.plant import Plant
from dpd_infra.plan.advice.queueing import simulate
from dpd_infra.plan.advice.simulation_result import Depth, Spread
from dpd_infra.plan.sizing.outcome import colocated, disaggregated
from dpd_infra.plan.sizing.serving import RoleFlags, Serving
from dpd_infra.plan.sizing.workload import ArrivalProcess, Lengths, Workload


def bare(prefill: Callable[[int], float], **changes: Any) -> Plant:
    """A plant whose only station that takes time is its prefillers."""
    values: dict[str, Any] = {
        "prefillers": 1,
        "decoders": 1,
        "prefill_seconds": prefill,
        "local_prefill_seconds": prefill,
        "transfer_seconds": lambda _tokens: 0.0,
        "step_seconds": lambda _batch, _context: 1e-9,
        "max_num_seqs": 1_000_000,
    }
    return Plant(**(values | changes))


def one_token(rate: float, arrivals: ArrivalProcess = ArrivalProcess.POISSON) -> Workload:
    return Workload(Lengths.constant(1000), Lengths.constant(1), requests_per_second=rate, arrivals=arrivals)


def exponential(seed: int) -> Callable[[int], float]:
    random = Random(seed)
    return lambda _tokens: random.expovariate(1.0)


def two_kinds(seed: int) -> Callable[[int], float]:
    """0.5 s nine times of ten, else 5.5 s: mean 1 s, mean square 3.25 s^2."""
    random = Random(seed)
    return lambda _tokens: 0.5 if random.random() < 0.9 else 5.5


SERVICES = {"M/M/1": (exponential, 2.0), "M/D/1": (lambda _seed: lambda _tokens: 1.0, 1.0), "M/G/1": (two_kinds, 3.25)}
"""By queue: the service of mean 1 s, and its mean square."""


@pytest.mark.parametrize(("queue", "rate"), [("M/M/1", 0.4), ("M/D/1", 0.5), ("M/G/1", 0.3)])
def test_waits_are_those_of_the_pollaczek_khinchine_formula_within_three_percent(queue: str, rate: float) -> None:
    service, square = SERVICES[queue]
    exact = rate * square / (2 * (1 - rate))
    # Two stations of the plant are such queues: a prefiller, and a colocated engine that takes one prompt at a time.
    waits = [
        simulate(plant, one_token(rate), requests=60_000, seed=seed).prefill_wait_seconds.mean
        for seed in (1, 2)
        for plant in (bare(service(seed)), bare(service(10 + seed), prefillers=0, max_num_seqs=1))
    ]
    assert sum(waits) / len(waits) == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("rate", [0.3, 0.6])
def test_the_depth_of_the_queue_obeys_littles_law(rate: float) -> None:
    found = simulate(bare(exponential(3)), one_token(rate), requests=50_000, seed=4)
    assert found.prefill_queue == pytest.approx(rate * found.prefill_wait_seconds.mean, rel=0.03)


def test_several_prefillers_share_the_load_in_turn() -> None:
    # Every second arrival of a Poisson process of rate 1 goes to each: Erlang-2 distances of mean 2 s before a service of 1 s. The
    # exact mean wait of E2/D/1 at half load is below M/D/1's 0.5 s and above nothing.
    found = simulate(bare(lambda _tokens: 1.0, prefillers=2), one_token(1.0), requests=50_000, seed=1)
    assert 0.05 < found.prefill_wait_seconds.mean < 0.5


def test_equal_distances_and_equal_services_never_wait() -> None:
    found = simulate(bare(lambda _tokens: 1.0), one_token(0.9, ArrivalProcess.UNIFORM), requests=2000)
    assert found.prefill_wait_seconds.most == pytest.approx(0.0, abs=1e-9)


def test_bursts_make_waits_longer_at_the_same_rate() -> None:
    even = simulate(bare(lambda _tokens: 1.0), one_token(0.5), requests=20_000)
    bursty = simulate(bare(lambda _tokens: 1.0), one_token(0.5, ArrivalProcess.BURSTY), requests=20_000)
    assert bursty.requests_per_second == pytest.approx(even.requests_per_second, rel=0.05)
    assert bursty.prefill_wait_seconds.mean > 2 * even.prefill_wait_seconds.mean


def test_a_decoder_gives_every_sequence_a_token_a_step() -> None:
    plant = bare(lambda _tokens: 0.0, step_seconds=lambda _batch, _context: 0.01)
    load = Workload(Lengths.constant(100), Lengths.constant(50), requests_per_second=5)
    found = simulate(plant, load, requests=500)
    assert found.tpot_seconds.most == pytest.approx(0.01)
    # The first token needs the end of the step that runs, and one of its own.
    assert 0.01 <= found.ttft_seconds.p50 <= 0.02 + 1e-9
    assert found.request_seconds.most <= 0.01 * 51 + 1e-6


def test_a_local_prefill_holds_up_the_others() -> None:
    plant = bare(lambda _tokens: 0.5, prefillers=0, step_seconds=lambda _batch, _context: 0.01)
    load = Workload(Lengths.constant(100), Lengths.constant(50), concurrency=2)
    found = simulate(plant, load, requests=200)
    # An answer that is interrupted by the other user's prefill: 48 steps of 10 ms and one of 500 ms over 49 tokens.
    assert found.tpot_seconds.most == pytest.approx((48 * 0.01 + 0.5) / 49)
    assert found.tpot_seconds.p50 >= 0.01 - 1e-9


def test_a_buffer_that_holds_one_prompt_makes_the_others_wait_and_a_large_one_none() -> None:
    def plant(chunks: int | None) -> Plant:
        return bare(lambda _tokens: 0.01, step_seconds=lambda _batch, _context: 0.01, max_num_seqs=4, buffer_chunks=chunks)

    load = Workload(Lengths.constant(1000), Lengths.constant(20), concurrency=16)
    small, large = simulate(plant(4), load, requests=1000), simulate(plant(64), load, requests=1000)
    assert small.share_waiting_for_buffer > 0.5
    assert small.buffer_queue_most >= 1
    assert large.share_waiting_for_buffer == 0
    assert simulate(plant(None), load, requests=1000).share_waiting_for_buffer == 0


def test_prompts_below_the_threshold_stay_on_the_decoder() -> None:
    load = Workload(Lengths.of_values([500, 5000]), Lengths.constant(2), requests_per_second=1)
    found = simulate(bare(lambda _tokens: 0.001, routing_threshold=4096, overestimate=1.12), load, requests=4000)
    assert found.share_disaggregated == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    "changes",
    [{"buffer_chunks": 3}, {"kv_pool_tokens": 1000}, {"decoders": 0}, {"prefillers": -1}, {"max_num_seqs": 0}, {"chunk_tokens": 0}],
)
def test_a_plant_in_which_a_prompt_never_fits_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"never fits|at least"):
        simulate(bare(lambda _tokens: 1.0, **changes), one_token(0.5), requests=10)


def serving(**changes: Any) -> Serving:
    model = find_model("Llama-3.3-70B-Instruct")
    assert model is not None
    return Serving(**({"model": model, "instance": INSTANCE_TYPES["ml.p5.48xlarge"], "max_model_len": 16_384} | changes))


@pytest.mark.parametrize("rate", [1.0, 3.0, 4.0])
def test_the_closed_forms_of_a_disaggregated_endpoint_are_its_simulation_in_the_mean(rate: float) -> None:
    load = Workload(Lengths.constant(4096), Lengths.constant(256), requests_per_second=rate)
    expected = disaggregated(serving(), load)
    found = simulate(disaggregated_plant(serving(), load), load, requests=10_000, seed=1)
    assert found.tpot_seconds.mean == pytest.approx(expected.tpot_seconds, rel=0.03)
    assert found.ttft_seconds.mean == pytest.approx(expected.ttft_seconds, rel=0.06)


@pytest.mark.parametrize("rate", [1.0, 3.0, 4.0])
def test_the_closed_forms_of_colocated_engines_are_their_simulation_in_the_mean(rate: float) -> None:
    load = Workload(Lengths.constant(4096), Lengths.constant(256), requests_per_second=rate)
    expected = colocated(serving(), load)
    found = simulate(colocated_plant(serving(), load), load, requests=10_000, seed=1)
    assert found.tpot_seconds.mean == pytest.approx(expected.tpot_seconds, rel=0.06)
    assert found.ttft_seconds.mean == pytest.approx(expected.ttft_seconds, rel=0.06)


def test_the_tail_of_tpot_is_where_disaggregation_helps_most() -> None:
    load = Workload(Lengths.of_mean(6000, 0.4), Lengths.constant(400), requests_per_second=2.5)
    apart = simulate(disaggregated_plant(serving(max_model_len=32_768), load), load, requests=3000)
    together = simulate(colocated_plant(serving(max_model_len=32_768), load), load, requests=3000)
    assert 1 - apart.tpot_seconds.p99 / together.tpot_seconds.p99 > 1 - apart.tpot_seconds.p50 / together.tpot_seconds.p50 > 0
    assert apart.ttft_seconds.mean > together.ttft_seconds.mean


def test_a_full_decoder_fills_the_buffer() -> None:
    slow = serving(prefillers=4, decode=RoleFlags(4))
    load = Workload(Lengths.constant(8000), Lengths.constant(512), requests_per_second=2)
    found = simulate(disaggregated_plant(slow, load), load, requests=400)
    assert found.share_waiting_for_buffer > 0
    assert found.decode_queue_most > 4


loads = st.builds(
    Workload,
    input=st.lists(st.integers(1, 8000), min_size=1, max_size=5).map(Lengths.of_values),
    output=st.lists(st.integers(1, 40), min_size=1, max_size=5).map(Lengths.of_values),
    requests_per_second=st.floats(0.1, 50),
    arrivals=st.sampled_from(ArrivalProcess),
)


@settings(max_examples=25)
@given(
    loads,
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(1, 8),
    st.sampled_from([None, 40]),
    st.sampled_from([0, 4096]),
    st.integers(0, 9),
)
def test_every_request_is_answered_in_order_of_its_stations_and_the_seed_decides(
    load: Workload, prefillers: int, decoders: int, seqs: int, chunks: int | None, threshold: int, seed: int
) -> None:
    plant = bare(
        lambda tokens: tokens / 20_000,
        prefillers=prefillers,
        decoders=decoders,
        step_seconds=lambda batch, context: 0.005 + batch * context * 1e-8,
        transfer_seconds=lambda tokens: tokens / 1e6,
        max_num_seqs=seqs,
        buffer_chunks=chunks,
        kv_pool_tokens=20_000,
        routing_threshold=threshold,
    )
    for closed in (load, replace(load, requests_per_second=None, concurrency=5)):
        first, again = simulate(plant, closed, 100, seed), simulate(plant, closed, 100, seed)
        assert first == again
        assert first.requests == 90
        assert 0 <= first.prefill_wait_seconds.p50 <= first.ttft_seconds.most <= first.request_seconds.most
        assert first.tpot_seconds.p50 >= 0.005 - 1e-9 or first.tpot_seconds.most == 0
        assert first.share_disaggregated <= 1
        assert min(first.prefill_queue, first.buffer_queue, first.decode_queue) >= 0


def test_spreads_and_depths_are_what_they_say() -> None:
    spread = Spread.of([float(value) for value in range(1, 101)])
    assert (spread.mean, spread.p50, spread.p90, spread.p99, spread.most) == (50.5, 50, 90, 99, 100)
    assert Spread.of([]).most == 0
    depth = Depth()
    depth.change(1.0, 1)
    depth.change(2.0, 1)
    depth.change(4.0, -2)
    assert depth.mean(10.0) == pytest.approx((1 * 1 + 2 * 2) / 10)
    assert depth.most == 2
