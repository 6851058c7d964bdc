"""The snippets of the README and of docs/: what tests run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUN = {"yaml", "python", "console"}
"""The languages of snippets that are run. `console` is commands after `$ ` with their output; `sh` is for a person's own account."""


@dataclass(frozen=True)
class Snippet:
    """One fenced block of one page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every page that is written by hand."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(language: str) -> list[Snippet]:
    """Every snippet of one language, in order."""
    return [snippet for page in pages() for snippet in _of_page(page) if snippet.language == language]


def _of_page(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield Snippet(str(page.relative_to(ROOT)), text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2))
