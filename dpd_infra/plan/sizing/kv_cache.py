"""The KV cache of a model: bytes a token, a sequence and a decode step; and the tensor-parallel sizes it can be split into."""

from __future__ import annotations

from dpd_infra.catalog.models import KvFormat, ModelShape, WeightFormat
from dpd_infra.catalog.sources import LMCACHE, VLLM, Confidence
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula

FP8_BLOCK = 128
"""Weights a side of one scaled block (`weight_block_size`): vLLM refuses a rank whose share is not whole blocks."""

BLOCK_TOKENS = 16
"""Tokens of one block of vLLM's paged KV cache on CUDA (`--block-size`)."""


def _kv_text(model: ModelShape, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16) -> str:
    element = kv_format.element_bytes
    if model.latent:
        return f"L * (kv_lora_rank + qk_rope_head_dim) * {element} bytes, the same on each of {tensor_parallel_size} ranks"
    return f"2 * L * ceil(H_kv / tensor_parallel_size) * d * {element} bytes"


@formula(
    _kv_text,
    Unit.BYTES,
    Confidence.EXACT,
    LMCACHE,
    note="per token and rank; KV heads are replicated, not halved, once there are more ranks than heads",
)
def kv_bytes_per_token(model: ModelShape, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16) -> int:
    """KV bytes of one token on one rank, all layers: what LMCache stores and sends, and what vLLM's pool gives a token.

    Llama 3 70B at TP 8 in bf16: 40,960. MLA keeps one latent vector for all heads, so it is not divided by the tensor-parallel size.
    """
    at_least(1, tensor_parallel_size=tensor_parallel_size)
    if model.latent:
        return model.layers * (model.latent.kv_lora_rank + model.latent.qk_rope_head_dim) * kv_format.element_bytes
    heads = -(-model.kv_heads // tensor_parallel_size)
    return 2 * model.layers * heads * model.head_dim * kv_format.element_bytes


@formula("tokens * kv_bytes_per_token", Unit.BYTES, Confidence.EXACT, LMCACHE, note="per rank, before LMCache pads the last chunk")
def kv_bytes(model: ModelShape, tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16) -> int:
    """KV bytes of `tokens` tokens on one rank."""
    at_least(0, tokens=tokens)
    return tokens * kv_bytes_per_token(model, tensor_parallel_size, kv_format)


@formula(
    f"ceil(tokens / {BLOCK_TOKENS}) * {BLOCK_TOKENS} * kv_bytes_per_token",
    Unit.BYTES,
    Confidence.EXACT,
    VLLM,
    note="per rank; windowed layers are counted in full, which is what vLLM does without its hybrid KV cache manager",
)
def sequence_kv_bytes(model: ModelShape, tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16) -> int:
    """Room that one sequence of `tokens` tokens takes in vLLM's paged KV cache on one rank: whole blocks."""
    at_least(1, tokens=tokens)
    return -(-tokens // BLOCK_TOKENS) * BLOCK_TOKENS * kv_bytes_per_token(model, tensor_parallel_size, kv_format)


@formula(
    "kv_bytes_per_token / L * ((L - windowed layers) * context_tokens + windowed layers * min(context_tokens, sliding_window))",
    Unit.BYTES,
    Confidence.EXACT,
    VLLM,
)
def kv_bytes_read(model: ModelShape, context_tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16) -> int:
    """KV bytes that attention reads on one rank to decode one token; windowed layers read their window only."""
    at_least(0, context_tokens=context_tokens)
    layer_bytes = kv_bytes_per_token(model, tensor_parallel_size, kv_format) // model.layers
    windowed = min(context_tokens, model.sliding_window) if model.sliding_window else context_tokens
    return layer_bytes * ((model.layers - model.windowed_layers) * context_tokens + model.windowed_layers * windowed)


def tensor_parallel_problems(model: ModelShape, tensor_parallel_size: int) -> tuple[str, ...]:
    """Why vLLM would refuse to split this model over so many ranks, one sentence a reason; empty where it can."""
    if tensor_parallel_size < 1:
        return (f"the tensor-parallel size is {tensor_parallel_size}, and must be at least 1",)
    problems: list[str] = []
    if model.query_heads % tensor_parallel_size:
        problems.append(f"{model.query_heads} attention heads are not divisible by {tensor_parallel_size}")
    if not model.latent and model.kv_heads % tensor_parallel_size and tensor_parallel_size % model.kv_heads:
        problems.append(f"{model.kv_heads} KV heads can be neither divided by nor replicated to {tensor_parallel_size} ranks")
    widths = {model.experts.width, model.experts.shared_width} if model.experts else {model.intermediate_size}
    for width in sorted(widths):
        share, rest = divmod(width, tensor_parallel_size)
        if rest:
            problems.append(f"the intermediate size {width} is not divisible by {tensor_parallel_size}")
        elif model.weight_format is WeightFormat.FP8_BLOCK and share % FP8_BLOCK:
            problems.append(f"{width} / {tensor_parallel_size} is not a multiple of the fp8 weight block of {FP8_BLOCK}")
    return tuple(problems)


def tensor_parallel_divides_heads(model: ModelShape, tensor_parallel_size: int) -> bool:
    """Whether vLLM can give every rank whole attention heads."""
    return not any("heads" in problem for problem in tensor_parallel_problems(model, tensor_parallel_size)) and tensor_parallel_size >= 1
