"""Kubernetes quantities as numbers: `30000m`, `100Gi`, `"8"`, 8."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

_QUANTITY = re.compile(r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,2}))?")
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def quantity(value: Any) -> Decimal | None:
    """A quantity in its base unit (cores, bytes, devices): `quantity("30000m")` is 30, `quantity("100Gi")` 107,374,182,400.

    None for anything that is no quantity (Kubernetes API, resource.Quantity).
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return _read(value) if isinstance(value, str) else None


@lru_cache(maxsize=1024)
def _read(text: str) -> Decimal | None:
    """Rules ask for the same few quantities again and again."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, binary, decimal, exponent = match.groups()
    base = Decimal(number)
    if binary:
        return base * _BINARY[binary]
    return base.scaleb(_DECIMAL[decimal] if decimal else int(exponent or 0))


def whole(value: Any) -> int | None:
    """A quantity that is a whole number, as an int; None otherwise."""
    number = quantity(value)
    return int(number) if number is not None and is_whole(number) else None


def is_whole(number: Decimal) -> bool:
    """Whether a number has no fraction, however large it is: a remainder of 1E30 is beyond the precision of decimals."""
    return number == number.to_integral_value()


def in_gib(number: Decimal | int) -> str:
    """Bytes for people: `100 GiB`, `31.5 GiB`."""
    return f"{float(number) / 2**30:,.4g} GiB"
