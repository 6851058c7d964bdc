"""A simulation of an endpoint's queues: router, prefillers, PD buffer and decoders, request by request, from a seed.

What stands for what: a prefiller takes one prompt at a time; a prompt that is done needs its chunks of the decoder's PD buffer, which
are given in order, and keeps its prefiller until it has them; the chunks are free again when the decoder has taken the prompt in; a
decoder runs steps over all its sequences and takes new ones in between two steps. Prompts below the router's threshold are prefilled
by the decoder, whose other sequences then advance by one token only. A colocated endpoint is the same without prefillers.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

from dpd_infra.plan.advice.plant import Plant
from dpd_infra.plan.advice.queue_state import Decoder, Prefiller, Request
from dpd_infra.plan.advice.simulation_result import Depth, SimulationResult, Spread
from dpd_infra.plan.sizing.quantity import at_least
from dpd_infra.plan.sizing.workload import ArrivalProcess, Workload

BURST_VARIATION = 2.0
"""Coefficient of variation of the distances of a bursty load."""

WARM_UP_SHARE = 0.1
"""First part of the requests that is not counted: the queues begin empty."""


def simulate(plant: Plant, workload: Workload, requests: int = 10_000, seed: int = 0) -> SimulationResult:
    """Send `requests` requests of a load through a plant. The same seed gives the same result to the last bit.

    Raises ValueError for a prompt that never fits: more chunks than the PD buffer, or more tokens than the KV pool.
    """
    at_least(1, requests=requests)
    return _Simulation(plant, workload, requests, seed).run()


class _Simulation:
    def __init__(self, plant: Plant, workload: Workload, requests: int, seed: int) -> None:
        self._plant, self._workload, self._total = plant, workload, requests
        self._random = Random(seed)  # noqa: S311  # a simulation, no secret
        self._events: list[tuple[float, int, Callable[[float, int, Any], None], Any]] = []
        self._numbers = 0
        self._requests: list[Request] = []
        self._prefillers = [Prefiller() for _ in range(plant.prefillers)]
        self._decoders = [Decoder(plant) for _ in range(plant.decoders)]
        self._next_prefiller = 0
        self._prefill_depth, self._buffer_depth, self._decode_depth = Depth(), Depth(), Depth()
        self._ended = 0.0
        largest = workload.input.largest
        if plant.buffer_chunks is not None and plant.prefillers and -(-largest // plant.chunk_tokens) > plant.buffer_chunks:
            raise ValueError(f"a prompt of {largest:,} tokens never fits a PD buffer of {plant.buffer_chunks:,} chunks")
        if plant.kv_pool_tokens is not None and largest + workload.output.largest > plant.kv_pool_tokens:
            raise ValueError(f"a sequence of {largest + workload.output.largest:,} tokens never fits a KV pool of {plant.kv_pool_tokens:,}")

    def run(self) -> SimulationResult:
        if self._workload.concurrency is not None:
            for _ in range(min(self._workload.concurrency, self._total)):
                self._spawn(0.0)
        else:
            self._at(self._distance(), self._arrive, None)
        events = self._events
        while events:
            now, number, handle, target = heappop(events)
            handle(now, number, target)
        return self._result()

    def _at(self, time: float, handle: Callable[[float, int, Any], None], target: Any) -> int:
        self._numbers += 1
        heappush(self._events, (time, self._numbers, handle, target))
        return self._numbers

    def _distance(self) -> float:
        rate = self._workload.requests_per_second or 1.0
        if self._workload.arrivals is ArrivalProcess.UNIFORM:
            return 1 / rate
        if self._workload.arrivals is ArrivalProcess.BURSTY:
            shape = 1 / BURST_VARIATION**2
            return self._random.gammavariate(shape, 1 / (rate * shape))
        return self._random.expovariate(rate)

    def _arrive(self, now: float, number: int, target: None) -> None:
        del number, target
        self._spawn(now)
        if len(self._requests) < self._total:
            self._at(now + self._distance(), self._arrive, None)

    def _spawn(self, now: float) -> None:
        inputs, outputs, chance = self._workload.input.values, self._workload.output.values, self._random.random
        request = Request(len(self._requests), now, inputs[int(chance() * len(inputs))], outputs[int(chance() * len(outputs))])
        self._requests.append(request)
        plant = self._plant
        request.decoder = self._decoders[0] if len(self._decoders) == 1 else min(self._decoders, key=_load)
        if plant.prefillers and request.input * plant.overestimate >= plant.routing_threshold:
            request.remote = True
            request.chunks = -(-request.input // plant.chunk_tokens)
            prefiller = self._prefillers[self._next_prefiller]
            self._next_prefiller = (self._next_prefiller + 1) % plant.prefillers
            prefiller.queue.append(request)
            self._prefill_depth.change(now, 1)
            if not prefiller.busy:
                self._prefill(prefiller, now)
        else:
            self._enqueue(request, now)

    def _prefill(self, prefiller: Prefiller, now: float) -> None:
        request = prefiller.queue.popleft()
        self._prefill_depth.change(now, -1)
        prefiller.busy = True
        request.started = now
        self._at(now + self._plant.prefill_seconds(request.input), self._prefilled, (request, prefiller))

    def _prefilled(self, now: float, number: int, target: tuple[Request, Prefiller]) -> None:
        del number
        request, prefiller = target
        decoder = request.decoder
        decoder.waiting.append((request, prefiller))
        self._buffer_depth.change(now, 1)
        self._give_chunks(decoder, now)
        if decoder.waiting and decoder.waiting[-1][0] is request:
            request.waited_for_buffer = True

    def _give_chunks(self, decoder: Decoder, now: float) -> None:
        while decoder.waiting:
            request, prefiller = decoder.waiting[0]
            if decoder.free_chunks is not None:
                if request.chunks > decoder.free_chunks:
                    return
                decoder.free_chunks -= request.chunks
            decoder.waiting.popleft()
            self._buffer_depth.change(now, -1)
            self._at(now + self._plant.transfer_seconds(request.input), self._moved, request)
            prefiller.busy = False
            if prefiller.queue:
                self._prefill(prefiller, now)

    def _moved(self, now: float, number: int, request: Request) -> None:
        del number
        self._enqueue(request, now)

    def _enqueue(self, request: Request, now: float) -> None:
        decoder = request.decoder
        decoder.queue.append(request)
        self._decode_depth.change(now, 1)
        if not decoder.working:
            self._continue(decoder, now)
        elif decoder.step and decoder.planned > 1 and self._has_room(decoder, decoder.queue[0]):
            # Taken in after the step that runs now: the steps planned beyond it are planned anew.
            done = max(1, -int(-(now - decoder.segment) // decoder.step))
            if done < decoder.planned:
                decoder.planned = done
                decoder.working = self._at(decoder.segment + done * decoder.step, self._stepped, decoder)

    def _has_room(self, decoder: Decoder, request: Request) -> bool:
        if len(decoder.finishing) + len(decoder.joining) >= self._plant.max_num_seqs:
            return False
        return decoder.free_tokens is None or request.input + request.output <= decoder.free_tokens

    def _continue(self, decoder: Decoder, now: float) -> None:
        """Between two steps: take in what waits, then prefill one prompt or run steps until something ends."""
        freed = False
        while decoder.queue and self._has_room(decoder, decoder.queue[0]):
            request = decoder.queue.popleft()
            self._decode_depth.change(now, -1)
            if decoder.free_tokens is not None:
                decoder.free_tokens -= request.input + request.output
            if not request.remote:
                request.started = now
                decoder.prefilling = request
                break
            if decoder.free_chunks is not None:
                decoder.free_chunks += request.chunks
                freed = True
            decoder.joining.append(request)
        if freed:
            self._give_chunks(decoder, now)
        decoder.segment = now
        for request in decoder.joining:
            heappush(decoder.finishing, (decoder.steps + request.output, request.number, request))
            decoder.context += request.input
        batch = len(decoder.finishing)
        if decoder.prefilling is not None:
            decoder.step, decoder.planned = 0.0, 1
            # One step over the prompt and the running sequences together: no shorter than either alone.
            alone = self._plant.step_seconds(batch, decoder.context // batch) if batch else 0.0
            end = now + max(alone, self._plant.local_prefill_seconds(decoder.prefilling.input))
        elif batch:
            decoder.planned = decoder.finishing[0][0] - decoder.steps
            context = decoder.context // batch + decoder.planned // 2
            decoder.step = self._plant.step_seconds(batch, context)
            end = now + decoder.planned * decoder.step
        else:
            decoder.working = 0
            return
        first = end if decoder.prefilling is not None else now + decoder.step
        for request in decoder.joining:
            request.first = first
        decoder.joining.clear()
        decoder.working = self._at(end, self._stepped, decoder)

    def _stepped(self, now: float, number: int, decoder: Decoder) -> None:
        if decoder.working != number:
            return  # planned anew
        decoder.steps += decoder.planned
        decoder.context += decoder.planned * len(decoder.finishing)
        prefilled = decoder.prefilling
        if prefilled is not None:
            decoder.prefilling = None
            prefilled.first = now
            decoder.context += prefilled.input + 1
            heappush(decoder.finishing, (decoder.steps + prefilled.output - 1, prefilled.number, prefilled))
        finished = 0
        while decoder.finishing and decoder.finishing[0][0] <= decoder.steps:
            request = heappop(decoder.finishing)[2]
            request.done = now
            decoder.context -= request.input + request.output
            if decoder.free_tokens is not None:
                decoder.free_tokens += request.input + request.output
            finished += 1
        self._ended = now
        self._continue(decoder, now)
        if self._workload.concurrency is not None:
            for _ in range(min(finished, self._total - len(self._requests))):
                self._spawn(now)

    def _result(self) -> SimulationResult:
        counted = self._requests[int(len(self._requests) * WARM_UP_SHARE) :]
        remote = [request for request in counted if request.remote]
        ended = self._ended
        begun = counted[0].arrival
        output = sum(request.output for request in counted)
        return SimulationResult(
            requests=len(counted),
            seconds=ended - begun,
            requests_per_second=len(counted) / (ended - begun) if ended > begun else 0.0,
            output_tokens_per_second=output / (ended - begun) if ended > begun else 0.0,
            ttft_seconds=Spread.of([request.first - request.arrival for request in counted]),
            tpot_seconds=Spread.of([(request.done - request.first) / (request.output - 1) for request in counted if request.output > 1]),
            request_seconds=Spread.of([request.done - request.arrival for request in counted]),
            prefill_wait_seconds=Spread.of([request.started - request.arrival for request in counted]),
            prefill_queue=self._prefill_depth.mean(ended),
            prefill_queue_most=self._prefill_depth.most,
            buffer_queue=self._buffer_depth.mean(ended),
            buffer_queue_most=self._buffer_depth.most,
            decode_queue=self._decode_depth.mean(ended),
            decode_queue_most=self._decode_depth.most,
            share_disaggregated=len(remote) / len(counted),
            share_waiting_for_buffer=sum(request.waited_for_buffer for request in remote) / len(remote) if remote else 0.0,
        )


def _load(decoder: Decoder) -> int:
    return len(decoder.finishing) + len(decoder.joining) + len(decoder.queue) + len(decoder.waiting)
