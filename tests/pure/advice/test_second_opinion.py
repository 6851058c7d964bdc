"""AIConfigurator's own answers, recorded, beside ours."""

from __future__ import annotations

from typing import Any

import pytest

from dpd_infra.plan.advice import second_opinion as adapter
from dpd_infra.plan.advice.second_opinion import Compared, SecondOpinion, second_opinion
from dpd_infra.plan.advice.text import opinion_lines
from tests.conftest import ROOT
from tests.pure.advice.recorded import CASES, Case, Replay, recorded

RECORDED = recorded()
DENSE = [(case, calls) for case, calls in RECORDED if not case.serving.model.is_mixture]
MIXTURES = [(case, calls) for case, calls in RECORDED if case.serving.model.is_mixture]


def opinion_on(case: Case, calls: list[dict[str, Any]]) -> tuple[SecondOpinion, Replay]:
    replay = Replay(calls)
    return second_opinion(case.serving, case.workload, replay), replay


def test_the_recording_is_of_the_cases() -> None:
    assert [case for case, _ in RECORDED] == list(CASES)
    assert all(len(calls) == 4 for _, calls in RECORDED)


@pytest.mark.parametrize(("case", "calls"), RECORDED, ids=lambda value: value.model if isinstance(value, Case) else "")
def test_the_library_is_asked_for_the_same_thing_and_stands_beside_ours(case: Case, calls: list[dict[str, Any]]) -> None:
    opinion, replay = opinion_on(case, calls)
    prefill, decode, together, apart = calls
    assert [each.theirs for each in opinion.compared[:4]] == [prefill["ttft"], decode["tpot"], apart["tpot"], together["tpot"]]
    assert opinion.version.endswith("tables of vLLM 0.24.0")
    shape = case.serving.model
    assert {(config["hidden_size"], config["num_hidden_layers"]) for config in replay.configs} == {(shape.hidden_size, shape.layers)}


@pytest.mark.parametrize(("case", "calls"), DENSE, ids=lambda value: value.model if isinstance(value, Case) else "")
def test_on_dense_models_the_two_agree(case: Case, calls: list[dict[str, Any]]) -> None:
    opinion, _ = opinion_on(case, calls)
    assert max(abs(each.difference) for each in opinion.compared) <= 0.1
    assert opinion.note == ""


def test_where_they_disagree_it_is_said() -> None:
    opinions = [opinion_on(case, calls)[0] for case, calls in MIXTURES]
    for opinion in opinions:
        apart = [each.what for each in opinion.compared if abs(each.difference) > 0.1]
        assert all(what in opinion.note for what in apart)
        assert bool(apart) == opinion.note.startswith("more than 10% apart")
    assert any(opinion.note for opinion in opinions)


def test_the_documented_points_are_the_librarys_own() -> None:
    # sizing.md, 4,096 in and 256 out on H100 at concurrency 32: prefill 169.6 ms, 1P1D 13.74 ms and 1,235 tokens a second, and two
    # colocated replicas 21.5 ms and 1,397.
    opinion, _ = opinion_on(*RECORDED[0])
    theirs = {each.what: each.theirs for each in opinion.compared}
    assert theirs["prefill"] == pytest.approx(169.6, abs=0.05)
    assert theirs["disaggregated, TPOT"] == pytest.approx(13.74, abs=0.01)
    assert theirs["disaggregated, output"] == pytest.approx(1235, abs=0.5)
    assert theirs["colocated, TPOT"] == pytest.approx(21.5, abs=0.05)
    assert theirs["colocated, output"] == pytest.approx(1397, abs=0.5)


def test_a_difference_is_ours_above_theirs() -> None:
    assert Compared("x", 11.0, 10.0, "ms").difference == pytest.approx(0.1)
    assert adapter.MOST_DIFFERENCE == 0.1


def test_the_page_shows_what_the_recorded_answers_give() -> None:
    opinion, _ = opinion_on(*RECORDED[0])
    page = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
    title, *lines = opinion_lines(opinion)
    assert title.endswith("tables of vLLM 0.24.0")
    assert "\n".join(lines) in page
