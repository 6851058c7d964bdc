"""SARIF, GitHub and JSON: what other programs read of a check."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlparse

import pytest

from dpd_infra.rules.github import workflow_command
from dpd_infra.rules.sarif import file_uri, sarif_log
from dpd_infra.spec.finding import Finding, Severity
from tests.pure.cli.conftest import MANIFEST, STACK, Dpd
from tests.pure.cli.test_check import BROKEN, write

FINDING = Finding(
    "DPD001",
    Severity.ERROR,
    ("spec", "a:b", 0),
    "100 % wrong,\r\nreally: yes",
    "because",
    "mend it",
    file="a, b:c.yaml",
    line=3,
    column=7,
)


def test_sarif_has_the_shape_that_the_standard_asks_for(dpd: Dpd) -> None:
    # By hand from the SARIF 2.1.0 specification: sections 3.13 (log), 3.14 (run), 3.19 (tool component), 3.27 (result), 3.30 (region).
    write(one=BROKEN, two=MANIFEST.replace("v1.1", "latest"), Pulumi_dot_dev=STACK.replace("count: 3", "count: 1"))
    run = dpd("check", "--sarif", "one.yaml", "two.yaml", "Pulumi.dev.yaml")
    assert run.code == 1
    log = json.loads(run.out)
    assert log["version"] == "2.1.0"
    assert urlparse(log["$schema"]).scheme == "https"
    (only,) = log["runs"]
    driver = only["tool"]["driver"]
    assert driver["name"] == "dpd-infra"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note", "none"}
    assert only["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    assert only["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    assert {result["level"] for result in only["results"]} >= {"error", "note"}
    for result in only["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9._/%-]+", place["artifactLocation"]["uri"])
        assert place["region"]["startLine"] >= 1
        assert place["region"].get("startColumn", 1) >= 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())


def test_a_fingerprint_stays_when_lines_move() -> None:
    def mark(finding: Finding) -> Any:
        return sarif_log([finding], "0", 1)["runs"][0]["results"][0]["partialFingerprints"]

    moved = Finding("DPD001", Severity.ERROR, FINDING.path, FINDING.what, "because", "mend it", file=FINDING.file, line=9)
    other = Finding("DPD001", Severity.ERROR, ("spec", "other"), FINDING.what, "because", "mend it", file=FINDING.file, line=3)
    assert mark(FINDING) == mark(moved)
    assert mark(FINDING) != mark(other)


@pytest.mark.parametrize(
    ("file", "uri"),
    [("a b/ü.yaml", "a%20b/%C3%BC.yaml"), ("/x/y.yaml", "file:///x/y.yaml"), ("<stdin>", "%3Cstdin%3E"), ("a/b.yaml", "a/b.yaml")],
)
def test_a_file_is_a_uri(file: str, uri: str) -> None:
    assert file_uri(file) == uri


def test_a_workflow_command_is_one_line_and_escaped_as_github_reads_it() -> None:
    # actions/toolkit, command.ts: escapeData and escapeProperty.
    command = workflow_command(FINDING)
    assert command == (
        "::error file=a%2C b%3Ac.yaml,line=3,col=7,title=DPD001::spec.a:b[0]: 100 %25 wrong,%0D%0Areally: yes%0Abecause%0AFix: mend it"
    )


def test_each_finding_is_one_workflow_command(dpd: Dpd) -> None:
    write(one=BROKEN)
    run = dpd("check", "--github", "one.yaml")
    found = json.loads(dpd("check", "--json", "one.yaml").out)["findings"]
    assert run.code == 1
    lines = run.out.splitlines()
    assert len(lines) == len(found)
    words = {"error": "error", "warning": "warning", "advice": "notice"}
    assert [line.split()[0] for line in lines] == [f"::{words[finding['severity']]}" for finding in found]


def test_json_holds_what_a_program_needs_of_a_finding(dpd: Dpd) -> None:
    write(one=BROKEN)
    data = json.loads(dpd("check", "--json", "one.yaml").out)
    assert set(data) >= {"ok", "findings", "endpoints", "skipped"}
    finding = next(entry for entry in data["findings"] if entry["rule"] == "DPD701")
    assert finding["severity"] == "error"
    assert finding["path"] == "spec.pdSpec.routingThreshold"
    assert finding["steps"] == ["spec", "pdSpec", "routingThreshold"]
    assert finding["file"] == "one.yaml"
    assert finding["line"] > 1
    assert finding["value"] == "many"


SECRET = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"


@pytest.mark.parametrize("form", ["--json", "--sarif", "--github", "--diff"])
def test_no_format_shows_a_secret(dpd: Dpd, form: str) -> None:
    write(one=MANIFEST.replace("value: /tmp/hf_home", f"value: {SECRET}"))
    run = dpd("check", form, "one.yaml")
    assert run.code == 1
    assert SECRET not in run.out + run.err
    assert SECRET not in dpd("check", "one.yaml").out
