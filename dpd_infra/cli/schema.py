"""`dpd schema`: the JSON Schema of a stack file, so that editors complete it."""

from __future__ import annotations

from typing import Annotated

import typer

from dpd_infra.cli._output import print_json
from dpd_infra.stack_schema import stack_file_schema


def command(
    json: Annotated[bool, typer.Option("--json", help="The schema is JSON either way.")] = False,
) -> None:
    """Print the JSON Schema of a stack file. Editors take it from a first line `# yaml-language-server: $schema=<path>`."""
    del json
    print_json(stack_file_schema())
