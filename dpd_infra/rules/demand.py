"""What the pods of endpoints ask of the nodes of instance groups, and whether there are nodes enough for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        self._groups = stack.groups
        self.all: tuple[Demand, ...] = tuple(demand for endpoint in stack.endpoints.values() for demand in demands(endpoint))
        """In the order of the endpoints."""
        self._needed: dict[tuple[str, ...], int] = {}

    def pool(self, demand: Demand) -> tuple[str, ...]:
        """The groups that may hold a demand's pods: the one that it names, or those of its types."""
        return (demand.group,) if demand.group else tuple(group.name for group in self._groups if group.spec.instance_type in demand.types)

    def groups(self, pool: tuple[str, ...]) -> tuple[GroupPlan, ...]:
        """The groups of a pool that are there."""
        return tuple(group for group in self._groups if group.name in pool)

    def nodes(self, pool: tuple[str, ...]) -> int:
        """How many nodes a pool has."""
        return sum(group.spec.count for group in self.groups(pool))

    def needed(self, pool: tuple[str, ...], *more: Demand) -> int | None:
        """The fewest nodes for everything that may land on a pool; None where its groups are of several types or have no GPUs.

        `more` is asked for beside what the stack's endpoints ask.
        """
        if more or pool not in self._needed:
            kinds = {group.spec.instance_type: group.kind for group in self.groups(pool)}
            kind = next(iter(kinds.values())) if len(kinds) == 1 else None
            if kind is None or not kind.gpus:
                return None
            here = [demand for demand in self.all if demand.group in pool or (demand.group is None and set(kinds) & set(demand.types))]
            count = nodes_needed([*here, *more], kind.gpus, kind.efa_devices)
            if more:
                return count
            self._needed[pool] = count
        return self._needed[pool]


def nodes_needed(asked: Sequence[Demand], gpus: int, efa_devices: int) -> int:
    """The fewest nodes that could hold the pods: no fewer for their sum, and none for two pods that take more than half each."""
    total_gpus = sum(demand.pods * demand.gpus for demand in asked)
    total_efa = sum(demand.pods * demand.efa_devices for demand in asked)
    large = sum(demand.pods for demand in asked if 2 * demand.gpus > gpus or (efa_devices and 2 * demand.efa_devices > efa_devices))
    by_gpu = -(-total_gpus // gpus) if gpus else 0
    by_efa = -(-total_efa // efa_devices) if efa_devices else 0
    return max(by_gpu, by_efa, large)


def capacity_problem(groups: Sequence[GroupPlan], asked: Sequence[Demand]) -> str:
    """What is wrong where pods do not fit groups of one type, in words that follow the group's name; empty where they may fit."""
    kind = groups[0].kind
    if kind is None or not kind.gpus:
        return ""
    nodes = sum(group.spec.count for group in groups)
    needed = nodes_needed(asked, kind.gpus, kind.efa_devices)
    if needed <= nodes:
        return ""
    pods = ", ".join(f"{demand.endpoint} {demand.role} {demand.pods} x {_amount(demand)}" for demand in asked if demand.pods)
    verb = "has" if len(groups) == 1 else "have"
    return f"{verb} {nodes} {'node' if nodes == 1 else 'nodes'} of {kind.gpus} GPUs, its pods need {needed} ({pods})"


def _amount(demand: Demand) -> str:
    return f"{demand.gpus} GPUs" + (f" and {demand.efa_devices} EFA devices" if demand.efa_devices else "")
