"""The time of one engine step as the sum of its parts: each the slower of computing and reading, and the kernels' own latency.

A roofline: the linear layers and experts read weights and multiply, attention reads or multiplies the KV cache, element-wise kernels
read and write activations, and two all-reduces a layer cross NVLink.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from math import hypot

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape, WeightFormat
from dpd_infra.plan.sizing.calibration import KERNEL_SECONDS, MEMORY_EFFICIENCY, Calibration, OutsideValidityError, calibration, error_share
from dpd_infra.plan.sizing.kv_cache import kv_bytes_read, tensor_parallel_problems

TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)
"""Ranks of one node: an all-reduce across nodes is not modelled."""

MAX_TOKENS = 131_072
"""Longest prompt and context that was compared."""

MAX_BATCH = 512
"""Largest decode batch that was compared."""

_LINEAR_KERNELS = 4
"""QKV, attention output, gate and up, down: matrix products of a layer."""
_ELEMENTWISE_KERNELS = 3
"""Two norms with their residual, and the activation."""
_NORM_PASSES = 8
"""Passes over a layer's hidden state: two norms, each reads and writes hidden state and residual."""
_ACTIVATION_PASSES = 3
"""Passes over the intermediate state: reads gate and up, writes their product."""
_BF16_BYTES = 2


@dataclass(frozen=True, slots=True)
class StepTime:
    """The parts of one step, in seconds, on each rank at one time."""

    linear_seconds: float
    expert_seconds: float
    attention_seconds: float
    elementwise_seconds: float
    all_reduce_seconds: float
    head_seconds: float

    @property
    def seconds(self) -> float:
        """All parts: they run one after another."""
        return (
            self.linear_seconds
            + self.expert_seconds
            + self.attention_seconds
            + self.elementwise_seconds
            + self.all_reduce_seconds
            + self.head_seconds
        )

    def parts(self) -> dict[str, float]:
        """The parts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


PARTS_TEXT = " + ".join(field.name for field in fields(StepTime))
"""The sum, as a formula."""

PARTS = {
    "linear_seconds": "hypot(weights / (TP * HBM bandwidth * 0.8), 2 * parameters * tokens / (TP * peak * efficiency)) + 4 kernels a layer",
    "expert_seconds": "hypot(hit experts / (TP * HBM bandwidth * efficiency), "
    "2 * active experts * tokens / (TP * peak * efficiency(width / TP))) + routing a layer",
    "attention_seconds": "prefill 2 * L * H_q * d * prompt^2 / (TP * peak * efficiency(prompt)), "
    "decode batch * KV bytes / (HBM bandwidth * efficiency); + kernel a layer",
    "elementwise_seconds": "L * tokens * 2 * (8 * hidden_size + 3 * intermediate_size / TP) / (HBM bandwidth * 0.8) + 3 kernels a layer",
    "all_reduce_seconds": "2 * L * (2 * (TP - 1) / TP * tokens * hidden_size * 2 / (NVLink bandwidth * efficiency) + latency); 0 at TP 1",
    "head_seconds": "output head's weights / (TP * HBM bandwidth * 0.8)",
}
"""What each part is."""


@lru_cache(maxsize=4096)
def prefill_step(model: ModelShape, gpu: Gpu, tensor_parallel_size: int, prompt_tokens: int, cached_tokens: int = 0) -> StepTime:
    """The parts of the prefill of one prompt, of which `cached_tokens` are in the prefix cache.

    Prompts longer than max-num-batched-tokens run in several steps, whose total is taken to be the same.
    Raises `OutsideValidityError` outside 1 to 131,072 tokens and for what was not compared, ValueError for values that cannot be.
    """
    constants = _constants(model, gpu, tensor_parallel_size)
    if not 1 <= prompt_tokens <= MAX_TOKENS:
        raise OutsideValidityError(f"prompt_tokens is {prompt_tokens:,}; the prefill time was compared for 1 to {MAX_TOKENS:,} tokens")
    if not 0 <= cached_tokens < prompt_tokens:
        raise ValueError(f"cached_tokens is {cached_tokens:,}, and must be at least 0 and below prompt_tokens ({prompt_tokens:,})")
    new_tokens = prompt_tokens - cached_tokens
    pairs = (model.layers - model.windowed_layers) * _causal(prompt_tokens, cached_tokens, None)
    pairs += model.windowed_layers * _causal(prompt_tokens, cached_tokens, model.sliding_window)
    if model.latent:
        width = (model.latent.qk_nope_head_dim + model.latent.qk_rope_head_dim + model.latent.v_head_dim) / 2
        efficiency = constants.latent_efficiency
    else:
        width = model.head_dim
        efficiency = constants.attention_efficiency * prompt_tokens / (prompt_tokens + constants.attention_half_tokens)
    attention = 4 * model.query_heads * width * pairs / (tensor_parallel_size * gpu.bf16_flops * efficiency)
    latency = constants.latent_kernel_seconds if model.latent else KERNEL_SECONDS
    return _step(model, gpu, tensor_parallel_size, constants, new_tokens, attention + model.layers * latency)


@lru_cache(maxsize=65536)
def decode_step(
    model: ModelShape, gpu: Gpu, tensor_parallel_size: int, batch: int, context_tokens: int, kv_format: KvFormat = KvFormat.BF16
) -> StepTime:
    """The parts of one decode step: one token for each of `batch` sequences of `context_tokens` tokens.

    Raises `OutsideValidityError` outside 1 to 512 sequences and 0 to 131,072 tokens and for what was not compared.
    """
    constants = _constants(model, gpu, tensor_parallel_size)
    if not 1 <= batch <= MAX_BATCH:
        raise OutsideValidityError(f"batch is {batch:,}; the decode time was compared for 1 to {MAX_BATCH} sequences")
    if not 0 <= context_tokens <= MAX_TOKENS:
        raise OutsideValidityError(f"context_tokens is {context_tokens:,}; the decode time was compared up to {MAX_TOKENS:,} tokens")
    read = batch * kv_bytes_read(model, context_tokens, tensor_parallel_size, kv_format)
    latency = constants.latent_kernel_seconds if model.latent else constants.kv_kernel_seconds
    attention = read / (gpu.memory_bandwidth_bytes_per_second * constants.kv_read_efficiency) + model.layers * latency
    return _step(model, gpu, tensor_parallel_size, constants, batch, attention)


def _constants(model: ModelShape, gpu: Gpu, tensor_parallel_size: int) -> Calibration:
    error_share(model, gpu)
    if tensor_parallel_size not in TENSOR_PARALLEL_SIZES:
        raise OutsideValidityError(f"tensor_parallel_size is {tensor_parallel_size}; times were compared for {TENSOR_PARALLEL_SIZES}")
    problems = tensor_parallel_problems(model, tensor_parallel_size)
    if problems:
        raise ValueError(f"{model.name} cannot be split over {tensor_parallel_size} ranks: {'; '.join(problems)}")
    return calibration(gpu)


def _causal(prompt_tokens: int, cached_tokens: int, window: int | None) -> float:
    """Pairs of a new token and a token that it sees, half of them for the causal mask."""
    if window is None or window >= prompt_tokens:
        return (prompt_tokens**2 - cached_tokens**2) / 2
    return (prompt_tokens - cached_tokens) * window - (max(0, window - cached_tokens) ** 2) / 2


def _step(model: ModelShape, gpu: Gpu, ranks: int, constants: Calibration, tokens: int, attention_seconds: float) -> StepTime:
    bandwidth = gpu.memory_bandwidth_bytes_per_second * MEMORY_EFFICIENCY
    fp8 = model.weight_format in {WeightFormat.FP8, WeightFormat.FP8_BLOCK}
    peak = (gpu.fp8_flops if fp8 else gpu.bf16_flops) or gpu.bf16_flops
    efficiency = constants.fp8_linear_efficiency if fp8 else constants.linear_efficiency
    kernel = constants.fp8_kernel_seconds if fp8 else KERNEL_SECONDS

    routed_active = model.layers_with_experts * 3 * model.hidden_size * model.experts.width * model.experts.active if model.experts else 0
    linear_bytes = model.weight_bytes - model.routed_expert_bytes - _BF16_BYTES * model.embedding_parameters
    linear = hypot(linear_bytes / (ranks * bandwidth), 2 * (model.linear_parameters - routed_active) * tokens / (ranks * peak * efficiency))

    expert = 0.0
    if model.experts:
        slice_width = model.experts.width / ranks
        reached = constants.expert_efficiency * slice_width / (slice_width + constants.expert_half_width)
        read = model.routed_expert_bytes * model.experts_hit(tokens)
        expert = hypot(
            read / (ranks * gpu.memory_bandwidth_bytes_per_second * constants.expert_read_efficiency),
            2 * routed_active * tokens / (ranks * peak * reached),
        )
        expert += model.layers_with_experts * constants.expert_kernel_seconds

    width = model.experts.shared_width if model.experts else model.intermediate_size
    moved = model.layers * tokens * _BF16_BYTES * (_NORM_PASSES * model.hidden_size + _ACTIVATION_PASSES * width / ranks)

    all_reduce = 0.0
    if ranks > 1:
        ring = 2 * (ranks - 1) / ranks * tokens * model.hidden_size * _BF16_BYTES
        all_reduce = ring / (gpu.nvlink_bytes_per_second * constants.all_reduce_efficiency) + constants.all_reduce_seconds
    return StepTime(
        linear_seconds=linear + model.layers * _LINEAR_KERNELS * kernel,
        expert_seconds=expert,
        attention_seconds=attention_seconds,
        elementwise_seconds=moved / bandwidth + model.layers * _ELEMENTWISE_KERNELS * KERNEL_SECONDS,
        all_reduce_seconds=2 * model.layers * all_reduce,
        head_seconds=_BF16_BYTES * model.vocabulary * model.hidden_size / (ranks * bandwidth) + KERNEL_SECONDS,
    )
