"""Lengths of real requests from a trace file: JSON lines, CSV with a header, or one number a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from dpd_infra.plan.sizing.workload import Lengths

INPUT_NAMES = ("input_tokens", "prompt_tokens", "input_length", "num_prompt_tokens", "ContextTokens")
"""Columns that hold the prompt's length. The last is that of Azure's public traces."""
OUTPUT_NAMES = ("output_tokens", "completion_tokens", "output_length", "num_generation_tokens", "GeneratedTokens")
"""Columns that hold the answer's length."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The lengths of a trace, in the order of the file."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """Empty for a file of one number a line: prompts alone."""
    origin: str

    @property
    def input(self) -> Lengths:
        """The distribution of prompts."""
        return Lengths.of_values(self.inputs, f"trace of {len(self.inputs):,} requests, {self.origin}")

    @property
    def output(self) -> Lengths | None:
        """The distribution of answers; None where the file has none."""
        return Lengths.of_values(self.outputs, f"trace of {len(self.outputs):,} requests, {self.origin}") if self.outputs else None


def read_trace(path: Path) -> Trace:
    """Read a trace file. Raises ValueError that names the line for a row without lengths, OSError for a file that cannot be read."""
    return parse_trace(path.read_text(encoding="utf-8"), str(path))


def parse_trace(text: str, origin: str) -> Trace:
    """A trace from text. Requests whose answer is empty are left out, as they never reach a decoder."""
    first = text.lstrip()[:1]
    if not first:
        raise ValueError(f"{origin}: the trace is empty")
    if first.isdigit():
        return Trace(tuple(_number(line, origin, number) for number, line in _lines(text)), (), origin)
    rows = _json_rows(text, origin) if first == "{" else _csv_rows(text)
    inputs: list[int] = []
    outputs: list[int] = []
    for number, row in rows:
        prompt, answer = _named(row, INPUT_NAMES, origin, number), _named(row, OUTPUT_NAMES, origin, number)
        if answer:
            inputs.append(prompt)
            outputs.append(answer)
    if not inputs:
        raise ValueError(f"{origin}: no request of the trace has an answer")
    return Trace(tuple(inputs), tuple(outputs), origin)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def _json_rows(text: str, origin: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(text):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{origin}:{number}: no JSON: {str(error)[:100]}") from error
        if not isinstance(row, dict):
            raise ValueError(f"{origin}:{number}: each line is one JSON object")  # noqa: TRY004  # the file's fault, not a caller's type
        yield number, row


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(StringIO(text))
    return ((reader.line_num, {str(key).strip(): value for key, value in row.items()}) for row in reader)


def _named(row: dict[str, Any], names: tuple[str, ...], origin: str, number: int) -> int:
    for name in names:
        if row.get(name) not in (None, ""):
            return _number(row[name], origin, number)
    raise ValueError(f"{origin}:{number}: none of {', '.join(names)}")


def _number(value: Any, origin: str, number: int) -> int:
    try:
        tokens = int(str(value).strip())
    except ValueError as error:
        raise ValueError(f"{origin}:{number}: {value!r} is no whole number of tokens") from error
    if tokens < 0:
        raise ValueError(f"{origin}:{number}: {tokens} tokens")
    return tokens
