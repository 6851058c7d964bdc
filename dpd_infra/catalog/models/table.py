"""The catalog of models: each row is what the model's published config.json says, with the copy of it that was read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpd_infra.catalog.models.shape import Experts, LatentAttention, ModelShape, WeightFormat
from dpd_infra.catalog.sources import Source


def _packaged(repository: str) -> Source:
    """The config.json as AIConfigurator packages it, unchanged."""
    return Source(f"config.json of {repository}", f"aiconfigurator-core 0.12.0, model_configs/{repository.replace('/', '--')}_config.json")


_LITGPT = "Lightning-AI/litgpt, litgpt/config.py, which names the Hugging Face config.json it copies"
_QWEN_2_5 = "huggingface.co, the figures repeated alike by four public repositories and the published parameter count"


def _llama(name: str, layers: int, hidden: int, heads: int, width: int, source: Source) -> ModelShape:
    """The Llama 3.1 family: 8 KV heads, head dimension 128, untied embeddings."""
    return ModelShape(name, layers, hidden, heads, 8, 128, width, 128_256, 131_072, source=source)


def _qwen3(
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    width: int,
    *,
    kv_heads: int = 8,
    max_model_len: int = 40_960,
    experts: Experts | None = None,
) -> ModelShape:
    """The Qwen3 family: head dimension 128, norms on queries and keys, no biases."""
    return ModelShape(
        name, layers, hidden, heads, kv_heads, 128, width, 151_936, max_model_len, experts=experts, qk_norm=True, source=_packaged(name)
    )


_LLAMA_70B = _llama("meta-llama/Llama-3.1-70B-Instruct", 80, 8192, 64, 28_672, _packaged("meta-llama/Meta-Llama-3.1-70B"))
_DEEPSEEK_V3 = ModelShape(
    "deepseek-ai/DeepSeek-V3",
    61,
    7168,
    128,
    128,
    192,
    18_432,
    129_280,
    163_840,
    experts=Experts(256, 8, 2048, shared_width=2048, dense_layers=3, router_bias=True),
    latent=LatentAttention(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, q_lora_rank=1536),
    weight_format=WeightFormat.FP8_BLOCK,
    source=_packaged("deepseek-ai/DeepSeek-V3"),
)
_GPT_OSS: dict[str, Any] = {
    "sliding_window": 128,
    "weight_format": WeightFormat.MXFP4,
    "qkv_bias": True,
    "output_bias": True,
    "attention_sinks": True,
}
_QWEN_2_5_72B = ModelShape(
    "Qwen/Qwen2.5-72B-Instruct",
    80,
    8192,
    64,
    8,
    128,
    29_568,
    152_064,
    32_768,
    qkv_bias=True,
    source=Source("config.json of Qwen/Qwen2.5-72B-Instruct", _QWEN_2_5),
)

MODELS: tuple[tuple[ModelShape, tuple[str, ...]], ...] = (
    (
        _llama("meta-llama/Llama-3.1-8B-Instruct", 32, 4096, 32, 14_336, _packaged("meta-llama/Meta-Llama-3.1-8B")),
        ("Meta-Llama-3.1-8B-Instruct",),
    ),
    (_LLAMA_70B, ("Meta-Llama-3.1-70B-Instruct",)),
    (
        replace(
            _LLAMA_70B,
            name="meta-llama/Llama-3.3-70B-Instruct",
            source=Source(
                "config.json of meta-llama/Llama-3.3-70B-Instruct",
                "ai-dynamo/aiconfigurator, src/aiconfigurator/model_configs, commit f577ab84",
            ),
        ),
        ("Meta-Llama-3.3-70B-Instruct",),
    ),
    (
        _llama("meta-llama/Llama-3.1-405B-Instruct", 126, 16_384, 128, 53_248, _packaged("meta-llama/Meta-Llama-3.1-405B")),
        ("Meta-Llama-3.1-405B-Instruct",),
    ),
    (
        replace(
            _LLAMA_70B,
            name="deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
            source=Source("config.json of deepseek-ai/DeepSeek-R1-Distill-Llama-70B", _LITGPT),
        ),
        (),
    ),
    (_QWEN_2_5_72B, ()),
    (_qwen3("Qwen/Qwen3-8B", 36, 4096, 32, 12_288), ()),
    (_qwen3("Qwen/Qwen3-32B", 64, 5120, 64, 25_600), ()),
    (_qwen3("Qwen/Qwen3-30B-A3B", 48, 2048, 32, 6144, kv_heads=4, experts=Experts(128, 8, 768)), ()),
    (_qwen3("Qwen/Qwen3-235B-A22B", 94, 4096, 64, 12_288, kv_heads=4, experts=Experts(128, 8, 1536)), ()),
    (
        _qwen3("Qwen/Qwen3-Coder-480B-A35B-Instruct", 62, 6144, 96, 8192, max_model_len=262_144, experts=Experts(160, 8, 2560)),
        (),
    ),
    (
        ModelShape(
            "mistralai/Mistral-Large-Instruct-2407",
            88,
            12_288,
            96,
            8,
            128,
            28_672,
            32_768,
            131_072,
            source=Source("config.json of mistralai/Mistral-Large-Instruct-2407", _LITGPT),
        ),
        ("Mistral-Large-Instruct-2411",),
    ),
    (
        ModelShape(
            "mistralai/Mixtral-8x7B-v0.1",
            32,
            4096,
            32,
            8,
            128,
            14_336,
            32_000,
            32_768,
            experts=Experts(8, 2, 14_336),
            source=_packaged("mistralai/Mixtral-8x7B-v0.1"),
        ),
        ("Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B"),
    ),
    (
        ModelShape(
            "mistralai/Mixtral-8x22B-v0.1",
            56,
            6144,
            48,
            8,
            128,
            16_384,
            32_000,
            65_536,
            experts=Experts(8, 2, 16_384),
            source=_packaged("mistralai/Mixtral-8x22B-v0.1"),
        ),
        ("Mixtral-8x22B",),
    ),
    (_DEEPSEEK_V3, ("DeepSeek-V3-Base",)),
    (replace(_DEEPSEEK_V3, name="deepseek-ai/DeepSeek-R1", source=_packaged("deepseek-ai/DeepSeek-R1")), ()),
    (
        ModelShape(
            "moonshotai/Kimi-K2-Instruct",
            61,
            7168,
            64,
            64,
            192,
            18_432,
            163_840,
            131_072,
            experts=Experts(384, 8, 2048, shared_width=2048, dense_layers=1, router_bias=True),
            latent=_DEEPSEEK_V3.latent,
            weight_format=WeightFormat.FP8_BLOCK,
            source=_packaged("moonshotai/Kimi-K2-Instruct"),
        ),
        (),
    ),
    (
        ModelShape(
            "openai/gpt-oss-120b",
            36,
            2880,
            64,
            8,
            64,
            2880,
            201_088,
            131_072,
            windowed_layers=18,
            experts=Experts(128, 4, 2880, router_bias=True, expert_bias=True),
            source=_packaged("openai/gpt-oss-120b"),
            **_GPT_OSS,
        ),
        (),
    ),
    (
        ModelShape(
            "openai/gpt-oss-20b",
            24,
            2880,
            64,
            8,
            64,
            2880,
            201_088,
            131_072,
            windowed_layers=12,
            experts=Experts(32, 4, 2880, router_bias=True, expert_bias=True),
            source=_packaged("openai/gpt-oss-20b"),
            **_GPT_OSS,
        ),
        (),
    ),
)
"""Each shape with the other names people write for it. Left out because no published config.json could be read: everything not listed."""
