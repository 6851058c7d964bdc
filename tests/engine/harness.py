"""How engine tests drive the real Pulumi engine: in this process with any callable as program, or through the plain `pulumi` command."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dpd_infra.plan.project import Project
from dpd_infra.rehearsal import RehearsalFailed, SimulatedAccount
from dpd_infra.rehearsal.engine import Action, Engine, Outcome
from dpd_infra.rehearsal.environment import PASSPHRASE, PulumiNotFound, find_pulumi, hermetic, without_foreign
from dpd_infra.rehearsal.runner import failure_message, result_of
from dpd_infra.rehearsal.server import ProviderServers

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

CHANGES = ("create", "update", "delete", "replace")


def pulumi_cli() -> Path:
    """The Pulumi CLI. A missing one is a failure of the test, never a skip."""
    try:
        return find_pulumi(REPOSITORY)
    except PulumiNotFound:
        raise AssertionError("the Pulumi CLI is missing: run `make tools`") from None


@dataclass(frozen=True)
class Run:
    """What one operation did, by resource name."""

    outcome: Outcome

    @property
    def ops(self) -> dict[str, list[str]]:
        """The engine's steps by URN, in order: same, create, update, replace, create-replacement, delete-replaced, delete."""
        found: dict[str, list[str]] = {}
        for step in self.outcome.steps:
            found.setdefault(step.urn, []).append(step.op)
        return found

    def op(self, name: str, kind: str | None = None) -> str:
        """The one step of the resource with that name (and type). A replacement reads `replace`."""
        steps = [step for step in self.outcome.steps if step.name == name and kind in (None, step.type)]
        ops = {step.op for step in steps}
        if "replace" in ops:
            return "replace"
        assert len(ops) == 1, f"{name}: {sorted(steps) or 'no step'}"
        return ops.pop()

    @property
    def changed(self) -> dict[str, str]:
        """Names of everything that was created, updated, deleted or replaced, with the step; the stack itself left out."""
        return {step.name: step.op for step in self.outcome.steps if step.op in CHANGES and step.type != "pulumi:pulumi:Stack"}

    @property
    def changes(self) -> int:
        """How many resources changed."""
        return len([step for step in self.outcome.steps if step.op in CHANGES])

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs; secrets read `[secret]`."""
        return self.outcome.outputs

    @property
    def warnings(self) -> list[str]:
        """Every warning of the engine, the providers and the program."""
        return [item.message for item in self.outcome.diagnostics if item.severity == "warning"]

    def diff(self, name: str) -> set[str]:
        """The changed property paths of a resource."""
        return {path for urn, details in self.outcome.details.items() if urn.endswith(f"::{name}") for path in details}


@dataclass
class EngineProject:
    """A project whose program is a Python callable, on a state folder of its own.

    `config` is what a stack file holds (`aws:region: …`, own keys with the namespace `test:`). Change `program` or `config` between
    operations to edit the stack. Operations raise `RehearsalFailed`.
    """

    folder: Path
    program: Callable[[], None]
    config: dict[str, Any] = field(default_factory=lambda: {"aws:region": "us-east-2", "aws-native:region": "us-east-2"})
    account: SimulatedAccount = field(default_factory=SimulatedAccount)
    name: str = "test"
    stack: str = "dev"
    secrets: dict[str, str] = field(default_factory=dict)
    """Config values to store encrypted, by `namespace:key.path`."""
    project_root: Path | None = None
    """What `current_project()` answers inside the program; the folder unless set."""

    def up(self) -> Run:
        """Create or update everything."""
        return self._run("up")

    def preview(self) -> Run:
        """What `up` would do."""
        return self._run("preview")

    def destroy(self) -> Run:
        """Delete everything."""
        return self._run("destroy")

    def refresh(self) -> Run:
        """Read everything anew."""
        return self._run("refresh")

    @property
    def state_file(self) -> Path:
        """The engine's state."""
        return self.folder / "state" / "backend" / ".pulumi" / "stacks" / self.name / f"{self.stack}.json"

    @property
    def state(self) -> list[dict[str, Any]]:
        """The resources in the engine's state."""
        return json.loads(self.state_file.read_text(encoding="utf-8"))["checkpoint"]["latest"].get("resources") or []

    def _run(self, action: Action) -> Run:
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        (work / "Pulumi.yaml").write_text(yaml.safe_dump({"name": self.name, "runtime": "python"}), encoding="utf-8")
        stack_file = work / f"Pulumi.{self.stack}.yaml"
        settings = yaml.safe_load(stack_file.read_text(encoding="utf-8")) if stack_file.exists() else {}
        stack_file.write_text(yaml.safe_dump({**settings, "config": self.config}), encoding="utf-8")
        engine = Engine(
            pulumi=pulumi_cli(),
            work_dir=work,
            state_dir=self.folder / "state",
            stack=self.stack,
            account=self.account,
            project=Project(root=self.project_root or self.folder, chart_required=False, rehearsal=True),
            secret_config=self.secrets,
        )
        outcome = engine.run(action, self.program)
        if outcome.error is not None:
            raise RehearsalFailed(result_of(outcome), failure_message(outcome))
        return Run(outcome)


@dataclass(frozen=True)
class Command:
    """One finished `pulumi` command."""

    status: int
    output: str
    """Standard output and error together."""


@dataclass
class CliProject:
    """A copy of a project, for the plain `pulumi` commands; providers are served by this process over `account`."""

    folder: Path
    account: SimulatedAccount
    environment: dict[str, str]

    def pulumi(self, *arguments: str) -> Command:
        """Run one command without a terminal."""
        command = [str(pulumi_cli()), "--non-interactive", "--color", "never", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return Command(done.returncode, done.stdout)

    def json(self, *arguments: str) -> Any:
        """Run one command and read the JSON it prints. Fails the test if the command fails."""
        command = [str(pulumi_cli()), "--non-interactive", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@contextmanager
def cli_project(source: Path, into: Path, account: SimulatedAccount | None = None) -> Iterator[CliProject]:
    """Copy a project and serve the simulated providers while the block runs.

    The copy leaves out what git ignores; its `.venv` is this interpreter's own environment. The language host of this folder stands
    on PATH only where Pulumi's own is not installed.
    """
    folder = into / "project"
    ignored = shutil.ignore_patterns(".git", ".venv", ".tools", ".dpd", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")
    shutil.copytree(source, folder, ignore=ignored)
    (folder / ".venv").symlink_to(sys.prefix)
    account = SimulatedAccount() if account is None else account
    cli = pulumi_cli()
    with ProviderServers(account) as servers:
        paths = [str(cli.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        if shutil.which("pulumi-language-python") is None:
            paths.insert(0, str(_language_host(into)))
        environment = {
            **without_foreign(dict(os.environ)),
            **hermetic(into / "state", servers.debug_providers),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PATH": os.pathsep.join(paths),
        }
        yield CliProject(folder, account, environment)


def _language_host(into: Path) -> Path:
    """A folder with the language host, started by this interpreter whatever `python3` on PATH is."""
    folder = into / "language-host"
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "pulumi-language-python"
    # A `#!` line takes no path with a space in it.
    command = shlex.join([sys.executable, str(HERE / "pulumi-language-python")])
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return folder
