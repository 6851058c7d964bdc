"""What the pods of endpoints ask of the nodes of instance groups, and whether there are nodes enough for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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


class Pool(tuple[str, ...]):  # noqa: SLOT001 - it keeps its hash
    """Names of groups that pods may run on. It is looked up for every endpoint, and so hashed once, however many groups it has."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def names(self) -> frozenset[str]:
        """The same, to look a name up."""
        return frozenset(self)


class AskedNodes:
    """What the pods of a stack's endpoints ask of its groups: each endpoint is read once, however many rules and endpoints ask."""

    def __init__(self, stack: StackSubject) -> None:
        self._groups = {group.name: group for group in stack.groups}
        self._of_type: dict[str, list[GroupPlan]] = {}
        for group in self._groups.values():
            self._of_type.setdefault(group.spec.instance_type, []).append(group)
        self._found: dict[tuple[Any, ...], Pool] = {}
        self.all: tuple[Demand, ...] = tuple(demand for endpoint in stack.endpoints.values() for demand in demands(endpoint))
        """In the order of the endpoints."""
        self._by_pool: dict[Pool, list[Demand]] = {}
        for demand in self.all:
            self._by_pool.setdefault(self.pool(demand), []).append(demand)
        self._asked = tuple(self._by_pool)
        self._beginning = _positions(pool[:1] for pool in self._asked)
        self._rooms: dict[Pool, Room | None] = {}
        self._holders: dict[Pool, list[int]] = {}

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The groups that some pods may run on and no others, the smallest first; last those of pods that share groups, together."""
        asked = sorted((pool for pool in self._asked if pool), key=lambda pool: (len(pool), pool))
        together = _Together()
        for pool in asked:
            together.join(pool)
        # In the order in which the last pool came to each.
        joined: dict[str, list[str]] = {}
        for first in dict.fromkeys(together.first(pool[0]) for pool in reversed(asked)):
            joined[first] = []
        for name in self._groups:
            if (first := together.first(name)) in joined:
                joined[first].append(name)
        return tuple(dict.fromkeys((*asked, *(Pool(names) for names in reversed(joined.values())))))

    @cached_property
    def _holding(self) -> dict[str, list[int]]:
        """The positions, in `pools`, of the pools that have a group."""
        return _positions(self.pools)

    def over(self, asked: Iterable[Demand]) -> Iterator[tuple[Pool, list[Demand]]]:
        """Those of `pools` that have all groups on which some of these may run, in their order, each with what may."""
        found: dict[int, list[Demand]] = {}
        for demand in asked:
            for at in self._above(self.pool(demand)):
                found.setdefault(at, []).append(demand)
        yield from ((self.pools[at], found[at]) for at in sorted(found))

    def _above(self, pool: Pool) -> list[int]:
        if pool not in self._holders:
            candidates = self._holding.get(pool[0], ()) if pool else ()
            self._holders[pool] = [at for at in candidates if self.pools[at].names.issuperset(pool)]
        return self._holders[pool]

    def pool(self, demand: Demand) -> Pool:
        """The groups that may hold a demand's pods: the one that it names, or those of its types, which are large enough for one pod.

        Where none is large enough for one, all of them: that is another rule's to say.
        """
        key = (demand.group,) if demand.group else (demand.types, demand.gpus, demand.efa_devices)
        if key not in self._found:
            self._found[key] = Pool((demand.group,)) if demand.group else self._pool(demand)
        return self._found[key]

    def _pool(self, demand: Demand) -> Pool:
        kinds = dict.fromkeys(kind for kind in demand.types if kind in self._of_type)
        held = [kind for kind in kinds if (known := self._of_type[kind][0].kind) is None or _holds(known, demand)]
        return Pool(sorted(group.name for kind in held or kinds for group in self._of_type[kind]))

    def group(self, name: str) -> GroupPlan | None:
        """A group by its name."""
        return self._groups.get(name)

    def has_group_of(self, types: Iterable[str], but: str | None = None) -> bool:
        """Whether there is a group of one of the types, other than one of a name."""
        return any(group.name != but for kind in types for group in self._of_type.get(kind, ())[:2])

    def groups(self, pool: Pool) -> tuple[GroupPlan, ...]:
        """The groups of a pool that are there."""
        return tuple(self._groups[name] for name in pool if name in self._groups)

    def nodes(self, pool: Pool) -> int:
        """How many nodes a pool has."""
        return sum(group.spec.count for group in self.groups(pool))

    def within(self, pool: Pool) -> Iterator[Demand]:
        """What may run on groups of a pool and nowhere else."""
        for at in sorted(at for name in pool.names for at in self._beginning.get(name, ())):
            if pool.names.issuperset(self._asked[at]):
                yield from self._by_pool[self._asked[at]]

    def room(self, pool: Pool, *more: Demand) -> Room | None:
        """What is asked of a pool beside what it has; None where its groups have no GPUs or are of a type that is not known.

        `more` is asked for beside what the stack's endpoints ask.
        """
        if pool not in self._rooms:
            self._rooms[pool] = _room(self.groups(pool), self.within(pool))
        found = self._rooms[pool]
        return found.with_more(more) if found is not None else None


class _Together:
    """Names that are joined to sets, each set known by one of them (union-find with path halving and union by size)."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._size: dict[str, int] = {}

    def first(self, name: str) -> str:
        """The name that a set is known by; of one that is in none, itself."""
        while (above := self._above.get(name, name)) != name:
            self._above[name] = name = self._above.get(above, above)
        return name

    def join(self, names: Iterable[str]) -> None:
        """Put names, and the sets that they are in, into one set."""
        one: str | None = None
        for name in names:
            other = self.first(name)
            if one is None or one == other:
                one = other
                continue
            small, one = sorted((one, other), key=lambda each: self._size.get(each, 1))
            self._above[small] = one
            self._size[one] = self._size.get(one, 1) + self._size.get(small, 1)


def _positions(pools: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """The positions of the pools by the names in them."""
    found: dict[str, list[int]] = {}
    for at, names in enumerate(pools):
        for name in names:
            found.setdefault(name, []).append(at)
    return found


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
