"""What `dpd plan` shows: a stack file's program run under the recording monitor, as a preview whose ids are stand-ins."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpd_infra.plan.tree import ResourceTree
from dpd_infra.spec.config_keys import named_keys
from dpd_infra.spec.stack_file import find_project_file, find_stack_file, read_stack_file, stack_name

if TYPE_CHECKING:
    from dpd_infra.stack import StackSpec
    from dpd_infra.testing.answers import Answers
    from dpd_infra.testing.recording import Recording

STANDARD_PROGRAM = "the standard program: one Platform and its Endpoints"


class NoPlanError(Exception):
    """The program registers nothing that could be shown; the message says why."""


@dataclass(frozen=True)
class Planned:
    """One stack file's program, run."""

    stack: str
    project: str
    program: str
    """The program's file, or that it is the standard one."""
    answers: Answers
    recording: Recording

    @property
    def tree(self) -> ResourceTree:
        """Its resources."""
        return ResourceTree(self.recording.resources)


def planned(path: Path, spec: StackSpec, account_id: str | None, invokes: Mapping[str, Any] | None = None) -> Planned:
    """Run the program that a stack file is for.

    That is the program of the project around the file, where the file is one of its stacks; else a platform with its endpoints, as in
    `stacks/__main__.py`. `invokes` is what data sources of its own answer, by token. Raises `NoPlanError` for what the program raises.
    """
    import pulumi

    from dpd_infra.testing.answers import ACCOUNT_ID, StandIns
    from dpd_infra.testing.monitor import Unanswered
    from dpd_infra.testing.program import execute
    from dpd_infra.testing.project import SECRET_STAND_IN, FoundProject, project_run, read_project
    from dpd_infra.testing.recording import Recording

    found = _project_of(path)
    recording = Recording(preview=True)
    answers = StandIns(account_id or ACCOUNT_ID, spec.aws.region)
    if found is not None:
        project = read_project(found, path)
        program = None
        where = str((project.root / (project.main or ".") / "__main__.py").resolve())
        if project.main and project.main.endswith(".py"):
            where = str((project.root / project.main).resolve())
    else:
        project = FoundProject(path.resolve().parent, "standard", None, read_stack_file(path))
        program, where = _standard_program(spec), STANDARD_PROGRAM
    # A plan shows no secret, and so can do without: `dpd check` says which value is not there.
    absent = {key: SECRET_STAND_IN for key in named_keys(project.file.config) if key not in project.file.config}
    run = project_run(
        project,
        recording,
        secrets=absent,
        invokes=invokes,
        answers=answers,
        program=program,
        stacks=_exports(spec, answers),
        known_in_preview=True,
    )
    try:
        # What the program prints is its own; standard output is the plan's.
        with contextlib.redirect_stdout(sys.stderr):
            execute(run, None)
    except pulumi.RunError as error:
        raise NoPlanError(str(error)) from error
    except Unanswered as error:
        raise NoPlanError(f"{error.asked}: write it into a YAML file, `{error.token}: {{…}}`, and give that as --answers") from error
    except SystemExit as stop:
        raise NoPlanError(f"the program ended with {stop.code}" if isinstance(stop.code, int) else str(stop.code)) from stop
    except Exception as error:
        from dpd_infra.rehearsal.program import summary_of

        raise NoPlanError(summary_of(error)) from error
    return Planned(stack_name(path), project.name, where, answers, recording)


def _project_of(path: Path) -> Path | None:
    """The Pulumi.yaml of the Python project that has the file among its stack files."""
    file = find_project_file(path.resolve().parent)
    if file is None:
        return None
    own = find_stack_file(file.parent, stack_name(path))
    if own is None or not own.samefile(path) or _runtime(file) != "python":
        return None
    return file


def _runtime(project_file: Path) -> str:
    from dpd_infra.spec.yaml_source import load_document

    data = load_document(project_file.read_bytes(), str(project_file)).data
    runtime = data.get("runtime") if isinstance(data, Mapping) else None
    return str(runtime.get("name") if isinstance(runtime, Mapping) else runtime)


def _standard_program(spec: StackSpec) -> Any:
    if spec.platform is None:
        raise NoPlanError(
            "the file has no platform, so only the program of its project knows which operator its endpoints are for: "
            "no Python project around it has it among its stack files"
        )
    platform_spec = spec.platform

    def program() -> None:
        import dpd_infra as dpd

        tokens = spec.hugging_face_tokens()
        platform = dpd.Platform("inference", platform_spec, aws_settings=spec.aws, hugging_face_tokens=tokens)
        for name, endpoint in spec.endpoints.items():
            dpd.Endpoint(name, endpoint, operator=platform.operator, hugging_face_token=spec.hugging_face_token(name))

    return program


def _exports(spec: StackSpec, answers: Answers) -> Any:
    """What another stack exports, whichever it is: a platform that is just what this stack expects."""
    from dpd_infra.testing.estate import platform_exports

    return lambda stack: platform_exports(stack.rsplit("/", 1)[-1], operator=spec.operator_facts, answers=answers)
