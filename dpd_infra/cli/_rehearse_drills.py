"""What `dpd rehearse` is told to break: which resources fail, and what can be killed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpd_infra.cli._output import WRONG_USAGE, fail
from dpd_infra.cli._rehearse_asked import Asked

if TYPE_CHECKING:
    from dpd_infra.rehearsal import Failure, Rehearsal
    from dpd_infra.rehearsal.engine import Action, Step
    from dpd_infra.rehearsal.kill_drill import Recovery


def fault(asked: Asked, rehearsal: Rehearsal, name: str, *, times: int | None) -> None:
    """Let the account fail the named resources. Ends the command where nothing has that name."""
    from dpd_infra.rehearsal.faults import failures, matching

    steps = _steps(rehearsal, asked.action)
    found = matching(steps, name)
    if not found:
        fail(no_such(asked.stack, name, steps), as_json=asked.as_json, code=WRONG_USAGE)
    made: list[Failure] = failures((step.urn for step in found), **({} if times is None else {"times": times}))
    if rehearsal.account is not None:
        rehearsal.account.failures += made


def _steps(rehearsal: Rehearsal, action: Action) -> list[Step]:
    """What there is to fail: all that the program asks for, or all that is there."""
    from dpd_infra.rehearsal.engine import Step
    from dpd_infra.rehearsal.urn import name_of

    if action == "destroy":
        with rehearsal.session() as session:
            return [Step(item["type"], name_of(item["urn"]), item["urn"], "delete") for item in session.engine.checkpoint.resources]
    return list(rehearsal.preview().resources)


def no_such(stack: str, name: str, steps: Iterable[Step]) -> str:
    """That nothing has that name, with the names and types that are near it; where none is, all types, which are few."""
    from dpd_infra.rehearsal.faults import can_fail

    there = [step for step in steps if can_fail(step.type)]
    names, types = {step.name for step in there}, {step.type for step in there}
    short = {token.rsplit(":", 1)[-1]: token for token in sorted(types)}
    near = _near(name, names) + [short.get(word, word) for word in _near(name, types | set(short))]
    if near:
        hint = f"Did you mean {' or '.join(dict.fromkeys(near))}?"
    elif types:
        hint = "\n".join(("Nor is a name near it; its types:", *(f"  {token}" for token in sorted(types))))
    else:
        hint = "It has none that can fail."
    listed = f"\n`dpd rehearse {stack} --preview --json` lists all {len(names)} names." if names else ""
    return f"no resource of {stack} has the name or type {name!r}. {hint}{listed}"


def _near(name: str, words: Iterable[str]) -> list[str]:
    """The few words that are most like a name, whatever their capitals; also those that it is a part of."""
    lower = {word.lower(): word for word in sorted(words)}
    close = difflib.get_close_matches(name.lower(), lower, n=_NEAR, cutoff=0.6)
    inside = sorted((word for word in lower if name.lower() in word and word not in close), key=len)
    return [lower[word] for word in (*close, *inside)][:_NEAR]


_NEAR = 3
"""Names in a hint."""


def what_can_be_killed(asked: Asked, recovery: Recovery) -> str:
    """What to ask for instead of more operations than there are."""
    smaller = f"name a number from 0 to {recovery.operations}" if recovery.operations else ""
    if asked.action == "destroy":
        return smaller or f"`dpd rehearse {asked.stack}` makes something that can be destroyed"
    anew = "" if asked.exported else "`--reset` begins with nothing, so that everything is to be made"
    return ", or ".join(filter(None, (smaller, anew))) or "there is nothing to be changed, and so nothing to be killed"
