"""Running a Pulumi program, or a whole project, without an engine: what it registers is kept, options included."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import empty_pb2
from pulumi.runtime import settings
from pulumi.runtime.mocks import MockEngine, MockSettings
from pulumi.runtime.stack import run_in_stack

from dpd_infra.plan.project import Project, use_project
from dpd_infra.spec.stack_file import Secret, StackFile, find_project_file, find_stack_file, read_stack_file
from dpd_infra.spec.yaml_source import load_document
from dpd_infra.testing.answers import REGION, Answers
from dpd_infra.testing.estate import existing_invokes
from dpd_infra.testing.monitor import InvokeResult, MoreOutputs, RecordingMonitor
from dpd_infra.testing.recording import UNKNOWN, Recording

Program = Callable[[], Any]
"""A Pulumi program as a function; it may be `async`. What it returns is kept in `Recording.returned`."""

SECRET_STAND_IN = "test-stand-in"  # noqa: S105 - it stands where a secret would
"""What an encrypted value of a stack file reads, where `secrets` does not say: tests have no key to the real one."""


@dataclass(frozen=True)
class _Run:
    """One run: how it is configured and answered."""

    program: Program
    recording: Recording
    answers: Answers
    config: Mapping[str, str]
    secret_keys: list[str]
    invokes: Mapping[str, InvokeResult] = field(default_factory=dict)
    outputs: MoreOutputs | None = None
    stacks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    project: str = "project"
    stack: str = "test"
    organization: str = "organization"
    known_in_preview: bool = False
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """What the run is within: callbacks on outputs run after the program's last line, and need it too."""


def run_program(
    program: Program,
    *,
    preview: bool = False,
    config: Mapping[str, str] | None = None,
    secret_keys: Iterable[str] = (),
    invokes: Mapping[str, InvokeResult] | None = None,
    outputs: MoreOutputs | None = None,
    stacks: Mapping[str, Mapping[str, Any]] | None = None,
    answers: Answers | None = None,
    expect: type[BaseException] | None = None,
    project: str = "project",
    stack: str = "test",
    organization: str = "organization",
) -> Recording:
    """Run a program to its end and return what it registered.

    Args:
        program: The program, a function that makes resources.
        preview: Answer as a preview does: ids and outputs are unknown, and what follows from them. An update knows them all.
        config: The stack's configuration by full key, `aws:region`; objects as JSON text, as Pulumi hands them on.
        secret_keys: Those of them that are secret.
        invokes: What data sources answer, by token, `aws:ec2/getVpc:getVpc`: a result, or a function of the arguments.
        outputs: From type, name and inputs of a resource to outputs that it has beside its inputs and the kit's own answers.
        stacks: What other stacks export, by their full name, for stack references.
        answers: Another account or region. None: the account 111122223333, and the configuration's region.
        expect: An error that must be raised: it is kept in `.error`, beside what was registered until then.
        project: The project's name.
        stack: The stack's name.
        organization: The organization's name.

    Raises `AssertionError` where `expect` is not raised, where the program asks for something that nothing answers, and whatever the
    program raises. Transforms that the engine would run (`pulumi.runtime.register_resource_transform`) are not run.
    """
    recording = Recording(preview)
    configuration = dict(config or {})
    run = _Run(
        program,
        recording,
        answers or Answers(region=configuration.get("aws:region", REGION)),
        configuration,
        list(secret_keys),
        invokes or {},
        outputs,
        stacks or {},
        project,
        stack,
        organization,
    )
    execute(run, expect)
    return recording


def run_project(
    stack: str = "dev",
    root: Path | str | None = None,
    *,
    preview: bool = False,
    secrets: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
    invokes: Mapping[str, InvokeResult] | None = None,
    outputs: MoreOutputs | None = None,
    stacks: Mapping[str, Mapping[str, Any]] | None = None,
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
    stacks: Mapping[str, Mapping[str, Any]] | None = None,
    answers: Answers | None = None,
    program: Program | None = None,
    known_in_preview: bool = False,
) -> _Run:
    """What runs a project's own program, or another `program` in its place, with a stack's file."""
    configuration, secret_keys = config_texts(found.file.config, secrets or {})
    configuration |= config or {}
    answers = answers or Answers(region=configuration.get("aws:region", REGION))
    return _Run(
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
    texts: dict[str, str] = {}
    secret_keys: list[str] = []
    for key, value in config.items():
        if _holds_secret(value):
            secret_keys.append(key)
        texts[key] = secrets[key] if key in secrets else _text(_without_secrets(value))
    return texts, [*secret_keys, *(key for key in secrets if key not in secret_keys)]


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


def execute(run: _Run, expect: type[BaseException] | None) -> None:
    """Run, in an event loop of its own and without a trace in this thread's context."""
    in_copy = contextvars.copy_context()
    if not _in_event_loop():
        in_copy.run(_execute, run, expect)
        return
    # A test of an asynchronous runner: a loop cannot run inside a loop.
    raised: list[BaseException] = []

    def apart() -> None:
        try:
            in_copy.run(_execute, run, expect)
        except BaseException as error:  # noqa: BLE001 - raised again where the test waits
            raised.append(error)

    thread = threading.Thread(target=apart)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _execute(run: _Run, expect: type[BaseException] | None) -> None:
    recording = run.recording
    with run.around(), asyncio.Runner(loop_factory=_quiet_loop) as runner:
        try:
            runner.run(_in_stack(run))
        except BaseException as error:  # noqa: BLE001 - raised again unless it is the expected one
            # Where the program fails, the resources it had begun may fail too, and the SDK raises one of theirs.
            cause = recording.error or error
            if expect is None or not isinstance(cause, expect):
                raise cause from (None if cause is error else error)
            recording.error = cause
    if expect is not None and recording.error is None:
        raise AssertionError(f"{expect.__name__} was expected and not raised; {recording!r}")


def _quiet_loop() -> asyncio.AbstractEventLoop:
    """A loop beside the thread's own, which other tests may use. What fails is raised once, and not told again by all that waited."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, __: None)
    return loop


async def _in_stack(run: _Run) -> None:
    settings.reset_options(project=run.project, stack=run.stack, preview=run.recording.preview)
    pulumi.runtime.set_all_config(dict(run.config), run.secret_keys)
    monitor = RecordingMonitor(
        run.recording,
        run.answers,
        project=run.project,
        stack=run.stack,
        invokes=run.invokes,
        outputs=run.outputs,
        stacks=run.stacks,
        known_in_preview=run.known_in_preview,
    )
    # As `set_mocks` does, but for the stack: it makes one that has registered its outputs before the program runs.
    settings.configure(
        MockSettings(
            monitor=monitor,
            monitor_features=set(monitor.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures),
            engine=MockEngine(_Log(run.recording)),
            project=run.project,
            stack=run.stack,
            dry_run=run.recording.preview,
            organization=run.organization,
            callbacks=None,
        )
    )

    async def program() -> None:
        try:
            returned = run.program()
            run.recording.returned = await returned if inspect.isawaitable(returned) else returned
        except BaseException as error:
            run.recording.error = error
            raise

    await run_in_stack(program)
    run.recording.returned = await _resolve(run.recording.returned)


async def _resolve(value: Any) -> Any:
    """An output's value, or those of a mapping's or a list's outputs; anything else as it is."""
    if isinstance(value, pulumi.Output):
        return await _resolve(await value.future()) if await value.is_known() else UNKNOWN
    if isinstance(value, Mapping):
        return {key: await _resolve(item) for key, item in value.items()}
    if isinstance(value, list):
        return [await _resolve(item) for item in value]
    return value


class _Log(logging.Logger):
    """Keeps what `pulumi.log` says."""

    def __init__(self, recording: Recording) -> None:
        super().__init__("recorded", logging.INFO)
        self.recording = recording

    def handle(self, record: logging.LogRecord) -> None:
        self.recording.logs.append((record.levelname.lower(), record.getMessage()))
