"""Every rule trips on an input made for it and stays quiet on a near miss; its patch mends what it found and breaks nothing."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.catalog.crd.validate import validate_document
from dpd_infra.catalog.operator_releases import release_of
from dpd_infra.rules.check import errors
from dpd_infra.rules.registry import all_rules
from dpd_infra.rules.subject import EndpointSubject, StackSubject
from tests.pure.rules.kit import Case, Raw, Stack

FOLDER = Path(__file__).parent / "cases"
CASES: tuple[Case, ...] = tuple(
    case for path in sorted(FOLDER.glob("[a-z]*.py")) for case in import_module(f"tests.pure.rules.cases.{path.stem}").CASES
)
RULES = {rule.id: rule for rule in all_rules() if rule.scope in (StackSubject, EndpointSubject)}
"""Rules on a file as a whole, and on the change from one stack to another, have tests of their own."""


def found(what: Raw | Stack, rule: str) -> list[str]:
    return [finding.what for finding in what.findings if finding.rule == rule]


def stands(data: Any, path: tuple[Any, ...]) -> bool:
    for step in path:
        if not (isinstance(data, dict) and step in data) and not (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            return False
        data = data[step]
    return True


def test_every_rule_has_one_case() -> None:
    counts = Counter(case.rule for case in CASES)
    assert {rule for rule in RULES if counts[rule] != 1} == set()
    assert set(counts) <= set(RULES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_rule_trips(case: Case) -> None:
    assert found(case.trip, case.rule)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_near_miss_does_not_trip_it(case: Case) -> None:
    assert found(case.near, case.rule) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_api_server_takes_the_inputs(case: Case) -> None:
    for what in (case.trip, case.near):
        if isinstance(what, Raw) and what.valid:
            release = release_of(what.operator) if what.operator else None
            assert [problem.message for problem in validate_document(what.data, release.operator if release else "3.2")] == []
        if isinstance(what, Stack):
            assert [finding.what for finding in what.findings if finding.rule == "DPD000"] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_finding_says_what_stands_there_and_what_to_write(case: Case) -> None:
    for finding in case.trip.findings:
        if finding.rule == case.rule:
            assert finding.what
            assert finding.fix
            assert finding.source
            assert not finding.fix.endswith(".")
            assert not finding.what.endswith(".")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_finding_points_into_the_input(case: Case) -> None:
    data = {"config": case.trip.data} if isinstance(case.trip, Stack) else case.trip.data
    for finding in case.trip.findings:
        # What is missing has no line: reports take that of the longest part of the path that is there.
        assert finding.path[0] in data
        assert not isinstance(case.trip, Raw) or stands(data, finding.path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_patch_mends_it_and_breaks_nothing(case: Case) -> None:
    patched = [finding for finding in case.trip.findings if finding.rule == case.rule and finding.patch is not None]
    before = Counter(finding.rule for finding in errors(case.trip.findings))
    for finding in patched:
        assert finding.patch is not None
        after = case.trip.findings_in(case.trip.patched(finding.patch))
        assert [other for other in after if other.rule == case.rule and other.path == finding.path and other.what == finding.what] == []
        assert Counter(other.rule for other in errors(after)) - before == Counter()
