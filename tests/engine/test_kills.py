"""The engine is killed in the middle: the documented commands alone bring the stack to rest.

`KILLS=20` kills at as many random points (`make faults`).
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from dpd_infra.rehearsal.drill import scratch
from dpd_infra.rehearsal.kill_drill import Recovery, kill
from dpd_infra.rehearsal.runner import RehearsalResult
from tests.engine.drills import copy_of_stacks, rehearsal_of
from tests.engine.harness import pulumi_cli

SEEDS = int(os.environ.get("KILLS", "1"))
OPERATIONS = 70
"""Of the dev stack's first up."""


@pytest.fixture(autouse=True)
def _cli_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)


def killed(folder: Path, after: int, *, destroy: bool = False) -> Recovery:
    rehearsal = rehearsal_of(copy_of_stacks(folder, protect=not destroy), "dev")
    if destroy:
        up: RehearsalResult = rehearsal.up()
        assert up.created > OPERATIONS
    with rehearsal.session() as session, scratch(session, empty=False) as one, scratch(session, empty=False) as other:
        return kill(one, other, after, "destroy" if destroy else "up")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_a_kill_at_a_random_point_the_next_up_comes_to_rest(seed: int, tmp_path: Path) -> None:
    after = random.Random(seed).randint(1, OPERATIONS - 1)
    recovery = killed(tmp_path, after)
    assert recovery.problems == ()
    assert recovery.ok
    # What the engine had not heard of is marked, so nothing is forgotten: at least the last operation that the account did.
    assert recovery.pending or recovery.notes
    assert {item.operation for item in recovery.pending} <= {"creating"}
    assert recovery.commands[0] == "cancel --yes"
    assert recovery.commands[1] == "refresh --clear-pending-creates" or not recovery.pending
    assert recovery.commands[-1] == "up"
    assert all(command.startswith("import ") for command in recovery.commands[1 + bool(recovery.pending) : -1])
    if not recovery.notes:
        names = {item.name for item in recovery.pending}
        assert {command.split()[2] for command in recovery.commands[2:-1]} <= names, "what is to be confirmed is what was under way"


@pytest.mark.timeout(300)
def test_a_destroy_that_is_killed_goes_on(tmp_path: Path) -> None:
    recovery = killed(tmp_path, 20, destroy=True)
    assert recovery.problems == ()
    assert recovery.ok
    assert {item.operation for item in recovery.pending} <= {"deleting"}
    assert recovery.commands[-1] == "destroy"


def test_a_number_beyond_the_end_is_said(tmp_path: Path) -> None:
    recovery = killed(tmp_path, 10_000)
    assert not recovery.fired
    assert recovery.problems == ("the engine was done before it could be killed",)
