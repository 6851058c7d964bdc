"""The engine is killed in the middle: the documented commands alone bring the stack to rest.

`KILLS=20` kills at as many random points (`make faults`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpd_infra.rehearsal.drill import Scratch, scratch
from dpd_infra.rehearsal.kill_drill import Recovery, kill
from dpd_infra.rehearsal.runner import Session
from tests.engine.drills import copy_of_stacks, rehearsal_of
from tests.engine.harness import pulumi_cli

SEEDS = int(os.environ.get("KILLS", "1"))
OPERATIONS = 70
"""Of the dev stack's first up."""


@pytest.fixture(scope="module")
def _cli_on_path() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)
    yield
    patch.undo()


@dataclass(frozen=True)
class Ground:
    """The dev stack before its first `up`, and a copy of it that is never killed: brought up once for all tests."""

    session: Session
    reference: Scratch

    def killed(self, after: int) -> Recovery:
        """Kill an `up` of another copy after so many operations, and recover."""
        with scratch(self.session, empty=False) as one:
            return kill(one, self.reference, after, "up")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, _cli_on_path: None) -> Iterator[Ground]:
    rehearsal = rehearsal_of(copy_of_stacks(tmp_path_factory.mktemp("kills")), "dev")
    with rehearsal.session() as session, scratch(session, empty=False) as reference:
        yield Ground(session, reference)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_a_kill_at_a_random_point_the_next_up_comes_to_rest(seed: int, ground: Ground) -> None:
    after = random.Random(seed).randint(1, OPERATIONS - 1)
    recovery = ground.killed(after)
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
@pytest.mark.usefixtures("_cli_on_path")
def test_a_destroy_that_is_killed_goes_on(tmp_path: Path) -> None:
    rehearsal = rehearsal_of(copy_of_stacks(tmp_path, protect=False), "dev")
    assert rehearsal.up().created > OPERATIONS
    with rehearsal.session() as session, scratch(session, empty=False) as one, scratch(session, empty=False) as other:
        recovery = kill(one, other, 20, "destroy")
    assert recovery.problems == ()
    assert recovery.ok
    assert {item.operation for item in recovery.pending} <= {"deleting"}
    assert recovery.commands[-1] == "destroy"


def test_a_number_beyond_the_end_is_said(ground: Ground) -> None:
    recovery = ground.killed(10_000)
    assert not recovery.fired
    assert recovery.problems == ("the engine was done before it could be killed",)


@pytest.mark.parametrize("torn", [".json", ".json.attrs", ".json.bak.attrs"])
def test_whatever_a_kill_tears_of_a_state_in_files_is_put_right(ground: Ground, torn: str) -> None:
    with scratch(ground.session, empty=False) as stack:
        assert stack.run("refresh").error is None
        assert stack.run().error is None
        known, file = stack.known(), stack.checkpoint.file
        assert file.with_name(file.stem + ".json.bak").exists()
        part = file.with_name(file.stem + torn)
        part.write_text(part.read_text(encoding="utf-8")[:20], encoding="utf-8")
        assert stack.checkpoint.restore()
        assert not stack.checkpoint.restore(), "once is enough"
        assert stack.run().error is None
        assert stack.known() == known
