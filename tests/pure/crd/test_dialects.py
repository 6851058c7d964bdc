"""Where a JSON Schema library, given the raw CRD, and the API server part ways: the list, and that we go with the API server.

The plain library is `jsonschema` as it comes: draft 2020-12 with its format checker. The fuzz's second judge is the same library with the
API server's side of each of these.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from dpd_infra.catalog.crd.json_schema import is_date_time
from dpd_infra.catalog.crd.validate import validate_document
from tests.pure.crd.raw_crd import judge, raw_schema
from tests.pure.endpoint.test_published_example import PUBLISHED


@dataclass(frozen=True)
class Difference:
    """One kind of document on which the two do not agree."""

    name: str
    path: tuple[str | int, ...]
    value: Any
    api_server_takes_it: bool
    why: str


CONDITION = {"type": "Ready", "status": "True", "reason": "Deployed", "message": ""}

DIFFERENCES = (
    Difference(
        "a line break after the end of a pattern",
        ("spec", "dnsConfig"),
        {"hostedZoneId": "Z123\n"},
        api_server_takes_it=False,
        why="RE2's `$` is the end of the text; Python's also stands before a last line break",
    ),
    Difference(
        "a dotless i where case does not matter",
        ("spec", "kvCacheSpec", "l2CacheSpec"),
        {"l2CacheBackend": "red\u0131s"},
        api_server_takes_it=False,
        why="RE2 folds case as Unicode's simple folding does; Python's `(?i)i` also matches the Turkish letters U+0130 and U+0131",
    ),
    Difference(
        "an integer of more than 64 bits",
        ("spec", "worker", "resources"),
        {"limits": {"nvidia.com/gpu": 2**63}},
        api_server_takes_it=False,
        why="JSON Schema's integers have no end; Kubernetes' have 64 bits, in an integer or string too",
    ),
    Difference(
        "a null where there is a default",
        ("spec", "replicas"),
        None,
        api_server_takes_it=True,
        why="a null gives way to the default of a field that is not nullable; to JSON Schema it is of the wrong type",
    ),
    Difference(
        "a count below nothing of what can be scaled",
        ("spec", "replicas"),
        -1,
        api_server_takes_it=False,
        why="the API server reads what the scale subresource names as a count; to JSON Schema that stands elsewhere",
    ),
    Difference(
        "a field that the CRD does not have",
        ("spec", "modelLocation"),
        "models/llama",
        api_server_takes_it=False,
        why="strict field validation, which kubectl and Pulumi ask for; a JSON Schema without additionalProperties takes any field",
    ),
    Difference(
        "a field in an object that has none",
        ("spec", "kubernetes", "volumes"),
        [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {}}, "spec": {}}}}],
        api_server_takes_it=False,
        why="a structural schema without properties keeps none, and strict field validation says so",
    ),
    Difference(
        "a list's key twice",
        ("spec", "worker", "environmentVariables"),
        [{"name": "HF_HOME", "value": "/a"}, {"name": "HF_HOME", "value": "/b"}],
        api_server_takes_it=False,
        why="`x-kubernetes-list-type: map` holds each key once; JSON Schema does not know the word",
    ),
    Difference(
        "a list's key twice, once written as a fraction",
        ("spec", "kubernetes", "initContainers"),
        [{"name": "warm-up", "ports": [{"containerPort": 2.0}, {"containerPort": 2, "protocol": "TCP"}]}],
        api_server_takes_it=False,
        why="2 and 2.0 are one number in JSON, and a key's default stands for it",
    ),
    Difference(
        "a day that is no day",
        ("status",),
        {"conditions": [{**CONDITION, "lastTransitionTime": "yesterday"}]},
        api_server_takes_it=False,
        why="`format: date-time` is checked in Kubernetes; the library checks it with an extra package only",
    ),
)


_CLAIM = {"spec": {"resources": {}}, "metadata": {"labels": None}}

REFUSED_THOUGH_TAKEN = (
    # Where, what, and why we refuse what the API server takes.
    (("spec", "maxDeployTimeInSeconds"), 2**31, "`format: int32` is a note to the server; the operator's Go type does not hold the number"),
    (("spec", "maxDeployTimeInSeconds"), -(2**31) - 1, "`format: int32` is a note to the server; the operator's Go type does not hold it"),
    (
        ("spec", "kubernetes", "initContainers"),
        [{"name": "warm-up", "securityContext": {"runAsUser": 1000.000001}}],
        "a billionth beside an integer is one to the server, which stores the fraction; the operator's Go type does not hold it",
    ),
    (
        ("spec", "kubernetes", "initContainers"),
        [{"name": "warm-up", "resources": {"limits": {"example.com/slots": 2550024566194338.5}}}],
        "the same where text may stand too",
    ),
    (
        ("spec", "kubernetes", "volumes"),
        [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": _CLAIM}}],
        "a null is dropped in silence in an object without fields, where any other value is refused",
    ),
)


def test_every_character_but_a_line_feed_is_a_dot() -> None:
    """RE2's dot, and Python's; JavaScript's, which most JSON Schema libraries have, leaves three more characters out."""
    for character in "\r\u2028\u2029\u0085\0":
        document = changed(("spec", "tlsConfig"), {"tlsCertificateOutputS3Uri": f"s3://bucket/{character}key"})
        assert validate_document(document) == judge(document) == []
    document = changed(("spec", "tlsConfig"), {"tlsCertificateOutputS3Uri": "s3://bucket/\nkey"})
    (problem,) = validate_document(document)
    assert (problem.keyword, problem.expected) == ("pattern", r"^s3://([^/]+)/?(.*)$")
    assert judge(document) != []


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(PUBLISHED)
    place: Any = document
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[path[-1]] = value
    return document


def plain_takes(document: dict[str, Any]) -> bool:
    validator = Draft202012Validator(raw_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER)
    return validator.is_valid(document)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_the_plain_library_says_one_thing_and_we_say_what_the_api_server_says(difference: Difference) -> None:
    document = changed(difference.path, difference.value)
    assert plain_takes(document) != difference.api_server_takes_it, difference.why
    assert (validate_document(document) == []) == difference.api_server_takes_it, difference.why
    assert (judge(document) == []) == difference.api_server_takes_it, difference.why


@pytest.mark.parametrize(("path", "value", "why"), REFUSED_THOUGH_TAKEN)
def test_what_the_api_server_takes_and_the_operator_cannot_read_is_refused(path: tuple[str, ...], value: Any, why: str) -> None:
    document = changed(path, value)
    assert validate_document(document) != [], why
    assert judge(document) != [], why


def test_a_null_without_a_default_is_refused_as_a_server_side_apply_refuses_it() -> None:
    for path in (("spec", "tags"), ("spec", "worker", "args"), ("spec",), ("spec", "pdSpec", "prefillSpec", "nodeSelector", "team")):
        document = changed(path, None)
        (problem,) = validate_document(document)
        assert (problem.path, problem.keyword) == (path, "type")
        # Without its spec an endpoint is nothing, though the CRD asks for none.
        assert problem.message.endswith("or left out") is (path != ("spec",))
        assert judge(document) != []


def test_the_unchanged_document_is_taken_by_all() -> None:
    assert plain_takes(PUBLISHED)
    assert validate_document(PUBLISHED) == judge(PUBLISHED) == []


def test_an_unknown_field_is_named_where_no_field_is_known() -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {}, "name": "x"}, "spec": {}}}}
    problems = validate_document(changed(("spec", "kubernetes", "volumes"), [volume]))
    assert [(problem.path[-1], problem.keyword) for problem in problems] == [("labels", "unknownField"), ("name", "unknownField")]


DATE_TIMES = (
    ("2026-06-12T00:00:00Z", True, True),
    ("2026-06-12t00:00:00.123456789z", True, True),
    ("2026-06-12T00:00:00+14:00", True, True),
    ("2026-06-12T00:00:00", False, False),
    ("2026-06-12 00:00:00Z", False, False),
    ("2026-02-29T00:00:00Z", False, False),
    ("2026-06-12T00:00:00Z\n", False, False),
    ("2024-12-31T23:59:60Z", True, False),
    ("2026-06-12T00:00:00+99:99", False, True),
    ("2026-06-12T00:00:00,5Z", False, True),
    ("2026-06-12T00:00:00Ztoday", False, True),
    ("0000-02-29T00:00:00Z", True, True),
)
"""Texts; whether they are RFC 3339; whether the API server takes them."""


@pytest.mark.parametrize(("text", "rfc_3339", "api_server"), DATE_TIMES)
def test_date_time_is_what_kube_openapi_takes_which_is_not_rfc_3339(text: str, rfc_3339: bool, api_server: bool) -> None:
    assert jsonschema_rs.Draft202012Validator({"format": "date-time"}, validate_formats=True).is_valid(text) is rfc_3339
    assert is_date_time(text) is api_server
    status = {"conditions": [{**CONDITION, "lastTransitionTime": text}]}
    assert (judge(changed(("status",), status)) == []) is api_server
