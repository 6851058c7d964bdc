"""When each step begins, what makes the whole as long as it is, and the pictures of it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.catalog.sources import Source
from dpd_infra.rehearsal.durations import ADDONS, ASSUMED, KINDS, durations_of, is_known
from dpd_infra.rehearsal.engine import Step
from dpd_infra.rehearsal.explanations import EXISTS, Explanation
from dpd_infra.rehearsal.faults import Trial
from dpd_infra.rehearsal.report import Report, timeline_data
from dpd_infra.rehearsal.report_html import page
from dpd_infra.rehearsal.runner import RehearsalResult
from dpd_infra.rehearsal.state_graph import Node, StateGraph
from dpd_infra.rehearsal.timeline import of_graph, of_operation
from dpd_infra.rehearsal.timeline_svg import svg
from dpd_infra.rehearsal.timeline_text import gantt

EKS = "aws:eks/cluster:Cluster"
NAT = "aws:ec2/natGateway:NatGateway"
HYPERPOD = "aws-native:sagemaker:Cluster"
COMPONENT = "dpd:index:Network"


def node(name: str, kind: str, *waits: str, parent: str = "") -> Node:
    urn = f"urn:pulumi:dev::shop::{kind}::{name}"
    return Node(urn, kind, name, parent, not kind.startswith("dpd:"), frozenset(waits))


def chain() -> tuple[StateGraph, Node, Node, Node]:
    eks = node("eks", EKS)
    hyperpod = node("hyperpod", HYPERPOD, eks.urn)
    nat = node("nat", NAT)
    return StateGraph([nat, hyperpod, eks]), eks, hyperpod, nat


def test_a_step_begins_when_all_it_waits_for_is_done_and_the_longest_chain_is_the_critical_path() -> None:
    graph, eks, hyperpod, nat = chain()
    made = of_graph("up", graph, "create")
    # Middles of the table: EKS (8 + 15) / 2, HyperPod (10 + 60) / 2.
    assert made.by_urn[hyperpod.urn].start == pytest.approx(11.5)
    assert made.middle == pytest.approx(46.5)
    assert (made.low, made.high) == (pytest.approx(18), pytest.approx(75))
    assert made.critical == (eks.urn, hyperpod.urn)
    assert made.by_urn[nat.urn].start == 0


def test_a_destroy_runs_the_other_way() -> None:
    graph, eks, hyperpod, _ = chain()
    assert of_graph("destroy", graph, "delete").critical == (hyperpod.urn, eks.urn)


def test_an_update_takes_the_time_of_what_changes_alone() -> None:
    graph, eks, hyperpod, _ = chain()
    steps = [Step(HYPERPOD, "hyperpod", hyperpod.urn, "update"), Step(EKS, "eks", eks.urn, "same")]
    made = of_operation("up", steps, before=graph, after=graph)
    assert [bar.node.urn for bar in made.bars] == [hyperpod.urn]
    assert made.bars[0].start == 0
    assert made.kept == 2


def test_a_replacement_is_one_bar_of_both_times_and_a_deletion_comes_last() -> None:
    before, eks, hyperpod, nat = chain()
    after = StateGraph([eks, hyperpod])
    steps = [Step(HYPERPOD, "hyperpod", hyperpod.urn, op) for op in ("delete-replaced", "replace", "create-replacement")]
    steps.append(Step(NAT, "nat", nat.urn, "delete"))
    made = of_operation("up", steps, before=before, after=after)
    bars = made.by_urn
    of_type = KINDS[HYPERPOD]
    assert bars[hyperpod.urn].change == "replace"
    assert bars[hyperpod.urn].duration.high == of_type.create.high + of_type.delete.high
    assert bars[nat.urn].start == bars[hyperpod.urn].end


def test_a_component_takes_no_time_and_hands_its_waits_on() -> None:
    eks = node("eks", EKS)
    component = node("network", COMPONENT, eks.urn)
    nat = node("nat", NAT, component.urn)
    made = of_graph("up", StateGraph([nat, component, eks]), "create")
    assert {bar.name for bar in made.bars} == {"eks", "nat"}
    assert made.by_urn[nat.urn].start == made.by_urn[eks.urn].end


@given(
    st.lists(st.tuples(st.sampled_from([EKS, NAT, HYPERPOD, COMPONENT]), st.sets(st.integers(0, 30), max_size=4)), min_size=1, max_size=30)
)
def test_whatever_the_graph_no_step_begins_early_or_late_and_the_path_is_as_long_as_the_whole(drawn: list[tuple[str, set[int]]]) -> None:
    names = [f"urn:pulumi:dev::shop::{kind}::n{index}" for index, (kind, _) in enumerate(drawn)]
    nodes = [node(f"n{index}", kind, *(names[other] for other in waits if other < index)) for index, (kind, waits) in enumerate(drawn)]
    made = of_graph("up", StateGraph(reversed(nodes)), "create")

    def end(urn: str) -> float:
        one = nodes[names.index(urn)]
        return max((end(other) for other in one.waits), default=0.0) + durations_of(one.type, {}).create.middle

    for bar in made.bars:
        assert bar.end == pytest.approx(end(bar.node.urn))
        assert bar.start == pytest.approx(max((end(other) for other in bar.node.waits), default=0.0))
    assert sum(bar.duration.middle for bar in made.path) == pytest.approx(made.middle)
    assert made.low <= made.middle + 1e-9 <= made.high + 1e-6


def test_every_kind_that_an_example_makes_has_a_duration_of_its_own() -> None:
    folder = Path(__file__).with_name("snapshots")
    text = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.txt"))
    kinds = set(re.findall(r"^ *\S+ \(([a-z-]+:[^)]+)\)", text, re.MULTILINE))
    assert EKS in kinds
    assert sorted(kind for kind in kinds if not is_known(kind)) == []


def test_a_duration_is_minutes_with_a_source_or_says_that_it_is_assumed() -> None:
    for durations in (*KINDS.values(), *ADDONS.values()):
        for one in (durations.create, durations.update, durations.delete):
            assert 0 <= one.low <= one.high <= 12 * 60, "the longest that a handler goes on is 720 minutes"
            assert isinstance(one.source, Source) or one.source == ASSUMED
            assert one.assumed == (one.source == ASSUMED)


def test_what_was_measured_says_what_was_seen() -> None:
    """A number from somebody's log is no promise: the figure that was read stands beside it, and what of it is assumed all the same."""
    every = [one for durations in (*KINDS.values(), *ADDONS.values()) for one in (durations.create, durations.update, durations.delete)]
    assert [one for one in every if not one.assumed and not one.why] == []
    creates = [durations.create for durations in (*KINDS.values(), *ADDONS.values())]
    assert sum(one.assumed for one in creates) < len(creates) / 2


def test_the_terminal_marks_the_critical_path_and_what_failed() -> None:
    graph, eks, hyperpod, nat = chain()
    steps = [Step(EKS, "eks", eks.urn, "create"), Step(NAT, "nat", nat.urn, "create")]
    failed = [Step(HYPERPOD, "hyperpod", hyperpod.urn, "create")]
    lines = gantt(of_operation("up of dev", steps, before=StateGraph(), after=graph, failed=failed), width=100)
    row = {line.split()[1]: line for line in lines[1:4]}
    assert "█" in row["eks"]
    assert "░" in row["nat"]
    assert row["hyperpod"].startswith("x ")
    assert "8\u201315 min" in row["eks"]
    assert all(len(line) <= 100 for line in lines[:4])
    assert any("eks > hyperpod" in line for line in lines)


class _Outside(HTMLParser):
    """What a page would fetch, and whether every element that it opens is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href", "data", "srcset", "action")]
        if tag not in ("meta", "br", "link", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_needs_nothing_from_outside_and_shows_no_markup_of_a_value() -> None:
    graph, eks, hyperpod, nat = chain()
    steps = (Step(EKS, "eks", eks.urn, "create"), Step(NAT, "nat", nat.urn, "create"))
    failed = (Step(HYPERPOD, "hyperpod", hyperpod.urn, "create"),)
    result = RehearsalResult("up", 2, 0, 0, 0, 0, {}, frozenset(), steps, failed, 1.0, after=graph)
    report = Report("dev", "shop", "up", ok=False, result=result, message="hyperpod: <script>alert(1)</script> & more")
    text = page(report)
    outside = _Outside()
    outside.feed(text)
    assert outside.open == []
    assert outside.fetched == []
    assert "@import" not in text
    assert "url(" not in text
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text
    timeline = report.timeline
    assert timeline is not None
    picture = ET.fromstring(svg(timeline))
    bars = list(picture.iter("{http://www.w3.org/2000/svg}rect"))
    assert sorted(str(bar.get("class")).split()[1] for bar in bars) == ["create", "critical", "failed"]
    data = timeline_data(timeline)
    assert data["criticalPath"] == ["eks", "hyperpod"]
    assert [step["status"] for step in data["steps"] if step["name"] == "hyperpod"] == ["failed"]


def test_the_page_says_what_the_colours_are_and_what_a_failed_up_did_not_come_to() -> None:
    graph, eks, hyperpod, nat = chain()
    made = (Step(EKS, "eks", eks.urn, "create"),)
    failed = (Step(HYPERPOD, "hyperpod", hyperpod.urn, "create"),)
    result = RehearsalResult("up", 1, 0, 0, 0, 0, {}, frozenset(), made, failed, 1.0, after=graph)
    text = page(Report("dev", "shop", "up", ok=False, result=result, message="no"))
    assert "<i style='background: var(--critical)'></i>on the critical path<i style='background: var(--failed)'></i>failed</p>" in text
    marks = dict(re.findall(r"title='([^']*)'>[^<]*</span>(\w+)", text))
    assert marks == {"not begun": nat.name, "created": eks.name, "failed": hyperpod.name}
    fine = page(Report("dev", "shop", "up", ok=True, result=result))
    assert "not begun" not in fine


def test_what_is_told_of_a_trial_has_a_row_of_its_own_and_words_are_not_broken() -> None:
    _, eks, hyperpod, _ = chain()
    trials = (
        Trial(eks.urn, "refused", "no", ()),
        Trial(hyperpod.urn, "went on", "no", (), EXISTS),
        Trial(hyperpod.urn, "refused", "no", ("two are made",)),
    )
    text = page(Report("dev", "shop", "fail-each", ok=False, trials=trials))
    outside = _Outside()
    outside.feed(text)
    assert outside.open == []
    rows = re.findall(r"<tr( class='more')?>(.*?)</tr>", text)
    assert [bool(more) for more, _ in rows] == [False, False, True, False, True, False]
    assert "two are made" in rows[2][1]
    assert all(row.count("<td class='word") == 2 for more, row in rows[1:] if not more)
    assert "<code>aws sagemaker" in page(Report("dev", "shop", "up", ok=False, message="no", explanation=told_of_a_command()))


def told_of_a_command() -> Explanation:
    return replace(EXISTS, way_out=("Its ARN: `aws sagemaker describe-cluster`",))
