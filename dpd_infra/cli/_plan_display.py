"""`dpd plan` on a terminal: the tree, and a table each of subnets, groups, roles and endpoints."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from dpd_infra.plan.labels import label
from dpd_infra.plan.order import unordered
from dpd_infra.plan.outlook import EndpointOutlook, GroupOutlook, PolicyOutlook, RoleOutlook, SubnetOutlook, as_list, outlook, statements
from dpd_infra.plan.tree import Registration, ResourceTree, is_provider

if TYPE_CHECKING:
    from dpd_infra.cli._plan_run import Planned

_PLAIN_WIDTH = 140
"""Columns where the output is no terminal."""

_SHOWN = 2
"""Actions of a statement, or resources, that are named without `--policies`; of more there is the number."""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def show(made: Planned, *, policies: bool) -> None:
    """Print the whole plan."""
    # Brackets of a value are no markup.
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH, soft_wrap=False)
    tree, answers = made.tree, made.answers
    view = outlook(tree.resources)
    components = len(made.recording.components)
    counts = _counted(len(tree.drawn()), "resource") + (f" in {_counted(components, 'component')}" if components else "")
    console.print(f"{counts}, stack {made.stack} in {answers.region}", style="bold")
    console.print(f"nothing was asked of AWS: the account {answers.account_id} and what is in <pointed brackets> stand in", style="dim")
    console.print()
    console.print(_tree(tree, made))
    for part in (
        _subnets(view.subnets),
        _groups(view.groups),
        _roles(view.roles, everything=policies),
        _policies(view.policies, everything=policies),
        _endpoints(view.endpoints),
    ):
        if part is not None:
            console.print()
            console.print(part)
    for pair in unordered(tree.resources):
        console.print()
        console.print(str(pair), style="yellow")


def _tree(tree: ResourceTree, made: Planned) -> Tree:
    top = Tree(Text(f"{made.project} {made.stack}"), guide_style="dim")
    places: dict[int, Tree] = {-1: top}
    for depth, resource in tree.walk():
        places[depth] = places[depth - 1].add(_line(resource))
    return top


def _line(resource: Registration) -> Text:
    text = Text()
    text.append(resource.kind if not is_provider(resource) else f"{resource.kind} provider", style="bold" if not resource.custom else "")
    text.append(f" {resource.name}")
    if words := label(resource):
        text.append(f"  {words}", style="dim")
    if resource.protect:
        text.append("  protected", style="yellow")
    if resource.read:
        text.append("  only read", style="dim")
    return text


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        # Numbers stand under each other.
        right = column in _NUMBERS
        table.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


_NUMBERS = frozenset({"needed", "usable", "room", "nodes", "GPUs", "asked", "addresses", "EFA", "replicas", "threshold"})


def _subnets(subnets: Sequence[SubnetOutlook]) -> Table | None:
    if not subnets:
        return None
    table = _table("subnet", "zone", "block", "needed", "usable", "room", "for")
    for subnet in subnets:
        needed = sum(subnet.needed.values())
        uses = ", ".join(f"{what} {count}" for what, count in subnet.needed.items())
        table.add_row(subnet.name, subnet.zone, subnet.cidr, f"{needed:,}", f"{subnet.usable:,}", f"{subnet.room:,}", uses)
    return table


def _groups(groups: Sequence[GroupOutlook]) -> Table | None:
    if not groups:
        return None
    table = _table("instance group", "type", "nodes", "GPUs", "asked", "EFA", "addresses", "deep health checks")
    for group in groups:
        counts = (group.count, group.gpus, group.asked_gpus, group.efa_devices, group.addresses)
        table.add_row(group.name, group.instance_type, *map(_text, counts), ", ".join(group.deep_health_checks) or "-")
    return table


def _roles(roles: Sequence[RoleOutlook], *, everything: bool) -> Tree | None:
    if not roles:
        return None
    tree = Tree(Text("IAM roles", style="bold"), guide_style="dim")
    for role in roles:
        place = tree.add(Text.assemble(role.name, ("  taken by " + ", ".join(map(_last, role.trusted_by)), "dim")))
        for arn in role.managed:
            place.add(Text(_last(arn).removeprefix("policy/")))
        for name, document in role.inline.items():
            _add_policy(place, name, document, everything=everything)
    return tree


def _policies(policies: Sequence[PolicyOutlook], *, everything: bool) -> Tree | None:
    if not policies:
        return None
    tree = Tree(Text("IAM policies", style="bold"), guide_style="dim")
    for policy in policies:
        _add_policy(tree, policy.name, policy.document, everything=everything)
    return tree


def _add_policy(place: Tree, name: str, document: Any, *, everything: bool) -> None:
    below = place.add(Text(name))
    if not isinstance(document, Mapping):
        below.add(Text("not known before it is made", style="dim"))
    for each in statements(document):
        actions, targets = as_list(each.get("Action")), as_list(each.get("Resource"))
        line = Text(f"{each.get('Sid') or each.get('Effect')}: ")
        if everything:
            sentence = below.add(line)
            for part in (*actions, *(f"on {target}" for target in targets)):
                sentence.add(Text(part, style="dim"))
            continue
        services = ", ".join(dict.fromkeys(action.partition(":")[0] for action in actions))
        few = _few(actions, f"{len(actions)} actions of {services}"), _few(targets, f"{len(targets)} resources")
        below.add(line.append(" on ".join(few), style="dim"))


def _few(values: Sequence[str], in_short: str) -> str:
    return ", ".join(values) if len(values) <= _SHOWN else in_short


def _endpoints(endpoints: Sequence[EndpointOutlook]) -> Table | None:
    if not endpoints:
        return None
    table = _table("endpoint", "model", "role", "replicas", "GPUs", "instance group", "type", "threshold", "strategy")
    for endpoint in endpoints:
        for index, role in enumerate(endpoint.roles):
            first = index == 0
            table.add_row(
                f"{endpoint.namespace}/{endpoint.name}" if first else "",
                endpoint.model if first else "",
                role.role,
                str(role.replicas),
                _text(role.gpus),
                role.instance_group or "any",
                role.instance_type or "by affinity",
                _text(endpoint.routing_threshold) if first else "",
                endpoint.routing_strategy or "-" if first else "",
            )
    return table


def _last(arn: str) -> str:
    """The telling end of an ARN; any other text as it is."""
    return arn.rsplit(":", 1)[-1] if arn.startswith("arn:") else arn


def _text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
