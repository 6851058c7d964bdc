"""Rules on a GPU's memory: weights, KV cache, PD buffer and reserve at the given `--gpu-memory-utilization`.

What is certain by arithmetic is an error; what rests on modelled figures (activations, CUDA context, NCCL) is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import AI_CONFIGURATOR, DESIGN_NOTE, DPD_GUIDE, LMCACHE, VLLM, thread
from dpd_infra.plan.sizing.kv_cache import BLOCK_TOKENS, kv_bytes_per_token, sequence_kv_bytes
from dpd_infra.plan.sizing.memory import (
    DEFAULT_GPU_MEMORY_UTILIZATION,
    MARGIN_BYTES,
    Fit,
    MemoryBudget,
    gpu_memory_budget,
    highest_gpu_memory_utilization,
)
from dpd_infra.plan.sizing.quantity import Unit, human
from dpd_infra.plan.worker_args import Flag
from dpd_infra.rules.patches import set_flag
from dpd_infra.rules.reading import ServerReading
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation, once_an_endpoint
from dpd_infra.rules.wording import as_flag, buffer_size
from dpd_infra.spec.finding import Path, Severity

UTILIZATION = "gpu-memory-utilization"


def _human(size: float) -> str:
    return human(size, Unit.BYTES)


class _Memory:
    """One server's budget; made only where model, GPU, sizes and utilisation are known."""

    def __init__(
        self, endpoint: EndpointSubject, server: ServerReading, flag: Flag, model: ModelShape, gpu: Gpu, budget: MemoryBudget
    ) -> None:
        self.server, self.flag, self.model, self.gpu, self.budget = server, flag, model, gpu, budget
        self.utilization = flag.number or 0
        self.longest = endpoint.reading.max_model_len(server)
        self._endpoint = endpoint

    @property
    def place(self) -> Path:
        """Where in the user's file the utilisation stands."""
        return self._endpoint.at(*self.flag.path)


@once_an_endpoint
def _budgets(endpoint: EndpointSubject) -> Sequence[_Memory]:
    return tuple(_each_budget(endpoint))


def _each_budget(endpoint: EndpointSubject) -> Iterator[_Memory]:
    reading = endpoint.reading
    gpu = reading.smallest_gpu
    for server in reading.servers if gpu is not None else ():
        flag, ranks = server.args.last(UTILIZATION), server.tensor_parallel_size
        tokens, kv_format, model = server.batched_tokens, server.kv_format, reading.model_in(server)
        pipelines = server.args.integer("pipeline-parallel-size") or 1
        if flag is None or not ranks or ranks < 1 or not tokens or tokens < 1 or kv_format is None or model is None or pipelines != 1:
            continue
        utilization = flag.number
        if gpu is None or utilization is None or not 0 < utilization <= 1:
            continue
        buffer = (reading.pd_buffer_bytes or 0) if reading.disaggregated else 0
        yield _Memory(endpoint, server, flag, model, gpu, _budget(model, gpu, ranks, utilization, buffer, tokens, kv_format))


@lru_cache(maxsize=1024)
def _budget(model: ModelShape, gpu: Gpu, ranks: int, utilization: float, buffer: int, tokens: int, kv_format: KvFormat) -> MemoryBudget:
    """One budget; five rules ask for it, and most endpoints of a house have the same."""
    return gpu_memory_budget(
        model,
        gpu,
        ranks,
        gpu_memory_utilization=utilization,
        pd_buffer_bytes=buffer,
        max_num_batched_tokens=tokens,
        kv_format=kv_format,
    )


def _first(budgets: Sequence[_Memory]) -> Iterator[_Memory]:
    """Both roles with the same flag have the same budget: it is told once."""
    seen: set[Path] = set()
    for memory in budgets:
        if memory.flag.path not in seen:
            seen.add(memory.flag.path)
            yield memory


@rule(
    "DPD201",
    "The weights fit vLLM's share of a GPU",
    severity=Severity.ERROR,
    why="vLLM takes gpu-memory-utilization of each GPU for weights, activations and KV cache, and does not start where the weights alone "
    "are more.",
    sources=(VLLM,),
)
def weights_fit(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Weights of one rank over the share."""
    for memory in _first(_budgets(endpoint)):
        budget = memory.budget
        if budget.weights_bytes >= budget.engine_bytes:
            yield Violation(
                memory.place,
                f"{memory.server.name}: {memory.model.name} has {_human(budget.weights_bytes)} of weights a rank at tensor-parallel size "
                f"{memory.server.tensor_parallel_size}; --{UTILIZATION} {memory.utilization:g} of a {memory.gpu.name}'s "
                f"{_human(budget.hbm_bytes)} is {_human(budget.engine_bytes)}",
                "use more GPUs with a larger tensor-parallel size, GPUs with more memory, or weights in fp8",
                value=memory.utilization,
            )


@rule(
    "DPD202",
    "The KV cache holds one sequence of full length",
    severity=Severity.ERROR,
    why="vLLM does not start where its KV cache is smaller than one sequence of max-model-len tokens.",
    sources=(VLLM, thread("vllm-project/vllm", 16118, 34076)),
)
def one_sequence_fits(endpoint: EndpointSubject) -> Iterator[Violation]:
    """max-model-len over what is left beside the weights, activations not even counted."""
    for memory in _first(_budgets(endpoint)):
        found = _sequence(endpoint, memory, memory.budget.engine_bytes - memory.budget.weights_bytes)
        if found is not None and memory.budget.weights_bytes < memory.budget.engine_bytes:
            yield found


@rule(
    "DPD203",
    "The KV cache holds one sequence beside the activations",
    severity=Severity.WARNING,
    why="Beside the weights vLLM sets aside what a step's activations take (modelled here): what is left may not hold one sequence of "
    "max-model-len tokens, and then vLLM does not start.",
    sources=(AI_CONFIGURATOR, thread("vllm-project/vllm", 16118, 34076)),
)
def one_sequence_fits_modelled(endpoint: EndpointSubject) -> Iterator[Violation]:
    """max-model-len over what is left beside weights and modelled activations."""
    for memory in _first(_budgets(endpoint)):
        certain = memory.budget.engine_bytes - memory.budget.weights_bytes
        if certain > 0 and _sequence(endpoint, memory, certain) is None:
            found = _sequence(endpoint, memory, memory.budget.kv_pool_bytes)
            if found is not None:
                yield found


def _sequence(endpoint: EndpointSubject, memory: _Memory, pool: int) -> Violation | None:
    ranks, kv_format = memory.server.tensor_parallel_size, memory.server.kv_format
    if memory.longest is None or ranks is None or kv_format is None:
        return None
    needed = sequence_kv_bytes(memory.model, memory.longest, ranks, kv_format)
    if pool >= needed:
        return None
    most = max(pool, 0) // (BLOCK_TOKENS * kv_bytes_per_token(memory.model, ranks, kv_format)) * BLOCK_TOKENS
    flag = memory.server.args.last("max-model-len")
    said = "--max-model-len" if flag else "the model's own length, no --max-model-len is given,"
    return Violation(
        endpoint.at(*(flag.path if flag else memory.flag.path)),
        f"{memory.server.name}: {said} {memory.longest:,} takes {_human(needed)} of KV cache a rank, at --{UTILIZATION} "
        f"{memory.utilization:g} there are {_human(max(pool, 0))}: {most:,} tokens",
        f"write {as_flag(endpoint, flag, 'max-model-len', most)} or less, or raise --{UTILIZATION}"
        if most
        else f"raise --{UTILIZATION}, or use more GPUs",
        value=memory.longest,
        related=(memory.place,),
    )


@rule(
    "DPD204",
    "The PD buffer fits beside vLLM's share",
    severity=Severity.ERROR,
    why="LMCache allocates PD_BUFFER_SIZE on every GPU of both roles, outside the share of vLLM: where the two are more than the GPU "
    "has, the pod ends out of memory.",
    sources=(LMCACHE, DPD_GUIDE),
    since="3.2",
)
def buffer_fits(endpoint: EndpointSubject) -> Iterator[Violation]:
    """PD_BUFFER_SIZE over what gpu-memory-utilization leaves, nothing else counted."""
    for memory in _first(_budgets(endpoint)):
        if memory.budget.pd_buffer_bytes > memory.budget.outside_bytes:
            yield _too_large(endpoint, memory)


@rule(
    "DPD205",
    "PD buffer, CUDA context and NCCL fit beside vLLM's share",
    severity=Severity.WARNING,
    why="Beside the buffer, CUDA's context and graphs and NCCL's buffers take memory outside vLLM's share (modelled here, about 3.9 GiB "
    "at tensor-parallel size 8): with less than 1 GiB to spare a pod may end out of memory under load.",
    sources=(AI_CONFIGURATOR, DPD_GUIDE),
    since="3.2",
)
def buffer_and_reserve_fit(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Buffer and modelled reserve over, or within 1 GiB of, what gpu-memory-utilization leaves."""
    for memory in _first(_budgets(endpoint)):
        budget = memory.budget
        if budget.pd_buffer_bytes and budget.pd_buffer_bytes <= budget.outside_bytes and budget.buffer_fit is not Fit.FITS:
            yield _too_large(endpoint, memory)


def _too_large(endpoint: EndpointSubject, memory: _Memory) -> Violation:
    budget = memory.budget
    left = _human(budget.headroom_bytes) if budget.headroom_bytes > 0 else "nothing"
    fix, patch = f"lower {buffer_size(endpoint)}", None
    try:
        # The highest share that leaves the margin too, so that the fix does not meet the next warning.
        highest = highest_gpu_memory_utilization(memory.gpu, budget.pd_buffer_bytes + MARGIN_BYTES, memory.server.tensor_parallel_size or 1)
        fix = f"write {as_flag(endpoint, memory.flag, UTILIZATION, f'{highest:g}')} or less, or {fix}"
        patch = set_flag(endpoint, memory.flag, highest)
    except ValueError:
        pass
    return Violation(
        memory.place,
        f"{memory.server.name}: --{UTILIZATION} {memory.utilization:g} leaves {_human(budget.outside_bytes)} of a {memory.gpu.name}; "
        f"PD_BUFFER_SIZE takes {_human(budget.pd_buffer_bytes)} and the reserve {_human(budget.reserve_bytes)}: {left} is left",
        fix,
        value=memory.utilization,
        patch=patch,
    )


@rule(
    "DPD206",
    "A disaggregated worker says its share of memory",
    severity=Severity.WARNING,
    why="The guide runs DPD at 0.75; vLLM's own default is 0.9, which leaves 8 GiB of an 80 GiB GPU for a buffer of 8 GiB, the CUDA "
    "context and NCCL. Whether the operator sets 0.75 by itself is not documented.",
    sources=(DPD_GUIDE, VLLM),
    since="3.2",
)
def utilization_is_said(endpoint: EndpointSubject) -> Iterator[Violation]:
    """No --gpu-memory-utilization under a pdSpec."""
    if not endpoint.reading.disaggregated:
        return
    missing = [server.name for server in endpoint.reading.servers if server.args.last(UTILIZATION) is None]
    if missing:
        what = f"{' and '.join(missing)}: no --{UTILIZATION} is given"
        fix = f"add --{UTILIZATION} {DEFAULT_GPU_MEMORY_UTILIZATION:g} to worker.args"
        yield Violation(endpoint.at("spec", "worker", "args"), what, fix)


@rule(
    "DPD211",
    "The model's sizes are known",
    severity=Severity.ADVICE,
    why="Whether weights, KV cache and PD buffer fit, and whether the model can be split over the ranks, follows from its shape: for a "
    "model that the catalog does not hold none of it is checked here.",
    sources=(DESIGN_NOTE,),
    since="3.2",
)
def model_is_known(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A pdSpec and a model of which no name is in the catalog."""
    reading = endpoint.reading
    if reading.disaggregated and reading.model is None and reading.model_names:
        names = ", ".join(dict.fromkeys(name for name, _ in reading.model_names))
        fix = "ask dpd size with its config.json (--config), or name the model as the hub does"
        what = f"the catalog does not hold the shape of this model ({names})"
        yield Violation(endpoint.at(*reading.model_names[-1][1]), what, fix, reading.model_names[-1][0])
