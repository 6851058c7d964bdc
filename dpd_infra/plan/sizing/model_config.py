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

_WIDTHS = ("num_local_experts", "num_experts", "n_routed_experts")


class UnsupportedConfigError(ValueError):
    """A config.json that this reader would describe wrongly."""


def read_model_config(path: Path, name: str = "") -> ModelShape:
    """The shape that a config.json describes; `name` defaults to the file's folder.

    Raises `UnsupportedConfigError` for an architecture, quantisation or layout that is not read, OSError for a file that cannot be read.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UnsupportedConfigError(f"{path}: {error}") from error
    return model_from_config(config, name or path.resolve().parent.name, str(path))


def model_from_config(config: Any, name: str, origin: str) -> ModelShape:
    """The shape that the parsed content of a config.json describes."""
    if not isinstance(config, dict):
        raise UnsupportedConfigError(f"{origin}: a config.json is an object")
    text = config.get("text_config", config)
    kind = text.get("model_type", config.get("model_type"))
    known = (*DENSE_TYPES, *MIXTURE_TYPES, *LATENT_TYPES)
    if kind not in known:
        raise UnsupportedConfigError(f"{origin}: model_type {kind!r} is not read; known are {', '.join(known)}")
    try:
        return _shape(text, kind, name, _weight_format(config, origin), origin)
    except KeyError as error:
        raise UnsupportedConfigError(f"{origin}: {error.args[0]} is missing") from error
    except (TypeError, ZeroDivisionError, AttributeError) as error:
        raise UnsupportedConfigError(f"{origin}: a value is of the wrong kind: {error}") from error


def _shape(config: dict[str, Any], kind: str, name: str, weights: WeightFormat, origin: str) -> ModelShape:
    for key, value in config.items():
        if (key.startswith("num_") or key.endswith(("_size", "_rank", "_dim"))) and value is not None and not _is_count(value):
            raise UnsupportedConfigError(f"{origin}: {key} is {value!r}, and must be a whole number")
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
        config.get("num_key_value_heads", heads),
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


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _experts(config: dict[str, Any], kind: str, origin: str) -> Experts:
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1 or config.get("moe_layer_freq", 1) != 1:
        raise UnsupportedConfigError(f"{origin}: dense layers between expert layers are not read")
    count = next((config[key] for key in _WIDTHS if key in config), None)
    if count is None:
        raise UnsupportedConfigError(f"{origin}: none of {', '.join(_WIDTHS)}")
    width = config.get("moe_intermediate_size") or config["intermediate_size"]
    return Experts(
        count=count,
        active=config["num_experts_per_tok"],
        width=width,
        shared_width=config.get("n_shared_experts", 0) * width or config.get("shared_expert_intermediate_size") or 0,
        dense_layers=config.get("first_k_dense_replace", 0),
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
        groups = quantization.get("config_groups", {}).values()
        weights = [group.get("weights") or {} for group in groups]
        if weights and all(each.get("num_bits") == 8 and each.get("type") == "float" for each in weights):  # fp8
            return WeightFormat.FP8_BLOCK if any(each.get("strategy") == "block" for each in weights) else WeightFormat.FP8
    raise UnsupportedConfigError(f"{origin}: weights quantised with {method or 'an unnamed method'} are not described here")
