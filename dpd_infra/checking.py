"""From paths to findings: which files are read, as what, and what is found in each."""

from __future__ import annotations

import os
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.crd import API_GROUP, KIND
from dpd_infra.catalog.operator_releases import RELEASES, AddonVersion
from dpd_infra.rules.check import Silenced, errors
from dpd_infra.rules.manifest_file import CheckedManifest, check_manifests, described
from dpd_infra.spec.finding import Finding, Severity
from dpd_infra.spec.shape_rule import SHAPE_RULE, unreadable
from dpd_infra.spec.stack_file import PROJECT_FILE, is_stack_file
from dpd_infra.spec.yaml_source import MAX_BYTES, Dialect, Document, SourceText, YamlProblem, decode, load_document

if TYPE_CHECKING:
    from dpd_infra.spec.operator import OperatorFacts

STDIN = "-"
STDIN_NAME = "<stdin>"
"""How reports name standard input."""

_SUFFIXES = (".yaml", ".yml")
_KIND_LINE = re.compile(r"^kind:[ \t]*[\"']?([A-Za-z0-9]+)", re.MULTILINE)
_STACK_KEY = re.compile(r"^\s*[\"']?dpd-infra:", re.MULTILINE)
_SECTION_LINE = re.compile(r"^\s*[\"']?[\w.:-]*\b(platform|endpoints)[\"']?\s*:", re.MULTILINE)
"""A section of a stack file of ours, in whatever namespace."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was not checked, and what it is."""

    file: str
    line: int
    what: str


@dataclass(slots=True)
class CheckedFile:
    """What was found in one file."""

    file: str
    """Its name in reports."""
    path: pathlib.Path | None
    """None for standard input."""
    findings: list[Finding] = field(default_factory=list)
    silenced: list[Silenced] = field(default_factory=list)
    """What its endpoints keep quiet, with the reason."""
    endpoints: list[str] = field(default_factory=list)
    """The endpoints that were checked."""
    skipped: list[Note] = field(default_factory=list)
    is_stack: bool = False
    text: SourceText | None = field(default=None, repr=False)
    """None for a file that could not be read, and for one that was skipped."""
    by_document: dict[int, list[Finding]] = field(default_factory=dict, repr=False)
    """The findings by document of the file, from 0: a patch's path begins there."""

    @property
    def errors(self) -> int:
        """How many of the findings are errors."""
        return len(errors(self.findings))

    @property
    def document(self) -> Document | None:
        """For reports: the file's lines."""
        return Document(None, self.text, self.file) if self.text is not None else None


def check_paths(paths: Sequence[str], operator: OperatorFacts | None = None) -> Iterator[CheckedFile]:
    """Check files, folders and `-`, one file at a time and each once. Raises `FileNotFoundError` for a path that is not there."""
    missing = [path for path in paths if path != STDIN and not os.path.lexists(path)]
    if missing:
        raise FileNotFoundError(missing[0])
    seen: set[str] = set()
    for name in paths:
        if name == STDIN:
            yield check_bytes(sys.stdin.buffer.read(MAX_BYTES + 1), STDIN_NAME, None, operator)
            continue
        path = pathlib.Path(name)
        closed: list[OSError] = []
        for file in _files(path, closed) if path.is_dir() else [path]:
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield check_file(file, operator, named=file is path)
        for error in closed:
            folder = str(error.filename or path)
            yield CheckedFile(folder, pathlib.Path(folder), [unopened(folder, error)])


def check_file(path: pathlib.Path, operator: OperatorFacts | None = None, *, named: bool = True) -> CheckedFile:
    """Check one file. One that was not `named` itself but found in a folder is passed over where nothing in it is ours."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return CheckedFile(str(path), path, [unopened(str(path), error)])
    return check_bytes(raw, str(path), path, operator, named=named)


def check_bytes(
    raw: bytes | SourceText, file: str, path: pathlib.Path | None, operator: OperatorFacts | None = None, *, named: bool = True
) -> CheckedFile:
    """Check a file's content."""
    checked = CheckedFile(file, path)
    is_project = path is not None and path.name == PROJECT_FILE
    try:
        text = raw if isinstance(raw, SourceText) else decode(raw, file)
        if (is_project or not named) and (note := _not_ours(path, text.text)):
            checked.skipped.append(Note(file, 1, note))
            return checked
        checked.text = text
        if not text.text.strip():
            # A folder may hold one; named by itself, or at the end of a pipe, it is what a command left that failed.
            checked.findings.append(_empty(file))
        elif _is_stack(path, text):
            _check_stack(checked, operator)
        else:
            _check_manifests(checked, text, operator)
    except YamlProblem as problem:
        if checked.text is None and not named and isinstance(raw, bytes) and not _may_be_ours(path, raw):
            checked.skipped.append(Note(file, 1, problem.what))
            return checked
        checked.findings.append(unreadable(problem, file))
    except OSError as error:
        checked.findings.append(unopened(str(error.filename or file), error))
    checked.findings.sort(key=lambda finding: (finding.line, finding.column, finding.rule))
    return checked


def _empty(file: str) -> Finding:
    """The finding on a text of nothing that was asked about by name."""
    of_pipe = file == STDIN_NAME
    what = "nothing came through standard input" if of_pipe else "the file is empty"
    fix = "see that the command before the pipe succeeds (`set -o pipefail` in bash)" if of_pipe else "see that what writes it succeeds"
    return Finding(SHAPE_RULE, Severity.ERROR, (), what, "Nothing was checked, which must not look like nothing was found.", fix, file=file)


def unopened(file: str, error: OSError) -> Finding:
    """The finding on a file that cannot be opened."""
    what = f"cannot be opened: {(error.strerror or str(error)).lower()}"
    why = "Nothing in a file that cannot be read can be checked."
    return Finding(SHAPE_RULE, Severity.ERROR, (), what, why, "see that it is a file and that you may read it", file=file)


def _files(folder: pathlib.Path, closed: list[OSError]) -> Iterator[pathlib.Path]:
    """The YAML files below a folder in order; hidden folders are passed over, links to folders are not followed.

    Folders that cannot be looked into are told in `closed`.
    """
    for root, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = pathlib.Path(root, name)
            if path.suffix in _SUFFIXES and path.is_file():
                yield path


def _not_ours(path: pathlib.Path | None, text: str) -> str:
    """Why a file that was found in a folder is passed over; empty for one that is checked."""
    if path is not None and path.name == PROJECT_FILE:
        return "a Pulumi project file"
    if path is not None and is_stack_file(path):
        return "" if _STACK_KEY.search(text) or _SECTION_LINE.search(text) else "a stack file without a dpd-infra key"
    # By its group too: a kind may be misspelt.
    if KIND in text or API_GROUP in text:
        return ""
    kinds = sorted(set(_KIND_LINE.findall(text)))
    return ", ".join(kinds) or "no Kubernetes object"


def _may_be_ours(path: pathlib.Path | None, raw: bytes) -> bool:
    """Whether a file of a folder that is no text could have been meant for us."""
    return (path is not None and is_stack_file(path)) or any(KIND.encode(codec) in raw for codec in ("utf-8", "utf-16-le", "utf-16-be"))


def _is_stack(path: pathlib.Path | None, text: SourceText) -> bool:
    if path is not None and is_stack_file(path):
        return True
    if not _STACK_KEY.search(text.text) or _KIND_LINE.search(text.text):
        return False
    data: Any = load_document(text).data
    return isinstance(data, dict) and isinstance(data.get("config"), dict) and "kind" not in data


def _check_stack(checked: CheckedFile, operator: OperatorFacts | None) -> None:
    from dpd_infra.stack import load_file  # noqa: PLC0415 - raw manifests need no stack

    loaded = load_file(checked.path or pathlib.Path(checked.file), checked.text, operator)
    if not loaded.is_ours:
        # What another program's stack says of AWS is that program's.
        checked.skipped.append(Note(checked.file, 1, "nothing of dpd-infra in it: no dpd-infra: key under config"))
        return
    checked.is_stack = True
    checked.findings += loaded.findings
    checked.silenced += loaded.silenced
    checked.by_document[0] = list(loaded.findings)
    checked.endpoints += loaded.subject.endpoints


def _check_manifests(checked: CheckedFile, text: SourceText, operator: OperatorFacts | None) -> None:
    found = False
    for result in check_manifests(text, checked.file, operator):
        found = True
        if isinstance(result, CheckedManifest):
            checked.endpoints.append(result.name)
            checked.findings += result.findings
            checked.silenced += result.silenced
            checked.by_document.setdefault(result.document, []).extend(result.findings)
        else:
            checked.skipped.append(Note(checked.file, result.line, result.what))
    if not found:
        checked.skipped.append(Note(checked.file, 1, "an empty file"))


@dataclass(frozen=True, slots=True)
class FixedFile:
    """What `--fix` makes of a file."""

    text: str
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    """Findings whose patch could not be written without touching more than it names, or would have brought another error."""


def fix_file(checked: CheckedFile, operator: OperatorFacts | None = None) -> FixedFile | None:
    """The file's text with the patches of its findings written into it; None where there are none. Nothing is written to disk."""
    if checked.text is None or not any(finding.patch for finding in checked.findings):
        return None
    from dpd_infra.rules.fixing import improve, split_documents  # noqa: PLC0415 - only a text with patches is changed

    def count_errors(text: str) -> int:
        return check_bytes(SourceText(text), checked.file, checked.path, operator).errors

    parts = [checked.text.text] if checked.is_stack else split_documents(checked.text.text)
    dialect = Dialect.PULUMI if checked.is_stack else Dialect.KUBERNETES
    applied: list[Finding] = []
    left: list[Finding] = []
    for number, findings in checked.by_document.items():
        if number < len(parts) and any(finding.patch for finding in findings):
            improved = improve(parts[number], findings, dialect, count_errors)
            parts[number] = improved.text
            applied += improved.applied
            left += improved.left
    return FixedFile("".join(parts), tuple(applied), tuple(left)) if applied or left else None


def operator_named(version: str) -> OperatorFacts:
    """An operator by its add-on version, `v1.3.0-eksbuild.1`, or by its own release, `3.2`. Raises `ValueError` for an unknown one."""
    from dpd_infra.spec.operator import OperatorFacts  # noqa: PLC0415 - a raw manifest alone needs no spec

    if version.startswith("v"):
        return OperatorFacts(addon_version=str(AddonVersion.parse(version)))
    release = next((known for known in RELEASES if known.operator == version), None)
    if release is None:
        names = ", ".join(known.operator for known in RELEASES if known.addon_version and known.operator[0].isdigit())
        raise ValueError(f"no operator release {version!r} is known; those with an add-on are {names}")
    if release.addon_version is None:
        raise ValueError(
            f"no document says which add-on holds operator {version}: name the add-on version instead, as in v1.2.0-eksbuild.1"
        )
    return OperatorFacts(addon_version=release.addon_version)


__all__ = [
    "STDIN_NAME",
    "CheckedFile",
    "FixedFile",
    "Note",
    "check_bytes",
    "check_file",
    "check_paths",
    "described",
    "fix_file",
    "operator_named",
]
