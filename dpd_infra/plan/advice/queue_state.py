"""The state of a simulation: requests, prefillers and decoders."""

from __future__ import annotations

from collections import deque

from dpd_infra.plan.advice.plant import Plant


class Request:
    """One request and the times of its stations."""

    __slots__ = (
        "arrival",
        "chunks",
        "decoder",
        "done",
        "first",
        "input",
        "number",
        "output",
        "remote",
        "started",
        "waited_for_buffer",
    )

    def __init__(self, number: int, arrival: float, prompt: int, output: int) -> None:
        self.number, self.arrival, self.input, self.output = number, arrival, prompt, output
        self.remote = self.waited_for_buffer = False
        self.chunks = 0
        self.decoder: Decoder
        self.started = self.first = self.done = 0.0


class Prefiller:
    """One prefiller: a prompt at a time, first come first served."""

    __slots__ = ("busy", "queue")

    def __init__(self) -> None:
        self.queue: deque[Request] = deque()
        self.busy = False


class Decoder:
    """One decoder, with its PD buffer and its KV pool."""

    __slots__ = (
        "context",
        "finishing",
        "free_chunks",
        "free_tokens",
        "joining",
        "planned",
        "prefilling",
        "queue",
        "segment",
        "step",
        "steps",
        "waiting",
        "working",
    )

    def __init__(self, plant: Plant) -> None:
        self.waiting: deque[tuple[Request, Prefiller]] = deque()
        """For the PD buffer."""
        self.queue: deque[Request] = deque()
        """For a place among the running sequences."""
        self.finishing: list[tuple[int, int, Request]] = []
        """Running sequences by the step they end with."""
        self.free_chunks = plant.buffer_chunks
        self.free_tokens = plant.kv_pool_tokens
        self.context = 0
        """Tokens of all running sequences."""
        self.steps = 0
        """Steps done."""
        self.segment = 0.0
        """When the running steps began."""
        self.step = 0.0
        """Seconds of each of them; 0 while a prompt is prefilled."""
        self.planned = 0
        """How many of them."""
        self.working = 0
        """Number of the event that ends them; 0 while idle."""
        self.prefilling: Request | None = None
        self.joining: list[Request] = []
        """Taken in, without their first token."""
