"""Run a project's own program inside this process the way Pulumi's Python host does, and keep what it prints."""

from __future__ import annotations

import io
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.util import cache_from_source
from pathlib import Path
from typing import TextIO

import grpc
import pulumi

from dpd_infra.plan.project import Project, use_project

Program = Callable[[], None]
"""A Pulumi program: what it registers while it runs is the stack."""

ENGINE_IS_GONE = "Resource monitor has terminated"
"""How the SDK says that the engine stopped taking resources while the program still ran."""

_OWN_OUTPUT: ContextVar[io.StringIO | None] = ContextVar("rehearsal_program_output", default=None)


class _Splitter(io.TextIOBase):
    """A standard stream that sends what the program prints to a buffer and lets everything else through."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str, /) -> int:
        return (_OWN_OUTPUT.get() or self._original).write(text)

    def flush(self) -> None:
        (_OWN_OUTPUT.get() or self._original).flush()

    def isatty(self) -> bool:
        return _OWN_OUTPUT.get() is None and self._original.isatty()

    def fileno(self) -> int:
        return self._original.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The original stream's encoding."""
        return self._original.encoding


class ProgramRun:
    """One execution of a program: wraps it for the engine, and holds its output and its failure."""

    def __init__(self, program: Program, project: Project) -> None:
        self.program = program
        self.project = project
        self.failure: str | None = None
        """What went wrong in the program itself, as one report; None if nothing did."""
        self.late_failure: str | None = None
        """What a callback on an output raised; it counts only where no resource failed, for then the callback is a consequence."""
        self.broken_off: str | None = None
        """How the connection to the engine ended, where it ended before the program; a cause only where the engine tells none."""
        self.engine_answers: Callable[[], bool] = lambda: True
        """Whether the engine still takes calls; the host, which has the connection, knows."""
        self._buffer = io.StringIO()

    @property
    def output(self) -> str:
        """What the program printed."""
        return self._buffer.getvalue()

    def __call__(self) -> None:
        # The engine calls this in a thread of its own; tasks started here copy this context, so callbacks on outputs see it too.
        _OWN_OUTPUT.set(self._buffer)
        with use_project(self.project):
            try:
                self.program()
            except SystemExit as stop:
                if stop.code not in (None, 0):
                    self._fail(self._report(stop))
            except pulumi.RunError as error:
                if ENGINE_IS_GONE in str(error):
                    raise  # no failure of the program: the host knows more
                self._fail(str(error))
            except grpc.RpcError as error:
                # A call of the SDK within the program's own line, or one of a service that the program itself talks to.
                if not self.engine_answers():
                    raise
                self._fail(summary_of(error))
            except BaseException as error:  # noqa: BLE001 - whatever it raises is reported, and ends no thread that the engine waits for
                self._fail(summary_of(error))

    def _report(self, stop: SystemExit) -> str:
        told = stop.code if isinstance(stop.code, str) else f"the program exited with status {stop.code}"
        printed = self.output.strip()
        return "\n".join(part for part in (printed, told if isinstance(stop.code, str) or not printed else "") if part)

    def _fail(self, message: str) -> None:
        self.failure = message
        raise pulumi.RunError(message)


def summary_of(error: BaseException) -> str:
    """An exception as one line: what, and where in the program."""
    if isinstance(error, SyntaxError):
        # It says itself where it stands; the frames are those of whoever read the program.
        where = f" ({Path(error.filename).name}, line {error.lineno})" if error.filename else ""
        return f"{type(error).__name__}: {error.msg}{where}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and "<frozen" not in frame.filename and frame.filename != __file__
    ]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


@contextmanager
def split_output() -> Iterator[None]:
    """Keep what programs print apart from what this process prints, within the block."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Splitter(out), _Splitter(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def project_program(root: Path, main: str | None) -> Program:
    """The program of a project: `main` is a file or a folder relative to the folder of Pulumi.yaml, as in Pulumi.yaml."""
    entry = (root / (main or ".")).resolve()

    def run() -> None:
        if not (entry.is_file() or (entry / "__main__.py").is_file()):
            raise pulumi.RunError(f"the program of the project is not there: {entry}{'' if entry.suffix else '/__main__.py'}")
        runpy.run_path(str(entry), run_name="__main__")

    return run


@contextmanager
def as_program_host(root: Path, main: str | None) -> Iterator[None]:
    """Give the process the working directory, the module path and the arguments of Pulumi's Python host; restore all of them.

    The working directory stays until the engine is done, because callbacks on outputs run after the program's last line. Modules that
    were loaded from the program's own folder are forgotten with their bytecode, so that the next run reads the files again: Python takes
    bytecode for current where the source has the same size and was written in the same second.
    """
    entry = (root / (main or ".")).resolve()
    folder = entry if entry.is_dir() else entry.parent
    before = (Path.cwd(), list(sys.path), list(sys.argv), set(sys.modules))
    os.chdir(folder if folder.is_dir() else root)
    sys.path.insert(0, str(folder))
    sys.argv = [str(entry)]
    try:
        yield
    finally:
        working_directory, path, arguments, modules = before
        os.chdir(working_directory)
        sys.path[:] = path
        sys.argv = arguments
        _forget_bytecode(folder / "__main__.py")
        for name in set(sys.modules) - modules:
            if _belongs_to(name, folder):
                _forget_bytecode(Path(str(sys.modules[name].__file__)))
                del sys.modules[name]


def _forget_bytecode(source: Path) -> None:
    with suppress(OSError, NotImplementedError):
        Path(cache_from_source(source)).unlink(missing_ok=True)


def _belongs_to(name: str, folder: Path) -> bool:
    file = getattr(sys.modules[name], "__file__", None)
    if name.partition(".")[0] == "dpd_infra" or not file:
        return False
    path = Path(file)
    return path.is_relative_to(folder) and "site-packages" not in path.parts


ONE_AT_A_TIME = threading.RLock()
"""A rehearsal changes the process's working directory, environment and standard streams: only one runs at a time."""
