"""Pods that may run on nodes of several types: what has no place is refused, and nothing else; and the work grows with the endpoints."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.rules.check import check
from dpd_infra.rules.demand import AskedNodes
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.stack import _load
from tests.pure.rules.kit import Edit, Stack, drop, endpoint, put, stack

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
