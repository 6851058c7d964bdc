"""The annotation in which a raw manifest says which rules do not apply to it: `silence` of a stack file's entry, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SILENCE_ANNOTATION = "dpd-infra/silence"
"""Of `metadata.annotations`: one rule a line, `DPD106: our prompts are short`; on one line `;` stands between them."""

_BETWEEN = re.compile(r"\n|;(?=\s*DPD[0-9]{3}\s*:)")
_ENTRY = re.compile(r"(?P<rule>DPD[0-9]{3})\s*:\s*(?P<reason>\S.*)")
_RULE = re.compile(r"DPD[0-9]{3}")


@dataclass(frozen=True, slots=True)
class SilenceEntry:
    """One entry of the annotation."""

    rule: str
    """The rule's id; empty where the entry names none."""
    reason: str
    """Why; empty where the entry gives none, and then it silences nothing."""
    text: str
    """As it is written."""


def read_silences(annotation: object) -> Iterator[SilenceEntry]:
    """The entries of an annotation's value; none of one that is no text, which the API server refuses."""
    if not isinstance(annotation, str):
        return
    for part in _BETWEEN.split(annotation):
        if text := part.strip():
            if found := _ENTRY.fullmatch(text):
                yield SilenceEntry(found["rule"], found["reason"], text)
            else:
                named = _RULE.match(text)
                yield SilenceEntry(named[0] if named else "", "", text)


def write_silences(entries: Iterable[tuple[str, str]]) -> str:
    """The annotation's value for rules and their reasons: one line, or one line each."""
    lines = [f"{rule}: {' '.join(reason.split())}" for rule, reason in entries]
    return lines[0] if len(lines) == 1 else "".join(f"{line}\n" for line in lines)
