"""Findings as GitHub workflow commands, which a workflow run shows beside the lines of a pull request."""

from __future__ import annotations

from dpd_infra.spec.finding import Finding, Severity, pointer

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def workflow_command(finding: Finding) -> str:
    """`::error file=…,line=…,col=…,title=…::message`, one line whatever stands in the finding."""
    properties = {"file": finding.file, "line": finding.line or "", "col": finding.column or "", "title": finding.rule}
    given = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value)
    where = pointer(finding.path)
    message = f"{f'{where}: ' if where else ''}{finding.what}\n{finding.why}\nFix: {finding.fix}"
    return f"::{_COMMANDS[finding.severity]} {given}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
