"""The load of an endpoint: how long prompts and answers are, how often they come, and who waits for them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, inf, log
from typing import Self

from dpd_infra.plan.sizing.quantity import at_least
from dpd_infra.spec.vocabulary import ArrivalProcess

QUANTILES = 1000
"""Points that a distribution given by mean or percentiles is laid out on."""

MOST_VARIATION = 10.0
"""Coefficient of variation up to which a log-normal says something about lengths of prompts."""

_NO_VARIATION = 1e-6
"""Coefficient of variation below which all lengths are the same whole number."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts, held as equally likely values in ascending order."""

    values: tuple[int, ...]
    origin: str
    """How it was given: `4,096 tokens each`, `percentiles`, `trace of 1,000 requests`."""

    @classmethod
    def constant(cls, tokens: int) -> Self:
        """All the same length."""
        at_least(1, tokens=tokens)
        return cls((tokens,), f"{tokens:,} tokens each")

    @classmethod
    def of_mean(cls, mean: float, variation: float = 0.0) -> Self:
        """A mean alone: all the same, or log-normal with a coefficient of variation (standard deviation over mean)."""
        at_least(1, mean=mean)
        at_least(0, variation=variation)
        if not (mean < inf and variation <= MOST_VARIATION):
            raise ValueError(f"a mean is finite and a variation at most {MOST_VARIATION:g}; given: {mean:g} and {variation:g}")
        if variation < _NO_VARIATION:
            return cls.constant(round(mean))
        from statistics import NormalDist  # noqa: PLC0415  # costs more to import than most runs take

        spread = log(1 + variation**2)
        normal = NormalDist(log(mean) - spread / 2, spread**0.5)
        values = [exp(normal.inv_cdf((index + 0.5) / QUANTILES)) for index in range(QUANTILES)]
        # Laid out on finitely many points the tail is cut off: scaled so that the mean is the one that was asked for.
        scale = mean * QUANTILES / sum(values)
        return cls(tuple(max(1, round(value * scale)) for value in values), f"log-normal, mean {mean:,.0f}, variation {variation:g}")

    @classmethod
    def of_percentiles(cls, percentiles: Mapping[float, float]) -> Self:
        """Percentiles such as `{50: 2000, 90: 8000, 99: 16000}`: straight lines between them, flat before the first and after the last.

        Raises ValueError for percentiles outside 0 to 100 or lengths that fall.
        """
        points = sorted(percentiles.items())
        if not points or points[0][0] < 0 or points[-1][0] > 100:  # per cent
            raise ValueError(f"percentiles are from 0 to 100, at least one of them; given: {', '.join(f'{key:g}' for key, _ in points)}")
        lengths = [length for _, length in points]
        if lengths != sorted(lengths) or not 1 <= lengths[0] <= lengths[-1] < inf:
            raise ValueError("a higher percentile cannot be shorter, and a length is finite and at least 1")
        values = tuple(round(_between(points, (index + 0.5) / QUANTILES * 100)) for index in range(QUANTILES))
        return cls(values, "percentiles " + ", ".join(f"p{key:g} {length:,.0f}" for key, length in points))

    @classmethod
    def of_values(cls, values: Sequence[int], origin: str = "") -> Self:
        """Measured lengths, each as likely as it is frequent. Raises ValueError for none at all or one below 1."""
        if not values or min(values) < 1:
            raise ValueError("lengths must be given, each at least 1 token")
        return cls(tuple(sorted(values)), origin or f"{len(values):,} lengths")

    @property
    def mean(self) -> float:
        """The mean, tokens."""
        return sum(self.values) / len(self.values)

    @property
    def largest(self) -> int:
        """The longest, tokens."""
        return self.values[-1]

    def percentile(self, percent: float) -> int:
        """The length that `percent` of the requests do not exceed."""
        if not 0 <= percent <= 100:  # per cent
            raise ValueError(f"percent is {percent}, and must be from 0 to 100")
        return self.values[max(0, ceil(percent * len(self.values) / 100 - 1e-9) - 1)]

    def share_from(self, tokens: float) -> float:
        """The share of requests with at least `tokens` tokens."""
        return 1 - bisect_left(self.values, tokens) / len(self.values)

    def part(self, least: float, below: float = float("inf")) -> Lengths | None:
        """The requests from `least` up to but not with `below` tokens; None where there are none."""
        values = self.values[bisect_left(self.values, least) : bisect_left(self.values, below)]
        return Lengths(values, self.origin) if values else None

    def mean_of(self, function: Callable[[int], float], points: int = 32) -> float:
        """The mean of a function of the length, over at most `points` representative lengths."""
        buckets = self.buckets(points)
        return sum(weight * function(length) for weight, length in buckets)

    def buckets(self, points: int = 32) -> list[tuple[float, int]]:
        """At most `points` pairs of a share and the mean length of that share of the requests, shortest first."""
        at_least(1, points=points)
        count = len(self.values)
        size = -(-count // points)
        parts = [self.values[start : start + size] for start in range(0, count, size)]
        return [(len(part) / count, round(sum(part) / len(part))) for part in parts]


def _between(points: list[tuple[float, float]], percent: float) -> float:
    if percent <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in pairwise(points):
        if percent <= right:
            return low + (high - low) * (percent - left) / (right - left)
    return points[-1][1]


@dataclass(frozen=True, slots=True)
class Workload:
    """What an endpoint has to serve. Exactly one of `requests_per_second` and `concurrency` is given."""

    input: Lengths
    output: Lengths
    requests_per_second: float | None = None
    """An open load: requests come at this rate whatever happens to earlier ones."""
    concurrency: int | None = None
    """A closed load: so many users, each of whom sends the next request when the answer is complete."""
    arrivals: ArrivalProcess = ArrivalProcess.POISSON
    streaming: bool = True
    """Somebody reads the tokens as they come."""
    offline: bool = False
    """A batch job: only throughput counts."""
    ttft_first: bool = False
    """The time to the first token matters more than the even flow after it."""
    shared_prefix_tokens: int = 0
    """Tokens at the front of every prompt that are the same for all, for the prefix cache."""

    def __post_init__(self) -> None:
        """Raises ValueError for a load that cannot be."""
        if (self.requests_per_second is None) == (self.concurrency is None):
            raise ValueError("a load has either requests_per_second or concurrency")
        if self.requests_per_second is not None and not 0 < self.requests_per_second < inf:
            raise ValueError(f"requests_per_second is {self.requests_per_second}, and must be above 0")
        if self.concurrency is not None:
            at_least(1, concurrency=self.concurrency)
        at_least(0, shared_prefix_tokens=self.shared_prefix_tokens)

    def cached_tokens(self, prompt_tokens: int) -> int:
        """Tokens of a prompt that the prefix cache holds: the shared front of it, and never the whole prompt."""
        return min(self.shared_prefix_tokens, prompt_tokens - 1)
