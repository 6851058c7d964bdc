"""The shape of a language model: what its config.json fixes, and the parameters and weight bytes that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from dpd_infra.catalog.sources import Source

BF16_BYTES = 2
FP8_BLOCK_PARAMETERS = 128 * 128
"""Weights that share one fp32 scale: `weight_block_size` [128, 128] of the published fp8 checkpoints."""
FP8_SCALE_BYTES = 4
MXFP4_BITS = 4.25
"""4-bit weights and one 8-bit scale for each 32 of them (OCP microscaling formats)."""


class WeightFormat(StrEnum):
    """How the linear layers' weights are held in HBM. Embeddings, the output head, norms and routers stay bf16."""

    BF16 = "bf16"
    FP8 = "fp8"
    """One scale a tensor or a channel."""
    FP8_BLOCK = "fp8-block"
    """One scale a block of 128 by 128 weights: DeepSeek-V3, Kimi-K2 and Qwen's own fp8 checkpoints."""
    MXFP4 = "mxfp4"
    """Experts only, as gpt-oss is published: attention stays bf16."""


class KvFormat(StrEnum):
    """How one element of the KV cache is held (vLLM's `--kv-cache-dtype`)."""

    BF16 = "bf16"
    FP8 = "fp8"

    @property
    def element_bytes(self) -> int:
        """Bytes an element."""
        return 1 if self is KvFormat.FP8 else BF16_BYTES


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA): one compressed vector a token and layer, shared by all heads."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    q_lora_rank: int


@dataclass(frozen=True, slots=True)
class Experts:
    """The expert layers of a mixture-of-experts model."""

    count: int
    """Routed experts a layer."""
    active: int
    """Routed experts that work on one token."""
    width: int
    """Intermediate size of one expert."""
    shared_width: int = 0
    """Intermediate size of the shared experts together; 0 for none."""
    dense_layers: int = 0
    """Layers at the front that have an ordinary feed-forward block instead."""
    router_bias: bool = False
    expert_bias: bool = False


@dataclass(frozen=True, slots=True)
class ModelShape:
    """One model. Symbols of the sizing formulas in brackets."""

    name: str
    """`organisation/model`, as on Hugging Face."""
    layers: int
    """[L]"""
    hidden_size: int
    query_heads: int
    """[H_q]"""
    kv_heads: int
    """[H_kv]"""
    head_dim: int
    """[d]"""
    intermediate_size: int
    """Of the dense feed-forward block."""
    vocabulary: int
    max_model_len: int
    """Positions the published config.json allows (`max_position_embeddings`)."""
    experts: Experts | None = None
    latent: LatentAttention | None = None
    sliding_window: int | None = None
    """Tokens a windowed layer looks back; None where every layer sees the whole context."""
    windowed_layers: int = 0
    """How many of the layers use the window."""
    weight_format: WeightFormat = WeightFormat.BF16
    tied_embeddings: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    attention_sinks: bool = False
    """One learned sink a query head and layer (gpt-oss)."""
    source: Source | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where a number cannot be of a model."""
        sizes = ("layers", "hidden_size", "query_heads", "kv_heads", "head_dim", "intermediate_size", "vocabulary", "max_model_len")
        for field in sizes:
            if getattr(self, field) < 1:
                raise ValueError(f"{self.name}: {field} is {getattr(self, field)}, and must be at least 1")
        if self.query_heads % self.kv_heads:
            raise ValueError(f"{self.name}: {self.query_heads} query heads cannot share {self.kv_heads} KV heads evenly")
        if not 0 <= self.windowed_layers <= self.layers:
            raise ValueError(f"{self.name}: {self.windowed_layers} windowed layers of {self.layers}")
        if self.windowed_layers and not self.sliding_window:
            raise ValueError(f"{self.name}: windowed layers without a sliding_window")
        if self.experts and self.experts.active > self.experts.count:
            raise ValueError(f"{self.name}: {self.experts.active} active experts of {self.experts.count}")

    @property
    def is_mixture(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.experts is not None

    @property
    def attention(self) -> str:
        """`MLA`, `MHA`, `MQA` or `GQA`."""
        if self.latent:
            return "MLA"
        if self.kv_heads == self.query_heads:
            return "MHA"
        return "MQA" if self.kv_heads == 1 else "GQA"

    @property
    def parameters(self) -> int:
        """All parameters of the main model [N]; multi-token-prediction layers left out, which vLLM does not load unless asked."""
        experts = self.layers_with_experts * _expert_block(self, self.experts, self.experts.count) if self.experts else 0
        return self._outside_experts() + experts

    @property
    def active_parameters(self) -> int:
        """Parameters that work on one token; the same as `parameters` for a dense model."""
        experts = self.layers_with_experts * _expert_block(self, self.experts, self.experts.active) if self.experts else 0
        return self._outside_experts() + experts

    @property
    def linear_parameters(self) -> int:
        """Active parameters that a matrix product goes through for every prompt token: the layers, without embeddings and output head."""
        return self.active_parameters - self.embedding_parameters

    @property
    def embedding_parameters(self) -> int:
        """The embedding table and the output head (one table where they are tied)."""
        return (1 if self.tied_embeddings else 2) * self.vocabulary * self.hidden_size

    @property
    def layers_with_experts(self) -> int:
        """Layers whose feed-forward block is a mixture."""
        return self.layers - self.experts.dense_layers if self.experts else 0

    @property
    def routed_expert_parameters(self) -> int:
        """The routed experts of all layers."""
        return self.layers_with_experts * _routed(self, self.experts, self.experts.count) if self.experts else 0

    @property
    def weight_bytes(self) -> int:
        """Weights of the whole model in HBM, over all ranks."""
        return self._weight_bytes(self.routed_expert_parameters, self.parameters - self.routed_expert_parameters)

    @property
    def routed_expert_bytes(self) -> int:
        """Weights of the routed experts of all layers, over all ranks."""
        return self.weight_bytes - self._weight_bytes(0, self.parameters - self.routed_expert_parameters)

    def experts_hit(self, tokens: int) -> float:
        """The share of the routed experts that a step over `tokens` tokens is expected to use; 0 for a dense model.

        With an even router `1 - (1 - active / count) ^ tokens`.
        """
        return 1 - (1 - self.experts.active / self.experts.count) ** tokens if self.experts else 0.0

    def weight_bytes_read(self, tokens: int) -> int:
        """Weight bytes that a step over `tokens` tokens reads, over all ranks: of a mixture only the experts that are hit."""
        return self.weight_bytes - round(self.routed_expert_bytes * (1 - self.experts_hit(tokens))) if self.experts else self.weight_bytes

    def with_weights(self, weight_format: WeightFormat) -> Self:
        """The same model with its linear layers held in another format."""
        return replace(self, weight_format=weight_format)

    def _weight_bytes(self, routed: int, others: int) -> int:
        bf16 = self.embedding_parameters + self._small_parameters()
        linear = others - bf16
        if self.weight_format is WeightFormat.BF16:
            return BF16_BYTES * (routed + others)
        if self.weight_format is WeightFormat.MXFP4:
            return round(routed * MXFP4_BITS / 8) + BF16_BYTES * others
        scales = (routed + linear) // FP8_BLOCK_PARAMETERS * FP8_SCALE_BYTES if self.weight_format is WeightFormat.FP8_BLOCK else 0
        return routed + linear + scales + BF16_BYTES * bf16

    def _outside_experts(self) -> int:
        dense = self.experts.dense_layers if self.experts else self.layers
        return (
            self.embedding_parameters
            + self.hidden_size
            + self.layers * self._attention_block()
            + dense * 3 * self.hidden_size * self.intermediate_size
        )

    def _attention_block(self) -> int:
        h, heads = self.hidden_size, self.query_heads
        norms = 2 * h
        if mla := self.latent:
            query = mla.q_lora_rank * (h + 1 + heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim))
            down = h * (mla.kv_lora_rank + mla.qk_rope_head_dim) + mla.kv_lora_rank
            up = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
            return norms + query + down + up + heads * mla.v_head_dim * h
        query, kv = heads * self.head_dim, self.kv_heads * self.head_dim
        biases = (query + 2 * kv if self.qkv_bias else 0) + (h if self.output_bias else 0)
        extras = (2 * self.head_dim if self.qk_norm else 0) + (heads if self.attention_sinks else 0)
        return norms + 2 * h * query + 2 * h * kv + biases + extras

    def _small_parameters(self) -> int:
        """Norms and routers, which stay bf16 in every format."""
        router = self.layers_with_experts * self.experts.count * self.hidden_size if self.experts else 0
        return router + self.hidden_size * (2 * self.layers + 1)


def _routed(shape: ModelShape, experts: Experts, count: int) -> int:
    bias = 2 * experts.width + shape.hidden_size if experts.expert_bias else 0
    return count * (3 * shape.hidden_size * experts.width + bias)


def _expert_block(shape: ModelShape, experts: Experts, count: int) -> int:
    router = experts.count * (shape.hidden_size + (1 if experts.router_bias else 0))
    return _routed(shape, experts, count) + router + 3 * shape.hidden_size * experts.shared_width
