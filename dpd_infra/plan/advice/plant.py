"""What the requests of a simulation go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpd_infra.plan.sizing.quantity import at_least


@dataclass(frozen=True, slots=True)
class Plant:
    """What the requests go through. Times are functions, so that a queue with known answers can be simulated too."""

    prefillers: int
    """0 for a colocated endpoint."""
    decoders: int
    prefill_seconds: Callable[[int], float]
    """Of a prompt of so many tokens, on a prefiller."""
    local_prefill_seconds: Callable[[int], float]
    """The same on a decoder."""
    transfer_seconds: Callable[[int], float]
    step_seconds: Callable[[int, int], float]
    """Of a decode step over so many sequences with a mean context of so many tokens."""
    max_num_seqs: int
    """Sequences that a decoder runs at one time."""
    kv_pool_tokens: int | None = None
    """Tokens that a decoder's KV pool holds; None for as many as come."""
    buffer_chunks: int | None = None
    """Chunks of a decoder's PD buffer; None for as many as come."""
    chunk_tokens: int = 256
    routing_threshold: float = 0
    """Estimated tokens from which on a prompt goes to a prefiller."""
    overestimate: float = 1.0
    """The router's estimate over the real tokens."""

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that cannot be."""
        at_least(0, prefillers=self.prefillers, routing_threshold=self.routing_threshold)
        at_least(1, decoders=self.decoders, max_num_seqs=self.max_num_seqs, chunk_tokens=self.chunk_tokens)
