"""`dpd`: one file a command, imported only when it is called."""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

COMMANDS: tuple[str, ...] = ("check", "import", "import-state", "render", "plan", "size", "advise", "rehearse", "schema", "fetch-chart")
"""Every command; `fetch-chart` lives in `fetch_chart.py`, and `import`, a word of Python's, in `import_.py`."""

_WITHOUT_TYPER = frozenset({"check", "plan", "size", "advise"})
"""Editors and hooks run them on every save: they do without Typer, which takes longer to load than they take to run."""


def main() -> None:
    """Run `dpd`. Exit codes: 0 good, 1 findings or failure, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Where a terminal knows less than Unicode, a report is written out rather than broken off.
            stream.reconfigure(errors="backslashreplace")
    collect_rarely()
    _without_pydantic_plugins()
    try:
        if sys.argv[1:2] and sys.argv[1] in _WITHOUT_TYPER:
            code = import_module(f"dpd_infra.cli.{sys.argv[1]}").main(sys.argv[2:])
            # Nothing is left to collect for: the collection at the end of a process is a tenth of a short run too.
            gc.freeze()
            sys.exit(code)
        from dpd_infra.cli._app import app

        app(prog_name="dpd")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe went away: no report is owed to it.
        sys.stderr.close()
        sys.exit(1)


def collect_rarely() -> None:
    """Look for cycles of objects when there are many new ones.

    A short run makes few: looking every 700 objects is a tenth of it, and every 50,000 still a thirtieth.
    """
    gc.set_threshold(200_000, 20, 20)


def _without_pydantic_plugins() -> None:
    """Keep pydantic from looking through every installed package for plugins of its own."""
    if os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__") == "__all__":
        # Told to load none, it still loads all that reads packages' metadata, which is a tenth of a short run.
        loader = ModuleType("pydantic.plugin._loader")
        vars(loader)["get_plugins"] = lambda: ()
        sys.modules.setdefault(loader.__name__, loader)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpd_infra.cli._app import app

    return app
