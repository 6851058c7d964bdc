"""A report of findings as text: what, where with the source line, why with its source, and the fix; the same for a terminal, a log and an error."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dpd_infra.spec.finding import Finding, Severity, pointer
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
    """The whole report: the findings by file and place, errors first in a file, then a line that counts them."""
    files = sorted({finding.file for finding in findings})
    blocks = []
    for file in files:
        of_file = [finding for finding in findings if finding.file == file]
        of_file.sort(key=lambda finding: (_ORDER.index(finding.severity), finding.line, finding.column, finding.rule))
        blocks += [block(finding, (documents or {}).get(file), style) for finding in of_file]
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


def block(finding: Finding, document: Document | None = None, style: Style = plain) -> str:
    """One finding, with its source line where the document is at hand."""
    place = f"{finding.file}:{finding.line}:{finding.column}" if finding.line else finding.file
    head = f"{style(finding.severity, str(finding.severity))} {finding.rule}"
    lines = [f"{head}  {style(place, 'place')}  {pointer(finding.path)}".replace("    ", "  ")]
    if document is not None and finding.line and (source := document.source_line(finding.line)).strip():
        lines.append(style(f"  {finding.line:>5} | {_cut(source)}", "quiet"))
    lines.append(f"  what: {finding.what}")
    lines.append(f"  why:  {finding.why}{f' [{finding.source}]' if finding.source else ''}")
    lines.append(f"  fix:  {finding.fix}")
    return "\n".join(lines)


def _cut(line: str, width: int = 120) -> str:
    return line if len(line) <= width else f"{line[:width]}…"
