"""After a run that was killed: the engine's checkpoints are made readable, and what it never wrote down is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.checkpoint import Checkpoint, StateDamaged, read
from dpd_infra.rehearsal.world.existing import ORIGIN

_RUNNING = "running"
"""A file that is there while a run lasts: one that is found at the start is a killed run's."""


@contextmanager
def recoverable_run(state_dir: Path, account: SimulatedAccount) -> Iterator[None]:
    """Mark a run while the block lasts, and first clear up after one that was killed."""
    marker = state_dir / _RUNNING
    if marker.exists():
        _recover(state_dir / "backend" / ".pulumi" / "stacks", account)
    marker.touch()
    yield
    marker.unlink()


def _recover(stacks: Path, account: SimulatedAccount) -> None:
    known = {
        (resource["urn"], resource.get("id"))
        for file in stacks.glob("*/*.json")
        for resource in (_checkpoint(file)["checkpoint"].get("latest") or {}).get("resources") or []
    }
    # What a service answered and the engine had no time to note would be in the way of the next create. What the world has, no engine
    # ever noted.
    for item in account:
        if item.urn not in ("", ORIGIN) and (item.urn, item.id) not in known:
            account.remove(item)


def _checkpoint(file: Path) -> dict[str, Any]:
    """The engine's state of one stack. A half-written file gives way to its backup, or to an empty stack where there is none."""
    Checkpoint(file).restore()
    try:
        return read(file)
    except StateDamaged:
        file.unlink()
        return {"checkpoint": {}}
