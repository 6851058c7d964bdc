"""A report of findings as text: what, where with the source line, why with its source, and the fix; for a terminal, a log and an error."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dpd_infra.rules.secret_text import masked
from dpd_infra.spec.finding import Finding, Severity, pointer
from dpd_infra.spec.shape_rule import SHAPE_RULE
from dpd_infra.spec.yaml_source import Document

Style = Callable[[str, str], str]
"""Gives a text a style name (`error`, `warning`, `advice`, `place`, `quiet`): plain by default, markup on a terminal."""

_PLURALS = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.ADVICE: "pieces of advice"}
_SINGULARS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "piece of advice"}
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.ADVICE)


def plain(text: str, style: str) -> str:
    """No styling."""
    del style
    return text


def report(findings: Sequence[Finding], documents: Mapping[str, Document] | None = None, style: Style = plain) -> str:
    """The whole report: file by file, errors first, then by place; a rule says why once; the last line counts."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    blocks = []
    # Other findings may stand on the line of a secret: it is shown for none of them.
    hidden = {(finding.file, finding.line) for finding in findings if finding.secret}
    explained: set[str] = set()
    for file in sorted(by_file):
        of_file = by_file[file]
        of_file.sort(key=lambda finding: (_ORDER.index(finding.severity), finding.line, finding.column, finding.rule))
        if len(by_file) > 1 and file:
            blocks.append(f"{style(printable(file), 'place')}: {summary(of_file)}")
        for finding in of_file:
            document = None if (file, finding.line) in hidden else (documents or {}).get(file)
            # Values of the wrong shape have one rule and a reason each.
            blocks.append(block(finding, document, style, says_why=finding.rule == SHAPE_RULE or finding.rule not in explained))
            explained.add(finding.rule)
    return "\n\n".join([*blocks, summary(findings)])


def summary(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`, or `no findings`."""
    counts = Counter(finding.severity for finding in findings)
    parts = [f"{counts[kind]} {_SINGULARS[kind] if counts[kind] == 1 else _PLURALS[kind]}" for kind in _ORDER if counts[kind]]
    return ", ".join(parts) or "no findings"


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as plain data for `--json`."""
    data = dataclasses.asdict(finding)
    data["path"] = pointer(finding.path)
    data["steps"] = list(finding.path)
    data["related"] = [pointer(path) for path in finding.related]
    return data


def block(finding: Finding, document: Document | None = None, style: Style = plain, *, says_why: bool = True) -> str:
    """One finding, with its source line where the document is at hand."""
    place = f"{finding.file}:{finding.line}:{finding.column}" if finding.line else finding.file
    parts = [
        f"{style(finding.severity, str(finding.severity))} {finding.rule}",
        style(printable(place), "place") if place else "",
        printable(pointer(finding.path)),
    ]
    lines = ["  ".join(part for part in parts if part)]
    if document is not None and finding.line and not finding.secret and (source := document.source_line(finding.line)).strip():
        lines.append(style(f"  {finding.line:>5} | {printable(_cut(masked(source), finding.column))}", "quiet"))
    lines.append(f"  what: {printable(finding.what)}")
    if says_why:
        lines.append(f"  why:  {printable(finding.why)}{f' [{finding.source}]' if finding.source else ''}")
    lines.append(f"  fix:  {printable(finding.fix)}")
    return "\n".join(lines)


def printable(text: str) -> str:
    """Text from a file with what would move a terminal's cursor or change its colours written out."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _cut(line: str, column: int, width: int = 120) -> str:
    """A line's part around a column."""
    begin = max(0, column - width // 2) if len(line) > width and column > width else 0
    part = line[begin : begin + width]
    return f"{'…' if begin else ''}{part}{'…' if begin + width < len(line) else ''}"
