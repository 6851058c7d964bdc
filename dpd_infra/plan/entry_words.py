"""The words that one entry of a list of arguments was meant as, where it holds several or is not written as a server reads it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

_LONG_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
"""What editors make of a hyphen, or of two."""
_RUN_TOGETHER = re.compile(rf"--?[A-Za-z][^=\s]*\s|[ \t]+--?[A-Za-z][^\n]*$|[{_LONG_DASHES}].")
_QUOTE = re.compile(r"['\"\\]")
_IN_QUOTES = r"\\.|'[^']*'" + r'|"(?:\\.|[^"\\])*"'
_OTHER_BLANKS = re.compile(rf"(?P<quoted>{_IN_QUOTES})|[^\S \t\r\n]", re.DOTALL)
"""Blanks that a shell does not split at, no-break spaces and their like; in quotes they are letters."""
_STEP = re.compile(r"(?:(?<=[\s=])|\A)(?P<opens>'?[\[{])|" + _IN_QUOTES, re.DOTALL)
_QUOTED = re.compile(_IN_QUOTES, re.DOTALL)
_BRACKET = re.compile(r'\\.|"(?:\\.|[^"\\])*"|[\[{]|(?P<closes>[\]}])', re.DOTALL)
_NEXT_FLAG = re.compile(r"\s+(?:--?[A-Za-z]|\Z)")


def is_run_together(text: str) -> bool:
    """Whether a list entry holds a flag and more, `--port 8000`, or begins with a blank or a dash that is no hyphen.

    No server reads it as meant.
    """
    return _RUN_TOGETHER.match(text) is not None


def words_meant(text: str) -> list[str]:
    """The words that an entry was meant as, where it is run together: split as a shell would, JSON kept whole with its quotes."""
    text = text.lstrip()
    # An editor makes one long dash of two hyphens.
    parts = list(_parts(text if text.startswith("-") else f"--{text.lstrip(f'-{_LONG_DASHES}')}"))
    try:
        return shlex.split("".join(shlex.quote(part) if is_json else part for part, is_json in parts))
    except ValueError:
        # A quote that is not closed is a letter like any other.
        return shlex.split("".join(shlex.quote(part) if is_json else _QUOTE.sub(r"\\\g<0>", part) for part, is_json in parts))


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, and of each whether it is a value in brackets, `{"a": 1}`, which is one word whatever stands in it."""
    begin = at = 0
    tries_quoted = True
    while match := _STEP.search(text, at):
        start, at = match.span()
        if not match["opens"]:
            continue
        quote = "'" if match["opens"][0] == "'" else ""
        end = _end(text, start + len(quote)) if tries_quoted or not quote else None
        # A shell's way of writing a quote in quotes is left to its own reader.
        if end is not None and (not quote or (text.startswith(quote, end) and _is_json(text[start + 1 : end]))):
            yield _blanks(text[begin:start]), False
            yield text[start + len(quote) : end], True
            begin = at = end + len(quote)
        elif quote:
            # A text between quotes that only begins with a bracket. One try: each may read to the end.
            tries_quoted = False
            at = quoted.end() if (quoted := _QUOTED.match(text, start)) else at
        else:
            # A bracket that nothing closes: its word goes as far as the next flag, and none is looked for behind it.
            end = found.start() if (found := _NEXT_FLAG.search(text, start)) else len(text)
            yield _blanks(text[begin:start]), False
            yield text[start:end], True
            begin = end
            break
    yield _blanks(text[begin:]), False


def _end(text: str, start: int) -> int | None:
    """Where the bracket that opens at `start` is closed; None where it is not. Brackets in a text of JSON do not count."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        if match["closes"]:
            depth -= 1
        elif match[0] in {"{", "["}:
            depth += 1
        if depth == 0:
            return match.end()
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _blanks(text: str) -> str:
    return _OTHER_BLANKS.sub(lambda found: found["quoted"] or " ", text)
