"""When each step of an operation would begin and end, and the chain of waits that makes it as long as it is: the critical path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dpd_infra.rehearsal.durations import Duration, durations_of
from dpd_infra.rehearsal.engine import STACK_TYPE, Step
from dpd_infra.rehearsal.state_graph import Node, StateGraph

CHANGES = ("create", "update", "delete", "replace")
"""What a bar can be: a replacement is one bar, its old resource's end included."""


@dataclass(frozen=True)
class Bar:
    """One step on the time axis."""

    node: Node
    change: str
    """`create`, `update`, `delete` or `replace`."""
    duration: Duration
    start: float
    """Minutes after the operation began, with every step at the middle of its duration."""
    end: float
    status: str = "done"
    """`done`, `failed`, or `not reached` where the operation stopped before it."""
    after: str = ""
    """The URN of the last step that it waited for; empty where it waited for nothing."""

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.node.name


@dataclass(frozen=True)
class Timeline:
    """The steps of one operation in the order they begin; `low`, `middle` and `high` are minutes from its beginning to its end."""

    title: str
    bars: tuple[Bar, ...]
    critical: tuple[str, ...]
    """URNs of the critical path, first to last, with every step at the middle of its duration."""
    low: float
    middle: float
    high: float
    kept: int = 0
    """Resources that the operation leaves as they are."""
    by_urn: Mapping[str, Bar] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> tuple[Bar, ...]:
        """The bars of the critical path."""
        return tuple(self.by_urn[urn] for urn in self.critical)

    @property
    def assumed(self) -> int:
        """How many bars have a duration that no document gives."""
        return sum(bar.duration.assumed for bar in self.bars)

    def without_trifles(self, minutes: float = 1.0) -> tuple[Bar, ...]:
        """The bars worth a line of their own: those on the critical path, those that failed, and those that take long."""
        critical = set(self.critical)
        return tuple(
            bar
            for bar in self.bars
            if (bar.node.urn in critical and bar.duration.middle >= minutes / 4) or bar.duration.middle >= minutes or bar.status == "failed"
        )


def of_operation(
    title: str, steps: Iterable[Step], *, before: StateGraph, after: StateGraph, failed: Iterable[Step] = (), reached: bool = True
) -> Timeline:
    """The timeline of an operation that was rehearsed, from its steps and from the states before and after it.

    Deletions run against the direction of the graph. With `reached` False the operation stopped early: what else `after` would hold is not
    known, and is left out.
    """
    changes = _changes(steps)
    status = dict.fromkeys(changes, "done")
    for step in failed:
        changes.setdefault(step.urn, _change(step.op))
        status[step.urn] = "failed"
    forward = {urn: change for urn, change in changes.items() if change != "delete"}
    backward = {urn: change for urn, change in changes.items() if change == "delete"}
    bars = _schedule(after, forward, status, begin=0)
    turn = max((bar.end for bar in bars), default=0.0)
    # The engine deletes what the program no longer names when everything else is done.
    bars += _schedule(before.reversed(), backward, status, begin=turn)
    extremes = [_length(after, before, forward, backward, which) for which in ("low", "high")]
    known = {*after.nodes, *before.nodes}
    kept = sum(1 for urn in known - changes.keys() if _counts(after.nodes.get(urn) or before.nodes[urn]))
    return _timeline(title, bars, extremes[0], extremes[1], kept)


def of_graph(title: str, graph: StateGraph, change: str) -> Timeline:
    """The timeline of creating or deleting everything in a state."""
    changes = {node.urn: change for node in graph if _counts(node)}
    steps = [Step(graph[urn].type, graph[urn].name, urn, change) for urn in changes]
    return of_operation(title, steps, before=graph, after=graph)


def _timeline(title: str, bars: list[Bar], low: float, high: float, kept: int) -> Timeline:
    by_urn = {bar.node.urn: bar for bar in bars}
    path: list[str] = []
    bar = max(bars, key=lambda item: item.end, default=None)
    while bar is not None:
        path.insert(0, bar.node.urn)
        bar = by_urn.get(bar.after)
    ordered = tuple(sorted(bars, key=lambda item: (item.start, -item.end, item.node.urn)))
    return Timeline(title, ordered, tuple(path), low, max((item.end for item in bars), default=0.0), high, kept, by_urn)


def _schedule(graph: StateGraph, changes: Mapping[str, str], status: Mapping[str, str], *, begin: float) -> list[Bar]:
    """Every change as early as its waits allow; what does not change takes no time and hands on the waits."""
    ends: dict[str, tuple[float, str]] = {}
    bars: list[Bar] = []
    for node in graph:
        start, last = max((ends[urn] for urn in node.waits), default=(begin, ""))
        change = changes.get(node.urn)
        if change is None or not _counts(node):
            ends[node.urn] = (start, last)
            continue
        duration = _minutes(node, change)
        ends[node.urn] = (start + duration.middle, node.urn)
        bars.append(Bar(node, change, duration, start, start + duration.middle, status.get(node.urn, "done"), last))
    return bars


def _length(after: StateGraph, before: StateGraph, forward: Mapping[str, str], backward: Mapping[str, str], which: str) -> float:
    """Minutes from beginning to end with every step at one end of its duration."""
    total = 0.0
    for graph, changes in ((after, forward), (before.reversed(), backward)):
        ends: dict[str, float] = {}
        for node in graph:
            change = changes.get(node.urn)
            minutes = getattr(_minutes(node, change), which) if change and _counts(node) else 0.0
            ends[node.urn] = max((ends[urn] for urn in node.waits), default=0.0) + minutes
        total += max(ends.values(), default=0.0)
    return total


def _minutes(node: Node, change: str) -> Duration:
    durations = durations_of(node.type, node.inputs)
    if change != "replace":
        return getattr(durations, change)
    one, other = durations.delete, durations.create
    source = other.source if not other.assumed else one.source
    return Duration(one.low + other.low, one.high + other.high, source, "the old one goes, the new one comes")


def _counts(node: Node) -> bool:
    """Whether a resource is one that a service makes: no component, no provider, not the stack."""
    return node.custom and not node.is_provider and node.type != STACK_TYPE


_OPS = {"create-replacement": "replace", "delete-replaced": "replace", "discard-replaced": "replace", "import": "update"}


def _change(op: str) -> str:
    return _OPS.get(op, op)


def _changes(steps: Iterable[Step]) -> dict[str, str]:
    found: dict[str, str] = {}
    for step in steps:
        change = _change(step.op)
        if change in CHANGES and found.get(step.urn) != "replace":
            found[step.urn] = change
    return found
