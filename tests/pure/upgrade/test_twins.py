"""What was renamed is found by what it is: the first equal one, as if each were held beside each, in work that grows with both."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.rules import upgrade_endpoint_rules, upgrade_rules
from dpd_infra.rules.upgrade_endpoint_rules import endpoints_keep_names
from dpd_infra.rules.upgrade_rules import groups_keep_nodes
from dpd_infra.rules.wide_subjects import UpgradeSubject
from dpd_infra.spec.cluster import InstanceGroupSpec
from dpd_infra.spec.values import hashable
from tests.pure.steps import assert_linear, steps

LEAVES = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2, "1", "", "a"])
DATA = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2))
BODIES = st.none() | st.dictionaries(st.sampled_from(["worker", "replicas", "endpointName"]), st.sampled_from([1, 2, [1], {"a": 1}]))
NAMES = st.sampled_from("abcdef")


@given(DATA, DATA)
def test_what_is_looked_up_is_equal_where_the_data_are(one: Any, other: Any) -> None:
    assert (hashable(one) == hashable(other)) is (one == other)
    if one == other:
        assert hash(hashable(one)) == hash(hashable(other))


def endpoints(bodies: dict[str, Any]) -> Any:
    """A stack of so many endpoints."""

    def made(name: str, body: Any) -> Any:
        data = {"spec": body}

        def get(*path: str) -> Any:
            found: Any = data
            for step in path:
                found = found.get(step) if isinstance(found, dict) else None
            return found

        return SimpleNamespace(name=name, get=get, spec=None, at=lambda *path: path)

    return SimpleNamespace(endpoints={name: made(name, body) for name, body in bodies.items()}, endpoints_path=("endpoints",))


def groups(found: dict[str, InstanceGroupSpec]) -> Any:
    return SimpleNamespace(platform=SimpleNamespace(instance_groups=found), at=lambda *path: path)


def renamed(old: Any, new: Any, rule: Any = endpoints_keep_names) -> dict[str, str]:
    """What is said to be renamed, and how."""
    said = [violation.what.split() for violation in rule(cast("UpgradeSubject", SimpleNamespace(old=old, new=new)))]
    return {words[1]: words[4].rstrip(":") for words in said if words[2:4] == ["is", "renamed"]}


def plain(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """Each one that is gone beside each one that came."""
    gone, came = [name for name in old if name not in new], [name for name in new if name not in old]
    found = {name: next((other for other in came if old[name] == new[other]), None) for name in gone if old[name]}
    return {name: twin for name, twin in found.items() if twin}


@given(st.dictionaries(NAMES, BODIES), st.dictionaries(NAMES, BODIES))
@settings(deadline=None)
def test_an_endpoint_is_renamed_to_the_first_that_is_the_same_but_for_its_name(old: dict[str, Any], new: dict[str, Any]) -> None:
    def but_its_name(bodies: dict[str, Any]) -> dict[str, Any]:
        return {name: {key: value for key, value in (body or {}).items() if key != "endpointName"} for name, body in bodies.items()}

    assert renamed(endpoints(old), endpoints(new)) == plain(but_its_name(old), but_its_name(new))


GROUPS = st.dictionaries(
    NAMES,
    # A function of its own: hypothesis would look for strategies of the class's other fields, and warn of their patterns.
    st.builds(
        lambda instance_type, count, labels: InstanceGroupSpec(instance_type=instance_type, count=count, labels=labels),
        instance_type=st.sampled_from(["ml.p5.48xlarge", "ml.c5.4xlarge"]),
        count=st.integers(1, 2),
        labels=st.sampled_from([{}, {"team": "a"}]),
    ),
)


@given(GROUPS, GROUPS)
@settings(deadline=None)
def test_a_group_is_renamed_to_the_first_that_is_the_same(old: dict[str, InstanceGroupSpec], new: dict[str, InstanceGroupSpec]) -> None:
    assert renamed(groups(old), groups(new), groups_keep_nodes) == plain(old, new)


@pytest.mark.parametrize("same", [True, False])
def test_the_search_grows_with_what_was_renamed(same: bool) -> None:
    def endpoint_work(count: int) -> int:
        old, new = ({f"{which}{number}": {"replicas": number if same else which} for number in range(count)} for which in ("old", "new"))
        looks = itertools.count()
        given_old, given_new = endpoints(old), endpoints(new)
        for each in (*given_old.endpoints.values(), *given_new.endpoints.values()):
            each.get = lambda *path, get=each.get: (next(looks), get(*path))[1]
        lines = steps(upgrade_endpoint_rules, lambda: renamed(given_old, given_new))
        return lines + next(looks)

    def group_work(count: int) -> int:
        def made(which: str, number: int) -> InstanceGroupSpec:
            return InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=1, labels={"n": str(number) if same else f"{which}{number}"})

        old, new = ({f"{which}{number}": made(which, number) for number in range(count)} for which in ("old", "new"))
        return steps(upgrade_rules, lambda: renamed(groups(old), groups(new), groups_keep_nodes))

    assert_linear(endpoint_work)
    assert_linear(group_work)
