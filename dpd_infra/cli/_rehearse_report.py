"""What `dpd rehearse` prints beside the result: why it failed and the way out, the drills, and the time axis."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpd_infra.cli._output import is_coloured, styled
from dpd_infra.cli._rehearse_display import summary
from dpd_infra.rules.report import printable
from dpd_infra.spec.finding import Finding

if TYPE_CHECKING:
    from dpd_infra.rehearsal.explanations import Explanation
    from dpd_infra.rehearsal.kill_drill import Recovery
    from dpd_infra.rehearsal.report import Report

_WIDTH = 120
"""Columns of the time axis where the output is no terminal."""


def show_report(report: Report, *, timeline: bool, told: Sequence[Finding] = ()) -> None:
    """Print the parts that are there: failures to standard error, the rest to standard output; no warning that was `told` before."""
    if report.message:
        print(_red(report.message), file=sys.stderr)
        for name, _, source in report.rules:
            print(f"  rule {name} [{source}]", file=sys.stderr)
        if report.explanation is not None:
            print("\n".join(_explained(report.explanation)), file=sys.stderr)
    if report.is_refused_beforehand:
        print(f"{report.action} of {report.stack}: its preview failed, and nothing was done")
    elif report.result is not None and not report.ok:
        print(summary(report.result, report.stack))
    for item in report.warnings:
        if not any(_is_of(item.message, finding) for finding in told):
            print(_warning(f"{item.name}: {item.message}" if item.name else item.message))
    if report.recovery is not None:
        _show_recovery(report.recovery)
    if report.trials:
        _show_trials(report)
    elif report.action == "fail-each":
        print(f"{report.stack} makes nothing that can fail")
    if timeline and report.timeline is not None:
        from shutil import get_terminal_size

        from dpd_infra.rehearsal.timeline_text import gantt

        width = get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
        print()
        print("\n".join(gantt(report.timeline, width=width)))
    for note in report.notes:
        print(note)


def _show_recovery(recovery: Recovery) -> None:
    if recovery.fired:
        print(f"the engine was killed after {recovery.killed_after} operations")
        for item in recovery.pending:
            print(f"  under way: {item.name} ({item.type}), {item.operation}")
        for note in recovery.notes:
            print(f"  {note}")
        print("the way back, which was rehearsed:" if recovery.ok else "the way back, which did not lead there:")
        for command in recovery.commands:
            print(f"  $ pulumi {command}")
    for problem in recovery.problems:
        print(_red(f"  {problem}"), file=sys.stderr)
    if recovery.ok:
        print("the stack came to rest: nothing made twice, nothing lost")


def _show_trials(report: Report) -> None:
    bad = [trial for trial in report.trials if not trial.ok]
    for trial in bad:
        print(_red(f"{trial.name} ({trial.type}), {trial.fault}: did not converge"), file=sys.stderr)
        for problem in trial.problems:
            print(f"  {problem}", file=sys.stderr)
    for trial in report.trials:
        if trial.explanation is not None and trial.ok:
            print(f"{trial.name} ({trial.type}): the create failed without an identifier while AWS went on; the next up needs help")
            print("\n".join(_explained(trial.explanation)))
    resources = len({trial.urn for trial in report.trials})
    count = f"{len(report.trials) - len(bad)} of {len(report.trials)} converged"
    print(f"{resources} resources failed in turn, each followed by another up: {count}")


def _explained(explanation: Explanation) -> list[str]:
    lines = [f"  {explanation.symptom}: {explanation.cause}", "  the way out:"]
    lines += [f"    {step}" for step in explanation.way_out]
    lines.append(f"  see {explanation.anchor} [{explanation.source}]")
    return lines


def _is_of(message: str, finding: Finding) -> bool:
    """Whether the program logged what a finding says."""
    return f"warning {finding.rule} " in message and f"\n  what: {printable(finding.what)}\n" in message


def _warning(text: str) -> str:
    # What the rules say begins with that word already.
    whole = text if text.startswith("warning") else f"warning: {text}"
    return styled(whole, "warning") if is_coloured(sys.stdout) else whole


def _red(text: str) -> str:
    return styled(text, "error") if is_coloured(sys.stderr) else text
