"""Running the rules: every rule over what it reads, and one ordered list of findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from dpd_infra.catalog.crd.releases import UNKNOWN_FIELD
from dpd_infra.catalog.sources import Source
from dpd_infra.rules.registry import Rule, all_rules, find_rule, manifest_rules
from dpd_infra.rules.schema_rules import SHAPE_RULES
from dpd_infra.rules.secret_text import masked
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.rules.wide_subjects import UpgradeSubject
from dpd_infra.spec.finding import Finding, Path, Severity


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding that its endpoint silences."""

    finding: Finding
    reason: str
    """Why, in the user's words."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All that the rules say."""

    findings: list[Finding]
    silenced: list[Silenced]


def judged(stack: StackSubject, *, refused: Iterable[Path] = ()) -> Verdict:
    """Every finding on a stack and its endpoints, in the order of the rules' ids; those that an endpoint silences by themselves.

    `refused` names the places already refused for their shape: a verdict that rests on one of them is withheld.
    """
    verdict = Verdict([], [])
    for finding in _all(stack, tuple(refused)):
        endpoint = stack.endpoints.get(finding.subject)
        reason = endpoint.silences.get(finding.rule) if endpoint is not None else None
        if reason is None:
            verdict.findings.append(finding)
        else:
            verdict.silenced.append(Silenced(finding, masked(reason)))
    return verdict


def check(stack: StackSubject, *, refused: Iterable[Path] = ()) -> list[Finding]:
    """The findings on a stack and its endpoints that nobody silenced; see `judged`."""
    return judged(stack, refused=refused).findings


def check_endpoint(subject: EndpointSubject, *, heeds_silences: bool = True) -> list[Finding]:
    """The findings on one endpoint by itself: a raw manifest, or an endpoint of a stack that is not at hand.

    Without `heeds_silences` what the endpoint says of itself counts for nothing.
    """
    verdict = judged(StackSubject(operator=subject.operator, endpoints={subject.name: subject}))
    return verdict.findings if heeds_silences else [*verdict.findings, *(entry.finding for entry in verdict.silenced)]


def findings_of(rule_id: str, subject: Any, name: str) -> list[Finding]:
    """What one rule finds on what it reads; `name` says in a report what that is."""
    return list(_findings(find_rule(rule_id), subject, name, _Refused()))


def check_upgrade(subject: UpgradeSubject) -> list[Finding]:
    """What stands between a stack as it is and as it is to be; the paths are of the new one's file."""
    return [finding for rule in all_rules() if rule.scope is UpgradeSubject for finding in _findings(rule, subject, "upgrade", _Refused())]


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those that stop a plan."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def _all(stack: StackSubject, refused: tuple[Path, ...]) -> Iterator[Finding]:
    endpoints = tuple(stack.endpoints.items())
    of_shape = _Refused(refused)
    of_all: dict[str, _Refused] = {}
    for rule in manifest_rules() if stack.platform is None and stack.operator is None else all_rules():
        if rule.scope is EndpointSubject:
            for name, endpoint in endpoints:
                for violation in rule.check(endpoint):
                    # What the API server refuses is said once: no other rule builds on it.
                    if rule.id not in SHAPE_RULES and name not in of_all:
                        of_all[name] = _Refused((*refused, *_refused_by_schema(endpoint)))
                    if not (of_shape if rule.id in SHAPE_RULES else of_all[name]).bears(violation):
                        yield _finding(rule, violation, name)
        elif rule.scope is StackSubject:
            yield from _findings(rule, stack, "platform", of_shape)


def _refused_by_schema(endpoint: EndpointSubject) -> Iterator[Path]:
    """The places in the user's file that the API server refuses; of a default the place where it would be written."""
    for problem in endpoint.problems:
        # What is missing or not known stands in no other rule's way: some name the release that brought it, or where it belongs.
        if problem.certain and problem.keyword not in {"required", UNKNOWN_FIELD}:
            origin = endpoint.rendered.provenance.of(problem.path) if endpoint.spec is not None else None
            yield origin.setting if origin is not None else endpoint.at(*problem.path)


def _findings(rule: Rule, subject: Any, name: str, refused: _Refused) -> Iterator[Finding]:
    for violation in rule.check(subject):
        if not refused.bears(violation):
            yield _finding(rule, violation, name)


class _Refused:
    """Places of a file that are refused; each question takes as long as a path is deep, however many there are."""

    def __init__(self, places: Iterable[Path] = ()) -> None:
        self._places = frozenset(places)
        self._above = frozenset(place[:length] for place in self._places for length in range(len(place) + 1))

    def bears(self, violation: Violation) -> bool:
        """Whether a violation rests on a place that is refused."""
        # A list that an entry was taken out of says no more than one that was refused.
        return bool(self._places) and (
            self._touches(violation.at) or any(self._touches(place) or place in self._above for place in violation.related)
        )

    def _touches(self, place: Path) -> bool:
        return any(place[:length] in self._places for length in range(len(place) + 1))


def _finding(rule: Rule, violation: Violation, subject: str) -> Finding:
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        path=violation.at,
        what=masked(violation.what),
        why=rule.why,
        fix=masked(violation.fix),
        source=_sources(rule.sources),
        value=masked(violation.value) if isinstance(violation.value, str) else violation.value,
        patch=violation.patch,
        subject=subject,
        related=violation.related,
        secret=violation.secret,
    )


@cache
def _sources(sources: tuple[Source, ...]) -> str:
    return "; ".join(str(source) for source in sources)
