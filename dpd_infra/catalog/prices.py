"""Prices of instance types: an input with its date and source, never a guess."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpd_infra.catalog.sources import Source

MOST_PER_HOUR = 1_000_000
"""USD an hour of a node, beyond which a price is a slip."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """USD an hour of one node, by instance type with the `ml.` prefix."""

    date: str
    """ISO date of the list."""
    source: Source
    per_hour: dict[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def from_data(cls, data: Any, origin: str) -> PriceList:
        """A list from plain data: `{date: 2026-11-01, source: "...", perHour: {ml.p5.48xlarge: 60.0}}`.

        Raises ValueError for a missing date or source, an unknown key, or a price that is not above 0.
        """
        keys = set(data) if isinstance(data, dict) else set()
        if keys != {"date", "source", "perHour"}:
            raise ValueError(f"{origin}: a price list has exactly the keys date, source and perHour")
        date, source, per_hour = str(data["date"]), str(data["source"] or ""), data["perHour"]
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
            raise ValueError(f"{origin}: date is {date!r}, and must be an ISO date such as 2026-11-01")
        if not source:
            raise ValueError(f"{origin}: source must say where the prices were read")
        for name, price in per_hour.items() if isinstance(per_hour, dict) else [("perHour", None)]:
            if isinstance(price, bool) or not isinstance(price, int | float) or not 0 < price <= MOST_PER_HOUR:
                raise ValueError(f"{origin}: the price of {name} is {str(price)[:40]!r}, and must be a number above 0, at most a million")
        return cls(date, Source(source, origin, date), {str(name): float(price) for name, price in per_hour.items()})

    @classmethod
    def from_file(cls, path: Path) -> PriceList:
        """A list from a JSON or YAML file. Raises ValueError for content that is no price list, OSError for a file that cannot be read."""
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            try:
                data = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path} is no JSON: {str(error)[:100]}") from error
        else:
            import yaml  # noqa: PLC0415  # most runs have no price file

            try:
                data = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(f"{path} is no YAML: {str(error).splitlines()[0]}") from error
        return cls.from_data(data, str(path))


DEFAULT_PRICES = PriceList(
    date="2026-11-30",
    source=Source("Amazon SageMaker AI pricing", "aws.amazon.com/sagemaker/ai/pricing: its HyperPod table could not be read", "2026-11-30"),
)
"""No price is known by default: HyperPod's differ by region and contract, and public lists of EC2 prices contradict each other."""
