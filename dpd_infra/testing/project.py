"""Running a whole project, its own program with one of its stack files, without an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpd_infra.plan.project import Project, use_project
from dpd_infra.spec.stack_file import Secret, StackFile, find_project_file, find_stack_file, read_stack_file
from dpd_infra.spec.yaml_source import load_document
from dpd_infra.testing.answers import REGION, Answers
from dpd_infra.testing.estate import existing_invokes
from dpd_infra.testing.monitor import InvokeResult, MoreOutputs, Stacks
from dpd_infra.testing.program import Program, Run, execute
from dpd_infra.testing.recording import Recording

SECRET_STAND_IN = "test-stand-in"  # noqa: S105 - it stands where a secret would
"""What an encrypted value of a stack file reads, where `secrets` does not say: tests have no key to the real one."""


def run_project(
    stack: str = "dev",
    root: Path | str | None = None,
    *,
    preview: bool = False,
    secrets: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
    invokes: Mapping[str, InvokeResult] | None = None,
    outputs: MoreOutputs | None = None,
    stacks: Stacks | None = None,
    answers: Answers | None = None,
    expect: type[BaseException] | None = None,
) -> Recording:
    """Run the program of a project with a stack's file, as `pulumi up` would, and return what it registered.

    Args:
        stack: The stack: `dev` for Pulumi.dev.yaml.
        root: The folder of Pulumi.yaml, or one below it. None: the working directory.
        preview: See `run_program`, as for all that follow.
        secrets: Plain text of the file's encrypted values, by full key; the others read `test-stand-in`.
        config: Configuration that takes the place of the file's, by full key.
        invokes: What data sources answer, beside what the file's `existing` section says is there.
        outputs: More outputs of resources.
        stacks: What other stacks export.
        answers: Another account or region.
        expect: An error that must be raised.

    Files that only a real deployment needs (the packed Helm chart) need not be there. Raises `FileNotFoundError` where there is no such
    project or stack.
    """
    found = find_project(stack, root)
    recording = Recording(preview)
    execute(
        project_run(
            found,
            recording,
            secrets=secrets,
            config=config,
            invokes=invokes,
            outputs=outputs,
            stacks=stacks,
            answers=answers,
        ),
        expect,
    )
    return recording


@dataclass(frozen=True)
class FoundProject:
    """A project and one of its stacks, read."""

    root: Path
    name: str
    main: str | None
    file: StackFile


def find_project(stack: str, root: Path | str | None = None) -> FoundProject:
    """The project at or above `root` with the file of `stack`. Raises `FileNotFoundError` where either is not there."""
    start = Path(root) if root is not None else Path.cwd()
    project_file = find_project_file(start)
    if project_file is None:
        raise FileNotFoundError(f"there is no Pulumi.yaml in {start.resolve()} or above it")
    folder = project_file.parent
    path = find_stack_file(folder, stack)
    if path is None:
        raise FileNotFoundError(f"{folder} has no stack {stack!r}: there is no Pulumi.{stack}.yaml where its stack files are")
    return read_project(project_file, path)


def read_project(project_file: Path, stack_file: Path) -> FoundProject:
    """A project with a given stack file of it."""
    data = load_document(project_file.read_bytes(), str(project_file)).data
    described: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    main = described.get("main")
    return FoundProject(
        project_file.parent, str(described.get("name", "project")), str(main) if main else None, read_stack_file(stack_file)
    )


def project_run(
    found: FoundProject,
    recording: Recording,
    *,
    secrets: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
    invokes: Mapping[str, InvokeResult] | None = None,
    outputs: MoreOutputs | None = None,
    stacks: Stacks | None = None,
    answers: Answers | None = None,
    program: Program | None = None,
    known_in_preview: bool = False,
) -> Run:
    """What runs a project's own program, or another `program` in its place, with a stack's file."""
    configuration, secret_keys = config_texts(found.file.config, secrets or {})
    configuration |= config or {}
    answers = answers or Answers(region=configuration.get("aws:region", REGION))
    return Run(
        program or _program_of(found),
        recording,
        answers,
        configuration,
        secret_keys,
        {**existing_invokes(found.file.config, answers), **(invokes or {})},
        outputs,
        stacks or {},
        found.name,
        found.file.stack,
        known_in_preview=known_in_preview,
        around=partial(_host_of, found),
    )


def _program_of(found: FoundProject) -> Program:
    from dpd_infra.rehearsal.program import project_program  # noqa: PLC0415 - only a project has files

    return project_program(found.root, found.main)


@contextmanager
def _host_of(found: FoundProject) -> Iterator[None]:
    """What Pulumi's Python host gives a program: the working directory and the module path. A test needs no packed chart."""
    from dpd_infra.rehearsal.program import as_program_host  # noqa: PLC0415 - only a project has files

    with as_program_host(found.root, found.main), use_project(Project(root=found.root, chart_required=False)):
        yield


def config_texts(config: Mapping[str, Any], secrets: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """A stack file's configuration as the engine hands it to programs: texts, objects as JSON, and the keys that are secret."""
    texts = {key: _text(_without_secrets(value)) for key, value in config.items()} | dict(secrets)
    return texts, [key for key in texts if key in secrets or _holds_secret(config[key])]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_secret, value.values()))
    return isinstance(value, Secret) or (isinstance(value, list) and any(map(_holds_secret, value)))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_secrets(part) for part in value]
    return SECRET_STAND_IN if isinstance(value, Secret) else value
