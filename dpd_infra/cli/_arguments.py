"""What commands share that read their own arguments, because they must not pay for Typer."""

from __future__ import annotations

import argparse
from typing import NoReturn

WRONG_USAGE = 2
"""The exit code of a call that is wrong."""


class UsageError(ValueError):
    """A call that is wrong."""


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        raise UsageError(f"{message}; see {self.prog} --help")
