"""`dpd rehearse`: a whole `pulumi up` on the real engine against a simulated AWS account, and what happens if something in it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dpd_infra.cli._output import WRONG_USAGE, fail, print_report, refuse
from dpd_infra.cli._output_paths import File, Folder, need_writable
from dpd_infra.cli._rehearse_asked import KEPT_FILES, Asked, state_dir
from dpd_infra.cli._rehearse_run import rehearse
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.stack_file import find_project_file, find_stack_file, is_stack_file, stack_name, stacks_there
from dpd_infra.stack import load_file


def command(  # noqa: PLR0913, PLR0917 - each is an option
    stack: Annotated[str, typer.Argument(help="The stack, `dev`, or its file, Pulumi.dev.yaml.")],
    project: Annotated[Path, typer.Option(help="The folder of Pulumi.yaml, or one below it.")] = Path(),
    preview: Annotated[bool, typer.Option("--preview", help="Only say what `up` would do.")] = False,
    destroy: Annotated[bool, typer.Option("--destroy", help="Rehearse `pulumi destroy` instead.")] = False,
    fail_: Annotated[
        str | None,
        typer.Option("--fail", metavar="NAME[:once]", help="Fail this resource, by name or type; with `:once` another `up` follows."),
    ] = None,
    fail_each: Annotated[bool, typer.Option("--fail-each", help="Fail every resource in turn, each followed by another `up`.")] = False,
    kill_at: Annotated[
        int | None, typer.Option("--kill-at", metavar="N", min=0, help="Kill the engine after N operations, and recover.")
    ] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="STATE",
            help="Begin with what is deployed: files of `pulumi stack export`, of this stack and of those that it refers to, or a folder.",
        ),
    ] = None,
    world: Annotated[Path | None, typer.Option(metavar="FILE", help="Quotas, capacity and what exists already.")] = None,
    timeline: Annotated[bool, typer.Option("--timeline", help="Draw how long each step would take, and the critical path.")] = False,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the report and the state into this folder.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one page.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget earlier rehearsals of the project first.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Rehearse `pulumi up` in a simulated account.

    STACK's program runs on the real engine against a simulated AWS account: no credentials, no cost. A second run shows what changed
    since.
    """
    modes = {
        "--preview": preview,
        "--destroy": destroy,
        "--fail": fail_ is not None,
        "--fail-each": fail_each,
        "--kill-at": kill_at is not None,
    }
    given = [name for name, there in modes.items() if there]
    if len(given) > 1 and set(given) not in _TOGETHER:
        fail(f"{' and '.join(given)} exclude each other", as_json=json, code=WRONG_USAGE)
    path = Path(stack)
    if is_stack_file(path) and path.is_file():
        stack, project = stack_name(path), path.parent
    project_file = find_project_file(project) if project.is_dir() else None
    if project_file is None:
        fail(f"no Pulumi.yaml in {project.resolve()} or above it", as_json=json, code=WRONG_USAGE)
    file = find_stack_file(project_file.parent, stack)
    if file is None:
        there = stacks_there(project_file.parent)
        hint = f"its stacks are {', '.join(there)}" if there else f"no Pulumi.{stack}.yaml"
        fail(f"{project_file.parent} has no stack {stack!r}: {hint}", as_json=json, code=WRONG_USAGE)
    root = project_file.parent
    _look(html, keep, state_dir(root, from_state=bool(from_)), as_json=json)
    loaded = load_file(_short(file))
    if loaded.spec is None:
        refuse(loaded.findings, loaded.documents, as_json=json)
    asked = Asked(
        root=root,
        stack=stack,
        stack_file=file,
        spec=loaded.spec,
        action="preview" if preview else "destroy" if destroy else "up",
        fault=fail_,
        fail_each=fail_each,
        kill_at=kill_at,
        exported=tuple(from_ or ()),
        world=world,
        timeline=timeline,
        keep=keep,
        html=html,
        reset=reset,
        as_json=json,
    )
    warnings = tuple(finding for finding in loaded.findings if finding.severity is Severity.WARNING)
    if warnings and not json:
        print_report(warnings, loaded.documents)
        asked = replace(asked, told=warnings)
    rehearse(asked)


def _look(html: Path | None, keep: Path | None, state: Path, *, as_json: bool) -> None:
    """End the command, before the rehearsal begins, where what it writes cannot be written."""
    places: list[File | Folder] = [Folder("the folder of rehearsals", state, named=False)]
    if html is not None:
        places.append(File("--html", html))
    if keep is not None:
        places.append(Folder("--keep", keep, KEPT_FILES))
    need_writable(*places, as_json=as_json)


_TOGETHER = ({"--fail", "--destroy"}, {"--kill-at", "--destroy"})
"""Options that say how, and not only what."""


def _short(path: Path) -> Path:
    """The path from the working directory, where it lies below it: what people typed is what reports should say."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
