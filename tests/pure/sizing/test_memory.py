"""The memory budget of a GPU against the documented sizes of the PD buffer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import H100, H200
from dpd_infra.catalog.models import ModelShape, find_model
from dpd_infra.plan.sizing.memory import (
    Fit,
    MemoryBudget,
    activation_bytes,
    gpu_memory_budget,
    highest_gpu_memory_utilization,
    reserve_bytes,
)

GIB = 1024**3


def _llama() -> ModelShape:
    found = find_model("Llama-3.3-70B-Instruct")
    assert found is not None
    return found


LLAMA_70B = _llama()


def budget(utilization: float, buffer_gib: float, model: ModelShape = LLAMA_70B, tensor_parallel_size: int = 8) -> MemoryBudget:
    return gpu_memory_budget(model, H100, tensor_parallel_size, gpu_memory_utilization=utilization, pd_buffer_bytes=int(buffer_gib * GIB))


@pytest.mark.parametrize(
    ("utilization", "buffer_gib", "fit"),
    # "At 0.75 of 80 GB, 8 GiB fits, 16 GiB is marginal, 32 GiB needs about 0.55."
    [
        (0.75, 8, Fit.FITS),
        (0.75, 16, Fit.MARGINAL),
        (0.75, 32, Fit.DOES_NOT_FIT),
        (0.55, 32, Fit.MARGINAL),
        (0.50, 32, Fit.FITS),
        (0.9, 8, Fit.DOES_NOT_FIT),
    ],
)
def test_the_documented_buffer_sizes_fit_where_the_document_says(utilization: float, buffer_gib: int, fit: Fit) -> None:
    assert budget(utilization, buffer_gib).buffer_fit is fit


def test_the_utilization_that_32_gibibytes_need_is_about_0_55() -> None:
    assert highest_gpu_memory_utilization(H100, 32 * GIB, 8) == 0.55


def test_the_parts_add_up_to_the_memory_of_the_gpu() -> None:
    b = budget(0.75, 8)
    assert b.weights_bytes + b.activation_bytes + b.kv_pool_bytes == b.engine_bytes
    assert b.engine_bytes + b.pd_buffer_bytes + b.reserve_bytes + b.headroom_bytes == b.hbm_bytes == 80 * GIB
    # 141.1 GB of bf16 weights over eight ranks.
    assert b.weights_bytes == 141_107_412_992 // 8


def test_seventy_billion_bf16_parameters_do_not_fit_one_h100() -> None:
    b = budget(0.9, 0, tensor_parallel_size=1)
    assert b.kv_pool_bytes < 0
    assert b.kv_pool_tokens == 0
    assert b.sequence_fit(16_384) is Fit.DOES_NOT_FIT


def test_activations_double_for_a_mixture() -> None:
    mixture = find_model("Qwen3-235B-A22B")
    assert mixture is not None
    # Both have 64 heads of 128.
    assert activation_bytes(mixture, 8) == 2 * activation_bytes(LLAMA_70B, 8) == 2 * (2 * 8192 * 8192 * 5)


def test_the_reserve_is_the_librarys_figures_added() -> None:
    assert reserve_bytes(8) == 3_758_096_384 + 411_041_792
    assert reserve_bytes(1) == 3_758_096_384


@given(st.integers(10, 89), st.integers(0, 40))
def test_more_share_gives_more_kv_and_less_headroom(percent: int, buffer_gib: int) -> None:
    low, high = budget(percent / 100, buffer_gib), budget((percent + 1) / 100, buffer_gib)
    assert high.kv_pool_bytes > low.kv_pool_bytes
    assert high.headroom_bytes < low.headroom_bytes


@given(st.integers(0, 60 * GIB), st.sampled_from([1, 2, 4, 8]), st.sampled_from([H100, H200]))
def test_the_highest_utilization_leaves_room_and_a_hundredth_more_does_not(buffer: int, tp: int, gpu: object) -> None:
    assert gpu in (H100, H200)
    kind = H100 if gpu is H100 else H200
    best = highest_gpu_memory_utilization(kind, buffer, tp)
    assert gpu_memory_budget(LLAMA_70B, kind, tp, gpu_memory_utilization=best, pd_buffer_bytes=buffer).headroom_bytes >= 0
    if best <= 0.98:
        over = gpu_memory_budget(LLAMA_70B, kind, tp, gpu_memory_utilization=best + 0.011, pd_buffer_bytes=buffer)
        assert over.headroom_bytes < 0


@pytest.mark.parametrize("utilization", [0, -0.1, 1.01])
def test_a_share_outside_its_range_is_refused(utilization: float) -> None:
    with pytest.raises(ValueError, match="gpu_memory_utilization"):
        budget(utilization, 8)


def test_a_buffer_larger_than_the_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no room"):
        highest_gpu_memory_utilization(H100, 90 * GIB, 8)
