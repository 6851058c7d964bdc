"""What a rule of the simulated world is: what holds, in whose words a breach is told, and where that was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.sources import Source


class Said(str):  # noqa: SLOT000 - it carries the rule
    """A message that remembers the rule it tells of."""

    rule: WorldRule | None = None


@dataclass(frozen=True, slots=True)
class WorldRule:
    """One thing that the real service enforces. Calling it with the message's values gives the text of a breach."""

    name: str
    """What it is called in reports and tests, `hyperpod-dependencies`."""
    holds: str
    """What the service enforces, in one sentence."""
    message: str
    """What it answers; `{names}` are filled in."""
    source: Source
    verbatim: bool = True
    """Whether the message is the service's own, as a source quotes it. One that is not ends with a remark that says so."""

    def __call__(self, **values: Any) -> Said:
        """The message with its values."""
        text = self.message.format(**values)
        said = Said(text if self.verbatim else f"{text} (in the rehearsal's words, after: {self.source.title})")
        said.rule = self
        return said
