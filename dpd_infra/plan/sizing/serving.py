"""How a model is served: the nodes, the split, the flags and the replicas that every size follows from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dpd_infra.catalog.instance_types import Gpu, InstanceType
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.plan.sizing.buffer import CHUNK_TOKENS, DEFAULT_PD_BUFFER_BYTES, chunk_bytes, guaranteed_requests
from dpd_infra.plan.sizing.kv_cache import tensor_parallel_problems
from dpd_infra.plan.sizing.memory import (
    DEFAULT_GPU_MEMORY_UTILIZATION,
    DEFAULT_MAX_NUM_BATCHED_TOKENS,
    MemoryBudget,
    gpu_memory_budget,
)
from dpd_infra.plan.sizing.quantity import at_least
from dpd_infra.plan.sizing.workload import Workload

PREFILL_MAX_NUM_SEQS = 16
DECODE_MAX_NUM_SEQS = 32
"""`--max-num-seqs` of the DPD guide's tuning table."""

COLOCATED_GPU_MEMORY_UTILIZATION = 0.9
"""vLLM's own default: what an engine without a PD buffer would run with."""


@dataclass(frozen=True)
class RoleFlags:
    """vLLM flags of one role that sizes depend on."""

    max_num_seqs: int
    gpu_memory_utilization: float = DEFAULT_GPU_MEMORY_UTILIZATION
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS

    def __post_init__(self) -> None:
        """Raises ValueError for a flag that cannot be."""
        at_least(1, max_num_seqs=self.max_num_seqs, max_num_batched_tokens=self.max_num_batched_tokens)


@dataclass(frozen=True)
class Serving:
    """One endpoint's serving side."""

    model: ModelShape
    instance: InstanceType
    max_model_len: int
    tensor_parallel_size: int = 8
    prefillers: int = 1
    decoders: int = 1
    prefill: RoleFlags = RoleFlags(PREFILL_MAX_NUM_SEQS)
    decode: RoleFlags = RoleFlags(DECODE_MAX_NUM_SEQS)
    pd_buffer_bytes: int = DEFAULT_PD_BUFFER_BYTES
    kv_format: KvFormat = KvFormat.BF16
    chunk_tokens: int = CHUNK_TOKENS
    prefillers_at_most: int | None = None
    """What autoscaling may make of the prefillers; None: they stay as many."""

    def __post_init__(self) -> None:
        """Raises ValueError for a model that cannot be split so, an instance type without GPUs, or numbers that cannot be."""
        at_least(
            1,
            max_model_len=self.max_model_len,
            tensor_parallel_size=self.tensor_parallel_size,
            prefillers=self.prefillers,
            decoders=self.decoders,
            chunk_tokens=self.chunk_tokens,
        )
        if self.instance.gpu is None:
            raise ValueError(f"{self.instance.name} has no GPUs")
        if self.tensor_parallel_size > self.instance.gpus:
            raise ValueError(f"tensor_parallel_size is {self.tensor_parallel_size}; {self.instance.name} has {self.instance.gpus} GPUs")
        problems = tensor_parallel_problems(self.model, self.tensor_parallel_size)
        if problems:
            raise ValueError(f"{self.model.name} cannot be split over {self.tensor_parallel_size} ranks: {'; '.join(problems)}")

    @property
    def gpu(self) -> Gpu:
        """The GPU of the nodes."""
        if self.instance.gpu is None:
            raise ValueError(f"{self.instance.name} has no GPUs")
        return self.instance.gpu

    @property
    def most_prefillers(self) -> int:
        """Prefillers that may write into one PD buffer at one time."""
        return self.prefillers if self.prefillers_at_most is None else max(1, self.prefillers_at_most)

    @property
    def concurrent_prefills(self) -> int:
        """Prompts that may be in prefill at one time."""
        return self.most_prefillers * self.prefill.max_num_seqs

    @property
    def gpus(self) -> int:
        """GPUs of all replicas of both roles."""
        return (self.prefillers + self.decoders) * self.tensor_parallel_size

    @property
    def nodes(self) -> int:
        """Nodes that they fill."""
        return -(-self.gpus // self.instance.gpus)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of one LMCache chunk on one rank."""
        return chunk_bytes(self.model, self.tensor_parallel_size, self.kv_format, self.chunk_tokens)

    @property
    def held_prompts(self) -> int:
        """Prompts of max-model-len that the PD buffer holds at one time; 0 where it holds not one chunk."""
        if self.pd_buffer_bytes < self.chunk_bytes:
            return 0
        return guaranteed_requests(
            self.model, self.pd_buffer_bytes, self.max_model_len, self.tensor_parallel_size, self.kv_format, self.chunk_tokens
        )

    @cached_property
    def prefill_budget(self) -> MemoryBudget:
        """Memory of a prefiller's GPU."""
        return self._budget(self.prefill, self.pd_buffer_bytes)

    @cached_property
    def decode_budget(self) -> MemoryBudget:
        """Memory of a decoder's GPU."""
        return self._budget(self.decode, self.pd_buffer_bytes)

    @cached_property
    def colocated_budget(self) -> MemoryBudget:
        """Memory of a GPU that does both, without a PD buffer and with vLLM's own share."""
        flags = RoleFlags(self.decode.max_num_seqs, COLOCATED_GPU_MEMORY_UTILIZATION, self.decode.max_num_batched_tokens)
        return self._budget(flags, 0)

    def served(self, workload: Workload) -> Workload:
        """What is left of a load when vLLM has refused the prompts that leave no room for an answer in max-model-len.

        Raises ValueError where that is none of it.
        """
        fitting = workload.input.part(0, self.max_model_len)
        if fitting is None:
            raise ValueError(f"every prompt of the load is too long for max-model-len {self.max_model_len:,}")
        if fitting.values == workload.input.values:
            return workload
        share, rate = len(fitting.values) / len(workload.input.values), workload.requests_per_second
        return replace(workload, input=fitting, requests_per_second=rate * share if rate is not None else None)

    def decode_limit(self, context_tokens: int) -> int:
        """Sequences of `context_tokens` tokens that one decoder runs at one time: max-num-seqs or what the KV pool holds, at least 1."""
        return max(1, min(self.decode.max_num_seqs, self.decode_budget.sequences(context_tokens)))

    def colocated_limit(self, context_tokens: int) -> int:
        """The same for an engine that does both: what its KV pool holds, up to vLLM's own limit."""
        return max(1, self.colocated_budget.sequences(context_tokens))

    def _budget(self, flags: RoleFlags, pd_buffer_bytes: int) -> MemoryBudget:
        return gpu_memory_budget(
            self.model,
            self.gpu,
            self.tensor_parallel_size,
            gpu_memory_utilization=flags.gpu_memory_utilization,
            pd_buffer_bytes=pd_buffer_bytes,
            max_num_batched_tokens=flags.max_num_batched_tokens,
            kv_format=self.kv_format,
        )
