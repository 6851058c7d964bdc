"""Stacks that a stack refers to: their exported states lie beside its own, under the one organization that a rehearsal's backend has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pulumi
import yaml

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.engine import Engine
from dpd_infra.rehearsal.from_state import ExportedState, StateRefused, import_state
from dpd_infra.rehearsal.holders import OTHERS
from dpd_infra.rehearsal.program import Program
from dpd_infra.rehearsal.workspace import ProjectFiles

ORGANIZATION = "organization"
"""What Pulumi's file backends call the only organization there is."""

_REFERENCE = "pulumi:pulumi:StackReference"
_NAME = re.compile(r"[^/]+/(?:(?P<project>[^/]+)/)?(?P<stack>[^/]+)")
"""With its organization, and with its project where that is another: a stack's name alone is the same everywhere."""


@dataclass(frozen=True)
class ExportedStates:
    """What `pulumi stack export` wrote, of one stack and of those that it refers to."""

    own: ExportedState | None
    """None where the stack itself is not deployed yet: it begins with nothing."""
    others: tuple[ExportedState, ...] = ()

    @classmethod
    def read(cls, paths: Iterable[Path], files: ProjectFiles) -> ExportedStates:
        """Read files, and every JSON file of folders; of what `dpd rehearse --keep` wrote, the state. Raises `StateRefused`."""
        found: dict[tuple[str, str], tuple[Path, ExportedState]] = {}
        for path in _each(paths):
            state = ExportedState.parse(path)
            key = (state.project, state.stack)
            if key in found:
                raise StateRefused(f"{found[key][0]} and {path} are both the state of stack {state.stack} of project {state.project}")
            found[key] = (path, state)
        own = found.pop((files.name, files.stack.rsplit("/", 1)[-1]), None)
        if own is None and not any(_is_named(state, files) for _, state in found.values()):
            path, state = next(iter(found.values()))
            refused = state.refused(path, project=files.name, stack=files.stack)
            raise StateRefused(f"{refused}; nor do {files.stack_file.name} and its program name {state.project}/{state.stack}")
        return cls(own[1] if own else None, tuple(state for _, state in found.values()))

    @property
    def sealed(self) -> int:
        """Encrypted values of all of them, which stand-ins replace."""
        return sum(state.sealed for state in self._every)

    @property
    def _every(self) -> tuple[ExportedState, ...]:
        return (*((self.own,) if self.own else ()), *self.others)

    def put_into(self, engine: Engine, stack_file: str) -> None:
        """Make them what the engine's backend has, and the account what they say exists."""
        account: SimulatedAccount = engine.account
        account.number = next(filter(None, (state.account_number for state in self._every)), account.number)
        for state in self.others:
            work_dir = engine.state_dir / OTHERS / state.project / state.stack
            work_dir.mkdir(parents=True, exist_ok=True)
            (work_dir / "Pulumi.yaml").write_text(yaml.safe_dump({"name": state.project, "runtime": "python"}), encoding="utf-8")
            import_state(state, replace(engine, work_dir=work_dir, stack=state.stack, secret_config={}))
        if self.own is not None:
            account.deployer = self.own.deployer(stack_file) or account.deployer
            import_state(self.own, engine)


_KEPT = ("report.json", "account.json", "report.html")
"""What `dpd rehearse --keep` writes beside the state."""


def _each(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.glob("*.json"))
        if all((path / name).is_file() for name in _KEPT):
            inside = [file for file in inside if file.name not in _KEPT]
        if not inside:
            raise StateRefused(f"{path} has no JSON file: `pulumi stack export --file {path}/NAME.json` writes one")
        yield from inside


def _is_named(state: ExportedState, files: ProjectFiles) -> bool:
    """Whether the stack's file or a program file beside it refers to a state's stack by project and stack."""
    entry = files.root / (files.main or ".")
    programs = [entry] if entry.is_file() else sorted(entry.glob("*.py"))
    return any(f"{state.project}/{state.stack}" in file.read_text(encoding="utf-8") for file in (files.stack_file, *programs))


@dataclass
class References:
    """How a program names other stacks, where that is not how the rehearsal's backend names them."""

    written: dict[str, str] = field(default_factory=dict)
    """The program's names by the backend's."""

    def of(self, program: Program) -> Program:
        """The program, whose references to `ORG/PROJECT/STACK` are to what the rehearsal's backend calls so."""

        def run() -> None:
            pulumi.runtime.register_stack_transformation(self._as_known_here)
            program()

        return run

    def as_written(self, text: str) -> str:
        """A message of the engine with the program's names."""
        for here, name in self.written.items():
            text = text.replace(f'"{here}"', f'"{name}"')
        return text

    def _as_known_here(self, args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        name = args.props.get("name")
        if args.type_ != _REFERENCE or not isinstance(name, str):
            return None
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        here = f"{ORGANIZATION}/{found['project'] or pulumi.get_project()}/{found['stack']}"
        self.written[here] = name
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(id=here))
        return pulumi.ResourceTransformationResult({**args.props, "name": here}, opts)
