"""The commands as one Typer application, each imported when it is called."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpd_infra.cli import COMMANDS
from dpd_infra.cli._output import version


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
        command = typer.Typer(add_completion=False, rich_markup_mode=None)
        if hasattr(module, "main"):
            # It reads its own arguments, because it must not pay for Typer.
            passed_on = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
            command.command(cmd_name, help=module.SUMMARY, context_settings=passed_on)(_pass_on(module.main))
        else:
            command.command(cmd_name)(module.command)
        return typer.main.get_command(command)


def _pass_on(main: Any) -> Any:
    def command(ctx: typer.Context) -> None:
        raise SystemExit(main(ctx.args))

    # Typer looks for the classes of a signature among the function's own names.
    command.__annotations__ = {"ctx": typer.Context, "return": None}
    return command


app = typer.Typer(
    cls=_LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Disaggregated prefill and decode on SageMaker HyperPod: check, render, rehearse.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"dpd-infra {version()}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Disaggregated prefill and decode on SageMaker HyperPod: check, render, rehearse."""
