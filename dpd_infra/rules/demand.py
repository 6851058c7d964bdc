"""What the pods of endpoints ask of the nodes of instance groups, and whether there are nodes enough for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dpd_infra.catalog.instance_types import InstanceType
from dpd_infra.plan.groups import GROUP_LABEL, GroupPlan
from dpd_infra.rules.subject import EndpointSubject, StackSubject


@dataclass(frozen=True, slots=True)
class Demand:
    """The pods of one Deployment at their most."""

    endpoint: str
    role: str
    """`prefill`, `decode`, or `server`."""
    group: str | None
    """The instance group they select; None: any of the types."""
    types: tuple[str, ...]
    pods: int
    gpus: int
    """A pod."""
    efa_devices: int
    """A pod."""


def demands(endpoint: EndpointSubject) -> Iterator[Demand]:
    """What each Deployment of an endpoint can ask for at most."""
    types = tuple(name for name, _ in endpoint.reading.instance_types)
    for server in endpoint.reading.servers:
        group = endpoint.get(*server.path, "nodeSelector", GROUP_LABEL) if endpoint.reading.disaggregated else None
        yield Demand(
            endpoint.name,
            server.name,
            group if isinstance(group, str) else None,
            types,
            max(server.most_replicas, 0),
            server.gpus,
            server.efa_devices,
        )


class AskedNodes:
    """What the pods of a stack's endpoints ask of its groups: each endpoint is read once, however many rules and endpoints ask."""

    def __init__(self, stack: StackSubject) -> None:
        self._groups = {group.name: group for group in stack.groups}
        self.all: tuple[Demand, ...] = tuple(demand for endpoint in stack.endpoints.values() for demand in demands(endpoint))
        """In the order of the endpoints."""
        self._by_pool: dict[tuple[str, ...], list[Demand]] = {}
        for demand in self.all:
            self._by_pool.setdefault(self.pool(demand), []).append(demand)
        self._rooms: dict[tuple[str, ...], Room | None] = {}

    @property
    def pools(self) -> tuple[tuple[str, ...], ...]:
        """The groups that some pods may run on and no others, the smallest first; last those of pods that share groups, together."""
        asked = sorted((pool for pool in self._by_pool if pool), key=lambda pool: (len(pool), pool))
        together: list[set[str]] = []
        for pool in asked:
            touching = [one for one in together if one & set(pool)]
            together = [one for one in together if not one & set(pool)] + [set(pool).union(*touching)]
        joined = (tuple(name for name in self._groups if name in one) for one in together)
        return tuple(dict.fromkeys((*asked, *joined)))

    def pool(self, demand: Demand) -> tuple[str, ...]:
        """The groups that may hold a demand's pods: the one that it names, or those of its types, which are large enough for one pod.

        Where none is large enough for one, all of them: that is another rule's to say.
        """
        if demand.group:
            return (demand.group,)
        of_type = [group for group in self._groups.values() if group.spec.instance_type in demand.types]
        enough = [group for group in of_type if group.kind is None or _holds(group.kind, demand)]
        return tuple(group.name for group in enough or of_type)

    def groups(self, pool: tuple[str, ...]) -> tuple[GroupPlan, ...]:
        """The groups of a pool that are there."""
        return tuple(self._groups[name] for name in pool if name in self._groups)

    def nodes(self, pool: tuple[str, ...]) -> int:
        """How many nodes a pool has."""
        return sum(group.spec.count for group in self.groups(pool))

    def within(self, pool: tuple[str, ...]) -> Iterator[Demand]:
        """What may run on groups of a pool and nowhere else."""
        for other, asked in self._by_pool.items():
            if other and set(other) <= set(pool):
                yield from asked

    def room(self, pool: tuple[str, ...], *more: Demand) -> Room | None:
        """What is asked of a pool beside what it has; None where its groups have no GPUs or are of a type that is not known.

        `more` is asked for beside what the stack's endpoints ask.
        """
        if pool not in self._rooms:
            self._rooms[pool] = _room(self.groups(pool), list(self.within(pool)))
        found = self._rooms[pool]
        return found.with_more(more) if found is not None else None


@dataclass(frozen=True, slots=True)
class Room:
    """The nodes of a pool, and what pods ask of them that can run nowhere else."""

    kinds: tuple[InstanceType, ...]
    """Of its nodes, each once."""
    nodes: int
    gpus: int
    """Of all nodes."""
    efa_devices: int
    asked_gpus: int = 0
    asked_efa_devices: int = 0
    large_pods: int = 0
    """Pods of which no node holds two: they take more than half of its GPUs or EFA devices."""

    @property
    def fits(self) -> bool:
        """Whether the pods may all find a place; what this denies has no place however pods are put."""
        few_devices = self.efa_devices and self.asked_efa_devices > self.efa_devices
        return self.asked_gpus <= self.gpus and not few_devices and self.large_pods <= self.nodes

    @property
    def needed(self) -> int | None:
        """The fewest nodes that could hold the pods; None where nodes are of several types, which count differently."""
        if len(self.kinds) != 1:
            return None
        gpus, devices = self.kinds[0].gpus, self.kinds[0].efa_devices
        return max(-(-self.asked_gpus // gpus), -(-self.asked_efa_devices // devices) if devices else 0, self.large_pods)

    def with_more(self, more: Iterable[Demand]) -> Room:
        """The same with more pods."""
        found = self
        for demand in more:
            large = all(_is_large(kind, demand) for kind in self.kinds)
            found = replace(
                found,
                asked_gpus=found.asked_gpus + demand.pods * demand.gpus,
                asked_efa_devices=found.asked_efa_devices + demand.pods * demand.efa_devices,
                large_pods=found.large_pods + (demand.pods if large else 0),
            )
        return found

    def told(self) -> str:
        """What is asked and what is there, in words that follow the groups' names."""
        many = f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}"
        if self.needed is not None:
            return f"{many} of {self.kinds[0].gpus} GPUs, {self.needed} are needed"
        asked = f"{self.asked_gpus} GPUs" + (f" and {self.asked_efa_devices} EFA devices" if self.asked_efa_devices else "")
        alone = f", {self.large_pods} of the pods on a node of their own" if self.large_pods > self.nodes else ""
        devices = f" and {self.efa_devices} EFA devices" if self.asked_efa_devices else ""
        return f"{many} with {self.gpus} GPUs{devices} in all, {asked} are asked for{alone}"


def _room(groups: Sequence[GroupPlan], asked: Iterable[Demand]) -> Room | None:
    kinds = [group.kind for group in groups]
    known = tuple(dict.fromkeys(kind for kind in kinds if kind is not None and kind.gpus))
    if not groups or any(kind is None or not kind.gpus for kind in kinds):
        return None
    counts = [(group.spec.count, group.kind) for group in groups]
    empty = Room(
        known,
        sum(count for count, _ in counts),
        sum(count * kind.gpus for count, kind in counts if kind is not None),
        sum(count * kind.efa_devices for count, kind in counts if kind is not None),
    )
    return empty.with_more(asked)


def _holds(kind: InstanceType, demand: Demand) -> bool:
    return demand.gpus <= kind.gpus and (demand.efa_devices <= kind.efa_devices or not kind.efa_devices)


def _is_large(kind: InstanceType, demand: Demand) -> bool:
    return 2 * demand.gpus > kind.gpus or bool(kind.efa_devices and 2 * demand.efa_devices > kind.efa_devices)


def pods_told(asked: Iterable[Demand]) -> str:
    """Pods by endpoint and role, with what each takes."""
    return ", ".join(f"{demand.endpoint} {demand.role} {demand.pods} x {_amount(demand)}" for demand in asked if demand.pods)


def _amount(demand: Demand) -> str:
    return f"{demand.gpus} GPUs" + (f" and {demand.efa_devices} EFA devices" if demand.efa_devices else "")
