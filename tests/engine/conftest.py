"""Fixtures of all engine tests: a project on the real engine with a state folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from dpd_infra.rehearsal import SimulatedAccount
from tests.engine.harness import EngineProject


class MakeProject(Protocol):
    """Make an `EngineProject` in the test's own folder; options are its fields."""

    def __call__(self, program: Callable[[], None], account: SimulatedAccount | None = None, **options: Any) -> EngineProject: ...


@pytest.fixture
def engine(tmp_path: Path) -> MakeProject:
    """A factory of projects; each call has a folder of its own below the test's."""
    count = 0

    def make(program: Callable[[], None], account: SimulatedAccount | None = None, **options: Any) -> EngineProject:
        nonlocal count
        count += 1
        return EngineProject(tmp_path / f"engine-{count}", program, account=SimulatedAccount() if account is None else account, **options)

    return make
