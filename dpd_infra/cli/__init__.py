"""`dpd`: one file a command, imported only when it is called."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS: tuple[str, ...] = ("check", "import", "render", "rehearse", "schema", "fetch-chart")
"""Every command; `fetch-chart` lives in `fetch_chart.py`, and `import`, a word of Python's, in `import_.py`."""


class _LazyGroup(TyperGroup):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order people meet them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"dpd_infra.cli.{name}_" if iskeyword(name) else f"dpd_infra.cli.{name}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cmd_name)(module.command)
        return typer.main.get_command(app)


app = typer.Typer(
    cls=_LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Disaggregated prefill and decode on SageMaker HyperPod: check, render, rehearse.",
)


@app.callback()
def _root() -> None:
    """Disaggregated prefill and decode on SageMaker HyperPod: check, render, rehearse."""


def main() -> None:
    """Run `dpd`. Exit codes: 0 good, 1 findings or failure, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Where a terminal knows less than Unicode, a report is written out rather than broken off.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="dpd")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe went away: no report is owed to it.
        sys.stderr.close()
        sys.exit(1)
