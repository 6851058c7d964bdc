"""The constants of the time model: what a GPU reaches of its peaks, fitted once to the profiled tables of AIConfigurator."""

from __future__ import annotations

from dataclasses import dataclass

from dpd_infra.catalog.instance_types import Gpu
from dpd_infra.catalog.models import ModelShape, WeightFormat


class OutsideValidityError(ValueError):
    """A question that the time model was not compared with anything for: no number is better than a wrong one."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one GPU architecture reaches, and how long its kernels take however little they do."""

    architecture: str
    linear_efficiency: float
    """Of the bf16 peak, in a large matrix product."""
    fp8_linear_efficiency: float
    """Of the fp8 peak."""
    attention_efficiency: float
    """Of the bf16 peak, in prefill attention over a very long prompt."""
    attention_half_tokens: float
    """Prompt length at which prefill attention reaches half of that."""
    kv_read_efficiency: float
    """Of the HBM bandwidth, while decode attention reads the KV cache."""
    kv_kernel_seconds: float
    """Decode attention of one layer over nothing."""
    all_reduce_efficiency: float
    """Of the NVLink bandwidth."""
    all_reduce_seconds: float
    """One all-reduce of nothing."""
    fp8_kernel_seconds: float
    """One fp8 matrix product with its quantisation, over nothing."""
    expert_efficiency: float
    """Of the peak, in the products of very wide experts."""
    expert_half_width: float
    """Width of an expert on one rank at which its products reach half of that."""
    expert_kernel_seconds: float
    """Routing, sorting and merging of one layer."""
    expert_read_efficiency: float
    """Of the HBM bandwidth, while experts' weights are read."""
    latent_kernel_seconds: float
    """Decode attention of one MLA layer over nothing."""
    latent_efficiency: float
    """Of the bf16 peak, in MLA prefill attention."""


MEMORY_EFFICIENCY = 0.8
"""Of the HBM bandwidth, for everything else (AIConfigurator's `mem_bw_empirical_scaling_factor`)."""

KERNEL_SECONDS = 3e-6
"""A kernel that does nothing (AIConfigurator's `mem_empirical_constant_latency`)."""

HOPPER = Calibration(
    architecture="Hopper",
    linear_efficiency=0.77,
    fp8_linear_efficiency=0.60,
    attention_efficiency=0.67,
    attention_half_tokens=2250,
    kv_read_efficiency=0.93,
    kv_kernel_seconds=8.2e-6,
    all_reduce_efficiency=0.80,
    all_reduce_seconds=9.7e-6,
    fp8_kernel_seconds=4e-6,
    expert_efficiency=0.70,
    expert_half_width=465,
    expert_kernel_seconds=28e-6,
    expert_read_efficiency=0.80,
    latent_kernel_seconds=126e-6,
    latent_efficiency=0.126,
)
"""Fitted to 400 dense bf16 points of the H100 and H200 tables (8B, 32B, 70B and 405B; TP 1 to 8), 96 points of mixtures and 20 of MLA."""

BLACKWELL = Calibration(
    architecture="Blackwell",
    linear_efficiency=0.70,
    fp8_linear_efficiency=0.57,
    attention_efficiency=0.69,
    attention_half_tokens=2000,
    kv_read_efficiency=0.87,
    kv_kernel_seconds=8.5e-6,
    all_reduce_efficiency=0.53,
    all_reduce_seconds=11.5e-6,
    fp8_kernel_seconds=6.8e-6,
    expert_efficiency=0.72,
    expert_half_width=1200,
    expert_kernel_seconds=14e-6,
    expert_read_efficiency=0.51,
    latent_kernel_seconds=311e-6,
    latent_efficiency=0.197,
)
"""Fitted to 400 dense bf16 points of the B200 and B300 tables, 58 points of mixtures and 20 of MLA."""

_ARCHITECTURES = {"H100": HOPPER, "H200": HOPPER, "B200": BLACKWELL, "B300": BLACKWELL}


def calibration(gpu: Gpu) -> Calibration:
    """The constants of a GPU. Raises `OutsideValidityError` for one that was not compared."""
    if gpu.name not in _ARCHITECTURES:
        raise OutsideValidityError(f"no time model for {gpu.name}: it was fitted to {', '.join(_ARCHITECTURES)}")
    return _ARCHITECTURES[gpu.name]


def error_share(model: ModelShape, gpu: Gpu) -> float:
    """How far a modelled time may lie from the library's, as a share: the worst point of the comparison, prompts of 1,000 tokens and more.

    Below 1,000 tokens prefill is up to 40 % too fast: kernel overheads that are not modelled weigh more. Raises `OutsideValidityError`
    for dense models with block-scaled fp8 weights, whose tables scatter by a factor of four.
    """
    hopper = calibration(gpu) is HOPPER
    if model.latent:
        return 0.40 if hopper else 0.50
    if model.is_mixture:
        return 0.40 if hopper else 0.45
    if model.weight_format is WeightFormat.FP8_BLOCK:
        raise OutsideValidityError(
            f"no time model for block-scaled fp8 weights of a dense model ({model.name}): its tables scatter by a factor of 4"
        )
    if model.weight_format is WeightFormat.FP8:
        return 0.30 if hopper else 0.45
    return 0.15 if hopper else 0.35
