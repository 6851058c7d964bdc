"""What a rule of the simulated world is: what holds, in whose words a breach is told, and where that was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from dpd_infra.catalog.sources import Source

ASSUMED = Source("assumed", "no document that this project knows says it")
"""The source of a rule that is plain to whoever uses the service and that no document states."""


class Said(str):
    """A message that remembers the rule it tells of: nothing else can be refused with."""

    __slots__ = ("rule",)

    rule: WorldRule

    def __new__(cls, text: str, rule: WorldRule) -> Self:
        said = super().__new__(cls, text)
        said.rule = rule
        return said

    def __deepcopy__(self, memo: dict[int, object]) -> Said:
        # Accounts are copied, with the statuses in them; a rule is one.
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def within(self, text: str) -> Said:
        """A longer text about the same breach."""
        return Said(text, self.rule)


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
    """Where the rule was read, and the message where it is verbatim; `ASSUMED` where no document has it."""
    verbatim: bool = True
    """Whether the message is the service's own, as a source quotes it. One that is not ends with a remark that says so."""

    def __call__(self, **values: Any) -> Said:
        """The message with its values."""
        text = self.message.format(**values)
        if self.verbatim:
            return Said(text, self)
        whence = "assumed" if self.source is ASSUMED else f"after: {self.source.title}"
        return Said(f"{text} (in the rehearsal's words, {whence})", self)
