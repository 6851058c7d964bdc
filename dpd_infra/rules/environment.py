"""The variables of a worker, as rules read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpd_infra.spec.finding import Path

ENVIRONMENT: Path = ("spec", "worker", "environmentVariables")

_INTEGER = re.compile(r"[+-]?\d{1,18}")


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable of the worker."""

    name: str
    value: str | None
    """Its text; None where it comes from a Secret, a ConfigMap or the pod."""
    index: int

    @property
    def path(self) -> Path:
        """Where its value stands."""
        return (*ENVIRONMENT, self.index, "value")

    @property
    def integer(self) -> int | None:
        """The value as an integer; None where it is none."""
        return int(self.value) if self.value is not None and _INTEGER.fullmatch(self.value.strip()) else None

    @property
    def is_true(self) -> bool:
        """What LMCache's own converter takes for true."""
        return (self.value or "").strip().lower() in {"true", "1", "yes", "on"}
