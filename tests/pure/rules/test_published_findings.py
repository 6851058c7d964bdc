"""The published example and the stacks that come with this repository: no error, and exactly the advice that is worth its line."""

from __future__ import annotations

from collections import Counter

import pytest

from dpd_infra.spec.finding import Severity
from dpd_infra.stack import load_file
from tests.pure.rules.kit import PREFERRED, ROOT, endpoint, put, raw, stack

PUBLISHED_ADVICE = {
    # 16 prompts of 16,384 tokens take 10 GiB of a buffer of 8 GiB (sizing.md, hold and wait).
    "DPD106": 1,
    # The guide's example leaves the metrics port at 8080 while the server listens on 8000 (KV caching guide).
    "DPD404": 1,
}


@pytest.mark.parametrize("operator", [None, PREFERRED, "v1.5.0-eksbuild.1", "v2.1.0-eksbuild.1"])
def test_the_published_manifest_has_this_advice_and_nothing_else(operator: str | None) -> None:
    found = raw(operator=operator).findings
    assert Counter(finding.rule for finding in found) == PUBLISHED_ADVICE
    assert {finding.severity for finding in found} == {Severity.ADVICE}


def test_on_operator_3_2_it_has_the_warning_of_that_release_too() -> None:
    assert Counter(finding.rule for finding in raw(operator="v1.3.0-eksbuild.1").findings) == {"DPD003": 1, **PUBLISHED_ADVICE}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        # Two nodes, both taken: no spare one for a change of image or flags.
        ("stacks/Pulumi.dev.yaml", {**PUBLISHED_ADVICE, "DPD023": 1}),
        ("examples/llama_70b_two_p5/Pulumi.dev.yaml", {**PUBLISHED_ADVICE, "DPD023": 1}),
        ("stacks/Pulumi.prod.yaml", {"DPD106": 2, "DPD404": 1}),
    ],
)
def test_the_repositorys_own_stacks_have_this_advice_and_nothing_else(file: str, expected: dict[str, int]) -> None:
    found = load_file(ROOT / file).findings
    assert Counter(finding.rule for finding in found) == expected
    assert {finding.severity for finding in found} == {Severity.ADVICE}


def test_a_default_that_nobody_touched_is_advised_on_once_a_stack() -> None:
    """Three endpoints alike, two of them untouched: the first of those speaks for both, the one that was touched for itself."""
    alike = {"model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models"}}, "instanceType": "ml.p5.48xlarge"}
    touched = {**alike, "prefill": {"maxNumSeqs": 20}, "metrics": {"enabled": True}}
    given = stack(put("dpd-infra:endpoints|b", alike), put("dpd-infra:endpoints|c", touched))
    for rule in ("DPD106", "DPD404"):
        said = {finding.subject: finding.what for finding in given.findings if finding.rule == rule}
        assert set(said) == {"llama-70b", "c"}
        assert said["llama-70b"].endswith("(the same default as of 1 other endpoint)")
        assert "same default" not in said["c"]
    quiet = stack(put("dpd-infra:endpoints|b", alike), endpoint("silence", [{"rule": "DPD404", "reason": "nobody scrapes"}]))
    assert [finding.subject for finding in quiet.findings if finding.rule == "DPD404"] == ["b"]
