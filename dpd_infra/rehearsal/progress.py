"""A progress display of an engine run: what is done, what is being worked on, and how long it takes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pulumi.automation import events
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from dpd_infra.rehearsal.urn import name_of, type_of

if TYPE_CHECKING:
    from dpd_infra.rehearsal.faults import Trial

_SIGNS = {
    "create": ("+", "green", "created"),
    "update": ("~", "yellow", "updated"),
    "replace": ("±", "magenta", "replaced"),
    "delete": ("-", "red", "deleted"),
    "same": ("=", "dim", "unchanged"),
    "refresh": ("~", "cyan", "read"),
}
_PHYSICAL = ("create-replacement", "delete-replaced")
_SHOWN = 6
"""Resources under work that are listed at once."""


class ProgressDisplay:
    """Call it with every engine event; use it as a context manager around the run.

    On a terminal it redraws a few lines in place; elsewhere it prints one line for each finished change.
    """

    def __init__(self, console: Console | None = None, *, title: str = "") -> None:
        self.console = console or Console(stderr=True, soft_wrap=True)
        self.title = title
        self.counts: Counter[str] = Counter()
        self._working: dict[str, tuple[str, float]] = {}
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._spinner = Spinner("dots")
        self._live = Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True, redirect_stdout=False)

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def __call__(self, event: events.EngineEvent) -> None:
        with self._lock:
            if event.resource_pre_event is not None:
                self._begin(event.resource_pre_event.metadata)
            elif event.res_outputs_event is not None:
                self._end(event.res_outputs_event.metadata, failed=False)
            elif event.res_op_failed_event is not None:
                self._end(event.res_op_failed_event.metadata, failed=True)

    @property
    def summary(self) -> str:
        """The counts so far, `12 created, 3 unchanged`."""
        words = [f"{self.counts[op]} {word}" for op, (_, _, word) in _SIGNS.items() if self.counts[op]]
        return ", ".join(words) or "nothing done yet"

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._begun

    def _begin(self, metadata: events.StepEventMetadata) -> None:
        if metadata.op.value != "same":
            self._working[metadata.urn] = (metadata.op.value, time.monotonic())

    def _end(self, metadata: events.StepEventMetadata, *, failed: bool) -> None:
        op = metadata.op.value
        _, begun = self._working.pop(metadata.urn, (op, time.monotonic()))
        if failed or _is_default_provider(metadata):
            return
        if op not in _PHYSICAL:
            self.counts[op] += 1
        if op in _SIGNS and op != "same" and not self.console.is_terminal:
            sign, _, word = _SIGNS[op]
            self.console.print(f"{sign} {word} {_label(metadata.urn)} ({time.monotonic() - begun:.1f} s)", markup=False, highlight=False)

    def _render(self) -> RenderableType:
        with self._lock:
            working = [(urn, op, begun) for urn, (op, begun) in self._working.items()]
        now = time.monotonic()
        head = Text.assemble((f"{self.title}  " if self.title else "", "bold"))
        for op, (sign, style, word) in _SIGNS.items():
            if self.counts[op]:
                head.append(f"{sign} {self.counts[op]} {word}  ", style=style)
        head.append(f"{now - self._begun:.0f} s", style="dim")
        self._spinner.update(text=head)
        lines: list[RenderableType] = [self._spinner]
        for urn, op, begun in working[-_SHOWN:]:
            sign, style, _ = _SIGNS.get(op.removesuffix("-replacement").removesuffix("-replaced").removesuffix("d"), ("·", "dim", op))
            lines.append(Text.assemble(("  ", ""), (f"{sign} ", style), _label(urn), (f"  {now - begun:.0f} s", "dim")))
        if len(working) > _SHOWN:
            lines.append(Text(f"  and {len(working) - _SHOWN} more", style="dim"))
        return Group(*lines)


class TrialDisplay:
    """Call it with how many faults are done, how many there are, and the last one; use it as a context manager around the drill.

    On a terminal it redraws one line; elsewhere it prints a line for each.
    """

    def __init__(self, console: Console | None = None, *, title: str = "") -> None:
        self.console = console or Console(stderr=True, soft_wrap=True)
        self._status = self.console.status(f"{title}: the stack comes up once without a fault")
        self.title = title

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.console.is_terminal:
            self._status.stop()

    def __call__(self, done: int, total: int, trial: Trial) -> None:
        if self.console.is_terminal:
            self._status.update(f"{self.title}: {done} of {total}, last {trial.name}")
        else:
            word = "converged" if trial.ok else "did not converge"
            self.console.print(f"{done} of {total}: {trial.name} ({trial.type}) {word}", markup=False, highlight=False)


def _is_default_provider(metadata: events.StepEventMetadata) -> bool:
    return metadata.type.startswith("pulumi:providers:") and name_of(metadata.urn).startswith("default")


def _label(urn: str) -> str:
    return f"{name_of(urn)} ({type_of(urn)})"
