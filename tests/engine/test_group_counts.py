"""A count that somebody changed at AWS is not undone by an edit of anything else, on the real engine."""

from __future__ import annotations

from typing import Any

import pytest

from dpd_infra.rehearsal import Failure, RehearsalFailed, SimulatedAccount
from tests.engine.conftest import MakeProject
from tests.engine.harness import EngineProject
from tests.engine.test_platform import CLUSTER, config, groups, program

DECODE = {"instanceType": "ml.p5.48xlarge", "count": 2}
HP = "inference-cluster-cluster"


def edited(changes: dict[str, Any]) -> dict[str, Any]:
    return config({"instanceGroups.decode": DECODE, **changes})


@pytest.fixture
def stack(engine: MakeProject) -> EngineProject:
    """A platform whose group prefill has five nodes, which its stack file does not say."""
    project = engine(program, config=edited({}))
    project.up()
    scale(project, "prefill", 5)
    return project


def scale(project: EngineProject, name: str, count: int) -> None:
    """As a person does in the console."""
    [cluster] = project.account.all(CLUSTER)
    (group,) = (group for group in cluster.outputs["instanceGroups"] if group["instanceGroupName"] == name)
    group["instanceCount"] = count


EDITS: tuple[tuple[dict[str, Any], dict[str, int]], ...] = (
    # What is new in the stack file, and the counts that follow from it.
    ({"instanceGroups.decode": {**DECODE, "count": 3}}, {"decode": 3}),
    ({"instanceGroups.decode": {**DECODE, "count": 3, "labels": {"team": "x"}}}, {}),
    ({"instanceGroups.another": {"instanceType": "ml.c5.4xlarge", "count": 1}}, {"another": 1}),
    ({"cluster.nodeRecovery": "None"}, {}),
)


@pytest.mark.parametrize("refreshes", [False, True], ids=["as it is", "refreshed"])
def test_an_edit_elsewhere_in_the_cluster_leaves_it(stack: EngineProject, *, refreshes: bool) -> None:
    expected, changes = dict(groups(stack)), dict[str, Any]()
    for number, (change, counts) in enumerate(EDITS, start=5):
        scale(stack, "prefill", number)
        if refreshes:
            stack.refresh()
        changes |= change
        expected |= {**counts, "prefill": number}
        stack.config = edited(changes)
        assert stack.up().changed[HP] == "update"
        assert dict(groups(stack)) == expected
    # It is settled: nothing is left to be sent.
    assert stack.up().changed == {}


@pytest.mark.parametrize("refreshes", [False, True], ids=["as it is", "refreshed"])
def test_without_an_edit_nothing_is_sent(stack: EngineProject, *, refreshes: bool) -> None:
    if refreshes:
        stack.refresh()
    assert stack.up().changed == {}
    assert dict(groups(stack))["prefill"] == 5


def test_a_count_that_is_edited_is_the_files(stack: EngineProject) -> None:
    stack.config = edited({"instanceGroups.prefill": {"instanceType": "ml.p5.48xlarge", "count": 4}})
    assert stack.up().changed == {HP: "update", "inference-cluster-lifecycle-groups": "update"}
    assert dict(groups(stack))["prefill"] == 4


def test_a_count_that_was_kept_is_still_kept_at_the_next_edit_and_can_be_taken_back(stack: EngineProject) -> None:
    stack.config = edited({"instanceGroups.decode": {**DECODE, "count": 3}})
    stack.up()
    scale(stack, "prefill", 6)
    stack.config = edited({"instanceGroups.decode": {**DECODE, "count": 4}})
    stack.up()
    assert dict(groups(stack))["prefill"] == 6
    stack.config = edited({"instanceGroups.decode": {**DECODE, "count": 4}, "cluster.keepOutsideCounts": False})
    stack.up()
    assert dict(groups(stack)) == {"prefill": 3, "decode": 4, "system": 2}


def test_an_edit_that_aws_refused_is_sent_again(engine: MakeProject) -> None:
    failure = Failure(match=HP, action="update", message="We currently do not have sufficient capacity for the requested instance type(s).")
    project = engine(program, account=SimulatedAccount(fail_on=failure), config=edited({}))
    project.up()
    scale(project, "decode", 1)
    project.config = edited({"instanceGroups.prefill": {"instanceType": "ml.p5.48xlarge", "count": 4}})
    with pytest.raises(RehearsalFailed, match="sufficient capacity"):
        project.up()
    project.refresh()
    project.up()
    assert {**dict(groups(project)), "system": 0} == {"prefill": 4, "decode": 1, "system": 0}
