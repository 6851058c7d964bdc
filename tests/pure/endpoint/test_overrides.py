"""Overrides are a JSON merge patch, but for the environment, which merges by name."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.render.overrides import merge
from dpd_infra.render.provenance import leaves

KEYS = st.sampled_from("abcd")
SCALARS = st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
PATCH_VALUES = st.recursive(
    st.none() | SCALARS, lambda inner: st.lists(SCALARS, max_size=2) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
PATCHES = st.dictionaries(KEYS, PATCH_VALUES, max_size=4)

# RFC 7386, appendix A: the cases whose target and patch are objects.
RFC_CASES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"a": "foo"}, {"b": None}, {"a": "foo"}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_CASES)
def test_the_cases_of_the_rfc(target: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert merge(target, patch) == result


@given(OBJECTS)
def test_nothing_overrides_nothing(document: dict[str, Any]) -> None:
    assert merge(document, {}) == document


@given(OBJECTS, PATCHES)
def test_the_same_override_twice_is_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge(document, patch)
    assert merge(once, patch) == once


@given(OBJECTS, PATCHES)
def test_what_an_override_says_stands_and_the_rest_stays(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before, before_patch = copy.deepcopy(document), copy.deepcopy(patch)
    merged = merge(document, patch)
    assert (document, patch) == (before, before_patch)
    for path, value in leaves(patch):
        place: Any = merged
        for step in path[:-1]:
            place = place[step]
        if path and value is None:
            assert path[-1] not in place
        elif path and value != {}:
            assert place[path[-1]] == value
    assert {key: value for key, value in merged.items() if key not in patch} == {
        key: value for key, value in document.items() if key not in patch
    }


# Two layers of one shape: where one holds a scalar or a list and the other an object, merging them first forgets that the first replaced.
LEAVES = SCALARS | st.lists(SCALARS, max_size=2)
SHAPED = st.recursive(
    st.fixed_dictionaries({}, optional={"a": LEAVES, "b": LEAVES}),
    lambda inner: st.fixed_dictionaries({}, optional={"a": LEAVES, "b": LEAVES, "c": inner, "d": inner}),
    max_leaves=6,
)


@given(OBJECTS, SHAPED, SHAPED)
def test_overrides_of_one_shape_and_without_nulls_can_be_merged_with_each_other_first(
    document: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    assert merge(merge(document, first), second) == merge(document, merge(first, second))


def environment(*entries: tuple[str, str | None]) -> dict[str, Any]:
    return {"spec": {"worker": {"environmentVariables": [{"name": name, "value": value} for name, value in entries]}}}


@given(st.dictionaries(KEYS, st.sampled_from("xy")), st.dictionaries(KEYS, st.none() | st.sampled_from("xy")))
def test_the_environment_merges_by_name_as_a_dictionary_does(old: dict[str, str], new: dict[str, str | None]) -> None:
    merged = merge(environment(*old.items()), environment(*new.items()))
    entries = merged["spec"]["worker"]["environmentVariables"]
    expected = {name: value for name, value in {**old, **new}.items() if value is not None}
    assert {entry["name"]: entry["value"] for entry in entries} == expected
    assert [entry["name"] for entry in entries] == [name for name in (*old, *(name for name in new if name not in old)) if name in expected]


def test_an_entry_is_replaced_whole_and_a_reference_takes_the_place_of_a_value() -> None:
    patch = {"spec": {"worker": {"environmentVariables": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}}}
    assert merge(environment(("a", "x"), ("b", "y")), patch)["spec"]["worker"]["environmentVariables"] == [
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "b", "value": "y"},
    ]
