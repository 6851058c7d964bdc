"""Pods that may run on nodes of several types: what has no place is refused, and nothing else; and the work grows with the endpoints."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.plan.groups import GroupPlan, plan_groups
from dpd_infra.rules import demand as demand_module
from dpd_infra.rules.check import check
from dpd_infra.rules.demand import AskedNodes, Demand
from dpd_infra.rules.subject import EndpointSubject, StackSubject
from dpd_infra.spec.cluster import InstanceGroupSpec
from dpd_infra.stack import _load
from tests.pure.rules.kit import Edit, Stack, drop, endpoint, put, stack
from tests.pure.steps import assert_linear, steps

P5, P5EN = "ml.p5.48xlarge", "ml.p5en.48xlarge"
GROUPS = "dpd-infra:platform|instanceGroups"
MIXED: tuple[Edit, ...] = (drop("dpd-infra:endpoints|llama-70b|instanceType"), endpoint("instanceTypes", [P5, P5EN]))


def groups(**counts: int) -> tuple[Edit, ...]:
    """The GPU groups, `p5` and `p5en` with so many nodes."""
    types = {"p5": P5, "p5en": P5EN}
    return (
        drop(f"{GROUPS}|gpu"),
        *(put(f"{GROUPS}|{name}", {"instanceType": types[name], "count": count}) for name, count in counts.items()),
    )


def said(given: Stack, *ids: str) -> list[str]:
    return [f"{finding.rule} {finding.what}" for finding in given.findings if finding.rule in ids]


def test_pods_that_two_groups_hold_together_fit() -> None:
    # Three pods of eight GPUs on two nodes of one type and one of another.
    assert said(stack(*MIXED, *groups(p5=2, p5en=1), endpoint("prefill|replicas", 2)), "DPD006") == []
    (found,) = said(stack(*MIXED, *groups(p5=1, p5en=1), endpoint("prefill|replicas", 2)), "DPD006")
    assert found.startswith("DPD006 p5 and p5en have 2 nodes with 16 GPUs in all, 24 GPUs are asked for, 3 of the pods on a node of")


def test_a_second_generation_needs_room_on_the_groups_together() -> None:
    second = endpoint("change", {"mode": "blueGreen", "generation": 2})
    assert said(stack(*MIXED, *groups(p5=2, p5en=2), second), "DPD612") == []
    (found,) = said(stack(*MIXED, *groups(p5=2, p5en=1), second), "DPD612")
    assert "with a second llama-70b beside the first, p5 and p5en have 3 nodes with 24 GPUs in all, 32 GPUs are asked for" in found


def test_a_pod_counts_on_the_nodes_that_are_large_enough_for_it() -> None:
    # 32 EFA devices are those of a p5 node; a p5en node has 16.
    asked = {"requests": {"vpc.amazonaws.com/efa": "32"}, "limits": {"vpc.amazonaws.com/efa": "32"}}
    given = (*MIXED, endpoint("prefill|resources", asked), endpoint("decode|resources", asked))
    assert said(stack(*given, *groups(p5=2, p5en=1)), "DPD006") == []
    assert len(said(stack(*given, *groups(p5=1, p5en=2)), "DPD006")) == 1


def test_a_free_half_of_a_node_is_a_spare_node_for_half_a_pod() -> None:
    # 4 + 4 GPUs on one node of eight and a node that is half taken: one more pod of four finds room.
    half = (endpoint("prefill|gpus", 4), endpoint("decode|gpus", 4), endpoint("worker|tensorParallelSize", 4))
    assert said(stack(*half, endpoint("prefill|replicas", 2), put(f"{GROUPS}|gpu|count", 2)), "DPD023") == []
    assert len(said(stack(*half, endpoint("prefill|replicas", 3), put(f"{GROUPS}|gpu|count", 2)), "DPD023")) == 1


TYPES = st.sampled_from([(P5,), (P5EN,), (P5, P5EN)])
ROLES = st.lists(st.tuples(TYPES, st.integers(0, 3), st.sampled_from([1, 2, 4, 5, 8])), min_size=1, max_size=4)


@given(ROLES, st.integers(0, 3), st.integers(0, 3))
def test_pods_that_can_be_placed_by_hand_are_never_refused(pods: list[tuple[tuple[str, ...], int, int]], p5: int, p5en: int) -> None:
    entry = {"model": {"name": "m", "s3": {"bucket": "my-models"}}, "worker": {"gpuMemoryUtilization": 0.75}}
    entries = {
        f"e{number}": entry | {"instanceTypes": list(types), "disaggregated": False, "colocated": {"replicas": count, "gpus": gpus}}
        for number, (types, count, gpus) in enumerate(pods)
    }
    config = stack(*groups(p5=p5, p5en=p5en)).data | {"dpd-infra:endpoints": entries}
    refused = "DPD006" in {finding.rule for finding in _load(config, None).findings}
    singles = [(types, gpus) for types, count, gpus in pods for _ in range(count)]
    assert not (refused and can_be_placed(singles, [P5] * p5 + [P5EN] * p5en))


def can_be_placed(pods: list[tuple[tuple[str, ...], int]], nodes: list[str]) -> bool:
    """By trying, the largest pods first; nodes of one type with the same room left are one."""

    def place(left: tuple[tuple[str, int], ...], rest: list[tuple[tuple[str, ...], int]]) -> bool:
        if not rest:
            return True
        types, gpus = rest[0]
        return any(
            place(tuple(sorted([*(Counter(left) - Counter([node])).elements(), (node[0], node[1] - gpus)])), rest[1:])
            for node in set(left)
            if node[0] in types and node[1] >= gpus
        )

    return place(tuple((name, INSTANCE_TYPES[name].gpus) for name in nodes), sorted(pods, key=lambda pod: -pod[1]))


def counted(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the rules look something up in the endpoints of a stack of so many."""
    looks = itertools.count()
    entry = stack(endpoint("cache|l2", {"backend": "tieredstorage"}), endpoint("change", {"mode": "blueGreen"})).data
    one = entry["dpd-infra:endpoints"]["llama-70b"]
    config: dict[str, Any] = entry | {"dpd-infra:endpoints": {f"e{number}": one for number in range(count)}}
    subject = _load(config, None).subject
    original = EndpointSubject.get

    def get(self: EndpointSubject, *path: str | int) -> Any:
        next(looks)
        return original(self, *path)

    monkeypatch.setattr(EndpointSubject, "get", get)
    check(subject)
    monkeypatch.undo()
    return next(looks)


def test_the_work_of_a_stack_grows_with_its_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    few, some, many = (counted(count, monkeypatch) for count in (4, 8, 16))
    # Without the part that does not depend on how many there are; what each endpoint asks of all others would show twice here.
    assert (many - some) == 2 * (some - few)


def test_every_pool_is_looked_at_and_those_that_share_groups_together() -> None:
    asked = AskedNodes(_load(stack(*MIXED, *groups(p5=2, p5en=1)).data, None).subject)
    assert asked.pools == (("p5", "p5en"),)


# The groups and what is asked of them, worked out in the plain way: each pool beside each other one, and each beside all groups.


def plain_pool(known: tuple[GroupPlan, ...], demand: Demand) -> tuple[str, ...]:
    if demand.group:
        return (demand.group,)
    of_type = [group for group in known if group.spec.instance_type in demand.types]
    enough = [
        group
        for group in of_type
        if group.kind is None
        or (demand.gpus <= group.kind.gpus and (demand.efa_devices <= group.kind.efa_devices or not group.kind.efa_devices))
    ]
    return tuple(group.name for group in enough or of_type)


def plain_pools(known: tuple[GroupPlan, ...], asked: list[Demand]) -> tuple[tuple[str, ...], ...]:
    pools = sorted({pool for demand in asked if (pool := plain_pool(known, demand))}, key=lambda pool: (len(pool), pool))
    together: list[set[str]] = []
    for pool in pools:
        touching = [one for one in together if one & set(pool)]
        together = [one for one in together if not one & set(pool)] + [set(pool).union(*touching)]
    joined = (tuple(group.name for group in known if group.name in one) for one in together)
    return tuple(dict.fromkeys((*pools, *joined)))


def plain_within(known: tuple[GroupPlan, ...], asked: list[Demand], pool: tuple[str, ...]) -> list[Demand]:
    by_pool: dict[tuple[str, ...], list[Demand]] = {}
    for demand in asked:
        by_pool.setdefault(plain_pool(known, demand), []).append(demand)
    return [demand for other, some in by_pool.items() if other and set(other) <= set(pool) for demand in some]


KINDS = ("ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.g6.12xlarge", "ml.c5.4xlarge", "ml.unheard.of")
NAMES = st.sampled_from("abcdefgh")
GROUP_PLANS = st.dictionaries(NAMES, st.tuples(st.sampled_from(KINDS), st.integers(0, 3)), max_size=8).map(
    lambda found: plan_groups({name: InstanceGroupSpec(instance_type=kind, count=count) for name, (kind, count) in found.items()})
)
DEMANDS = st.builds(
    Demand,
    st.just("e"),
    st.just("decode"),
    st.none() | NAMES,
    st.lists(st.sampled_from(KINDS), max_size=3).map(tuple),
    st.integers(0, 3),
    st.sampled_from((0, 1, 4, 8, 16)),
    st.sampled_from((0, 1, 16, 32)),
)


def nodes(known: tuple[GroupPlan, ...], asked: list[Demand]) -> AskedNodes:
    """What so much asks of so many groups."""
    with patch("dpd_infra.rules.demand.demands", lambda demand: [demand]):
        return AskedNodes(cast("StackSubject", SimpleNamespace(groups=known, endpoints=dict(enumerate(asked)))))


@given(GROUP_PLANS, st.lists(DEMANDS, max_size=12), st.lists(DEMANDS, max_size=3))
@settings(max_examples=300, deadline=None)
def test_pools_are_those_of_the_plain_way(known: tuple[GroupPlan, ...], asked: list[Demand], more: list[Demand]) -> None:
    found = nodes(known, asked)
    assert [found.pool(demand) for demand in asked] == [plain_pool(known, demand) for demand in asked]
    assert found.pools == plain_pools(known, asked)
    for pool in found.pools:
        assert list(found.within(pool)) == plain_within(known, asked, pool)
    over = [
        (pool, some)
        for pool in found.pools
        if (some := [demand for demand in more if (own := plain_pool(known, demand)) and set(own) <= set(pool)])
    ]
    assert list(found.over(more)) == over
    for demand in more:
        others = [group for group in known if group.spec.instance_type in demand.types and group.name != demand.group]
        assert found.has_group_of(demand.types, but=demand.group) is bool(others)


class Name(str):
    """A group's name that counts how often it is looked up or compared."""

    __slots__ = ()
    counts = itertools.count()

    def __hash__(self) -> int:
        next(self.counts)
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        next(self.counts)
        return super().__eq__(other)

    def __lt__(self, other: str) -> bool:
        next(self.counts)
        return super().__lt__(other)


@pytest.mark.parametrize("share", [0, 1, 2])
def test_the_work_grows_with_the_groups(share: int) -> None:
    """Of a stack with as many endpoints as groups, of which none, all, or each second one names its group."""

    def work(count: int) -> int:
        specs = {f"g{number:04}": InstanceGroupSpec(instance_type=KINDS[number % 2], count=1) for number in range(count)}
        known = tuple(replace(group, name=Name(group.name)) for group in plan_groups(specs))
        asked = [
            Demand("e", "decode", group.name if share and number % share == 0 else None, (KINDS[number % 2],), 1, 8, 32)
            for number, group in enumerate(known)
        ]
        asked.append(Demand("e", "decode", None, KINDS, 1, 8, 0))

        def all_of_it() -> None:
            found = nodes(known, asked)
            for pool in found.pools:
                found.room(pool)
            for demand in asked:
                found.room(found.pool(demand), demand)
                list(found.over([demand]))
                found.has_group_of(demand.types, but=demand.group)

        Name.counts = itertools.count()
        lines = steps(demand_module, all_of_it)
        return lines + next(Name.counts)

    assert_linear(work)
