"""`dpd check`: everything that would fail later, in stack files and raw manifests, with the fix."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpd_infra.checking import CheckedFile, FixedFile, check_paths, fix_file, operator_named
from dpd_infra.cli._arguments import Parser, UsageError
from dpd_infra.cli._output import FAILED, WRONG_USAGE, fail, findings_as_data, print_json, print_report, version
from dpd_infra.rules.check import errors
from dpd_infra.rules.report import as_data, printable
from dpd_infra.spec.finding import Finding

if TYPE_CHECKING:
    from dpd_infra.spec.operator import OperatorFacts
    from dpd_infra.upgrade import ChangedField


SUMMARY = "Check stack files and manifests.\n\nPulumi.<stack>.yaml and InferenceEndpointConfig. Exit code 1 where there is an error."


def _parser() -> Parser:
    parser = Parser("dpd check", SUMMARY)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="stack files, manifests, folders, - for standard input")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0")
    parser.add_argument("--github", action="store_true", help="print GitHub workflow commands")
    parser.add_argument("--explain", metavar="ID", help="print a rule with its source and stop")
    parser.add_argument("--operator", metavar="VERSION", help="check against this operator release or add-on version")
    parser.add_argument("--fix", action="store_true", help="write the safe fixes into the files, and show what changed")
    parser.add_argument("--diff", action="store_true", help="show what --fix would change, and write nothing")
    parser.add_argument("--from", dest="old", metavar="OLD", help="check the way from this stack file or operator version to PATH")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `dpd check`; the exit code. Raises `SystemExit` for wrong usage."""
    try:
        given = _parser().parse_intermixed_args(arguments)
    except UsageError as error:
        fail(str(error), as_json="--json" in arguments, code=WRONG_USAGE)
    return _check(
        given.paths,
        json=given.json,
        sarif=given.sarif,
        github=given.github,
        explain=given.explain,
        operator=given.operator,
        fix=given.fix,
        diff=given.diff,
        since=given.old,
    )


def _check(
    paths: Sequence[str],
    *,
    json: bool,
    sarif: bool,
    github: bool,
    explain: str | None,
    operator: str | None,
    fix: bool,
    diff: bool,
    since: str | None,
) -> int:
    if sum((json, sarif, github)) > 1:
        fail("--json, --sarif and --github exclude each other", code=WRONG_USAGE)
    if explain is not None:
        _explain(explain, as_json=json)
        return 0
    if not paths:
        fail("name what is to be checked: stack files, manifests, folders, or - for standard input", as_json=json, code=WRONG_USAGE)
    facts = _operator(operator, as_json=json)
    changes: list[ChangedField] | None = None
    if since is not None:
        if fix or diff:
            fail("--from compares: it goes with neither --fix nor --diff", as_json=json, code=WRONG_USAGE)
        checked = _upgrade(since, paths, facts, as_json=json)
        changes = _changes(since, paths[0], facts)
    else:
        if fix and "-" in paths:
            fail("--fix has no file to write for standard input: --diff shows the fixes", as_json=json, code=WRONG_USAGE)
        try:
            checked = list(check_paths(paths, facts))
        except FileNotFoundError as error:
            fail(f"no such file or folder: {error}", as_json=json, code=WRONG_USAGE)
    fixed = [(file, found) for file in checked if (found := fix_file(file, facts)) is not None] if fix or diff else []
    if fix:
        _write_fixes(checked, fixed, facts, as_json=json)
    findings = [finding for file in checked for finding in file.findings]
    _print(checked, findings, fixed, json=json, sarif=sarif, github=github, changes=changes)
    return FAILED if errors(findings) else 0


def _operator(version: str | None, *, as_json: bool) -> OperatorFacts | None:
    if version is None:
        return None
    try:
        return operator_named(version)
    except ValueError as error:
        fail(str(error), as_json=as_json, code=WRONG_USAGE)


def _upgrade(old: str, paths: Sequence[str], facts: OperatorFacts | None, *, as_json: bool) -> list[CheckedFile]:
    from dpd_infra.upgrade import compare

    if len(paths) != 1:
        fail("--from OLD is compared with one PATH or version", as_json=as_json, code=WRONG_USAGE)
    try:
        return [compare(old, paths[0], facts)]
    except ValueError as error:
        fail(str(error), as_json=as_json, code=WRONG_USAGE)


def _changes(old: str, new: str, facts: OperatorFacts | None) -> list[ChangedField]:
    from dpd_infra.upgrade import changed_fields

    try:
        return changed_fields(old, new, facts)
    except OSError:
        # A file that cannot be opened is among the findings.
        return []


def _write_fixes(
    checked: list[CheckedFile], fixed: Sequence[tuple[CheckedFile, FixedFile]], facts: OperatorFacts | None, *, as_json: bool
) -> None:
    """Write what was fixed, once every file is known to be writable; the findings are then those that are left."""
    from dpd_infra.checking import check_bytes
    from dpd_infra.cli._output_paths import Replaced, need_writable, unwritten
    from dpd_infra.rules.fixing import write_atomically
    from dpd_infra.spec.yaml_source import SourceText

    places = {id(file): index for index, file in enumerate(checked)}
    changed = [(file, fix, file.path, file.text) for file, fix in fixed if fix.applied and file.path is not None and file.text is not None]
    need_writable(*(Replaced("--fix", path) for _, _, path, _ in changed), as_json=as_json)
    for file, fix, path, text in changed:
        try:
            write_atomically(path, fix.text, text.encoding)
        except OSError as error:
            fail(f"{file.file} {unwritten(error)}", as_json=as_json)
        checked[places[id(file)]] = check_bytes(SourceText(fix.text, text.encoding), file.file, path, facts)


def _print(
    checked: Sequence[CheckedFile],
    findings: Sequence[Finding],
    fixed: Sequence[tuple[CheckedFile, FixedFile]],
    *,
    json: bool,
    sarif: bool,
    github: bool,
    changes: Sequence[ChangedField] | None = None,
) -> None:
    skipped = [note for file in checked for note in file.skipped]
    silenced = [entry for file in checked for entry in file.silenced]
    diff = "".join(_diff(file, fix) for file, fix in fixed)
    if sarif:
        from dpd_infra.rules.sarif import sarif_log

        # Not one line: people look at it too.
        print(json_module.dumps(sarif_log(findings, version(), FAILED if errors(findings) else 0, silenced), indent=1, ensure_ascii=False))
    elif json:
        data = findings_as_data(findings) | {
            "endpoints": [{"file": file.file, "name": name} for file in checked for name in file.endpoints],
            "silenced": [as_data(entry.finding) | {"reason": entry.reason} for entry in silenced],
            "skipped": [{"file": note.file, "line": note.line, "what": note.what} for note in skipped],
        }
        if changes is not None:
            data["changes"] = [_change_as_data(change) for change in changes]
        print_json(data | ({"diff": diff, "notFixed": _not_fixed(fixed)} if fixed else {}))
    elif github:
        from dpd_infra.rules.github import workflow_command

        for finding in findings:
            print(workflow_command(finding))
    else:
        if diff:
            print(diff)
        documents = {file.file: document for file in checked if (document := file.document) is not None}
        if findings or changes is not None or any(file.is_stack or file.endpoints for file in checked):
            print_report(findings, documents, sys.stdout)
        _print_rest(checked, fixed)
        _print_changes(changes or ())


def _change_as_data(change: ChangedField) -> dict[str, Any]:
    effect = change.effect
    return {
        "path": list(change.path),
        "before": change.before,
        "after": change.after,
        "outcome": str(effect.outcome) if effect else None,
        "resources": dict(effect.resources) if effect else {},
        "rules": list(effect.rules) if effect else [],
    }


def _print_changes(changes: Sequence[ChangedField]) -> None:
    """One line a changed field: what an `up` does for it."""
    for change in changes:
        effect = change.effect
        if effect is None:
            verb = "made" if change.before is None else "deleted" if change.after is None else "changed"
            print(f"{verb}: {printable('.'.join(map(str, change.path)))}")
            continue
        values = printable(f"{_short(change.before)} -> {_short(change.after)}")
        kinds = "; ".join(f"{op} {', '.join(kinds)}" for op, kinds in effect.by_operation().items())
        print(f"{effect.outcome}: {printable('.'.join(map(str, change.path)))} {values}{f' ({kinds})' if kinds else ''}")


def _short(value: object) -> str:
    text = "none" if value is None else json_module.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _print_rest(checked: Sequence[CheckedFile], fixed: Sequence[tuple[CheckedFile, FixedFile]]) -> None:
    endpoints = sum(len(file.endpoints) for file in checked)
    files = sum(bool(file.endpoints or file.is_stack) for file in checked)
    # Two versions of the operator have no file.
    if not all(file.path is None and file.text is None for file in checked):
        print(f"checked {endpoints} endpoint{'' if endpoints == 1 else 's'} in {files} file{'' if files == 1 else 's'}")
    for entry in _not_fixed(fixed):
        print(f"not fixed: {entry}")
    for file in checked:
        for entry in file.silenced:
            print(f"silenced: {entry.finding.rule} {file.file}:{entry.finding.line} {printable(entry.reason)}")
        for note in file.skipped:
            print(f"not checked: {note.file}:{note.line} {note.what}")


def _not_fixed(fixed: Sequence[tuple[CheckedFile, FixedFile]]) -> list[str]:
    return [f"{finding.rule} {finding.file}:{finding.line} {finding.fix}" for _, fix in fixed for finding in fix.left]


def _diff(file: CheckedFile, fix: FixedFile) -> str:
    before = file.text.text if file.text is not None else ""
    import difflib

    lines = difflib.unified_diff(
        before.splitlines(keepends=True), fix.text.splitlines(keepends=True), file.file, f"{file.file} (fixed)", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _explain(rule_id: str, *, as_json: bool) -> None:
    from dpd_infra.rules.explain import explained

    try:
        data = explained(rule_id)
    except KeyError as error:
        fail(str(error.args[0]), as_json=as_json, code=WRONG_USAGE)
    if as_json:
        print_json(data)
        return
    print(f"{data['id']}  {data['title']}")
    print(f"  severity: {data['severity']}{', from operator ' + data['since'] if data['since'] else ''}")
    print(f"  finds:    {data['finds']}")
    print(f"  why:      {data['why']}")
    for source in data["sources"]:
        print(f"  source:   {source}")
