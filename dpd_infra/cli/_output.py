"""What commands share: reports and JSON on the right stream, colours only on a terminal, and the exit codes."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any, NoReturn

from dpd_infra.rules.check import errors
from dpd_infra.rules.report import as_data, plain, report
from dpd_infra.spec.finding import Finding
from dpd_infra.spec.yaml_source import Document

FAILED = 1
"""Findings or a failure."""
WRONG_USAGE = 2
"""The call itself is wrong."""

_STYLES = {"error": "31;1", "warning": "33;1", "advice": "36;1", "place": "1", "quiet": "2"}


def is_coloured(stream: IO[str]) -> bool:
    """Whether colours belong on a stream: a terminal, and nobody said NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def styled(text: str, style: str) -> str:
    """Text with a style's terminal codes."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def print_report(findings: Sequence[Finding], documents: Mapping[str, Document], stream: IO[str] | None = None) -> None:
    """The findings as people read them; to standard error unless told otherwise."""
    out = stream or sys.stderr
    print(report(findings, documents, styled if is_coloured(out) else plain), file=out)


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def findings_as_data(findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings as every command's `--json` carries them."""
    return {"ok": not errors(findings), "findings": [as_data(finding) for finding in findings]}


def refuse(findings: Sequence[Finding], documents: Mapping[str, Document], *, as_json: bool) -> NoReturn:
    """End a command because of findings: the report, and exit code 1."""
    if as_json:
        print_json(findings_as_data(findings))
    else:
        print_report(findings, documents)
    raise SystemExit(FAILED)


def fail(message: str, *, as_json: bool = False, code: int = FAILED) -> NoReturn:
    """End a command with one line."""
    if as_json:
        print_json({"ok": False, "error": message})
    else:
        print(f"dpd: {message}", file=sys.stderr)
    raise SystemExit(code)


def existing_file(path: pathlib.Path, *, as_json: bool = False) -> pathlib.Path:
    """A path that is a readable file; else wrong usage."""
    if not path.exists():
        fail(f"no such file: {path}", as_json=as_json, code=WRONG_USAGE)
    if not path.is_file():
        fail(f"not a file: {path}", as_json=as_json, code=WRONG_USAGE)
    return path


def version() -> str:
    """The version of this library that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dpd-infra")
    except PackageNotFoundError:
        return "0.0.0"
