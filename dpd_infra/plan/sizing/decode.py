"""How long a decode step takes: the floor that the HBM sets, and the model of what is reached."""

from __future__ import annotations

from typing import Any

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import AI_CONFIGURATOR, Confidence
from dpd_infra.plan.sizing.calibration import error_share
from dpd_infra.plan.sizing.kv_cache import kv_bytes_read
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula
from dpd_infra.plan.sizing.step import PARTS_TEXT, decode_step

EFFICIENCY = 0.57
"""What the rule of thumb takes for 70B bf16 at TP 8 and batch 32: floor over time."""


def _floor_parts(
    model: ModelShape, gpu: Gpu, tensor_parallel_size: int, batch: int, context_tokens: int, kv_format: KvFormat = KvFormat.BF16
) -> dict[str, Any]:
    del gpu
    return {
        "weight_bytes_read": model.weight_bytes_read(batch),
        "kv_bytes_read": kv_bytes_read(model, context_tokens, tensor_parallel_size, kv_format),
    }


@formula(
    "(weight_bytes_read / tensor_parallel_size + batch * kv_bytes_read) / hbm_bandwidth",
    Unit.SECONDS,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="a floor: no step can be faster",
    parts=_floor_parts,
)
def decode_floor_seconds(
    model: ModelShape, gpu: Gpu, tensor_parallel_size: int, batch: int, context_tokens: int, kv_format: KvFormat = KvFormat.BF16
) -> float:
    """The least time of one decode step: weights and KV cache once through the HBM."""
    at_least(1, tensor_parallel_size=tensor_parallel_size, batch=batch)
    read = model.weight_bytes_read(batch) / tensor_parallel_size
    return (read + batch * kv_bytes_read(model, context_tokens, tensor_parallel_size, kv_format)) / gpu.memory_bandwidth_bytes_per_second


def _parts(
    model: ModelShape, gpu: Gpu, tensor_parallel_size: int, batch: int, context_tokens: int, kv_format: KvFormat = KvFormat.BF16
) -> dict[str, Any]:
    step = decode_step(model, gpu, tensor_parallel_size, batch, context_tokens, kv_format)
    return step.parts() | {"error": f"within {error_share(model, gpu):.0%} of AIConfigurator's tables"}


@formula(
    PARTS_TEXT,
    Unit.SECONDS,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="valid for batches of 1 to 512 and contexts up to 131,072 tokens",
    parts=_parts,
)
def decode_seconds(
    model: ModelShape, gpu: Gpu, tensor_parallel_size: int, batch: int, context_tokens: int, kv_format: KvFormat = KvFormat.BF16
) -> float:
    """Time of one decode step with `batch` sequences of `context_tokens` tokens each: the TPOT of an engine that only decodes.

    Llama 70B, bf16, TP 8, H100, batch 32 at 6,000 tokens: about 13.6 ms. Raises `OutsideValidityError` where it was not compared.
    """
    return decode_step(model, gpu, tensor_parallel_size, batch, context_tokens, kv_format).seconds


@formula("decode_floor_seconds / decode_seconds", Unit.RATIO, Confidence.MODELLED, AI_CONFIGURATOR, note="the rule of thumb takes 0.57")
def decode_efficiency(
    model: ModelShape, gpu: Gpu, tensor_parallel_size: int, batch: int, context_tokens: int, kv_format: KvFormat = KvFormat.BF16
) -> float:
    """What share of the HBM bandwidth the modelled decode step amounts to."""
    floor = decode_floor_seconds(model, gpu, tensor_parallel_size, batch, context_tokens, kv_format)
    return floor / decode_seconds(model, gpu, tensor_parallel_size, batch, context_tokens, kv_format)
