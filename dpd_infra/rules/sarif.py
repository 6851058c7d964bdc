"""Findings as SARIF 2.1.0 (OASIS), the form that code hosts and editors read."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from dpd_infra.rules.check import Silenced
from dpd_infra.rules.registry import Rule, all_rules
from dpd_infra.spec.finding import Finding, Severity, pointer
from dpd_infra.spec.shape_rule import SHAPE_TITLE, SHAPE_WHY

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}


def sarif_log(findings: Sequence[Finding], version: str, exit_code: int, silenced: Sequence[Silenced] = ()) -> dict[str, Any]:
    """One log with one run: the rules that found something, and each finding as a result, silenced ones as suppressed.

    `version` is this library's.
    """
    ids = sorted({finding.rule for finding in (*findings, *(entry.finding for entry in silenced))})
    known = {rule.id: rule for rule in all_rules()}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "dpd-infra",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [_rule(rule_id, known.get(rule_id)) for rule_id in ids],
                    }
                },
                # Columns here count characters; SARIF's own default counts UTF-16 units.
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": True, "exitCode": exit_code}],
                "results": [
                    *(_result(finding, ids.index(finding.rule)) for finding in findings),
                    *(_suppressed(entry, ids.index(entry.finding.rule)) for entry in silenced),
                ],
            }
        ],
    }


def _rule(rule_id: str, rule: Rule | None) -> dict[str, Any]:
    title, why, severity = (rule.title, rule.why, rule.severity) if rule else (SHAPE_TITLE, SHAPE_WHY, Severity.ERROR)
    sources = "; ".join(str(source) for source in rule.sources) if rule else ""
    return {
        "id": rule_id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {"text": f"{why}{f' Source: {sources}' if sources else ''}"},
        "defaultConfiguration": {"level": _LEVELS[severity]},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.what}. Fix: {finding.fix}"},
    }
    if finding.file:
        place: dict[str, Any] = {"artifactLocation": {"uri": file_uri(finding.file)}}
        if finding.line:
            place["region"] = {"startLine": finding.line, **({"startColumn": finding.column} if finding.column else {})}
        where = pointer(finding.path)
        result["locations"] = [{"physicalLocation": place, **({"logicalLocations": [{"fullyQualifiedName": where}]} if where else {})}]
    # A line moves when others are added above it; the rule, the file, the subject and the path stay.
    mark = "\0".join([finding.rule, finding.file, finding.subject, pointer(finding.path)])
    result["partialFingerprints"] = {"rulePath/v1": hashlib.sha256(mark.encode()).hexdigest()}
    return result


def _suppressed(entry: Silenced, rule_index: int) -> dict[str, Any]:
    """A result that is known and accepted, with the reason."""
    return _result(entry.finding, rule_index) | {"suppressions": [{"kind": "inSource", "justification": entry.reason}]}


def file_uri(file: str) -> str:
    """A file's name as SARIF wants it: relative ones with forward slashes, absolute ones as `file://`."""
    path = pathlib.PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
