"""The memory budget of one GPU: weights, activations and KV pool inside vLLM's share, PD buffer and reserve outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import AI_CONFIGURATOR, LMCACHE, VLLM, Confidence
from dpd_infra.plan.sizing.kv_cache import BLOCK_TOKENS, kv_bytes_per_token
from dpd_infra.plan.sizing.quantity import GIB, MIB, Quantity, Unit, at_least, formula

DEFAULT_GPU_MEMORY_UTILIZATION = 0.75
"""`--gpu-memory-utilization` of the DPD guide's tuning table, both roles."""

DEFAULT_MAX_NUM_BATCHED_TOKENS = 8192
"""vLLM's default of the API server on GPUs of 70 GiB and more (vllm/engine/arg_utils.py)."""

RUNTIME_RESERVE_BYTES = 3_758_096_384
"""CUDA context, libraries and graphs: 3.5 GiB, AIConfigurator's `other_mem` (551 MB observed, raised by its authors)."""

NCCL_BYTES = {1: 0, 2: 342 * MIB, 4: 392 * MIB, 8: 392 * MIB}
"""NCCL's buffers by tensor-parallel size (AIConfigurator's `nccl_mem`)."""

MARGIN_BYTES = GIB
"""Headroom below which a budget is called marginal: at 0.75 of 80 GiB an 8 GiB buffer fits and a 16 GiB buffer is marginal."""

_ACTIVATION_FACTOR = {1: 11.0, 2: 6.5, 4: 5.0, 8: 5.0}
_MIXTURE_ACTIVATION_FACTOR = {1: 22.0, 2: 13.0, 4: 10.0, 8: 10.0}


class Fit(StrEnum):
    """Whether a budget holds."""

    FITS = "fits"
    MARGINAL = "marginal"
    DOES_NOT_FIT = "does not fit"


def _nearest(table: dict[int, float] | dict[int, int], tensor_parallel_size: int) -> float:
    """The entry of the largest size in the table that is not above this one: both libraries stop at 8."""
    at_least(1, tensor_parallel_size=tensor_parallel_size)
    return table[max(size for size in table if size <= tensor_parallel_size)]


@formula(
    "ceil(weight_bytes / tensor_parallel_size)",
    Unit.BYTES,
    Confidence.MODELLED,
    VLLM,
    note="norms and routers are on every rank, which this leaves out (below 0.1 %)",
)
def weights_bytes_per_rank(model: ModelShape, tensor_parallel_size: int) -> int:
    """Weights on one rank."""
    at_least(1, tensor_parallel_size=tensor_parallel_size)
    return -(-model.weight_bytes // tensor_parallel_size)


@formula(
    "2 * max_num_batched_tokens * H_q * d * factor(tensor_parallel_size)",
    Unit.BYTES,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="factor 11, 6.5, 5, 5 for TP 1, 2, 4, 8; twice that for a mixture of experts",
)
def activation_bytes(model: ModelShape, tensor_parallel_size: int, max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS) -> int:
    """Peak activations of one step on one rank."""
    at_least(1, max_num_batched_tokens=max_num_batched_tokens)
    factors = _MIXTURE_ACTIVATION_FACTOR if model.is_mixture else _ACTIVATION_FACTOR
    return round(2 * max_num_batched_tokens * model.query_heads * model.head_dim * _nearest(factors, tensor_parallel_size))


@formula(
    "3.5 GiB + nccl(tensor_parallel_size)",
    Unit.BYTES,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="nccl 0, 342, 392, 392 MiB for TP 1, 2, 4, 8",
)
def reserve_bytes(tensor_parallel_size: int) -> int:
    """What CUDA context, NCCL and CUDA graphs take outside vLLM's share of one GPU."""
    return RUNTIME_RESERVE_BYTES + int(_nearest(NCCL_BYTES, tensor_parallel_size))


@formula("floor(gpu_memory_utilization * HBM)", Unit.BYTES, Confidence.EXACT, VLLM)
def engine_bytes(gpu: Gpu, gpu_memory_utilization: float) -> int:
    """The share of one GPU that vLLM takes: weights, activations and KV pool."""
    if not 0 < gpu_memory_utilization <= 1:
        raise ValueError(f"gpu_memory_utilization is {gpu_memory_utilization}, and must be above 0 and at most 1")
    return int(round(gpu_memory_utilization, 6) * gpu.memory_bytes)


@formula("floor(kv_pool_bytes / (16 * kv_bytes_per_token)) * 16", Unit.TOKENS, Confidence.MODELLED, VLLM)
def kv_pool_tokens(model: ModelShape, kv_pool_bytes: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16) -> int:
    """Tokens the KV pool of one rank holds, whole blocks; 0 where there is no room."""
    return max(0, kv_pool_bytes // (BLOCK_TOKENS * kv_bytes_per_token(model, tensor_parallel_size, kv_format))) * BLOCK_TOKENS


@formula("floor((HBM - pd_buffer_bytes - reserve_bytes) / HBM, 2 decimals)", Unit.RATIO, Confidence.MODELLED, AI_CONFIGURATOR, LMCACHE)
def highest_gpu_memory_utilization(gpu: Gpu, pd_buffer_bytes: int, tensor_parallel_size: int) -> float:
    """The largest gpu-memory-utilization that leaves room for the PD buffer and the reserve. Raises ValueError where none does."""
    left = gpu.memory_bytes - pd_buffer_bytes - reserve_bytes(tensor_parallel_size)
    if left * 100 < gpu.memory_bytes:
        raise ValueError(f"a PD buffer of {pd_buffer_bytes:,} bytes leaves no room on a GPU of {gpu.memory_bytes:,} bytes")
    return left * 100 // gpu.memory_bytes / 100


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """One GPU of one role, in bytes.

    `engine` = weights + activations + KV pool; `outside` = PD buffer + reserve + headroom; `engine` + `outside` = HBM.
    """

    hbm_bytes: int
    engine_bytes: int
    weights_bytes: int
    activation_bytes: int
    kv_pool_bytes: int
    """Negative where weights and activations alone do not fit."""
    kv_pool_tokens: int
    outside_bytes: int
    pd_buffer_bytes: int
    reserve_bytes: int
    headroom_bytes: int
    """What stays free outside vLLM's share; negative where the PD buffer does not fit."""
    explain: Callable[[], tuple[Quantity, ...]] = field(compare=False, repr=False)
    """Each part with its formula and source: made when it is asked for, a budget is worked out far more often than explained."""

    @property
    def buffer_fit(self) -> Fit:
        """Whether the PD buffer and the reserve fit beside vLLM's share."""
        if self.headroom_bytes < 0:
            return Fit.DOES_NOT_FIT
        return Fit.MARGINAL if self.headroom_bytes < MARGIN_BYTES else Fit.FITS

    def sequence_fit(self, max_model_len: int) -> Fit:
        """Whether the KV pool holds one sequence of `max_model_len` tokens: vLLM does not start where it cannot."""
        if self.kv_pool_tokens < max_model_len:
            return Fit.DOES_NOT_FIT
        return Fit.MARGINAL if self.kv_pool_tokens < 2 * max_model_len else Fit.FITS

    def sequences(self, context_tokens: int) -> int:
        """Sequences of `context_tokens` tokens that the KV pool holds at one time."""
        at_least(1, context_tokens=context_tokens)
        return self.kv_pool_tokens // (-(-context_tokens // BLOCK_TOKENS) * BLOCK_TOKENS)


def gpu_memory_budget(
    model: ModelShape,
    gpu: Gpu,
    tensor_parallel_size: int,
    *,
    gpu_memory_utilization: float = DEFAULT_GPU_MEMORY_UTILIZATION,
    pd_buffer_bytes: int,
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS,
    kv_format: KvFormat = KvFormat.BF16,
) -> MemoryBudget:
    """The budget of one GPU of either role.

    LMCache 0.4.3 allocates PD_BUFFER_SIZE on the sender as well as on the receiver, and the environment of a DPD endpoint is
    the same for both roles; pass 0 for a colocated engine, which has no buffer.

    Raises ValueError for values outside their range; a budget that does not hold is not an error: read `buffer_fit` and `sequence_fit`.
    """
    at_least(0, pd_buffer_bytes=pd_buffer_bytes)
    engine = engine_bytes(gpu, gpu_memory_utilization)
    weights = weights_bytes_per_rank(model, tensor_parallel_size)
    activations = activation_bytes(model, tensor_parallel_size, max_num_batched_tokens)
    reserve = reserve_bytes(tensor_parallel_size)
    pool, outside = engine - weights - activations, gpu.memory_bytes - engine
    headroom = outside - pd_buffer_bytes - reserve

    def explain() -> tuple[Quantity, ...]:
        return (
            Quantity("hbm_bytes", gpu.memory_bytes, Unit.BYTES, Confidence.PUBLISHED, f"HBM of one {gpu.name}", ()),
            engine_bytes.quantity(gpu, gpu_memory_utilization),
            weights_bytes_per_rank.quantity(model, tensor_parallel_size),
            activation_bytes.quantity(model, tensor_parallel_size, max_num_batched_tokens),
            Quantity(
                "kv_pool_bytes", pool, Unit.BYTES, Confidence.MODELLED, "engine_bytes - weights_bytes_per_rank - activation_bytes", (VLLM,)
            ),
            kv_pool_tokens.quantity(model, pool, tensor_parallel_size, kv_format),
            Quantity("pd_buffer_bytes", pd_buffer_bytes, Unit.BYTES, Confidence.EXACT, "PD_BUFFER_SIZE, on each rank", (LMCACHE,)),
            reserve_bytes.quantity(tensor_parallel_size),
            Quantity(
                "headroom_bytes",
                headroom,
                Unit.BYTES,
                Confidence.MODELLED,
                "hbm_bytes - engine_bytes - pd_buffer_bytes - reserve_bytes",
                (AI_CONFIGURATOR,),
            ),
        )

    return MemoryBudget(
        gpu.memory_bytes,
        engine,
        weights,
        activations,
        pool,
        kv_pool_tokens(model, pool, tensor_parallel_size, kv_format),
        outside,
        pd_buffer_bytes,
        reserve,
        headroom,
        explain,
    )
