"""A real API server with the operator's CRD takes what we take and keeps it as it is, and refuses what we refuse."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from dpd_infra.catalog.crd.validate import validate_document
from tests.kubernetes.client import Client
from tests.kubernetes.crd import keeps, stored
from tests.kubernetes.judge import Judge
from tests.kubernetes.manifests import (
    Manifest,
    broken_in_one_field,
    of_crd,
    of_files,
    of_rules,
    of_short_form,
    without_later_fields,
)
from tests.pure.crd.fuzz_documents import Break, Broken
from tests.pure.crd.test_dialects import DATE_TIMES, DIFFERENCES, REFUSED_THOUGH_TAKEN, Difference, changed
from tests.pure.endpoint.test_published_example import PUBLISHED

HELD = "3.2"
"""The operator release whose CRD the server has."""


def in_default(document: dict[str, Any]) -> dict[str, Any]:
    """The document in a namespace that is there."""
    metadata = document.get("metadata")
    return {**document, "metadata": {**metadata, "namespace": "default"}} if isinstance(metadata, dict) else document


def refused_or_changed(client: Client, manifests: Iterable[Manifest]) -> list[str]:
    """What the server does not take, or would store differently."""
    manifests = [Manifest(one.origin, in_default(without_later_fields(one.document))) for one in manifests]
    found = []
    for one, answer in zip(manifests, client.apply_each([one.document for one in manifests]), strict=True):
        if not answer.taken:
            found.append(f"{one}: {answer.message}")
        elif not keeps(answer, one.document):
            found.append(f"{one}: stored as {json.dumps(answer.body['spec'])}")
        elif answer.warnings:
            found.append(f"{one}: {answer.warnings}")
    return found


@pytest.mark.parametrize("manifest", of_files(), ids=str)
def test_a_manifest_of_a_stack_file_is_stored_as_it_was_rendered(client: Client, manifest: Manifest) -> None:
    document = without_later_fields(manifest.document)
    client.make_namespace(document["metadata"].get("namespace", "default"))
    client.make(document)
    where = client.path(document)
    kept = client.must("GET", where)
    client.must("DELETE", where)
    assert kept["spec"] == stored(document)
    assert {key: kept["metadata"].get(key) for key in document["metadata"]} == document["metadata"]


def test_what_is_generated_from_the_short_form_is_taken_and_stored_unchanged(client: Client) -> None:
    assert refused_or_changed(client, of_short_form(700)) == []


def test_what_the_crds_text_allows_is_taken_and_stored_unchanged_and_we_take_it_too(client: Client) -> None:
    manifests = of_crd(600)
    assert [one.origin for one in manifests if validate_document(one.document, HELD)] == []
    assert refused_or_changed(client, manifests) == []


def test_what_rules_are_tried_on_is_taken_where_we_take_it_and_refused_where_we_refuse_its_shape(client: Client) -> None:
    manifests = [Manifest(one.origin, in_default(one.document)) for one in of_rules()]
    answers = client.apply_each([one.document for one in manifests])
    differing = [
        f"{one}: {answer.message or 'taken'}; we: {[problem.message for problem in problems]}"
        for one, answer in zip(manifests, answers, strict=True)
        if answer.taken == bool(problems := validate_document(one.document, HELD))
    ]
    assert differing == []
    assert refused_or_changed(client, [one for one in manifests if not validate_document(one.document, HELD)]) == []


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_where_a_json_schema_library_would_be_wrong_the_server_says_what_we_say_it_does(client: Client, difference: Difference) -> None:
    document = in_default(changed(difference.path, difference.value))
    if difference.path[0] != "status":
        assert keeps(client.apply(document), document) is difference.api_server_takes_it, difference.why
        return
    client.make(in_default(PUBLISHED))
    assert keeps(client.apply(document, subresource="status"), document, "status") is difference.api_server_takes_it, difference.why


@pytest.mark.parametrize(("path", "value", "why"), REFUSED_THOUGH_TAKEN)
def test_what_is_refused_for_the_operators_sake_alone_the_server_takes(client: Client, path: tuple[str, ...], value: Any, why: str) -> None:
    document = in_default(changed(path, value))
    assert keeps(client.apply(document), document), why


@pytest.mark.parametrize(("path", "value", "why"), REFUSED_THOUGH_TAKEN)
def test_the_judge_of_the_fuzz_knows_what_is_refused_for_the_operators_sake_alone(
    judge: Judge, path: tuple[str, ...], value: Any, why: str
) -> None:
    verdict = judge.verdict(Broken(changed(path, value), Break("v1", path, "taken all the same")))
    assert not verdict.refused, why
    assert verdict.difference == "", why


@pytest.mark.parametrize(("text", "taken"), [(text, taken) for text, _, taken in DATE_TIMES])
def test_a_date_time_is_what_we_say_the_server_takes(client: Client, text: str, taken: bool) -> None:
    condition = {"type": "Ready", "status": "True", "reason": "Deployed", "message": "", "lastTransitionTime": text}
    client.make(in_default(PUBLISHED))
    answer = client.apply(in_default({**PUBLISHED, "status": {"conditions": [condition]}}), subresource="status")
    assert answer.taken is taken, answer.message


def test_a_negative_fraction_beside_an_integer_is_none_to_the_server(judge: Judge) -> None:
    containers = [{"name": "warm-up", "securityContext": {"runAsUser": -1000.000001}}]
    document = changed(("spec", "kubernetes", "initContainers"), containers)
    verdict = judge.verdict(Broken(document, Break("v1", ("spec", "kubernetes", "initContainers"), "fraction")))
    assert verdict.refused
    assert verdict.difference == ""


def test_a_list_of_what_the_crd_knows_nothing_of_is_judged_too(judge: Judge) -> None:
    claim = {"spec": {}, "metadata": {"a": [[1, None], {"b": [2]}]}}
    document = changed(("spec", "kubernetes", "volumes"), [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}])
    verdict = judge.verdict(Broken(document, Break("v1", ("spec", "kubernetes", "volumes"), "unknown field")))
    assert verdict.refused
    assert verdict.difference == ""


def test_what_is_broken_in_one_field_is_refused_by_both_or_by_neither(judge: Judge) -> None:
    cases = broken_in_one_field(700)
    verdicts = judge.verdicts(cases)
    assert [verdict.difference for verdict in verdicts if verdict.difference] == []
    refused = sum(verdict.refused for verdict in verdicts)
    assert 100 < refused < len(cases) - 100
