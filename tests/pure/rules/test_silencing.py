"""Silencing a rule for one endpoint: by a stack file's entry, by a raw manifest's annotation, each with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpd_infra.policy.endpoint_rules import _findings as policy_findings
from dpd_infra.render.endpoint import endpoint_context, render_endpoint
from dpd_infra.render.from_manifest import import_manifest
from dpd_infra.rules.check import check, check_endpoint, judged
from dpd_infra.rules.manifest_file import CheckedManifest, check_manifests, manifest_subject
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Finding
from dpd_infra.spec.yaml_source import SourceText
from dpd_infra.spec.yaml_writing import write_yaml
from tests.pure.endpoint.test_published_example import PUBLISHED
from tests.pure.rules.kit import endpoint, env, put, raw, raw_stack, stack

KEY = "metadata|annotations|dpd-infra/silence"
IN_USE = {"DPD106", "DPD404"}
"""What the published example has."""


def rules(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


@pytest.mark.parametrize(
    ("annotation", "silenced"),
    [
        ("DPD106: our prompts are short", {"DPD106": "our prompts are short"}),
        ("DPD106: short; DPD404: nobody scrapes", {"DPD106": "short", "DPD404": "nobody scrapes"}),
        ("DPD106: short\nDPD404: nobody scrapes\n", {"DPD106": "short", "DPD404": "nobody scrapes"}),
        ("\r\n  DPD106 :  short: 2k; at most  \r\n\n", {"DPD106": "short: 2k; at most"}),
        ("DPD106: kürzer als 2k", {"DPD106": "kürzer als 2k"}),
        ("", {}),
    ],
)
def test_an_annotation_silences_the_rules_that_it_gives_a_reason_for(annotation: str, silenced: dict[str, str]) -> None:
    verdict = judged(raw_stack(raw(put(KEY, annotation)).data))
    assert rules(verdict.findings) == IN_USE - set(silenced)
    assert {entry.finding.rule: entry.reason for entry in verdict.silenced} == silenced


@pytest.mark.parametrize(
    ("annotation", "what"),
    [
        ("DPD106", "DPD106 is given no reason"),
        ("DPD106:", "DPD106 is given no reason"),
        ("DPD106: \nDPD404:", "DPD106 is given no reason"),
        ("dpd106: short", "'dpd106: short' is no rule with a reason"),
        ("all", "'all' is no rule with a reason"),
        ("DPD999: no such rule", "there is no rule DPD999"),
        ("DPD501: of the network", "DPD501 is on more than one endpoint"),
    ],
)
def test_what_silences_nothing_is_a_finding_and_what_it_meant_stays_one(annotation: str, what: str) -> None:
    found = raw(put(KEY, annotation)).findings
    assert rules(found) == IN_USE | {"DPD443"}
    finding = next(finding for finding in found if finding.rule == "DPD443")
    assert what in finding.what
    assert finding.path == ("metadata", "annotations", "dpd-infra/silence")


def test_an_annotation_that_is_no_text_is_refused_by_the_api_server_and_by_us() -> None:
    found = raw(put(KEY, ["DPD106: short"])).findings
    assert rules(found) == IN_USE | {"DPD701"}


def test_errors_can_be_silenced_as_in_a_stack_file() -> None:
    broken = (env("PD_BUFFER_SIZE", "1000000"),)
    wrong = next(finding for finding in raw(*broken).findings if finding.severity == "error")
    assert wrong.rule not in rules(raw(*broken, put(KEY, f"{wrong.rule}: a test")).findings)


def test_an_entry_of_a_stack_file_says_so_in_the_object_that_it_becomes() -> None:
    entry = {"silence": [{"rule": "DPD106", "reason": "our prompts\n are short"}, {"rule": "DPD404", "reason": "nobody scrapes"}]}
    made = stack(*(endpoint(key, value) for key, value in entry.items()))
    assert rules(made.findings) & IN_USE == set()
    data = made.data["dpd-infra:endpoints"]["llama-70b"]
    document = render_endpoint(
        "llama-70b", EndpointSpec.from_yaml_data(data), endpoint_context("llama-70b", region="", addon_version="")
    ).document
    assert document["metadata"]["annotations"] == {"dpd-infra/silence": "DPD106: our prompts are short\nDPD404: nobody scrapes\n"}
    # So the same holds of what is read back from the cluster.
    assert rules(check(raw_stack(document))) & IN_USE == set()


def test_an_annotation_of_a_stack_files_entry_counts_too_and_both_are_kept() -> None:
    edits = (
        endpoint("annotations", {"dpd-infra/silence": "DPD106: short"}),
        endpoint("silence", [{"rule": "DPD404", "reason": "nobody scrapes"}]),
    )
    assert rules(stack(*edits).findings) & IN_USE == set()
    unknown = stack(endpoint("annotations", {"dpd-infra/silence": "DPD999: x"})).findings
    assert [finding.path[-2:] for finding in unknown if finding.rule == "DPD443"] == [("annotations", "dpd-infra/silence")]


@pytest.mark.parametrize(
    ("annotation", "entry"),
    [
        ("DPD106: short", {"silence": [{"rule": "DPD106", "reason": "short"}]}),
        (
            "DPD106: short\nDPD404: nobody scrapes\n",
            {"silence": [{"rule": "DPD106", "reason": "short"}, {"rule": "DPD404", "reason": "nobody scrapes"}]},
        ),
        # Texts that the entry's own words would change are kept as they are, and count all the same.
        ("DPD106: short\n", {"annotations": {"dpd-infra/silence": "DPD106: short\n"}}),
        ("DPD106", {"annotations": {"dpd-infra/silence": "DPD106"}}),
    ],
)
def test_import_carries_it_over_exactly(annotation: str, entry: dict[str, Any]) -> None:
    imported = import_manifest(raw(put(KEY, annotation)).data)
    assert imported.differences == ()
    assert {key: imported.entry[key] for key in ("silence", "annotations") if key in imported.entry} == entry
    rendered = render_endpoint(
        "dpd-test", EndpointSpec.from_yaml_data(imported.entry), endpoint_context("dpd-test", region="", addon_version="")
    )
    assert rendered.document["metadata"]["annotations"] == {"dpd-infra/silence": annotation}


def test_each_document_of_a_file_and_each_item_of_a_list_silences_for_itself() -> None:
    quiet = {**PUBLISHED, "metadata": {"name": "quiet", "annotations": {"dpd-infra/silence": "DPD106: short"}}}
    loud = {**PUBLISHED, "metadata": {"name": "loud"}}
    text = "---\n".join(
        [write_yaml({"apiVersion": "v1", "kind": "List", "items": [quiet, loud]}), write_yaml(loud | {"metadata": {"name": "b"}})]
    )
    found = [result for result in check_manifests(SourceText(text), "a.yaml") if isinstance(result, CheckedManifest)]
    assert {result.name: "DPD106" in rules(list(result.findings)) for result in found} == {"quiet": False, "loud": True, "b": True}
    (silenced,) = found[0].silenced
    assert text.splitlines()[silenced.finding.line - 1].strip()


def test_the_policy_pack_does_not_heed_what_an_endpoint_says_of_itself() -> None:
    document = raw(put(KEY, "DPD106: short")).data
    assert "DPD106" in rules(list(policy_findings(json.dumps(document), "")))
    assert "DPD106" in rules(check_endpoint(manifest_subject(document), heeds_silences=False))
