"""The rehearsal of a project: its own program, its own stack file, the real engine, and a simulated account."""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpd_infra.plan.project import Project
from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.engine import STACK_TYPE, Action, Diagnostic, Engine, Outcome, Step
from dpd_infra.rehearsal.environment import find_pulumi
from dpd_infra.rehearsal.host import OnEvent
from dpd_infra.rehearsal.other_stacks import References
from dpd_infra.rehearsal.program import ENGINE_IS_GONE, Program, as_program_host, project_program
from dpd_infra.rehearsal.recovery import recoverable_run
from dpd_infra.rehearsal.server import PACKAGES
from dpd_infra.rehearsal.state_graph import StateGraph
from dpd_infra.rehearsal.suppose import suppose
from dpd_infra.rehearsal.urn import type_of
from dpd_infra.rehearsal.workspace import ProjectFiles, write_workspace
from dpd_infra.rehearsal.world.file import World
from dpd_infra.stack import StackSpec, load_file

DEFAULT_STATE_DIR = Path(".dpd") / "rehearsal"
"""Where a rehearsal keeps its state, below the project's folder."""


@dataclass(frozen=True)
class RehearsalResult:
    """What one rehearsed operation did."""

    action: Action
    created: int
    updated: int
    deleted: int
    replaced: int
    unchanged: int
    outputs: Mapping[str, Any]
    """The stack's outputs; a secret reads `[secret]`."""
    secret_outputs: frozenset[str]
    """Names of the outputs that are secret or hold a secret."""
    resources: tuple[Step, ...]
    """Every step of the engine: type, name, URN and operation."""
    failed: tuple[Step, ...]
    """The steps that failed."""
    duration_seconds: float
    diagnostics: tuple[Diagnostic, ...] = ()
    program_output: str = ""
    """What the program printed."""
    before: StateGraph = field(default_factory=StateGraph, repr=False)
    """The stack before the operation, as a graph."""
    after: StateGraph = field(default_factory=StateGraph, repr=False)
    """The stack after it; after a preview or a failure, what the program asks for."""

    @property
    def changes(self) -> int:
        """How many resources were created, updated, deleted or replaced."""
        return self.created + self.updated + self.deleted + self.replaced


class RehearsalFailed(Exception):
    """A rehearsed operation ended with a failure. The message names the resource and what the simulated service said, once."""

    def __init__(self, result: RehearsalResult, message: str) -> None:
        super().__init__(message)
        self.result = result
        self.message = message


@dataclass(frozen=True)
class Session:
    """An engine and the program of the project, with the state folder held."""

    engine: Engine
    program: Program
    references: References


class RehearsalBusy(Exception):
    """Another process is rehearsing in the same state folder."""


@dataclass
class Rehearsal:
    """Rehearse a project's stack.

    `project_dir` is the folder of `Pulumi.yaml`; `state_dir` (default `<project_dir>/.dpd/rehearsal`) holds all that the rehearsal
    writes. Without an `account` one is kept in that folder, shared by all stacks of the project, so that a second run finds what the
    first one made. `on_event` receives every engine event. Raises `PulumiNotFound` and `ProjectNotFound`.
    """

    project_dir: Path
    stack: str
    state_dir: Path | None = None
    account: SimulatedAccount | None = None
    on_event: OnEvent | None = field(default=None, kw_only=True)

    @property
    def folder(self) -> Path:
        """Where the rehearsal keeps its state."""
        return (self.state_dir or self.project_dir / DEFAULT_STATE_DIR).resolve()

    def up(self) -> RehearsalResult:
        """Create or update everything. Raises `RehearsalFailed`."""
        return self._run("up")

    def preview(self) -> RehearsalResult:
        """Say what `up` would do. Raises `RehearsalFailed`."""
        return self._run("preview")

    def destroy(self) -> RehearsalResult:
        """Delete everything. Raises `RehearsalFailed`."""
        return self._run("destroy")

    def refresh(self) -> RehearsalResult:
        """Read everything anew from the account. Raises `RehearsalFailed`."""
        return self._run("refresh")

    def reset(self) -> None:
        """Forget the rehearsals of this project: all stacks, and the account."""
        with self._locked() as state_dir:
            for item in state_dir.iterdir():
                if item.name != _LOCK:
                    shutil.rmtree(item) if item.is_dir() else item.unlink()

    def _run(self, action: Action) -> RehearsalResult:
        with self.session() as session:
            before = StateGraph.of(session.engine.checkpoint.resources)
            outcome = operate(session.engine, action, session.program)
            result = replace(result_of(outcome), before=before, after=_after(session, action, outcome))
        if outcome.error is not None:
            raise RehearsalFailed(result, session.references.as_written(failure_message(outcome)))
        return result

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Everything that operations need, while nobody else rehearses in the state folder. Clears up after a run that was killed."""
        pulumi = find_pulumi(self.project_dir)
        files = ProjectFiles.read(self.project_dir, self.stack)
        with self._locked() as state_dir:
            account = self.account
            if account is None:
                account = SimulatedAccount(state_dir / "account.json", world=suppose(World.default(), _spec(files)).world)
            work_dir = state_dir / "work" / files.stack
            engine = Engine(
                pulumi=pulumi,
                work_dir=work_dir,
                state_dir=state_dir,
                stack=files.stack,
                account=account,
                project=Project(root=files.root, chart_required=False, rehearsal=True),
                on_event=self.on_event,
                secret_config=write_workspace(files, work_dir),
            )
            with recoverable_run(state_dir, account), as_program_host(files.root, files.main):
                references = References()
                yield Session(engine, references.of(project_program(files.root, files.main)), references)

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        state_dir = self.folder
        state_dir.mkdir(parents=True, exist_ok=True)
        with (state_dir / _LOCK).open("w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RehearsalBusy(f"another rehearsal is running in {state_dir}") from None
            yield state_dir


def _spec(files: ProjectFiles) -> StackSpec | None:
    """The stack, where its file says that something is there already; one that is refused says so when its program runs."""
    platform = (files.stack_settings.get("config") or {}).get("dpd-infra:platform")
    if not isinstance(platform, Mapping) or not platform.get("existing"):
        return None
    return load_file(files.stack_file).spec


_LOCK = "lock"
_PREVIEWS: Mapping[Action, Action] = {"up": "preview", "destroy": "preview-destroy"}


def operate(engine: Engine, action: Action, program: Program) -> Outcome:
    """Run an operation as the plain command does: its preview first, and nothing at all where that fails, say for a protected resource.

    A stack without resources is not previewed: there is nothing that a half-done operation could take away.
    """
    preview = _PREVIEWS.get(action)
    if preview is not None and engine.checkpoint.resources:
        shown = replace(engine, on_event=None).run(preview, program)
        if shown.error is not None:
            return replace(shown, steps=[])  # what it said it would do was not done
    return engine.run(action, program)


def _after(session: Session, action: Action, outcome: Outcome) -> StateGraph:
    """What there is after an operation; where it is only known in words, after a preview or a failure, what the program asks for."""
    engine = session.engine
    if action in ("up", "preview") and (action == "preview" or outcome.error is not None):
        if action == "up":
            replace(engine, on_event=None, kill_after=None, account=engine.account.fork()).run("preview", session.program)
        asked = StateGraph.of_plan(engine.plan_file, StateGraph.of(engine.checkpoint.resources))
        if asked.nodes:
            return asked
    return StateGraph.of(engine.checkpoint.resources)


_UNHANDLED = "an unhandled error occurred:"
_SEVERAL = re.compile(r"\d+ errors? occurred:")


def result_of(outcome: Outcome) -> RehearsalResult:
    """The outcome as a frozen result. Replacements count once; the stack itself and its providers count as the engine counts them."""
    return RehearsalResult(
        action=outcome.action,
        created=outcome.count("create"),
        updated=outcome.count("update"),
        deleted=outcome.count("delete"),
        replaced=outcome.count("replace"),
        unchanged=outcome.count("same"),
        outputs=outcome.outputs,
        secret_outputs=frozenset(outcome.secret_outputs),
        resources=tuple(outcome.steps),
        failed=tuple(outcome.failed),
        duration_seconds=outcome.duration_seconds,
        diagnostics=tuple(outcome.diagnostics),
        program_output=outcome.program_output,
    )


def failure_message(outcome: Outcome) -> str:
    """What failed, in as few lines as say it: the program's own report, or each failed resource with what the service said."""
    if outcome.program_failure is not None:
        return outcome.program_failure
    errors = [item for item in outcome.diagnostics if item.severity == "error"]
    about = [item for item in errors if item.urn and f"::{STACK_TYPE}::" not in item.urn]
    if about:
        text = "\n".join(f"{item.name} ({type_of(item.urn)}): {_plain(item.message)}" for item in about)
    else:
        late = outcome.late_failure
        # The engine repeats what its host ended with; what else it says is the cause of that.
        causes = [item for item in errors if item.message != "update failed" and ENGINE_IS_GONE not in item.message]
        told = [_plain(item.message) for item in causes if not (late and late in item.message)]
        # The command's own report, where no event came through.
        text = "\n".join(dict.fromkeys(told)) or late or "\n".join(filter(None, (_plain(outcome.error or ""), outcome.broken_off)))
    if "no resource plugin" in text:
        text += f"\nA rehearsal simulates these packages: {', '.join(kind.package for kind in PACKAGES)}."
    return text


def _plain(message: str) -> str:
    """A message without what the engine wraps around one error or several (`1 error occurred:`), one a line, or around the program's."""
    message = message.strip().removeprefix(_UNHANDLED).strip()
    first, *errors = message.split("\n\t* ")
    return "\n  ".join(error.strip() for error in errors) if errors and _SEVERAL.fullmatch(first) else message
