"""Writing patches into a user's own YAML: comments, order and everything that no patch names stay as they are."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import re
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpd_infra.rules.yaml_edits import CannotPatch, cut_lines, flow, overwrite, round_trip, splice
from dpd_infra.spec.finding import Finding, Patch, Path, Severity, pointer
from dpd_infra.spec.yaml_source import Dialect, YamlProblem, load_document

_LINE = re.compile(r"[^\r\n]*(\r\n|\r|\n|\Z)")
_DOCUMENT_START = re.compile(r"---(?=\s|\Z)")
_DOCUMENT_END = re.compile(r"\.\.\.(?=\s|\Z)")
_HAS_DATA = re.compile(r"(?!\s*(#|\Z))")


@dataclass(frozen=True, slots=True)
class Improved:
    """A text with patches written into it."""

    text: str
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    """Findings with a patch that could not be written, or that would have brought other errors."""


def improve(text: str, findings: Sequence[Finding], dialect: Dialect, count_errors: Callable[[str], int]) -> Improved:
    """Write the patches of one document's findings, as long as the text never gets more errors than it has.

    `count_errors` checks a text anew. Where all patches together bring a new error, they are tried one by one and the one that brings it is
    left. Patches that want different things of one place are left too.
    """
    patched = [finding for finding in findings if finding.patch is not None]
    # Later places first: a list keeps its positions while entries are taken out behind them.
    patched.sort(key=lambda finding: _order(finding.patch), reverse=True)
    errors = count_errors(text)
    together, applied, left = _write(text, patched, dialect)
    if applied and count_errors(together) <= errors - sum(finding.severity is Severity.ERROR for finding in applied):
        return Improved(together, tuple(applied), tuple(left))
    kept: list[Finding] = []
    left = []
    for finding in patched:
        changed, written, refused = _write(text, [finding], dialect)
        left += refused
        if written:
            now = count_errors(changed)
            if now <= errors:
                text, errors = changed, now
                kept += written
            else:
                left += written
    return Improved(text, tuple(kept), tuple(left))


def _order(patch: Patch | None) -> list[tuple[bool, str | int]]:
    return [(isinstance(step, str), step) for step in patch.path] if patch is not None else []


def _write(text: str, patched: Sequence[Finding], dialect: Dialect) -> tuple[str, list[Finding], list[Finding]]:
    applied: list[Finding] = []
    left: list[Finding] = []
    done: dict[Path, Patch] = {}
    for finding in patched:
        patch = finding.patch
        if patch is None:
            continue
        if patch.path in done:
            (applied if done[patch.path] == patch else left).append(finding)
            continue
        try:
            text = write_patch(text, patch, dialect)
        except (CannotPatch, YamlProblem):
            left.append(finding)
        else:
            done[patch.path] = patch
            applied.append(finding)
    return text, applied, left


def write_patch(text: str, patch: Patch, dialect: Dialect = Dialect.PULUMI) -> str:
    """A text of one document with one patch written into it. Raises `CannotPatch`, and `YamlProblem` for a text that cannot be read.

    Every way of writing is tried from the least to the most that it touches, and each is read back: it counts only where the document then
    says what the patch asks for, and nothing else.
    """
    document = load_document(text, dialect=dialect)
    for way in (splice, cut_lines, flow, round_trip, overwrite):
        try:
            changed, meant = way(document, patch)
            if _same(load_document(changed, dialect=dialect).data, meant):
                return changed
        except (CannotPatch, YamlProblem):
            continue
    raise CannotPatch(f"{pointer(patch.path)} cannot be changed without touching more than that")


def split_documents(text: str) -> list[str]:
    """The documents of a text, each with what stands before it and after the one before; together they are the text.

    A document begins at its `---`, with the directives above it, or at the first line with data after a `...`.
    """
    starts, end, begun = [0], 0, False
    above: int | None = None
    for match in _LINE.finditer(text):
        line, place = match.group(), match.start()
        if line.startswith("%"):
            above = place if above is None else above
            continue
        if _DOCUMENT_START.match(line) and begun:
            starts.append(place if above is None else above)
        elif _DOCUMENT_END.match(line):
            begun, end = False, match.end() if begun or end else end
            continue
        elif not begun and _HAS_DATA.match(line) and end:
            # What stands between the end of one and this is the new one's.
            starts.append(end)
            end = 0
        if _HAS_DATA.match(line):
            begun, above = True, None
    bounds = [*starts, len(text)]
    return [text[begin:stop] for begin, stop in itertools.pairwise(bounds)]


def _same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from true and from 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def write_atomically(path: pathlib.Path, text: str, encoding: str) -> None:
    """Replace a file's content whole or not at all, with its mode and through links; `encoding` is a `SourceText`'s. Raises `OSError`."""
    target = pathlib.Path(os.path.realpath(path))
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(mark + text.encode(encoding))
            stream.flush()
            os.fsync(stream.fileno())
        pathlib.Path(name).chmod(stat.S_IMODE(target.stat().st_mode))
        pathlib.Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            pathlib.Path(name).unlink()
        raise
