"""What 10,000 simulated requests cost, against the same model in bare simpy.

    python bench/simulate.py

The model in simpy is written as one does there: a process a prefiller and a decoder, a Store as queue, a Container as PD buffer, and
decode steps that are run in one timeout up to the next end of a sequence and interrupted by an arrival. Both draw the same numbers from
the same seed, and that both give the same times is checked first. They run in turns; processor seconds, medians. Ends with 1 where ours
is slower.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Generator
from heapq import heappop, heappush
from itertools import cycle
from random import Random
from statistics import median
from typing import Any

import simpy

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.models import find_model
from dpd_infra.plan.advice.endpoint_plants import disaggregated_plant
from dpd_infra.plan.advice.plant import Plant
from dpd_infra.plan.advice.queueing import simulate
from dpd_infra.plan.sizing.serving import RoleFlags, Serving
from dpd_infra.plan.sizing.workload import Lengths, Workload

REQUESTS = 10_000
ROUNDS = 5
SEED = 1
THRESHOLD = 4096

Process = Generator[Any, Any, None]


class Request:
    """One request."""

    __slots__ = ("arrival", "chunks", "done", "first", "input", "number", "output", "remote")

    def __init__(self, number: int, arrival: float, prompt: int, output: int) -> None:
        self.number, self.arrival, self.input, self.output = number, arrival, prompt, output
        self.chunks, self.remote, self.first, self.done = 0, False, 0.0, 0.0


class Decoder:
    """A decoder as a simpy process."""

    def __init__(self, env: simpy.Environment, plant: Plant) -> None:
        self.env, self.plant = env, plant
        chunks = plant.buffer_chunks or 10**9
        self.buffer = simpy.Container(env, capacity=chunks, init=chunks)
        self.queue: deque[Request] = deque()
        self.finishing: list[tuple[int, int, Request]] = []
        self.free_tokens = plant.kv_pool_tokens or 10**12
        self.steps = self.context = self.planned = 0
        self.segment = self.step = 0.0
        self.idle: simpy.Event | None = None
        self.process = env.process(self.run())

    def put(self, request: Request) -> None:
        """A prompt that is there, or that is to be prefilled here."""
        self.queue.append(request)
        if self.idle is not None:
            self.idle.succeed()
            self.idle = None
        elif self.step and self.planned > 1 and self.has_room(self.queue[0]):
            done = max(1, -int(-(self.env.now - self.segment) // self.step))
            if done < self.planned:
                self.planned = done
                self.process.interrupt()

    def has_room(self, request: Request) -> bool:
        """Whether it can run beside the others."""
        return len(self.finishing) < self.plant.max_num_seqs and request.input + request.output <= self.free_tokens

    def run(self) -> Process:
        """Steps over all sequences, for ever."""
        env, plant = self.env, self.plant
        while True:
            joining: list[Request] = []
            prefilled: Request | None = None
            while self.queue and self.has_room(self.queue[0]):
                request = self.queue.popleft()
                self.free_tokens -= request.input + request.output
                if not request.remote:
                    prefilled = request
                    break
                self.buffer.put(request.chunks)
                heappush(self.finishing, (self.steps + request.output, request.number, request))
                self.context += request.input
                joining.append(request)
            self.segment, batch = env.now, len(self.finishing)
            if prefilled is not None:
                self.step, self.planned = 0.0, 1
                alone = plant.step_seconds(batch, self.context // batch) if batch else 0.0
                seconds = max(alone, plant.local_prefill_seconds(prefilled.input))
            elif batch:
                self.planned = self.finishing[0][0] - self.steps
                self.step = plant.step_seconds(batch, self.context // batch + self.planned // 2)
                seconds = self.planned * self.step
            else:
                self.idle = env.event()
                yield self.idle
                continue
            for request in joining:
                request.first = env.now + (seconds if prefilled is not None else self.step)
            try:
                yield env.timeout(seconds)
            except simpy.Interrupt:
                yield env.timeout(max(0.0, self.segment + self.planned * self.step - env.now))
            self.steps += self.planned
            self.context += self.planned * len(self.finishing)
            if prefilled is not None:
                prefilled.first = env.now
                self.context += prefilled.input + 1
                heappush(self.finishing, (self.steps + prefilled.output - 1, prefilled.number, prefilled))
            while self.finishing and self.finishing[0][0] <= self.steps:
                request = heappop(self.finishing)[2]
                request.done = env.now
                self.context -= request.input + request.output
                self.free_tokens += request.input + request.output


def in_simpy(plant: Plant, workload: Workload, count: int, seed: int) -> list[Request]:
    """The same load through the same plant."""
    env, random = simpy.Environment(), Random(seed)  # noqa: S311  # a simulation, no secret
    requests: list[Request] = []
    decoder = Decoder(env, plant)
    queues = [simpy.Store(env) for _ in range(plant.prefillers)]
    rate, inputs, outputs = workload.requests_per_second or 1.0, workload.input.values, workload.output.values

    def prefiller(queue: simpy.Store) -> Process:
        while True:
            request = yield queue.get()
            yield env.timeout(plant.prefill_seconds(request.input))
            yield decoder.buffer.get(request.chunks)
            env.process(moved(request))

    def moved(request: Request) -> Process:
        yield env.timeout(plant.transfer_seconds(request.input))
        decoder.put(request)

    def arrivals() -> Process:
        for number in range(count):
            yield env.timeout(random.expovariate(rate))
            prompt, answer = inputs[int(random.random() * len(inputs))], outputs[int(random.random() * len(outputs))]
            request = Request(number, env.now, prompt, answer)
            requests.append(request)
            if prompt * plant.overestimate >= plant.routing_threshold:
                request.remote, request.chunks = True, -(-prompt // plant.chunk_tokens)
                queues[next(turns)].put(request)
            else:
                decoder.put(request)

    turns = cycle(range(plant.prefillers))
    for queue in queues:
        env.process(prefiller(queue))
    env.process(arrivals())
    env.run()
    return requests


def measured(run: Any) -> float:
    """Processor seconds of one run."""
    gc.collect()
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> int:
    """Check that both are the same model, measure in turns, and say the ratio."""
    model = find_model("Llama-3.3-70B-Instruct")
    if model is None:
        raise SystemExit("the catalog has lost Llama 3.3 70B")
    serving = Serving(model, INSTANCE_TYPES["ml.p5.48xlarge"], 32_768, prefillers=2, decode=RoleFlags(64))
    load = Workload(Lengths.of_mean(6000, 0.4), Lengths.of_mean(400, 0.5), requests_per_second=4)
    plant = disaggregated_plant(serving, load, THRESHOLD)
    ours, theirs = simulate(plant, load, REQUESTS, SEED), in_simpy(plant, load, REQUESTS, SEED)
    counted = theirs[REQUESTS // 10 :]
    for name, mine, other in (
        ("TTFT", ours.ttft_seconds.mean, sum(each.first - each.arrival for each in counted) / len(counted)),
        ("request", ours.request_seconds.mean, sum(each.done - each.arrival for each in counted) / len(counted)),
    ):
        if abs(mine / other - 1) > 1e-6:
            print(f"not the same model: mean {name} {mine} and {other}")
            return 1
    seconds: dict[str, list[float]] = {"ours": [], "simpy": []}
    for _ in range(ROUNDS):
        seconds["ours"].append(measured(lambda: simulate(plant, load, REQUESTS, SEED)))
        seconds["simpy"].append(measured(lambda: in_simpy(plant, load, REQUESTS, SEED)))
    mine, other = median(seconds["ours"]), median(seconds["simpy"])
    print(f"{REQUESTS:,} requests: ours {mine * 1000:.0f} ms, bare simpy {other * 1000:.0f} ms, ratio {mine / other:.2f} (limit 1.00)")
    return int(mine > other)


if __name__ == "__main__":
    sys.exit(main())
