"""What every drill stands on: a copy of a rehearsal that may be broken, and the question whether a stack has come to rest."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.checkpoint import Checkpoint
from dpd_infra.rehearsal.engine import Action, Engine, Outcome
from dpd_infra.rehearsal.program import Program
from dpd_infra.rehearsal.runner import Session


@dataclass(frozen=True)
class Scratch:
    """A stack on a state folder of its own, over an account in memory."""

    engine: Engine
    program: Program

    @property
    def account(self) -> SimulatedAccount:
        """What exists."""
        return self.engine.account

    @property
    def checkpoint(self) -> Checkpoint:
        """What the engine knows."""
        return self.engine.checkpoint

    def run(self, action: Action = "up", *, kill_after: int | None = None) -> Outcome:
        """One operation, without its preview."""
        return replace(self.engine, kill_after=kill_after).run(action, self.program)

    def at(self, text: str, account: SimulatedAccount) -> Scratch:
        """The same stack with this state and this account."""
        self.checkpoint.write(text)
        self.checkpoint.backup.unlink(missing_ok=True)
        return Scratch(replace(self.engine, account=account), self.program)

    def made(self) -> Counter[tuple[str, str]]:
        """How often each thing of the program's, by type and URN, and each kind of thing that a service made by itself, exists."""
        return Counter((item.type, item.urn) for item in self.account)

    def known(self) -> set[str]:
        """The URNs in the state."""
        return {item["urn"] for item in self.checkpoint.resources}


@contextmanager
def scratch(session: Session, *, empty: bool) -> Iterator[Scratch]:
    """A copy of a session's stack within the block; with `empty`, as it was before its first `up`. Other stacks are there as they are."""
    engine = session.engine
    with TemporaryDirectory(prefix="dpd-rehearsal-") as folder:
        state_dir = Path(folder)
        for part in ("backend", "home"):
            if (engine.state_dir / part).exists():
                shutil.copytree(engine.state_dir / part, state_dir / part)
        work_dir = Path(shutil.copytree(engine.work_dir, state_dir / "work"))
        copied = replace(engine, state_dir=state_dir, work_dir=work_dir, account=engine.account.fork(), on_event=None)
        checkpoint = copied.checkpoint
        if empty and checkpoint.file.exists():
            own = {item["urn"] for item in checkpoint.resources}
            copied.account = engine.account.fork(without=own)
            checkpoint.write(checkpoint.without(own))
        yield Scratch(copied, session.program)


def unrest(stack: Scratch, made: Counter[tuple[str, str]], known: set[str]) -> tuple[str, ...]:
    """What is wrong with a stack that should be as one that went up without a fault; nothing where it is."""
    problems: list[str] = []
    now = stack.made()
    for (kind, urn), count in (now - made).items():
        problems.append(f"{_label(kind, urn)} exists {count} time{'' if count == 1 else 's'} too often")
    for (kind, urn), count in (made - now).items():
        problems.append(f"{_label(kind, urn)} is missing{'' if count == 1 else f' {count} times'} in the account")
    there = stack.known()
    problems += [f"{_label('', urn)} is not in the state" for urn in sorted(known - there)]
    problems += [f"{_label('', urn)} is in the state and should not be" for urn in sorted(there - known)]
    problems += [f"{item.name} ({item.type}) is still {item.operation}" for item in stack.checkpoint.pending]
    for item in stack.checkpoint.resources:
        if item.get("initErrors"):
            problems.append(f"{_label('', item['urn'])} is not ready: {'; '.join(item['initErrors'])}")
        if item.get("delete"):
            problems.append(f"{_label('', item['urn'])} still waits for its deletion")
    return tuple(problems)


def _label(kind: str, urn: str) -> str:
    if not urn or "::" not in urn:
        return f"something that nobody's program made ({kind})"
    return f"{urn.rsplit('::', 1)[-1]} ({urn.split('::')[2].rsplit('$', 1)[-1]})"
