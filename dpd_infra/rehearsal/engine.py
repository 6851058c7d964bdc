"""Drive the real Pulumi engine against the simulated providers, and read what happened from its events."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from pulumi.automation import events

from dpd_infra.plan.project import Project
from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.checkpoint import Checkpoint
from dpd_infra.rehearsal.environment import hermetic, process_environment
from dpd_infra.rehearsal.host import OnEvent, serve
from dpd_infra.rehearsal.kill_switch import Killed, KillSwitch
from dpd_infra.rehearsal.program import ONE_AT_A_TIME, Program, ProgramRun, split_output
from dpd_infra.rehearsal.server import ProviderServers
from dpd_infra.rehearsal.urn import name_of
from dpd_infra.rehearsal.wire import SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_TEXT

Action = Literal["up", "preview", "destroy", "preview-destroy", "refresh"]

STACK_TYPE = "pulumi:pulumi:Stack"
SECRET = "[secret]"  # noqa: S105 - what the engine prints in place of a secret
NOT_YET_KNOWN = "[known after up]"
_COLOUR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")


class Step(NamedTuple):
    """What the engine did with one resource."""

    type: str
    name: str
    urn: str
    op: str
    """The engine's word: same, create, update, delete, replace, create-replacement, delete-replaced, read, refresh."""


class Diagnostic(NamedTuple):
    """One message of the engine, a provider or the program."""

    severity: str
    """`info`, `warning` or `error`."""
    message: str
    urn: str = ""

    @property
    def name(self) -> str:
        """The resource's name, if the message is about one."""
        return name_of(self.urn) if self.urn else ""


@dataclass
class Outcome:
    """Everything one run of the engine reported."""

    action: Action
    steps: list[Step] = field(default_factory=list)
    failed: list[Step] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    secret_outputs: set[str] = field(default_factory=set)
    details: dict[str, Mapping[str, events.PropertyDiff]] = field(default_factory=dict)
    """The property changes by URN, for resources that changed."""
    summary: dict[str, int] = field(default_factory=dict)
    """The engine's own count of changes, as `pulumi up` prints it."""
    error: str | None = None
    """What the CLI said when it ended with a failure; None when all went well."""
    program_failure: str | None = None
    """The program's own report, when it was the program that failed."""
    late_failure: str | None = None
    """What a callback on an output raised."""
    broken_off: str | None = None
    """How the connection to the engine ended, where it ended before the program."""
    program_output: str = ""
    duration_seconds: float = 0
    killed: bool = False
    """Whether the engine was killed in the middle."""

    def count(self, *ops: str) -> int:
        """How many resources took one of these steps."""
        return sum(1 for step in self.steps if step.op in ops)

    @property
    def counts(self) -> Counter[str]:
        """How many resources took each step."""
        return Counter(step.op for step in self.steps)

    def take(self, event: events.EngineEvent) -> None:
        """Read one engine event."""
        if event.res_outputs_event is not None:
            self._take_step(event.res_outputs_event.metadata)
        elif event.resource_pre_event is not None and self.action == "preview":
            self._take_step(event.resource_pre_event.metadata)
        elif event.res_op_failed_event is not None:
            self.failed.append(_step(event.res_op_failed_event.metadata))
        elif event.summary_event is not None:
            self.summary = {events.OpType(op).value: count for op, count in event.summary_event.resource_changes.items()}
        elif event.diagnostic_event is not None:
            self._take_message(event.diagnostic_event)

    def _take_step(self, metadata: events.StepEventMetadata) -> None:
        step = _step(metadata)
        if step.type.startswith("pulumi:providers:") and step.name.startswith("default"):
            return  # made by the engine itself; `pulumi up` does not count it either
        if step not in self.steps:
            self.steps.append(step)
        if metadata.detailed_diff:
            self.details[step.urn] = metadata.detailed_diff
        if step.type == STACK_TYPE and metadata.new is not None and metadata.new.outputs and step.op != "delete":
            self.outputs = {key: _readable(value) for key, value in metadata.new.outputs.items()}
            self.secret_outputs = {key for key, value in self.outputs.items() if _hides(value)}

    def _take_message(self, event: events.DiagnosticEvent) -> None:
        text = _COLOUR.sub("", event.message).strip()
        message = Diagnostic(event.severity.removesuffix("#err"), text, event.urn or "")
        if text and message.severity != "debug" and not event.ephemeral and message not in self.diagnostics:
            self.diagnostics.append(message)


def _step(metadata: events.StepEventMetadata) -> Step:
    return Step(metadata.type, name_of(metadata.urn), metadata.urn, metadata.op.value)


def _readable(value: Any) -> Any:
    """An output as a person reads it: what is secret or not yet known is a word."""
    if isinstance(value, Mapping):
        if SIGNATURE_KEY in value:
            return SECRET if value[SIGNATURE_KEY] == SECRET_SIGNATURE else f"[{value.get('urn') or 'asset'}]"
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return NOT_YET_KNOWN if value == UNKNOWN_TEXT else value


def _hides(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_hides(item) for item in value.values())
    if isinstance(value, list):
        return any(_hides(item) for item in value)
    return value == SECRET


@dataclass
class Engine:
    """One stack of one workspace folder, on the real engine and against one simulated account.

    `work_dir` holds `Pulumi.yaml` and `Pulumi.<stack>.yaml`; state, home and passphrase live below `state_dir`.
    """

    pulumi: Path
    work_dir: Path
    state_dir: Path
    stack: str
    account: SimulatedAccount
    project: Project
    on_event: OnEvent | None = None
    secret_config: Mapping[str, str] = field(default_factory=dict)
    """Config values to store encrypted, by `namespace:key.path[0]`."""
    kill_after: int | None = None
    """The engine is killed when the account has done so many changes of this run, before it hears of the last one."""

    def run(self, action: Action, program: Program) -> Outcome:
        """Run one operation to its end. A failed operation is an `Outcome` with an `error`, not an exception."""
        outcome = Outcome(action)
        run = ProgramRun(program, self.project)
        begun = time.monotonic()

        def take(event: events.EngineEvent) -> None:
            outcome.take(event)
            if self.on_event is not None:
                self.on_event(event)

        with ONE_AT_A_TIME, ProviderServers(self.account) as servers:
            variables = hermetic(self.state_dir, servers.debug_providers)
            with process_environment(self.pulumi, variables), split_output(), serve(run, take) as arguments:
                try:
                    self._prepare()
                    self._operate(*_COMMANDS[action], *arguments, *self._plan_argument(action))
                except Killed as killed:
                    outcome.killed, outcome.error = True, str(killed)
                except subprocess.CalledProcessError as error:
                    outcome.error = _COLOUR.sub("", f"{error.stdout}{error.stderr}").strip() or str(error)
        self.account.save()
        outcome.program_failure, outcome.late_failure, outcome.broken_off = run.failure, run.late_failure, run.broken_off
        outcome.program_output = run.output
        outcome.duration_seconds = time.monotonic() - begun
        return outcome

    def command(self, *arguments: str) -> str:
        """Run a command of the CLI that runs no program, such as `import`, with the simulated providers; answers what it printed.

        Raises `subprocess.CalledProcessError`.
        """
        idle = ProgramRun(lambda: None, self.project)
        with ONE_AT_A_TIME, ProviderServers(self.account) as servers:
            variables = hermetic(self.state_dir, servers.debug_providers)
            with process_environment(self.pulumi, variables), serve(idle, lambda _: None) as (host, *_):
                self._prepare()
                # Even so the CLI asks for the language of the project.
                os.environ["PULUMI_DEBUG_LANGUAGES"] = f"python:{host.rpartition(':')[2]}"
                return self._cli(*arguments)

    @property
    def project_name(self) -> str:
        """The name in the workspace's Pulumi.yaml."""
        return str(yaml.safe_load((self.work_dir / "Pulumi.yaml").read_text(encoding="utf-8"))["name"])

    @property
    def checkpoint(self) -> Checkpoint:
        """The stack's state."""
        return Checkpoint.of(self.state_dir, self.project_name, self.stack)

    @property
    def plan_file(self) -> Path:
        """Where a preview leaves what it would register."""
        return self.work_dir / "plan.json"

    def _plan_argument(self, action: Action) -> tuple[str, ...]:
        if action != "preview":
            return ()
        self.plan_file.unlink(missing_ok=True)
        return ("--save-plan", str(self.plan_file))

    def _prepare(self) -> None:
        """Make the stack where the backend does not have it yet, and store the secrets of its configuration."""
        # A run that was killed leaves the engine's lock behind; the rehearsal's own lock says that nobody else runs.
        shutil.rmtree(self.state_dir / "backend" / ".pulumi" / "locks", ignore_errors=True)
        if not self.checkpoint.file.exists():
            self._cli("stack", "init")
        if self.secret_config:
            pairs = [part for key, value in self.secret_config.items() for part in ("--secret", f"{key}={value}")]
            self._cli("config", "set-all", "--path", *pairs)

    def _operate(self, *arguments: str) -> None:
        """Run an operation, and kill the engine in it if that was asked for. Raises `Killed` and `subprocess.CalledProcessError`."""
        if self.kill_after is None:
            self._cli(*arguments)
            return
        with KillSwitch(self.account, self.kill_after) as switch:
            try:
                self._cli(*arguments, switch=switch)
            except subprocess.CalledProcessError:
                if switch.fired:
                    raise Killed(self.kill_after) from None
                raise

    def _cli(self, *arguments: str, switch: KillSwitch | None = None) -> str:
        """Run one command of the CLI to its end; answers what it printed. Raises `subprocess.CalledProcessError`."""
        command = [str(self.pulumi), *arguments, "--stack", self.stack, "--non-interactive", "--color", "never"]
        # The events are among the CLI's debugging flags.
        environment = {**os.environ, "PULUMI_DEBUG_COMMANDS": "true"}
        piped = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=self.work_dir, env=environment, stdout=piped, stderr=piped, stdin=subprocess.DEVNULL, text=True
        ) as process:
            if switch is not None:
                switch.arm(process)
            out, err = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, out, err)
        return out


_COMMANDS: Mapping[Action, tuple[str, ...]] = {
    "up": ("up", "--yes", "--skip-preview"),
    "preview": ("preview",),
    "destroy": ("destroy", "--yes", "--skip-preview"),
    "preview-destroy": ("destroy", "--preview-only"),
    "refresh": ("refresh", "--yes", "--skip-preview"),
}
