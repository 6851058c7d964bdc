"""What a rehearsal tells: one set of data, which the terminal, the JSON and the page show each in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpd_infra.rehearsal.durations import ASSUMED
from dpd_infra.rehearsal.engine import Diagnostic
from dpd_infra.rehearsal.explanations import Explanation
from dpd_infra.rehearsal.faults import Trial
from dpd_infra.rehearsal.kill_drill import Recovery
from dpd_infra.rehearsal.runner import RehearsalResult
from dpd_infra.rehearsal.state_graph import Node
from dpd_infra.rehearsal.timeline import Bar, Timeline, of_operation


@dataclass(frozen=True)
class Report:
    """One rehearsal of one stack."""

    stack: str
    project: str
    action: str
    """`up`, `preview`, `destroy`, `fail-each` or `kill`."""
    ok: bool
    result: RehearsalResult | None = None
    message: str = ""
    """Why it failed, in the words of the engine and the services; empty where it did not."""
    explanation: Explanation | None = None
    rules: Sequence[tuple[str, str, str]] = ()
    """What the simulated world holds that was broken: the rule's name, what it says, and its source."""
    trials: Sequence[Trial] = ()
    recovery: Recovery | None = None
    notes: Sequence[str] = ()

    @property
    def timeline(self) -> Timeline | None:
        """The time axis of the operation; None where nothing changed or nothing is known."""
        if self.result is None:
            return None
        result = self.result
        made = of_operation(
            f"{result.action} of {self.stack}", result.resources, before=result.before, after=result.after, failed=result.failed
        )
        return made if made.bars else None

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the program, the engine and the simulated services warned of, once each."""
        told = self.result.diagnostics if self.result is not None else ()
        return tuple({(item.message, item.name): item for item in told if item.severity == "warning"}.values())

    @property
    def is_refused_beforehand(self) -> bool:
        """Whether the preview failed, so that nothing was done."""
        return not self.ok and self.result is not None and self.result.action != self.action

    @property
    def left(self) -> tuple[Node, ...]:
        """What a failed `up` did not come to, or a failed `destroy` did not delete; nothing where all went well."""
        result = self.result
        if self.ok or result is None or result.action not in ("up", "destroy"):
            return ()
        done = {step.urn for step in (*result.resources, *result.failed)}
        if result.action == "up":
            done |= {node.urn for node in result.before}
        return tuple(node for node in result.after if node.custom and not node.is_provider and node.urn not in done)

    def as_data(self) -> dict[str, Any]:
        """The parts that are there, as JSON has them."""
        data: dict[str, Any] = {}
        if self.message:
            data["error"] = self.message
        if self.explanation is not None:
            data["explanation"] = explanation_data(self.explanation)
        if self.rules:
            data["rules"] = [{"rule": name, "message": text, "source": source} for name, text, source in self.rules]
        if self.result is not None and self.result.failed:
            data["failed"] = [{"type": step.type, "name": step.name, "urn": step.urn, "operation": step.op} for step in self.result.failed]
        if self.left:
            data["left"] = [{"type": node.type, "name": node.name, "urn": node.urn} for node in self.left]
        if self.warnings:
            data["warnings"] = [{"message": item.message, "name": item.name, "urn": item.urn} for item in self.warnings]
        if self.trials:
            data["trials"] = [trial_data(trial) for trial in self.trials]
        if self.recovery is not None:
            data["recovery"] = recovery_data(self.recovery)
        if self.notes:
            data["notes"] = list(self.notes)
        return data


def timeline_data(timeline: Timeline) -> dict[str, Any]:
    """A time axis: minutes from the beginning, and the chain that makes it as long as it is."""
    return {
        "minutes": {"low": round(timeline.low, 1), "middle": round(timeline.middle, 1), "high": round(timeline.high, 1)},
        "criticalPath": [bar.name for bar in timeline.path],
        "assumed": timeline.assumed,
        "unchanged": timeline.kept,
        "steps": [_bar_data(bar, timeline) for bar in timeline.bars],
    }


def _bar_data(bar: Bar, timeline: Timeline) -> dict[str, Any]:
    after = timeline.by_urn.get(bar.after)
    return {
        "name": bar.name,
        "type": bar.node.type,
        "urn": bar.node.urn,
        "component": bar.node.component,
        "change": bar.change,
        "status": bar.status,
        "start": round(bar.start, 2),
        "end": round(bar.end, 2),
        "low": bar.duration.low,
        "high": bar.duration.high,
        "source": ASSUMED if bar.duration.assumed else str(bar.duration.source),
        "after": after.name if after else None,
        "critical": bar.node.urn in timeline.critical,
    }


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """A failure in plain words."""
    return {
        "symptom": explanation.symptom,
        "cause": explanation.cause,
        "wayOut": list(explanation.way_out),
        "page": explanation.anchor,
        "source": str(explanation.source),
    }


def trial_data(trial: Trial) -> dict[str, Any]:
    """One resource that was failed."""
    return {
        "name": trial.name,
        "type": trial.type,
        "urn": trial.urn,
        "fault": trial.fault,
        "converged": trial.ok,
        "problems": list(trial.problems),
        "message": trial.message,
        "explanation": explanation_data(trial.explanation) if trial.explanation else None,
    }


def recovery_data(recovery: Recovery) -> Mapping[str, Any]:
    """A killed operation."""
    return {
        "action": recovery.action,
        "killedAfter": recovery.killed_after,
        "killed": recovery.fired,
        "pending": [{"name": item.name, "type": item.type, "operation": item.operation, "urn": item.urn} for item in recovery.pending],
        "commands": [f"pulumi {command}" for command in recovery.commands],
        "notes": list(recovery.notes),
        "recovered": recovery.ok,
        "problems": list(recovery.problems),
    }
