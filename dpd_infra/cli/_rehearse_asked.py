"""What the command line of `dpd rehearse` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpd_infra.spec.finding import Finding
from dpd_infra.stack import StackSpec

if TYPE_CHECKING:
    from dpd_infra.rehearsal.engine import Action

KEPT_FILES = ("report.html", "report.json", "state.json", "account.json")
"""What `--keep` writes."""


def state_dir(root: Path, *, from_state: bool) -> Path:
    """Where a project's rehearsals keep their state: what is deployed is rehearsed beside the project's own rehearsals."""
    return root / ".dpd" / ("rehearsal-from-state" if from_state else "rehearsal")


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    root: Path
    stack: str
    stack_file: Path
    spec: StackSpec
    action: Action
    fault: str | None
    fail_each: bool
    kill_at: int | None
    exported: tuple[Path, ...]
    world: Path | None
    timeline: bool
    keep: Path | None
    html: Path | None
    reset: bool
    as_json: bool
    told: tuple[Finding, ...] = ()
    """The rules' warnings that were shown before the rehearsal."""

    @property
    def state_dir(self) -> Path:
        """Where this rehearsal keeps its state."""
        return state_dir(self.root, from_state=bool(self.exported))
