"""How long the prefill of a prompt takes, and what it reaches of the GPU's peak."""

from __future__ import annotations

from typing import Any

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import ModelShape, WeightFormat
from dpd_infra.catalog.sources import AI_CONFIGURATOR, Confidence
from dpd_infra.plan.sizing.calibration import error_share
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula
from dpd_infra.plan.sizing.step import PARTS_TEXT, prefill_step

MFU_RANGE = (0.42, 0.45)
"""What the rule of thumb takes for 70B bf16 at TP 8 on H100: model FLOPs over peak FLOPs."""


def _parts(model: ModelShape, gpu: Gpu, tensor_parallel_size: int, prompt_tokens: int, cached_tokens: int = 0) -> dict[str, Any]:
    step = prefill_step(model, gpu, tensor_parallel_size, prompt_tokens, cached_tokens)
    return step.parts() | {"error": f"within {error_share(model, gpu):.0%} of AIConfigurator's tables from 1,000 tokens on"}


@formula(
    PARTS_TEXT,
    Unit.SECONDS,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="valid for 1 to 131,072 tokens; below 1,000 tokens up to 40 % too fast",
    parts=_parts,
)
def prefill_seconds(model: ModelShape, gpu: Gpu, tensor_parallel_size: int, prompt_tokens: int, cached_tokens: int = 0) -> float:
    """Time of the prefill of one prompt alone on one engine. Llama 70B, bf16, TP 8, H100: about 170 ms for 4,096 tokens.

    Raises `OutsideValidityError` where the model was not compared with the library.
    """
    return prefill_step(model, gpu, tensor_parallel_size, prompt_tokens, cached_tokens).seconds


def _mfu_parts(model: ModelShape, gpu: Gpu, tensor_parallel_size: int, prompt_tokens: int) -> dict[str, Any]:
    return {"peak_flops": _peak(model, gpu), "prefill_seconds": prefill_seconds(model, gpu, tensor_parallel_size, prompt_tokens)}


@formula(
    "(2 * N_active * prompt_tokens + 2 * L * H_q * d * prompt_tokens^2) / (tensor_parallel_size * peak_flops * prefill_seconds)",
    Unit.RATIO,
    Confidence.MODELLED,
    AI_CONFIGURATOR,
    note="the rule of thumb takes 0.42 to 0.45 for 70B bf16 at TP 8 on H100",
    parts=_mfu_parts,
)
def prefill_mfu(model: ModelShape, gpu: Gpu, tensor_parallel_size: int, prompt_tokens: int) -> float:
    """Model FLOPs utilisation that the modelled prefill time amounts to."""
    flops = 2 * model.active_parameters * prompt_tokens + 2 * model.layers * model.query_heads * model.head_dim * prompt_tokens**2
    return flops / (tensor_parallel_size * _peak(model, gpu) * prefill_seconds(model, gpu, tensor_parallel_size, prompt_tokens))


@formula("prompt_tokens / prefill_seconds", Unit.TOKENS_PER_SECOND, Confidence.MODELLED, AI_CONFIGURATOR)
def prefill_tokens_per_second(model: ModelShape, gpu: Gpu, tensor_parallel_size: int, prompt_tokens: int) -> float:
    """Prompt tokens that one engine takes in a second with prompts of this length."""
    return prompt_tokens / prefill_seconds(model, gpu, tensor_parallel_size, prompt_tokens)


@formula("waiting_prompt_tokens / prefill_tokens_per_second", Unit.SECONDS, Confidence.MODELLED, AI_CONFIGURATOR)
def backlog_seconds(waiting_prompt_tokens: int, prefill_tokens_per_second: float) -> float:
    """How long a prefill role needs for the prompt tokens that wait for it."""
    at_least(0, waiting_prompt_tokens=waiting_prompt_tokens)
    if prefill_tokens_per_second <= 0:
        raise ValueError(f"prefill_tokens_per_second is {prefill_tokens_per_second}, and must be above 0")
    return waiting_prompt_tokens / prefill_tokens_per_second


def _peak(model: ModelShape, gpu: Gpu) -> float:
    fp8 = model.weight_format in {WeightFormat.FP8, WeightFormat.FP8_BLOCK}
    return (gpu.fp8_flops if fp8 else gpu.bf16_flops) or gpu.bf16_flops
