"""A finding: one violation of one rule, or one value that a spec refuses, at a place in the user's own file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Path = tuple[str | int, ...]
"""A place in a document: keys and list positions from its root, e.g. `("config", "dpd-infra:endpoints", "llama", "routing")`."""


class Severity(StrEnum):
    """What a finding does: an error stops a plan, a warning is shown and never blocks, advice is worth a thought."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Patch:
    """A change that mends a finding: set `path` to `value`, or remove it."""

    path: Path
    value: Any = None
    remove: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, ready to be shown: where, what, why (with its source) and the fix."""

    rule: str
    """`DPD001`…, or `DPD000` for a value of the wrong shape."""
    severity: Severity
    path: Path
    """Where, in the user's file (a default's finding points at the nearest key the user wrote)."""
    what: str
    why: str
    fix: str
    source: str = ""
    value: Any = None
    """What stands there now; None where nothing stands there. Never a secret."""
    patch: Patch | None = None
    file: str = ""
    line: int = 0
    """1-based; 0 where the file has no text positions."""
    column: int = 0
    subject: str = ""
    """Which endpoint or part of the platform it is about."""
    related: tuple[Path, ...] = field(default=())
    secret: bool = False
    """A secret stands there: no report shows its source line."""


def pointer(path: Path) -> str:
    """The path as people write it: `config.dpd-infra:endpoints.llama-70b.prefill.args[2]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
