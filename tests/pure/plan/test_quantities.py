"""Kubernetes quantities: expected values are those of the Kubernetes API's own documentation of resource.Quantity."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.quantities import in_gib, is_whole, quantity, whole


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("30000m", 30),
        ("100Gi", 107_374_182_400),
        ("8", 8),
        (8, 8),
        ("0.5", Decimal("0.5")),
        ("1k", 1000),
        ("1Ki", 1024),
        ("12e6", 12_000_000),
        ("1E", 10**18),
        ("-1", -1),
        ("+1.", 1),
        (".5", Decimal("0.5")),
        ("128974848", 128974848),
        ("129M", 129_000_000),
        ("123Mi", 128974848),
    ],
)
def test_a_quantity_in_its_base_unit(written: Any, expected: Any) -> None:
    assert quantity(written) == expected


@pytest.mark.parametrize("written", ["", "Gi", "1gi", "8 ", "eight", None, True, 1.5, [], {}, "1e", "1KiB"])
def test_what_is_no_quantity_is_none(written: Any) -> None:
    assert quantity(written) is None


def test_only_whole_numbers_are_whole() -> None:
    assert whole("1500m") is None
    assert whole("2000m") == 2


@given(st.integers(min_value=-(10**60), max_value=10**60), st.integers(min_value=-40, max_value=99))
def test_a_number_is_whole_however_large_it_is(digits: int, exponent: int) -> None:
    exact = Fraction(digits) * Fraction(10) ** exponent
    assert is_whole(Decimal(f"{digits}E{exponent}")) == (exact.denominator == 1)


def test_bytes_for_people() -> None:
    assert in_gib(2**30 * 100) == "100 GiB"
    assert in_gib(2**29) == "0.5 GiB"


@given(st.integers(min_value=0, max_value=10**12), st.sampled_from(["", "k", "M", "G"]), st.sampled_from(["", "Ki", "Mi", "Gi"]))
def test_a_binary_suffix_is_never_less_than_the_decimal_one(number: int, decimal: str, binary: str) -> None:
    order = ("", "k", "M", "G")
    small, large = quantity(f"{number}{decimal}"), quantity(f"{number}{binary}")
    assert small is not None
    assert large is not None
    if order.index(decimal) <= ("", "Ki", "Mi", "Gi").index(binary):
        assert small <= large
