"""What a simulation found: percentiles of times, depths of queues, and shares of requests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and percentiles of a time, in seconds; all 0 where nothing was measured."""

    mean: float
    p50: float
    p90: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Self:
        """The spread of measured values."""
        if not values:
            return cls(0.0, 0.0, 0.0, 0.0, 0.0)
        ordered = sorted(values)
        count = len(ordered)

        def at(percent: int) -> float:
            return ordered[max(0, -(-percent * count // 100) - 1)]

        return cls(sum(ordered) / count, at(50), at(90), at(99), ordered[-1])


class Depth:
    """How many wait in a queue, over time."""

    __slots__ = ("_area", "_changed", "_depth", "most")

    def __init__(self) -> None:
        self._area = self._changed = 0.0
        self._depth = self.most = 0

    def change(self, now: float, by: int) -> None:
        """One comes or goes."""
        self._area += self._depth * (now - self._changed)
        self._changed = now
        self._depth += by
        self.most = max(self.most, self._depth)

    def mean(self, until: float) -> float:
        """The mean depth from 0 until then."""
        area = self._area + self._depth * max(0.0, until - self._changed)
        return area / until if until > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Means, percentiles and shares of the requests that were counted."""

    requests: int
    seconds: float
    requests_per_second: float
    output_tokens_per_second: float
    ttft_seconds: Spread
    tpot_seconds: Spread
    request_seconds: Spread
    prefill_wait_seconds: Spread
    """From arrival to the start of the prefill, wherever that is."""
    prefill_queue: float
    """Mean number of prompts that wait for a prefiller."""
    prefill_queue_most: int
    buffer_queue: float
    """Mean number of prompts that wait for chunks of the PD buffer: `Failed to allocate memory object` in the decoder's log."""
    buffer_queue_most: int
    decode_queue: float
    """Mean number of sequences that wait for a place in a decoder."""
    decode_queue_most: int
    share_disaggregated: float
    share_waiting_for_buffer: float
    """Of the requests that went to a prefiller."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return asdict(self)
