"""A document is taken and refused offline as the CRD has it: examples of each kind, and a second judge on documents made from the CRD."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.crd.releases import fields_by_release
from dpd_infra.catalog.crd.validate import DUPLICATE, UNKNOWN_FIELD, validate_document
from tests.pure.crd.documents import broken_documents, documents
from tests.pure.crd.raw_crd import judge
from tests.pure.endpoint.test_published_example import PUBLISHED


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(PUBLISHED)
    place: Any = document
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


def test_the_published_manifest_has_no_problem() -> None:
    assert validate_document(PUBLISHED) == []
    assert judge(PUBLISHED) == []


ENVIRONMENT = ("spec", "worker", "environmentVariables")


@pytest.mark.parametrize(
    ("path", "value", "keyword", "expected"),
    [
        (("spec", "pdSpec", "routingThreshold"), -1, "minimum", 0),
        (("spec", "pdSpec", "routingThreshold"), "4096", "type", ["integer"]),
        (("spec", "pdSpec", "routingThreshold"), 4096.5, "type", ["integer"]),
        (("spec", "pdSpec", "routingThreshold"), True, "type", ["integer"]),
        (("spec", "pdSpec", "routingThreshold"), 2**31, "maximum", 2**31 - 1),
        (("spec", "pdSpec", "prefillSpec", "replicas"), 0, "minimum", 1),
        (("spec", "instanceType"), "p5.48xlarge", "pattern", r"^ml\..*"),
        (("spec", "intelligentRoutingSpec", "routingStrategy"), "prefix", "enum", ["prefixaware", "kvaware", "session", "roundrobin"]),
        (("spec", "modelName"), ..., "required", "modelName"),
        (("spec", "modelName"), None, "required", "modelName"),
        (("spec", "modelName"), "L" * 64, "maxLength", 63),
        (("spec", "pdSpec", "decodeSpec"), {}, UNKNOWN_FIELD, ["decodingSpec"]),
        (("spec", "worker", "resources", "limits", "cpu"), 1.5, "type", ["integer", "string"]),
        (("spec", "metrics", "modelMetrics", "port"), 80, "minimum", 1024),
        (("apiVersion",), "inference.sagemaker.aws.amazon.com/v2", "const", "inference.sagemaker.aws.amazon.com/v1"),
        (("metadata", "label"), {}, UNKNOWN_FIELD, ["labels"]),
        (("metadata", "labels", "team"), 7, "type", ["string"]),
    ],
)
def test_a_broken_field_is_reported_at_its_place(path: tuple[Any, ...], value: Any, keyword: str, expected: Any) -> None:
    problems = validate_document(changed(path, value))
    assert [(problem.path, problem.keyword, problem.expected) for problem in problems] == [(path, keyword, expected)]
    assert all(problem.certain for problem in problems)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), None),
        (("spec", "worker", "resources", "limits", "cpu"), 96),
        (("spec", "worker", "resources", "limits", "cpu"), "30000m"),
        (("spec", "pdSpec", "routingThreshold"), 4096.0),
        (("spec", "modelName"), "Llama-3.3: the pattern has no end"),
        (("spec", "kvCacheSpec", "l2CacheSpec", "l2CacheBackend"), "xTieredStorage: the pattern is not anchored"),
        (("metadata", "creationTimestamp"), None),
        (("status",), {"state": "DeploymentComplete"}),
    ],
)
def test_what_the_api_server_takes_is_taken(path: tuple[Any, ...], value: Any) -> None:
    assert validate_document(changed(path, value)) == []


def test_a_name_that_stands_twice_in_a_list_map_is_reported_where_it_repeats() -> None:
    environment = [*PUBLISHED["spec"]["worker"]["environmentVariables"], {"name": "HF_HOME", "value": "/data"}]
    (problem,) = validate_document(changed(ENVIRONMENT, environment))
    assert (problem.path, problem.keyword) == ((*ENVIRONMENT, 4), DUPLICATE)


def test_a_list_maps_key_with_a_default_counts_as_written() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]
    containers = [{"name": "fetch", "ports": ports}]
    problems = validate_document(changed(("spec", "kubernetes"), {"initContainers": containers}))
    assert [problem.path for problem in problems] == [("spec", "kubernetes", "initContainers", 0, "ports", 1)]


def test_the_text_of_a_pattern_ends_where_the_text_ends() -> None:
    document = changed(("spec", "dnsConfig"), {"hostedZoneId": "Z123\n"})
    assert [problem.keyword for problem in validate_document(document)] == ["pattern"]


def test_every_problem_of_a_document_is_reported_at_once() -> None:
    document = changed(("spec", "replicas"), "two")
    document["spec"]["modelLocation"] = "x"
    document["spec"]["pdSpec"]["routingThreshold"] = -1
    assert [problem.pointer for problem in validate_document(document)] == [
        "/spec/modelLocation",
        "/spec/pdSpec/routingThreshold",
        "/spec/replicas",
    ]


def test_an_unknown_field_of_a_later_release_is_not_certain_and_a_known_one_is_none() -> None:
    idle = changed(("spec", "loadBalancer", "idleTimeoutSeconds"), 60)
    assert [problem.certain for problem in validate_document(idle, "3.2")] == [True]
    assert validate_document(idle, "3.3") == []
    new = changed(("spec", "somethingNew"), {"enabled": True})
    assert [problem.certain for problem in validate_document(new, "3.7")] == [False]
    wrong = changed(("spec", "loadBalancer", "idleTimeoutSeconds"), 4001)
    assert [(problem.keyword, problem.certain) for problem in validate_document(wrong, "3.3")] == [("maximum", True)]


def test_the_older_version_is_checked_by_its_own_schema() -> None:
    document = changed(("apiVersion",), "inference.sagemaker.aws.amazon.com/v1alpha1")
    assert ("spec", "pdSpec") in [problem.path for problem in validate_document(document)]


@pytest.mark.parametrize(
    ("value", "keyword"),
    [
        (float("nan"), "plainData"),
        ({1: "x"}, "plainData"),
        ({"x"}, "plainData"),
        (b"x", "plainData"),
        (object(), "plainData"),
        ("half a pair \ud800", "plainData"),
        ({"half a pair \ud800": "x"}, "plainData"),
    ],
)
def test_what_is_not_json_data_is_reported_and_raises_nothing(value: Any, keyword: str) -> None:
    problems = validate_document(changed(("spec", "kubernetes", "volumes"), [value]))
    assert keyword in [problem.keyword for problem in problems]


@pytest.mark.parametrize("document", [None, 7, "text", [], [PUBLISHED]])
def test_what_is_no_object_is_reported(document: Any) -> None:
    assert [problem.keyword for problem in validate_document(document)] == ["type"]


def test_deep_nesting_is_refused_and_not_followed() -> None:
    deep: Any = {}
    for _ in range(50_000):
        deep = {"nodeAffinity": deep}
    assert [problem.keyword for problem in validate_document(changed(("spec",), deep))] == ["depth"]


def test_the_document_is_not_changed() -> None:
    document = changed(("spec", "replicas"), None)
    before = copy.deepcopy(document)
    validate_document(document)
    assert document == before


def test_fields_and_values_name_the_release_that_brought_them() -> None:
    source = {"modelSourceType": "huggingface", "huggingFaceModel": {"modelId": "a/b"}}
    document = changed(("spec", "modelSourceConfig"), source)
    document["spec"]["kubernetes"] = {"serviceAccountName": "reader"}
    found = {path: brought.release for path, brought in fields_by_release(document)}
    assert found == {
        ("spec", "kvCacheSpec"): "2.1",
        ("spec", "intelligentRoutingSpec"): "2.1",
        ("spec", "pdSpec"): "3.2",
        ("spec", "modelSourceConfig", "modelSourceType"): "3.1.2",
        ("spec", "modelSourceConfig", "huggingFaceModel"): "3.1.2",
        ("spec", "kubernetes"): "3.1",
        ("spec", "kubernetes", "serviceAccountName"): "3.1.2",
    }


SLOW = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SLOW
@given(documents())
def test_both_judges_take_a_document_made_from_the_crd(document: dict[str, Any]) -> None:
    assert judge(document) == []
    assert validate_document(document) == []


@SLOW
@given(broken_documents())
def test_both_judges_agree_on_a_document_broken_in_one_field(broken: tuple[dict[str, Any], str]) -> None:
    document, what = broken
    assert bool(judge(document)) == bool(validate_document(document)), what


@SLOW
@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_plain_data_is_judged_without_an_exception(value: Any) -> None:
    validate_document({"apiVersion": "inference.sagemaker.aws.amazon.com/v1", "kind": "InferenceEndpointConfig", "spec": value})
    validate_document(value)
