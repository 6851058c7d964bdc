"""Which project a program runs in, and whether files that only a real deployment needs must be there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Project:
    """The project that a program belongs to."""

    root: Path = field(default_factory=Path.cwd)
    """The folder of `Pulumi.yaml`."""
    chart_required: bool = True
    """Whether the packed Helm chart must be on disk: a rehearsal installs nothing, so it does without."""
    rehearsal: bool = False
    """True while the providers are simulated."""


_CURRENT: ContextVar[Project | None] = ContextVar("dpd_infra_project", default=None)


def current_project() -> Project:
    """The project set by `use_project`, else the nearest folder with a `Pulumi.yaml` at or above the working directory."""
    return _CURRENT.get() or Project(root=_project_root(Path.cwd()))


def _project_root(start: Path) -> Path:
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in ("Pulumi.yaml", "Pulumi.yml")):
            return folder
    return start


@contextmanager
def use_project(project: Project) -> Iterator[Project]:
    """Make `project` the current one within the block, and in every task that starts there."""
    token = _CURRENT.set(project)
    try:
        yield project
    finally:
        _CURRENT.reset(token)
