"""A model's shape from its Hugging Face config.json, for models that the catalog does not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpd_infra.catalog.models import Experts, LatentAttention, ModelShape, WeightFormat
from dpd_infra.catalog.sources import Source

DENSE_TYPES = ("llama", "mistral", "qwen2", "qwen3")
"""`model_type` values whose layers are: norm, attention, norm, gated feed-forward block."""
MIXTURE_TYPES = ("mixtral", "qwen3_moe", "gpt_oss")
"""The same with routed experts in every layer."""
LATENT_TYPES = ("deepseek_v3", "kimi_k2")
"""MLA with routed and shared experts."""

_NEEDED = (
    "num_attention_heads",
    "hidden_size",
    "num_hidden_layers",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
_NEEDED_LATENT = ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
_OPTIONAL = (
    "num_key_value_heads",
    "head_dim",
    "sliding_window",
    "max_window_layers",
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "n_shared_experts",
    "first_k_dense_replace",
)
_MAY_BE_NOUGHT = {
    "sliding_window",
    "max_window_layers",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "n_shared_experts",
    "first_k_dense_replace",
}
_MOST = 100_000_000
"""No count of a model's shape comes near it."""

_WIDTHS = ("num_local_experts", "num_experts", "n_routed_experts")


class UnsupportedConfigError(ValueError):
    """A config.json that this reader would describe wrongly."""


def read_model_config(path: Path, name: str = "") -> ModelShape:
    """The shape that a config.json describes; `name` defaults to the file's folder.

    Raises `UnsupportedConfigError` for an architecture, quantisation or layout that is not read, OSError for a file that cannot be read.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnsupportedConfigError(f"{path} is no JSON: {error}") from error
    return model_from_config(config, name or path.resolve().parent.name, str(path))


def model_from_config(config: Any, name: str, origin: str) -> ModelShape:
    """The shape that the parsed content of a config.json describes."""
    if not isinstance(config, dict):
        raise UnsupportedConfigError(f"{origin}: a config.json is an object")
    text = config.get("text_config") or config
    for section in ("text_config", "quantization_config"):
        if not isinstance(config.get(section) or {}, dict):
            raise UnsupportedConfigError(f"{origin}: {section} is {_short(config[section])}, and must be an object")
    kind = text.get("model_type", config.get("model_type"))
    known = (*DENSE_TYPES, *MIXTURE_TYPES, *LATENT_TYPES)
    if kind not in known:
        raise UnsupportedConfigError(f"{origin}: model_type {_short(kind)} is not read; known are {', '.join(known)}")
    try:
        return _shape(text, kind, name, _weight_format(config, origin), origin)
    except KeyError as error:
        raise UnsupportedConfigError(f"{origin}: {error.args[0]} is missing") from error
    except UnsupportedConfigError:
        raise
    except ValueError as error:
        # Numbers that are each possible and not together.
        raise UnsupportedConfigError(f"{origin}: {error}") from error


def _shape(config: dict[str, Any], kind: str, name: str, weights: WeightFormat, origin: str) -> ModelShape:
    _check_counts(config, kind, origin)
    heads, hidden, layers = config["num_attention_heads"], config["hidden_size"], config["num_hidden_layers"]
    window, windowed = _window(config, layers, origin)
    latent = None
    if kind in LATENT_TYPES:
        latent = LatentAttention(
            kv_lora_rank=config["kv_lora_rank"],
            qk_rope_head_dim=config["qk_rope_head_dim"],
            qk_nope_head_dim=config["qk_nope_head_dim"],
            v_head_dim=config["v_head_dim"],
            q_lora_rank=config["q_lora_rank"],
        )
    bias = bool(config.get("attention_bias"))
    return ModelShape(
        name,
        layers,
        hidden,
        heads,
        config.get("num_key_value_heads") or heads,
        latent.qk_nope_head_dim + latent.qk_rope_head_dim if latent else config.get("head_dim") or hidden // heads,
        config["intermediate_size"],
        config["vocab_size"],
        config["max_position_embeddings"],
        experts=None if kind in DENSE_TYPES else _experts(config, kind, origin),
        latent=latent,
        sliding_window=window,
        windowed_layers=windowed,
        weight_format=weights,
        tied_embeddings=bool(config.get("tie_word_embeddings")),
        qkv_bias=bias or kind == "qwen2",
        output_bias=bias and kind in {"llama", "gpt_oss"},
        qk_norm=kind in {"qwen3", "qwen3_moe"},
        attention_sinks=kind == "gpt_oss",
        source=Source(f"config.json of {name}", origin),
    )


def _check_counts(config: dict[str, Any], kind: str, origin: str) -> None:
    """Every number that is read is a whole one of a size that a model may have, and those that nothing works without are there."""
    needed = [*_NEEDED, *(_NEEDED_LATENT if kind in LATENT_TYPES else ()), *(() if kind in DENSE_TYPES else ("num_experts_per_tok",))]
    wrong = [f"{key} is missing" for key in needed if config.get(key) is None]
    for key in (*needed, *_OPTIONAL):
        value = config.get(key)
        least = 0 if key in _MAY_BE_NOUGHT else 1
        if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST):
            wrong.append(f"{key} is {_short(value)}, and must be a whole number from {least} to {_MOST:,}")
    kinds = config.get("layer_types")
    if kinds is not None and not (isinstance(kinds, list) and all(isinstance(each, str) for each in kinds)):
        wrong.append(f"layer_types is {_short(kinds)}, and must be a list of text")
    if wrong:
        raise UnsupportedConfigError(f"{origin}: {'; '.join(wrong)}")


def _short(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _experts(config: dict[str, Any], kind: str, origin: str) -> Experts:
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1 or config.get("moe_layer_freq", 1) != 1:
        raise UnsupportedConfigError(f"{origin}: dense layers between expert layers are not read")
    count = next((config[key] for key in _WIDTHS if config.get(key)), None)
    if count is None:
        raise UnsupportedConfigError(f"{origin}: none of {', '.join(_WIDTHS)}")
    width = config.get("moe_intermediate_size") or config["intermediate_size"]
    return Experts(
        count=count,
        active=config["num_experts_per_tok"],
        width=width,
        shared_width=(config.get("n_shared_experts") or 0) * width or config.get("shared_expert_intermediate_size") or 0,
        dense_layers=config.get("first_k_dense_replace") or 0,
        router_bias=kind == "gpt_oss" or config.get("topk_method") == "noaux_tc",
        expert_bias=kind == "gpt_oss",
    )


def _window(config: dict[str, Any], layers: int, origin: str) -> tuple[int | None, int]:
    """The window and how many layers use it."""
    window = config.get("sliding_window")
    if not window or config.get("use_sliding_window") is False:
        return None, 0
    kinds = config.get("layer_types")
    if kinds is None:
        if "max_window_layers" in config:
            raise UnsupportedConfigError(f"{origin}: a window in some layers without layer_types is not read")
        return window, layers
    other = set(kinds) - {"sliding_attention", "full_attention"}
    if other:
        raise UnsupportedConfigError(f"{origin}: layer types {', '.join(sorted(other))} are not read")
    count = kinds.count("sliding_attention")
    return (window, count) if count else (None, 0)


def _weight_format(config: dict[str, Any], origin: str) -> WeightFormat:
    quantization = config.get("quantization_config")
    if not quantization:
        return WeightFormat.BF16
    method = str(quantization.get("quant_method", "")).lower()
    if method == "fp8":
        return WeightFormat.FP8_BLOCK if quantization.get("weight_block_size") else WeightFormat.FP8
    if method == "mxfp4":
        return WeightFormat.MXFP4
    if method == "fbgemm_fp8" or (method == "modelopt" and quantization.get("quant_algo") == "FP8"):
        return WeightFormat.FP8
    if method == "compressed-tensors":
        groups = quantization.get("config_groups")
        listed = list(groups.values()) if isinstance(groups, dict) else []
        found = [group.get("weights") for group in listed if isinstance(group, dict)]
        weights = [each if isinstance(each, dict) else {} for each in found]
        if weights and all(each.get("num_bits") == 8 and each.get("type") == "float" for each in weights):  # fp8
            return WeightFormat.FP8_BLOCK if any(each.get("strategy") == "block" for each in weights) else WeightFormat.FP8
    raise UnsupportedConfigError(f"{origin}: weights quantised with {method or 'an unnamed method'} are not described here")
