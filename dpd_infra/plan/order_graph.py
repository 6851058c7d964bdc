"""The questions that ordering contracts ask of a program's registrations: what waits for what, and what belongs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpd_infra.plan.tree import Registration, waits_for

_CLUSTERS = ("aws:eks/cluster:Cluster", "eks:index:Cluster")
_HYPERPOD = "aws-native:sagemaker:Cluster"


class OrderGraph:
    """A program's registrations as a graph of what waits for what."""

    def __init__(self, resources: Sequence[Registration]) -> None:
        self.resources = tuple(resources)
        self._by_urn = {resource.urn: resource for resource in resources}
        self._reach: dict[str, frozenset[str]] = {}
        self._kinds: dict[str, list[Registration]] = {}
        for resource in resources:
            self._kinds.setdefault(resource.kind, []).append(resource)
        self._single = sum(resource.type in _CLUSTERS for resource in resources) <= 1 and len(self.of_type(_HYPERPOD)) <= 1

    def of_kind(self, kind: str) -> Sequence[Registration]:
        """Every resource whose type ends so: `Route`."""
        return self._kinds.get(kind, ())

    def of_type(self, type_: str) -> list[Registration]:
        """Every resource of a type."""
        return [resource for resource in self.of_kind(type_.rsplit(":", 1)[-1]) if resource.type == type_]

    def reach(self, resource: Registration) -> frozenset[str]:
        """The URNs of all that is made before a resource: its dependencies, provider and parent, and what those wait for."""
        if resource.urn not in self._reach:
            found: set[str] = set()
            waiting = [resource]
            while waiting:
                for urn in waits_for(waiting.pop()):
                    if urn in self._by_urn and urn not in found:
                        found.add(urn)
                        waiting.append(self._by_urn[urn])
            self._reach[resource.urn] = frozenset(found)
        return self._reach[resource.urn]

    def reached(self, resource: Registration, kind: str) -> set[str]:
        """The URNs of one kind among those, the resource's own included."""
        return {each.urn for each in self.of_kind(kind) if each.urn in self.reach(resource) or each is resource}

    def sources(self, resource: Registration, kind: str) -> set[str]:
        """The URNs of one kind that a resource's inputs come from."""
        used = {urn for urns in resource.property_dependencies.values() for urn in urns}
        return {each.urn for each in self.of_kind(kind) if each.urn in used}

    def one_cluster(self, one: Registration, other: Registration) -> bool:
        """Whether two resources are of the same EKS cluster. Where a program has only one, everything is."""
        return self._single or bool(self._clusters(one) & self._clusters(other))

    def _clusters(self, resource: Registration) -> set[str]:
        found = {urn for urn in (*self.reach(resource), resource.urn) if self._by_urn[urn].type in _CLUSTERS}
        name = resource.inputs.get("clusterName")
        return found | ({name} if isinstance(name, str) else set())


def text_at(value: Any, *keys: str) -> str:
    """A text inside of nested mappings; empty where there is none, or none that is known."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
