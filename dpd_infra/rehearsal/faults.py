"""Faults by resource: what a name means, and what failing one resource's create leads to."""

from __future__ import annotations

import fnmatch
import glob
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.drill import Scratch, unrest
from dpd_infra.rehearsal.engine import Outcome, Step
from dpd_infra.rehearsal.explanations import Explanation, explain
from dpd_infra.rehearsal.journal import Action, Failure
from dpd_infra.rehearsal.runner import failure_message
from dpd_infra.rehearsal.state_graph import StateGraph
from dpd_infra.rehearsal.urn import name_of, type_of

MESSAGE = "operation error: https response error StatusCode: 500, api error InternalFailure: An internal failure occurred"
"""What an injected fault says, in the form of the AWS providers."""

_ALWAYS = 1_000_000


def matching(steps: Iterable[Step], wanted: str) -> list[Step]:
    """The resources that a name, a type token, the token's last part or a shell pattern of these means."""
    found: dict[str, Step] = {}
    for step in steps:
        words = (step.name, step.type, step.type.rsplit(":", 1)[-1])
        if can_fail(step.type) and any(fnmatch.fnmatchcase(word, wanted) for word in words):
            found.setdefault(step.urn, step)
    return list(found.values())


def can_fail(token: str) -> bool:
    """Whether some service makes it: no component, no provider, not the stack."""
    return not token.startswith(("pulumi:", "dpd:"))


def failures(urns: Iterable[str], *, times: int = _ALWAYS) -> list[Failure]:
    """Faults that strike whatever is done to these resources."""
    actions: tuple[Action, ...] = ("create", "update", "delete")
    return [Failure(glob.escape(urn), action, MESSAGE, times=times) for urn in urns for action in actions]


@dataclass(frozen=True)
class Trial:
    """One resource whose create failed, and what the next `up` made of it."""

    urn: str
    fault: str
    """`refused`: nothing was made; `went on`: the create failed without an identifier, and the service made it all the same."""
    message: str
    """What the failed `up` said."""
    problems: tuple[str, ...]
    """What was wrong when all was done; nothing where the stack converged."""
    explanation: Explanation | None = None
    """Where the next `up` needed help: what it said, and the way out."""
    created: int = 0
    """What the last `up` made."""

    @property
    def name(self) -> str:
        """The resource's name."""
        return name_of(self.urn)

    @property
    def type(self) -> str:
        """The type token."""
        return type_of(self.urn)

    @property
    def ok(self) -> bool:
        """Whether it converged, with nothing made twice and nothing lost."""
        return not self.problems


def _follow(told: Explanation, stack: Scratch) -> Outcome:
    """Type what the way out says, word for word; its last command is an `up`. Raises `subprocess.CalledProcessError`."""
    lines = [shlex.split(step.removeprefix("$ pulumi ")) for step in told.way_out if step.startswith("$ pulumi ")]
    *before, (action,) = lines
    for words in before:
        # Nobody is there to say yes.
        stack.engine.command(*words, "--yes", "--skip-preview")
    return stack.run("destroy" if action == "destroy" else "up")


@dataclass
class _Watch(Failure):
    """A fault that never strikes: it keeps the account as it was before each create."""

    account: SimulatedAccount | None = None
    before: dict[str, SimulatedAccount] = field(default_factory=dict)

    def strikes(self, action: Action, token: str, urn: str) -> bool:
        if action == "create" and self.account is not None:
            self.before.setdefault(urn, self.account.fork())
        return False


@dataclass
class FaultDrill:
    """Fails the create of one resource after the other, each from the account and the state as they were just before it."""

    stack: Scratch
    before: dict[str, SimulatedAccount]
    """By URN, in the order of the first `up`."""
    made: Counter[tuple[str, str]]
    known: set[str]
    graph: StateGraph
    whole: SimulatedAccount
    """The account after an `up` without a fault."""

    @classmethod
    def begin(cls, stack: Scratch) -> FaultDrill:
        """Bring an empty stack up once. Raises `ValueError` with the report where that fails already."""
        watch = _Watch(account=stack.account)
        stack.account.failures.append(watch)
        outcome = stack.run()
        stack.account.failures.remove(watch)
        if outcome.error is not None:
            raise ValueError(failure_message(outcome))
        return cls(stack, watch.before, stack.made(), stack.known(), StateGraph.of(stack.checkpoint.resources), stack.account)

    @property
    def urns(self) -> list[str]:
        """Every resource that can fail."""
        return list(self.before)

    def trials(self, urns: Iterable[str], progress: Callable[[Trial], None] | None = None) -> Iterator[Trial]:
        """Fail these one after the other; a HyperPod cluster once more in the way that only its provider has."""
        text = self.stack.checkpoint.file.read_text(encoding="utf-8")
        for urn in urns:
            faults = ("refused", "went on") if type_of(urn) == base.HYPERPOD_CLUSTER else ("refused",)
            for fault in faults:
                self.stack.checkpoint.write(text)
                trial = self._try(urn, fault)
                if progress is not None:
                    progress(trial)
                yield trial
        self.stack.checkpoint.write(text)

    def _try(self, urn: str, fault: str) -> Trial:
        before = self.before[urn]
        made = {item.urn for item in before}
        cut: set[str] = set()
        for node in self.graph:
            if (can_fail(node.type) and node.urn not in made) or node.waits & cut:
                cut.add(node.urn)
        account = before.fork(fail_on=[Failure(glob.escape(urn), "create", MESSAGE)])
        stack = self.stack.at(self.stack.checkpoint.without(cut), account)
        first = stack.run()
        if first.error is None:
            return Trial(urn, fault, "", ("the fault did not strike: nothing was created",))
        message = failure_message(first)
        if fault == "went on":
            self._go_on(urn, account)
        second = stack.run()
        told = None
        if fault == "went on":
            told = explain(failure_message(second), second, stack.engine) if second.error is not None else None
            if told is None:
                return Trial(urn, fault, message, ("the next up did not say that the resource already exists",))
            second = _follow(told, stack)
        if second.error is not None:
            return Trial(urn, fault, message, (f"the next up failed: {failure_message(second)}",), told)
        return Trial(urn, fault, message, unrest(stack, self.made, self.known), told, second.count("create"))

    def _go_on(self, urn: str, account: SimulatedAccount) -> None:
        """Let the service finish what it never gave an identifier of: it is what the faultless run made, and all that came with it."""
        there = {(item.type, item.region, item.cluster, item.id) for item in account}
        after = next((self.before[later] for later in self._after(urn)), self.whole)
        for item in after.fork():
            mine = item.urn == urn or not item.urn
            if mine and (item.type, item.region, item.cluster, item.id) not in there:
                account.add(replace(item))

    def _after(self, urn: str) -> list[str]:
        urns = self.urns
        return urns[urns.index(urn) + 1 :]
