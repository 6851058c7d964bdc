"""The models people serve on these nodes, and how to find one by the name a user writes."""

from __future__ import annotations

import re

from dpd_infra.catalog.models.shape import Experts, KvFormat, LatentAttention, ModelShape, WeightFormat
from dpd_infra.catalog.models.table import MODELS

__all__ = ["MODELS", "Experts", "KvFormat", "LatentAttention", "ModelShape", "WeightFormat", "find_model", "model_names"]

_FORMATS = {"fp8": WeightFormat.FP8, "bf16": WeightFormat.BF16}
"""Words in a name that say how the weights are held."""

_FORMAT_SUFFIXES = ("-dynamic", "-static-pertensor", "-tensorwise", "-kv")
"""What fp8 checkpoints add behind the format; they change no shape."""

_VARIANTS = ("-instruct", "-chat", "-it", "-base", "-hf", "-thinking")
"""Words at the end of a name that change no shape."""


def find_model(name: str) -> ModelShape | None:
    """The shape of a model by the name a user writes, or None where the catalog does not know it.

    Takes `meta-llama/Llama-3.3-70B-Instruct`, `Llama-3.3-70B-Instruct`, `llama-3.3-70b` and
    `RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic` (fp8 weights). A name with another quantisation (AWQ, GPTQ, NVFP4 …) is not
    known: its weights are not described here. Never guesses from part of a name.
    """
    key = re.sub(r"[^a-z0-9]+", "-", name.rsplit("/", 1)[-1].lower()).strip("-")
    for suffix in _FORMAT_SUFFIXES:
        key = key.removesuffix(suffix)
    weights = None
    for word, weight_format in _FORMATS.items():
        if key.endswith(f"-{word}"):
            key, weights = key.removesuffix(f"-{word}"), weight_format
    shape = _BY_KEY.get(key)
    for suffix in _VARIANTS:
        shape = shape or _BY_KEY.get(key.removesuffix(suffix))
    if shape is None or weights is None:
        return shape
    if weights is WeightFormat.FP8 and (
        (key.startswith("qwen3") and name.lower().endswith("-fp8")) or shape.weight_format is WeightFormat.FP8_BLOCK
    ):
        # `weight_block_size` [128, 128] in the config.json of Qwen/Qwen3-32B-FP8 and of Qwen/Qwen3-235B-A22B-FP8.
        weights = WeightFormat.FP8_BLOCK
    return shape.with_weights(weights)


def model_names() -> tuple[str, ...]:
    """The names of all models in the catalog, `organisation/model`."""
    return tuple(shape.name for shape, _ in MODELS)


def _keys() -> dict[str, ModelShape]:
    keys: dict[str, ModelShape] = {}
    for shape, other_names in MODELS:
        for name in (shape.name.rsplit("/", 1)[-1], *other_names):
            key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
            keys[key] = shape
            for suffix in _VARIANTS:
                keys.setdefault(key.removesuffix(suffix), shape)
    return keys


_BY_KEY = _keys()
