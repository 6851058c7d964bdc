"""What waits for what in a stack's state: the graph that the engine itself follows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpd_infra.plan.tree import in_order
from dpd_infra.rehearsal.urn import component_of, name_of


@dataclass(frozen=True)
class Node:
    """One resource, and the URNs of all that had to be there before it."""

    urn: str
    type: str
    name: str
    parent: str
    custom: bool
    waits: frozenset[str]
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    id: str = ""
    protect: bool = False

    @property
    def component(self) -> str:
        """The nearest component of ours, `Network`; empty for what lies in none."""
        return component_of(self.urn)

    @property
    def is_provider(self) -> bool:
        """Whether it is a provider: it takes no time."""
        return self.type.startswith("pulumi:providers:")


class StateGraph:
    """The resources of a state by URN, each after all that it waits for.

    A resource waits for its dependencies, for what its inputs come from, for its provider, and for its parent; a component waits for what
    it is told to, and its children wait with it.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        by_urn = {node.urn: node for node in nodes}
        self.nodes: dict[str, Node] = {urn: by_urn[urn] for urn in in_order({urn: node.waits for urn, node in by_urn.items()})}

    @classmethod
    def of(cls, resources: Iterable[Mapping[str, Any]]) -> StateGraph:
        """Read the resources of a state. What the engine is about to delete after a replacement is left out."""
        items = [item for item in resources if not item.get("delete")]
        known = {item["urn"] for item in items}
        return cls(_node(item, known) for item in items)

    @classmethod
    def of_plan(cls, file: Path, known: StateGraph) -> StateGraph:
        """Read what a preview would register (`pulumi preview --save-plan`); empty where the preview did not come so far.

        A plan holds the inputs that change: what is `known` of a resource already has the others.
        """
        if not file.exists():
            return cls()
        plans = json.loads(file.read_text(encoding="utf-8"))["resourcePlans"]
        goals = {urn: plan["goal"] for urn, plan in plans.items() if plan.get("goal")}

        def inputs(urn: str, goal: Mapping[str, Any]) -> Mapping[str, Any]:
            before = known[urn].inputs if urn in known else {}
            return {**before, **((goal.get("inputDiff") or {}).get("adds") or {})}

        return cls(_node({**goal, "urn": urn, "inputs": inputs(urn, goal)}, set(goals)) for urn, goal in goals.items())

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __contains__(self, urn: object) -> bool:
        return urn in self.nodes

    def __getitem__(self, urn: str) -> Node:
        return self.nodes[urn]

    def reversed(self) -> StateGraph:
        """The same resources the other way round: each waits for all that waited for it, as a destroy does.

        A component goes when its children are gone, and holds nothing up.
        """
        waits: dict[str, set[str]] = {urn: set() for urn in self.nodes}
        for node in self:
            for other in node.waits:
                waits[other].add(node.urn)
        return StateGraph(
            Node(node.urn, node.type, node.name, node.parent, node.custom, frozenset(waits[node.urn]), node.inputs, node.id, node.protect)
            for node in self
        )

    def dependents(self, urn: str) -> frozenset[str]:
        """Everything that waits for a resource, over any number of steps; the resource itself left out."""
        found = {urn}
        # Nodes stand after what they wait for, so one pass reaches all.
        for node in self:
            if node.waits & found:
                found.add(node.urn)
        return frozenset(found - {urn})


def _node(item: Mapping[str, Any], known: set[str]) -> Node:
    urn = item["urn"]
    waits = {*item.get("dependencies", [])}
    for urns in (item.get("propertyDependencies") or {}).values():
        waits.update(urns)
    # A provider is named with its id behind it.
    waits.add((item.get("provider") or "").rpartition("::")[0])
    waits.add(item.get("parent") or "")
    return Node(
        urn,
        item["type"],
        name_of(urn),
        item.get("parent") or "",
        bool(item.get("custom")),
        frozenset(waits & known - {urn}),
        item.get("inputs") or {},
        str(item.get("id") or ""),
        bool(item.get("protect")),
    )
