"""The engine is killed in the middle of an `up` or a `destroy`: what it left under way, and whether the stack comes to rest again."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from functools import partial

from dpd_infra.rehearsal.checkpoint import Pending
from dpd_infra.rehearsal.drill import Scratch, unrest
from dpd_infra.rehearsal.engine import Action, Outcome
from dpd_infra.rehearsal.explanations import import_words
from dpd_infra.rehearsal.runner import failure_message


@dataclass(frozen=True)
class Recovery:
    """A killed operation, and the way back."""

    action: Action
    killed_after: int
    """Operations that the account had done."""
    fired: bool
    """False where the operation was over before so many, or fails without being killed."""
    pending: tuple[Pending, ...]
    """What was under way."""
    commands: tuple[str, ...]
    """What a person types to go on, without `pulumi` and the stack; the last one is the operation itself."""
    problems: tuple[str, ...]
    """What was wrong when all was done; nothing where the stack came to rest."""
    operations: int = 0
    """Operations that the account did in all, the recovery included."""
    notes: tuple[str, ...] = ()
    """What came before the commands."""
    too_late: bool = False
    """Whether the operation went well and was over before so many."""

    @property
    def ok(self) -> bool:
        """Whether the stack came to rest, with nothing made twice and nothing lost."""
        return self.fired and not self.problems

    @property
    def misses(self) -> str:
        """How many operations there are, where they are fewer than were asked for."""
        count = f"{self.operations} operation{'' if self.operations == 1 else 's'}"
        return f"{_TOO_LATE}: this {self.action} has {count}" if self.too_late else ""


_TOO_LATE = "the engine was done before it could be killed"
_TORN = (
    "the kill tore the state file or what the backend keeps beside it, as it can with a backend in local files. That was put right first: "
    "the backup put back (cp .pulumi/stacks/PROJECT/STACK.json.bak .pulumi/stacks/PROJECT/STACK.json) where the state was torn, and a torn "
    "description deleted (rm .pulumi/stacks/PROJECT/STACK.json.attrs), of which the CLI says `failed to load checkpoint: EOF`"
)


def kill(stack: Scratch, reference: Scratch, after: int, action: Action = "up") -> Recovery:
    """Kill the engine after so many operations, then recover with the documented commands alone.

    `reference` is the same stack, on which the same operation is run without being killed.
    """
    killed = stack.run(action, kill_after=after)
    lost = partial(Recovery, action, after, fired=False, pending=(), commands=())
    if not killed.killed and killed.error is None:
        return lost(problems=(_TOO_LATE,), operations=len(stack.account.journal), too_late=True)
    whole = reference.run(action) if killed.killed else killed
    if whole.error is not None:
        done = len(reference.account.journal if killed.killed else stack.account.journal)
        return lost(problems=(f"the {action} fails without being killed: {failure_message(whole)}",), operations=done)
    restored = stack.checkpoint.restore()
    pending = stack.checkpoint.pending
    commands = recovery_commands(stack, pending, action)
    problems: tuple[str, ...] = ()
    try:
        for words in commands[1:-1]:
            stack.engine.command(*words, "--yes", "--skip-preview")
    except subprocess.CalledProcessError as error:
        problems = (f"`pulumi {shlex.join(error.cmd[1:])}` failed: {error.stdout}{error.stderr}",)
    if not problems:
        problems = _finish(stack, reference, action)
    told = tuple(shlex.join(words) for words in commands)
    notes = (_TORN,) if restored else ()
    return Recovery(
        action,
        after,
        fired=True,
        pending=pending,
        commands=told,
        problems=problems,
        operations=len(stack.account.journal),
        notes=notes,
    )


def _finish(stack: Scratch, reference: Scratch, action: Action) -> tuple[str, ...]:
    outcome: Outcome = stack.run(action)
    if outcome.error is not None:
        return (f"the next {action} failed: {failure_message(outcome)}",)
    return unrest(stack, reference.made(), reference.known())


def recovery_commands(stack: Scratch, pending: tuple[Pending, ...], action: Action) -> list[list[str]]:
    """The documented way back, as words after `pulumi`: release the lock, settle what was under way, and the operation again.

    A pending create is dropped from the state. Where it happened all the same, the resource is imported: only the account knows. (The
    engine's own `refresh --import-pending-creates` imports nothing in 3.274: it drops the operation as `--clear-pending-creates` does.)
    """
    commands = [["cancel", "--yes"]]
    creating = [item for item in pending if item.operation == "creating"]
    if pending:
        commands.append(["refresh", *(["--clear-pending-creates"] if creating else [])])
    known, own = stack.known(), f"urn:pulumi:{stack.engine.stack.rsplit('/', 1)[-1]}::{stack.engine.project_name}::"
    made = [item.urn for item in stack.account if item.urn.startswith(own) and item.urn not in known]
    if action != "destroy":
        commands += [import_words(urn, stack.engine) for urn in made]
    return [*commands, [action]]
