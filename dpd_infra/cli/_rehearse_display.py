"""What `dpd rehearse` prints of an operation: the tree by component, outputs, endpoints, and the counts; and the same as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.crd import KIND
from dpd_infra.plan.endpoint_names import token_secret_name
from dpd_infra.spec.shape_examples import flow
from dpd_infra.stack import StackSpec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dpd_infra.rehearsal import RehearsalResult
    from dpd_infra.rehearsal.engine import Step

_PLAIN_WIDTH = 140
"""Columns where the output is no terminal."""

_LONGEST = 100
"""Characters of an output that are shown."""

_ENDPOINT = "Endpoint"
_SECRET_TYPE = "kubernetes:core/v1:Secret"  # noqa: S105 - a type

_GROUPS = (
    *("Network", "ControlPlane", "GpuSubnet", "HyperPodDependencies", "HyperPodCluster"),
    *("NodeAddons", "InferenceOperator", "Teams", "ModelStore", _ENDPOINT),
)
"""The components in the order they are made, and the endpoints, which are none: what the summary is grouped by."""


def result_data(result: RehearsalResult, spec: StackSpec) -> dict[str, Any]:
    return {
        "ok": not result.failed,
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


def show(result: RehearsalResult, spec: StackSpec, stack: str) -> None:
    from rich.console import Console
    from rich.table import Table

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    # Brackets of a value are no markup.
    console = Console(highlight=False, markup=False, width=width)
    changed = [step for step in result.resources if step.op not in ("same", "read")]
    if changed:
        _print_table(console, _by_component(changed, {*spec.endpoints, *(step.name for step in result.resources if _is_endpoint(step))}))
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
    console.print(summary(result, stack))


def summary(result: RehearsalResult, stack: str) -> str:
    """How many resources were changed, and how long that took here, on one line."""
    failed = len({step.urn for step in result.failed})
    verbs = (
        *((result.created, "created"), (result.updated, "updated"), (result.replaced, "replaced"), (result.deleted, "deleted")),
        (failed, "failed"),
    )
    counts = ", ".join(f"{count} {verb}" for count, verb in verbs if count) or "0 changes"
    return f"{result.action} of {stack}: {counts}, {result.unchanged} unchanged, {result.duration_seconds:.1f} s"


def _print_table(console: Console, table: Table) -> None:
    """A table without the spaces that fill up its last column."""
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def _is_endpoint(step: Step) -> bool:
    return step.type.endswith(f":{KIND}")


def _by_component(steps: Iterable[Step], endpoints: Iterable[str]) -> Table:
    """What was done, one row a component: the tree in the order it is made. The Secrets of `endpoints` are beside them, and in none."""
    from rich.table import Table

    secrets = set(map(token_secret_name, endpoints))
    counts: dict[str, Counter[str]] = {}
    # A replacement has several steps, for the one resource.
    for step in {step.urn: step for step in steps}.values():
        types = step.urn.split("::")[2].split("$")
        owner = next((part.removeprefix("dpd:index:") for part in reversed(types) if part.removeprefix("dpd:index:") in _GROUPS), "")
        if _is_endpoint(step) or (step.type == _SECRET_TYPE and step.name in secrets):
            owner = _ENDPOINT
        if not step.type.startswith(("dpd:", "pulumi:pulumi:")):
            counts.setdefault(owner or ("providers" if step.type.startswith("pulumi:providers:") else "others"), Counter())[step.type] += 1
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
