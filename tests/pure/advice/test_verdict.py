"""The verdict on loads whose answer is documented, and what it always says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import find_model
from dpd_infra.catalog.prices import PriceList
from dpd_infra.catalog.sources import Source
from dpd_infra.plan.advice.advise import Question, advise
from dpd_infra.plan.advice.conditions import Side
from dpd_infra.plan.advice.counterfactual import Targets, compare
from dpd_infra.plan.advice.verdict import Decision, Verdict, judge
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Lengths, Workload

LONG = Lengths.of_mean(6000, 0.4)
SHORT = Lengths.of_mean(500, 0.5)


def serving(name: str = "Llama-3.3-70B-Instruct", instance: str = "ml.p5.48xlarge", max_model_len: int = 32_768, **changes: Any) -> Serving:
    model = find_model(name)
    assert model is not None
    return Serving(model, INSTANCE_TYPES[instance], max_model_len, **changes)


def load(prompts: Lengths = LONG, answer: int = 400, rate: float | None = 2.5, users: int | None = None, **changes: Any) -> Workload:
    return Workload(prompts, Lengths.constant(answer), requests_per_second=None if users else rate, concurrency=users, **changes)


@dataclass(frozen=True)
class Case:
    """One load and the answer that the documents give for it."""

    serving: Serving
    workload: Workload
    decision: Decision
    topic: str
    """What the heaviest reason is about."""
    nodes: int | None = None
    also: dict[str, Any] = field(default_factory=dict[str, Any])


CASES = {
    # Documented: "best with ALL of: dense 70B+, inputs >= 4,000 tokens, >= 2 requests a second, outputs >= 256 tokens", streaming.
    "chat with 70B and long prompts": Case(serving(), load(), Decision.DISAGGREGATE, "tpot"),
    # Documented: not for batch or offline.
    "batch job": Case(serving(), load(users=64, offline=True, streaming=False), Decision.DO_NOT, "purpose"),
    # Documented: small models typically do not benefit.
    "8B": Case(serving("Llama-3.1-8B-Instruct"), load(rate=5), Decision.DO_NOT, "model"),
    # Documented: not for short prompts only.
    "short prompts": Case(serving(), load(SHORT, rate=5), Decision.DO_NOT, "prompts"),
    # Documented: not for low concurrency.
    "one user": Case(serving(), load(users=1), Decision.DO_NOT, "load"),
    # Documented: mixtures typically do not benefit.
    "mixture of experts": Case(serving("Qwen3-235B-A22B", "ml.p5en.48xlarge"), load(rate=3), Decision.DO_NOT, "model"),
    # All conditions hold; more prefill than one prefiller takes, and "2:1 or 3:1 if prefill-heavy" is documented.
    "RAG with contexts of 20,000 tokens": Case(
        serving(max_model_len=65_536), load(Lengths.of_mean(20_000, 0.2), 500, 2), Decision.DISAGGREGATE, "tpot"
    ),
    # Documented: 1:1 on two nodes is where to start; the load fits one prefiller.
    "two nodes of one GPU kind": Case(serving(), load(), Decision.DISAGGREGATE, "tpot", nodes=2),
    # The same two nodes serve this rate colocated and not apart.
    "two nodes and too much for one prefiller": Case(serving(), load(rate=6), Decision.DO_NOT, "capacity", nodes=2),
    # Documented: at least one prefill node and one decode node.
    "a single node": Case(serving(), load(), Decision.DO_NOT, "nodes", nodes=1),
    # Documented: not where the time to the first token is what matters; it gets worse.
    "search that waits for the first token": Case(serving(), load(ttft_first=True), Decision.DO_NOT, "purpose"),
    # Nothing is documented between small and 70B.
    "32B": Case(serving("Qwen3-32B"), load(rate=3), Decision.MEASURE_FIRST, "tpot"),
    # Answers of 8 tokens have no decode phase to speak of.
    "classification": Case(serving(), load(answer=8, rate=3), Decision.DO_NOT, "load"),
    # Fewer than the documented 2 requests a second, and nothing that the model can tell apart.
    "few requests": Case(serving(), load(rate=0.7), Decision.MEASURE_FIRST, "tpot"),
    # All conditions hold for the largest dense model, in fp8 on H200.
    "405B": Case(
        serving("Llama-3.1-405B-Instruct-FP8", "ml.p5en.48xlarge"), load(Lengths.constant(8000), 500, 2), Decision.DISAGGREGATE, "tpot"
    ),
    # Half of the prompts are long.
    "mixed traffic": Case(serving(), load(Lengths.of_values([800] * 6 + [8000] * 4), rate=3), Decision.MEASURE_FIRST, "tpot"),
}


def verdict(name: str) -> Verdict:
    case = CASES[name]
    return judge(case.serving, case.workload, nodes_available=case.nodes)


@pytest.mark.parametrize("name", CASES)
def test_the_documented_answer_is_given_and_its_reason_comes_first(name: str) -> None:
    found = verdict(name)
    assert found.decision is CASES[name].decision, [f"{each.side}: {each.text}" for each in found.reasons]
    assert found.reasons[0].topic == CASES[name].topic


@pytest.mark.parametrize("name", CASES)
def test_reasons_are_in_order_of_weight_and_each_has_a_source(name: str) -> None:
    weights = [reason.weight for reason in verdict(name).reasons]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) >= 5
    assert all(str(reason.source) for reason in verdict(name).reasons)


@pytest.mark.parametrize("name", CASES)
def test_the_same_gpus_colocated_always_stand_beside(name: str) -> None:
    found = verdict(name)
    assert found.counterfactual is not None
    assert found.counterfactual.colocated.outcome.gpus == found.counterfactual.disaggregated.outcome.gpus == found.serving.gpus


@pytest.mark.parametrize("name", CASES)
def test_every_verdict_says_that_the_first_token_comes_later(name: str) -> None:
    assert verdict(name).ttft.startswith("TTFT gets worse: ")


@pytest.mark.parametrize("name", CASES)
def test_no_gain_in_throughput_is_claimed_where_the_model_has_none(name: str) -> None:
    found = verdict(name)
    assert found.counterfactual is not None
    gain = found.counterfactual.throughput_gain
    if gain <= 0.05:
        assert found.throughput.startswith(("no gain in throughput", "throughput gets worse"))
    # Without a limit on latency the same GPUs colocated always serve more: none of them stands idle.
    assert found.counterfactual.most_gain < 0


def test_more_prefillers_are_proposed_where_the_load_needs_them() -> None:
    found = verdict("RAG with contexts of 20,000 tokens")
    assert found.resized
    assert found.serving.prefillers == 3
    assert not verdict("chat with 70B and long prompts").resized


def test_prefillers_are_not_proposed_beyond_the_nodes() -> None:
    assert verdict("two nodes and too much for one prefiller").serving.prefillers == 1


def test_roles_that_fill_more_nodes_than_there_are_are_refused() -> None:
    found = judge(serving(prefillers=3), load(), nodes_available=2)
    assert found.decision is Decision.DO_NOT
    assert any("fill 4 nodes; there are 2" in reason.text for reason in found.reasons)


def test_a_model_that_does_not_fit_the_gpus_is_refused() -> None:
    found = judge(serving("Llama-3.1-405B-Instruct"), load())
    assert found.decision is Decision.DO_NOT
    assert found.reasons[0].topic == "memory"
    assert "vLLM does not start" in found.reasons[0].text


def test_an_instance_type_without_dpd_is_refused_first() -> None:
    from dataclasses import replace

    other = replace(INSTANCE_TYPES["ml.p5.48xlarge"], name="ml.other", dpd=False)
    model = find_model("Llama-3.3-70B-Instruct")
    assert model is not None
    found = judge(Serving(model, other, 16_384), load())
    assert found.decision is Decision.DO_NOT
    assert "not one of the five types" in found.reasons[0].text


def test_what_is_not_modelled_is_never_a_yes() -> None:
    found = judge(serving("Qwen/Qwen3-32B-FP8"), load())
    assert found.decision is Decision.MEASURE_FIRST
    assert found.counterfactual is None
    assert "block-scaled fp8" in found.not_modelled
    assert found.ttft.startswith("TTFT gets worse")


def test_a_target_for_tpot_changes_what_can_be_served() -> None:
    # At 4,096 in and 256 out colocated engines keep 14 ms only at low rates, while decoders hardly notice prefill.
    chat = load(Lengths.constant(4096), 256, 2)
    free, tight = compare(serving(), chat), compare(serving(), chat, targets=Targets(tpot_seconds=0.013))
    assert free.most_gain < 0
    assert tight.most_gain > 0
    assert tight.colocated.most_requests_per_second < free.colocated.most_requests_per_second
    assert compare(serving(), chat, targets=Targets(ttft_seconds=0.001)).disaggregated.most_requests_per_second == 0


def test_cost_stands_beside_both_ways_where_prices_are_known() -> None:
    prices = PriceList("2026-11-01", Source("contract", "contract"), {"ml.p5.48xlarge": 60.0})
    found = judge(serving(), load(), prices=prices)
    assert found.counterfactual is not None
    for way in (found.counterfactual.disaggregated, found.counterfactual.colocated):
        assert way.cost_per_hour == 120
        # 2.5 requests of 400 tokens a second: 3.6 million tokens an hour.
        assert way.cost_per_million_tokens == pytest.approx(120 / 3.6)
    assert judge(serving(), load()).counterfactual is not None


@settings(max_examples=60)
@given(
    st.sampled_from(["Llama-3.3-70B-Instruct", "Llama-3.1-8B-Instruct", "Qwen3-235B-A22B", "DeepSeek-V3", "Mistral-Large-Instruct-2407"]),
    st.integers(10, 30_000),
    st.integers(1, 2000),
    st.floats(0.01, 50),
    st.booleans(),
    st.booleans(),
)
def test_any_load_gets_a_verdict_that_follows_from_its_reasons(
    name: str,
    prompt: int,
    answer: int,
    rate: float,
    offline: bool,
    first: bool,  # hypothesis passes by position
) -> None:
    found = judge(serving(name, "ml.p6-b200.48xlarge"), load(Lengths.constant(prompt), answer, rate, offline=offline, ttft_first=first))
    sides = {reason.side for reason in found.reasons}
    expected = Decision.DO_NOT if Side.DECISIVE in sides else Decision.MEASURE_FIRST if Side.AGAINST in sides else Decision.DISAGGREGATE
    assert found.decision is expected
    if offline or found.serving.model.is_mixture or found.serving.model.parameters < 30e9:
        assert found.decision is Decision.DO_NOT
    json.dumps(found.to_dict())


def test_the_whole_advice_is_plain_data_that_json_can_hold() -> None:
    advice = advise(Question(serving(), load(rate=6), nodes_available=2, simulated_requests=300))
    text = json.dumps(advice.to_dict(), allow_nan=False)
    assert json.loads(text)["verdict"]["decision"] == "do not disaggregate"


def test_advice_is_the_same_for_the_same_question() -> None:
    question = Question(serving(), load(), simulated_requests=300, seed=7)
    assert advise(question) == advise(question)
