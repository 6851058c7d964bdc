"""Running a Pulumi program without an engine: what it registers is kept, options included."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import empty_pb2
from pulumi.runtime import settings
from pulumi.runtime.mocks import MockEngine, MockSettings
from pulumi.runtime.stack import run_in_stack

from dpd_infra.testing.answers import REGION, Answers
from dpd_infra.testing.monitor import InvokeResult, MoreOutputs, RecordingMonitor, Stacks
from dpd_infra.testing.recording import UNKNOWN, Recording

Program = Callable[[], Any]
"""A Pulumi program as a function; it may be `async`. What it returns is kept in `Recording.returned`."""


@dataclass(frozen=True)
class Run:
    """One run: how it is configured and answered."""

    program: Program
    recording: Recording
    answers: Answers
    config: Mapping[str, str]
    secret_keys: list[str]
    invokes: Mapping[str, InvokeResult] = field(default_factory=dict)
    outputs: MoreOutputs | None = None
    stacks: Stacks = field(default_factory=dict)
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
    stacks: Stacks | None = None,
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
    run = Run(
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


def execute(run: Run, expect: type[BaseException] | None) -> None:
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


def _execute(run: Run, expect: type[BaseException] | None) -> None:
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


async def _in_stack(run: Run) -> None:
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
