"""What commands share that read their own arguments, because they must not pay for Typer."""

from __future__ import annotations

import argparse
import os
from math import isfinite
from typing import NoReturn

WRONG_USAGE = 2
"""The exit code of a call that is wrong."""


class UsageError(ValueError):
    """A call that is wrong."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse would load archive formats to ask for its width, each time a parser is made."""

    def __init__(self, prog: str) -> None:
        try:
            width = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
        except (OSError, ValueError):
            width = 80
        super().__init__(prog, width=width - 2)


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, and takes no beginnings of options for them."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_Formatter)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`: the command ends with exit code 2."""
        raise UsageError(f"{message}; see {self.prog} --help")


def number(text: str) -> float:
    """A finite number for argparse."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def above_zero(text: str) -> float:
    """A finite number above 0 for argparse."""
    if (value := number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def one_or_more(text: str) -> int:
    """A count of 1 or more for argparse."""
    return int(_no_less(int(text), 1, text))


def none_or_more(text: str) -> int:
    """A count of 0 or more for argparse."""
    return int(_no_less(int(text), 0, text))


def length(text: str) -> float:
    """A number of tokens for argparse: a mean, 1 or more."""
    return _no_less(number(text), 1, text)


def spread(text: str) -> float:
    """A finite number of 0 or more for argparse."""
    return _no_less(number(text), 0, text)


def _no_less(value: float, least: int, text: str) -> float:
    if value < least:
        raise argparse.ArgumentTypeError(f"{text} is less than {least}")
    return value
