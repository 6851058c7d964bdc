"""A stack's resources as a tree and as a graph: what is in what, and what waits for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol


class Registration(Protocol):
    """One resource that a program asked for, as much of it as a plan looks at."""

    @property
    def type(self) -> str:
        """The type token."""
        ...

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        ...

    @property
    def urn(self) -> str:
        """Its URN."""
        ...

    @property
    def kind(self) -> str:
        """The last part of the type: `Vpc`."""
        ...

    @property
    def custom(self) -> bool:
        """False for a component."""
        ...

    @property
    def parent(self) -> str:
        """The parent's URN; empty for a child of the stack."""
        ...

    @property
    def provider(self) -> str:
        """The URN of the provider it goes through; empty for a default one."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """By the provider's own names."""
        ...

    @property
    def dependencies(self) -> Sequence[str]:
        """URNs of everything it waits for."""
        ...

    @property
    def property_dependencies(self) -> Mapping[str, Sequence[str]]:
        """By input: the URNs of what the value comes from."""
        ...

    @property
    def protect(self) -> bool | None:
        """Whether Pulumi refuses to delete it."""
        ...

    @property
    def read(self) -> bool:
        """True where an existing resource is only read."""
        ...


class ResourceTree:
    """The resources of one stack, what comes first before what waits for it.

    The order in which a program's requests arrive is no order, for they are made side by side. Providers are in the tree and not in the
    graph, because everything waits for them.
    """

    def __init__(self, resources: Sequence[Registration]) -> None:
        self._by_urn = {resource.urn: resource for resource in resources}
        self._children: dict[str, list[Registration]] = {}
        for resource in resources:
            place = resource.parent if resource.parent in self._by_urn else ""
            self._children.setdefault(place, []).append(resource)
        last = self._last_steps()
        for children in self._children.values():
            children.sort(key=lambda resource: (last[resource.urn], resource.urn))
        self.resources = tuple(resource for _, resource in self.walk())

    def _last_steps(self) -> dict[str, int]:
        """At which step the last of a resource and all in it can be made, if whatever waits for nothing is made in the first."""
        nodes = {urn: frozenset(self._needed(resource)) & self._by_urn.keys() - {urn} for urn, resource in self._by_urn.items()}
        last: dict[str, int] = {}
        for urn in in_order(nodes):
            last[urn] = 1 + max((last[other] for other in nodes[urn]), default=-1)
        # Children before their parents.
        for _, resource in reversed(list(self.walk())):
            if resource.parent in last:
                last[resource.parent] = max(last[resource.parent], last[resource.urn])
        return last

    @property
    def roots(self) -> tuple[Registration, ...]:
        """The children of the stack."""
        return tuple(self._children.get("", ()))

    def children(self, parent: Registration) -> tuple[Registration, ...]:
        """What is in a component, or below a resource."""
        return tuple(self._children.get(parent.urn, ()))

    def walk(self) -> Iterator[tuple[int, Registration]]:
        """Every resource with its depth, each parent before its children; a stack of any depth is no matter."""
        waiting = [(0, resource) for resource in reversed(self.roots)]
        while waiting:
            depth, resource = waiting.pop()
            yield depth, resource
            waiting += [(depth + 1, child) for child in reversed(self.children(resource))]

    def drawn(self) -> tuple[Registration, ...]:
        """The nodes of the graph: what providers manage, providers left out."""
        return tuple(resource for resource in self.resources if resource.custom and not is_provider(resource))

    def edges(self) -> list[tuple[Registration, Registration]]:
        """What comes first and what waits for it, as few pairs as say it: one that follows from others is left out."""
        waits = self._waits()
        reach = _reach(waits)
        return [
            (self._by_urn[first], self._by_urn[urn])
            for urn, needed in waits.items()
            for first in sorted(needed)
            if not any(first in reach[other] for other in needed if other != first)
        ]

    def _waits(self) -> dict[str, frozenset[str]]:
        nodes = {resource.urn for resource in self.drawn()}
        return {resource.urn: frozenset(self._needed(resource)) & nodes - {resource.urn} for resource in self.drawn()}

    def _needed(self, resource: Registration) -> Iterator[str]:
        return waits_for(resource, provider=False)


def waits_for(resource: Registration, *, provider: bool = True) -> Iterator[str]:
    """The URNs that the engine must be done with before this resource: dependencies, provider and parent; or all but the provider."""
    yield from resource.dependencies
    for urns in resource.property_dependencies.values():
        yield from urns
    if provider and resource.provider:
        yield resource.provider
    if resource.parent:
        yield resource.parent


def is_provider(resource: Registration) -> bool:
    """Whether a resource is a provider."""
    return resource.type.startswith("pulumi:providers:")


def _reach(waits: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Everything that each node waits for, over any number of steps."""
    reach: dict[str, frozenset[str]] = {}
    for urn in in_order(waits):
        reach[urn] = waits[urn].union(*(reach[other] for other in waits[urn]))
    return reach


def in_order(waits: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Every node after all that it waits for; the engine lets no circle in."""
    done: set[str] = set()
    for start in waits:
        stack = [start]
        while stack:
            missing = [other for other in waits[stack[-1]] if other not in done]
            if missing:
                stack += missing
                continue
            urn = stack.pop()
            if urn not in done:
                done.add(urn)
                yield urn
