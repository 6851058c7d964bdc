"""`dpd rehearse`: a whole `pulumi up` on the real engine against a simulated AWS account."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpd_infra.cli._output import FAILED, WRONG_USAGE, fail, print_json, print_report, refuse
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.shape_examples import flow
from dpd_infra.spec.stack_file import find_project_file, find_stack_file, is_stack_file, stack_name, stacks_there
from dpd_infra.stack import StackSpec, load_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dpd_infra.rehearsal import RehearsalResult
    from dpd_infra.rehearsal.engine import Step

_PLAIN_WIDTH = 140
"""Columns where the output is no terminal."""

_LONGEST = 100
"""Characters of an output that are shown."""

_GROUPS = (
    *("Network", "ControlPlane", "GpuSubnet", "HyperPodDependencies", "HyperPodCluster"),
    *("NodeAddons", "InferenceOperator", "Teams", "ModelStore", "Endpoint"),
)
"""The components in the order they are made: what the summary is grouped by."""


def command(
    stack: Annotated[str, typer.Argument(help="The stack, `dev`, or its file, Pulumi.dev.yaml.")],
    project: Annotated[Path, typer.Option(help="The folder of Pulumi.yaml, or one below it.")] = Path(),
    preview: Annotated[bool, typer.Option("--preview", help="Only say what `up` would do.")] = False,
    destroy: Annotated[bool, typer.Option("--destroy", help="Rehearse `pulumi destroy` instead.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Forget earlier rehearsals of the project first.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Rehearse `pulumi up` in a simulated account.

    STACK's program runs on the real engine against a simulated AWS account: no credentials, no cost. A second run shows what changed
    since.
    """
    if preview and destroy:
        fail("--preview and --destroy exclude each other", as_json=json, code=WRONG_USAGE)
    given = Path(stack)
    if is_stack_file(given) and given.is_file():
        stack, project = stack_name(given), given.parent
    project_file = find_project_file(project) if project.is_dir() else None
    if project_file is None:
        fail(f"no Pulumi.yaml in {project.resolve()} or above it", as_json=json, code=WRONG_USAGE)
    file = find_stack_file(project_file.parent, stack)
    if file is None:
        there = stacks_there(project_file.parent)
        hint = f"its stacks are {', '.join(there)}" if there else f"no Pulumi.{stack}.yaml"
        fail(f"{project_file.parent} has no stack {stack!r}: {hint}", as_json=json, code=WRONG_USAGE)
    loaded = load_file(_short(file))
    if loaded.spec is None:
        refuse(loaded.findings, loaded.documents, as_json=json)
    result = _run(project_file.parent, stack, preview=preview, destroy=destroy, reset=reset, as_json=json)
    if json:
        print_json(_as_data(result, loaded.spec))
    else:
        if warnings := [finding for finding in loaded.findings if finding.severity is Severity.WARNING]:
            print_report(warnings, loaded.documents)
        _show(result, loaded.spec, stack)


def _run(root: Path, stack: str, *, preview: bool, destroy: bool, reset: bool, as_json: bool) -> RehearsalResult:
    from dpd_infra.rehearsal import ProjectNotFound, PulumiNotFound, Rehearsal, RehearsalBusy, RehearsalFailed
    from dpd_infra.rehearsal.progress import ProgressDisplay

    action = "preview" if preview else "destroy" if destroy else "up"
    try:
        with ProgressDisplay(title=f"{action} {stack}") if not as_json else nullcontext() as progress:
            rehearsal = Rehearsal(root, stack, on_event=progress)
            if reset:
                rehearsal.reset()
            return getattr(rehearsal, action)()
    except (PulumiNotFound, ProjectNotFound, RehearsalBusy) as error:
        fail(str(error), as_json=as_json)
    except RehearsalFailed as error:
        if as_json:
            print_json({"ok": False, "error": error.message})
        else:
            print(error.message, file=sys.stderr)
        raise typer.Exit(FAILED) from None


def _short(path: Path) -> Path:
    """The path from the working directory, where it lies below it: what people typed is what reports should say."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _as_data(result: RehearsalResult, spec: StackSpec) -> dict[str, Any]:
    return {
        "ok": True,
        "action": result.action,
        "changes": {
            "created": result.created,
            "updated": result.updated,
            "replaced": result.replaced,
            "deleted": result.deleted,
            "unchanged": result.unchanged,
        },
        "outputs": dict(result.outputs),
        "secretOutputs": sorted(result.secret_outputs),
        "resources": [{"type": step.type, "name": step.name, "urn": step.urn, "operation": step.op} for step in result.resources],
        "endpoints": {name: _endpoint(spec, name) for name in spec.endpoints},
        "seconds": round(result.duration_seconds, 2),
    }


def _endpoint(spec: StackSpec, name: str) -> dict[str, Any]:
    """What an endpoint is, in the few facts that people compare."""
    endpoint = spec.endpoints[name]
    body = spec.manifest(name).document["spec"]
    roles = (("prefill", "prefillSpec", endpoint.prefill), ("decode", "decodingSpec", endpoint.decode)) if endpoint.disaggregated else ()
    return {
        "model": endpoint.model.name,
        "disaggregated": endpoint.disaggregated,
        "roles": {
            role: {
                "replicas": body["pdSpec"][key]["replicas"],
                "instanceGroup": settings.instance_group,
                "instanceType": endpoint.first_instance_type,
            }
            for role, key, settings in roles
        }
        or {"colocated": {"replicas": body["replicas"], "instanceGroup": None, "instanceType": endpoint.first_instance_type}},
        "routingThreshold": endpoint.routing.threshold if endpoint.disaggregated else None,
        "routingStrategy": str(endpoint.routing.strategy) if endpoint.routing.enabled else None,
    }


def _show(result: RehearsalResult, spec: StackSpec, stack: str) -> None:
    from rich.console import Console
    from rich.table import Table

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    # Brackets of a value are no markup.
    console = Console(highlight=False, markup=False, width=width)
    changed = [step for step in result.resources if step.op not in ("same", "read")]
    if changed:
        _print_table(console, _by_component(changed))
        console.print()
    if result.outputs and result.action == "up":
        _print_outputs(console, result)
    for told in (item for item in result.diagnostics if item.severity == "info" and result.action == "preview"):
        console.print(told.message, soft_wrap=True)
        console.print()
    if result.action != "destroy" and spec.endpoints:
        table = Table("endpoint", "role", "replicas", "instance group", "instance type", "threshold", "strategy", box=None, pad_edge=False)
        for name in spec.endpoints:
            facts = _endpoint(spec, name)
            for index, (role, of_role) in enumerate(facts["roles"].items()):
                first = index == 0
                table.add_row(
                    name if first else "",
                    role,
                    str(of_role["replicas"]),
                    of_role["instanceGroup"] or "any",
                    of_role["instanceType"] or "by affinity",
                    _text(facts["routingThreshold"]) if first else "",
                    _text(facts["routingStrategy"]) if first else "",
                )
        _print_table(console, table)
        console.print()
    verbs = ((result.created, "created"), (result.updated, "updated"), (result.replaced, "replaced"), (result.deleted, "deleted"))
    counts = ", ".join(f"{count} {verb}" for count, verb in verbs if count) or "0 changes"
    console.print(f"{result.action} of {stack}: {counts}, {result.unchanged} unchanged, {result.duration_seconds:.1f} s")


def _print_table(console: Console, table: Table) -> None:
    """A table without the spaces that fill up its last column."""
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def _by_component(steps: Iterable[Step]) -> Table:
    """What was done, one row a component: the tree in the order it is made."""
    from rich.table import Table

    counts: dict[str, Counter[str]] = {}
    # A replacement has several steps, for the one resource.
    for step in {step.urn: step for step in steps}.values():
        types = step.urn.split("::")[2].split("$")
        owner = next((part.removeprefix("dpd:index:") for part in reversed(types) if part.removeprefix("dpd:index:") in _GROUPS), "")
        if not step.type.startswith(("dpd:", "pulumi:pulumi:")):
            counts.setdefault(owner or "providers", Counter())[step.type] += 1
    table = Table("component", "resources", box=None, pad_edge=False)
    for owner in [*(group for group in _GROUPS if group in counts), *(other for other in counts if other not in _GROUPS)]:
        kinds = counts[owner]
        listed = ", ".join(f"{_kind(kind)} x{count}" if count > 1 else _kind(kind) for kind, count in sorted(kinds.items()))
        table.add_row(owner, listed)
    return table


def _kind(token: str) -> str:
    """`aws:ec2/subnet:Subnet` as `Subnet`, with the package where the name alone says little."""
    package, _, name = token.partition(":")
    short = name.rsplit(":", 1)[-1]
    if token.startswith("pulumi:providers:"):
        return f"{short} provider"
    return f"{package} {short}" if short == "Cluster" else short


def _print_outputs(console: Console, result: RehearsalResult) -> None:
    console.print("outputs")
    for key, value in result.outputs.items():
        if isinstance(value, dict):
            console.print(f"  {key}", soft_wrap=True)
            for name, part in value.items():
                if isinstance(part, dict):
                    console.print(f"    {name}", soft_wrap=True)
                    for inner, text in part.items():
                        console.print(f"      {inner}: {_text(text)}", soft_wrap=True)
                else:
                    console.print(f"    {name}: {_text(part)}", soft_wrap=True)
        else:
            console.print(f"  {key}: {_text(value)}", soft_wrap=True)
    console.print()


def _text(value: Any) -> str:
    """A value on one line: what is longer, a certificate for one, is cut; an address or an ARN is there to be copied."""
    first, _, rest = ("-" if value is None else flow(value)).strip().partition("\n")
    if not rest and first.startswith(("http://", "https://", "arn:")):
        return first
    return f"{first[:_LONGEST]}…" if rest or len(first) > _LONGEST else first
