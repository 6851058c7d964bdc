"""The time model against the library's profiled tables, point by point, and what physics says about its direction."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import B200, B300, H100, H200, INSTANCE_TYPES, Gpu
from dpd_infra.catalog.models import KvFormat, ModelShape, WeightFormat, find_model
from dpd_infra.plan.sizing.calibration import OutsideValidityError, error_share
from dpd_infra.plan.sizing.decode import decode_efficiency, decode_floor_seconds, decode_seconds
from dpd_infra.plan.sizing.prefill import MFU_RANGE, backlog_seconds, prefill_mfu, prefill_seconds, prefill_tokens_per_second
from dpd_infra.plan.sizing.transfer import line_share, transfer_seconds

GPUS = {gpu.name: gpu for gpu in (H100, H200, B200, B300)}
SMALL_PROMPT = 1000
Point = tuple[str, ModelShape, Gpu, int, int, int, int, float]


def model(name: str) -> ModelShape:
    found = find_model(name)
    assert found is not None, name
    return found


def reference() -> list[Point]:
    """AIConfigurator 0.12, `cli_estimate`, vLLM tables, modes static_ctx and static_gen; experts split by tensor parallelism."""
    path = Path(__file__).with_name("aiconfigurator_0_12_vllm.csv")
    with path.open(encoding="utf-8") as file:
        return [
            (
                row["phase"],
                model(row["model"]),
                GPUS[row["gpu"]],
                int(row["tensor_parallel_size"]),
                int(row["input_tokens"]),
                int(row["output_tokens"]),
                int(row["batch"]),
                float(row["milliseconds"]),
            )
            for row in csv.DictReader(file)
        ]


POINTS = reference()
LLAMA_70B = model("Llama-3.3-70B-Instruct")


def ours(point: Point) -> float:
    phase, shape, gpu, ranks, prompt, output, batch, _ = point
    if phase == "prefill":
        return prefill_seconds(shape, gpu, ranks, prompt) * 1000
    return decode_seconds(shape, gpu, ranks, batch, prompt + output // 2) * 1000


def is_small(point: Point) -> bool:
    return point[0] == "prefill" and point[4] < SMALL_PROMPT


def test_every_point_of_the_library_is_met_within_the_stated_error() -> None:
    outside = [
        (point, ours(point))
        for point in POINTS
        if abs(ours(point) / point[-1] - 1) > (0.40 if is_small(point) else error_share(point[1], point[2]))
    ]
    assert not outside
    assert len(POINTS) > 1200


def test_dense_bf16_on_hopper_is_met_within_three_and_a_half_percent_in_the_median() -> None:
    errors = [
        abs(ours(point) / point[-1] - 1)
        for point in POINTS
        if point[2] in (H100, H200) and not is_small(point) and not point[1].is_mixture and point[1].weight_format is WeightFormat.BF16
    ]
    assert median(errors) < 0.035


@pytest.mark.parametrize(
    ("gpu", "prompt", "milliseconds"), [(H100, 1000, 45.4), (H100, 4096, 169.6), (H100, 8000, 336.1), (H200, 4096, 164.9)]
)
def test_the_documented_prefill_points_are_met_within_ten_percent(gpu: Gpu, prompt: int, milliseconds: float) -> None:
    assert prefill_seconds(LLAMA_70B, gpu, 8, prompt) * 1000 == pytest.approx(milliseconds, rel=0.10)


@pytest.mark.parametrize(("batch", "milliseconds"), [(1, 10.39), (32, 13.61), (64, 17.22)])
def test_the_documented_decode_points_are_met_within_ten_percent(batch: int, milliseconds: float) -> None:
    # 6,000 tokens in, 512 out: half of the answer is there in the mean.
    assert decode_seconds(LLAMA_70B, H100, 8, batch, 6256) * 1000 == pytest.approx(milliseconds, rel=0.10)


def test_the_rules_of_thumb_come_out_of_the_model() -> None:
    assert MFU_RANGE[0] <= prefill_mfu(LLAMA_70B, H100, 8, 4096) <= MFU_RANGE[1]
    assert decode_efficiency(LLAMA_70B, H100, 8, 32, 6256) == pytest.approx(0.57, abs=0.01)


def test_eight_thousand_tokens_cross_efa_in_6_55_ms() -> None:
    assert transfer_seconds(LLAMA_70B, INSTANCE_TYPES["ml.p5.48xlarge"], 8000, 8) == pytest.approx(6.5536e-3, rel=1e-9)
    assert transfer_seconds(LLAMA_70B, INSTANCE_TYPES["ml.p6-b300.48xlarge"], 8000, 8) == pytest.approx(3.2768e-3, rel=1e-9)
    assert line_share(5.0, 6.5536e-3) == pytest.approx(0.032768)


def test_an_instance_type_without_efa_moves_nothing() -> None:
    with pytest.raises(ValueError, match="has no EFA"):
        transfer_seconds(LLAMA_70B, INSTANCE_TYPES["ml.c5.4xlarge"], 8000, 8)


def test_a_backlog_is_its_tokens_over_the_prefill_speed() -> None:
    speed = prefill_tokens_per_second(LLAMA_70B, H100, 8, 4096)
    assert speed == pytest.approx(4096 / prefill_seconds(LLAMA_70B, H100, 8, 4096))
    assert backlog_seconds(81_920, speed) == pytest.approx(20 * prefill_seconds(LLAMA_70B, H100, 8, 4096))


dense = st.sampled_from(
    [model(name) for name in ("Llama-3.1-8B", "Qwen3-32B", "Llama-3.3-70B", "Llama-3.1-405B", "Mistral-Large-Instruct-2407")]
)
every = st.sampled_from([model(name) for name in ("Llama-3.3-70B", "Qwen3-235B-A22B", "DeepSeek-V3", "gpt-oss-120b", "Mixtral-8x22B")])
gpus = st.sampled_from(list(GPUS.values()))


@given(every, gpus, st.integers(1, 131_071), st.integers(1, 4096))
def test_longer_prompts_take_longer(shape: ModelShape, gpu: Gpu, prompt: int, more: int) -> None:
    longer = min(131_072, prompt + more)
    assert prefill_seconds(shape, gpu, 8, longer) > prefill_seconds(shape, gpu, 8, prompt)


@given(every, gpus, st.integers(2, 131_072), st.data())
def test_a_cached_prefix_never_makes_a_prefill_longer(shape: ModelShape, gpu: Gpu, prompt: int, data: st.DataObject) -> None:
    cached = data.draw(st.integers(1, prompt - 1))
    assert prefill_seconds(shape, gpu, 8, prompt, cached) < prefill_seconds(shape, gpu, 8, prompt)


@given(every, gpus, st.integers(1, 511), st.integers(0, 131_000), st.integers(1, 72))
def test_larger_batches_and_longer_contexts_take_longer_steps(shape: ModelShape, gpu: Gpu, batch: int, context: int, more: int) -> None:
    base = decode_seconds(shape, gpu, 8, batch, context)
    assert decode_seconds(shape, gpu, 8, batch + 1, context) > base
    assert decode_seconds(shape, gpu, 8, batch, context + more) > base


@given(every, gpus, st.integers(1, 512), st.integers(1, 131_072))
def test_no_step_is_faster_than_the_hbm_allows(shape: ModelShape, gpu: Gpu, batch: int, context: int) -> None:
    assert decode_seconds(shape, gpu, 8, batch, context) > decode_floor_seconds(shape, gpu, 8, batch, context)


@given(dense, st.integers(1, 512), st.integers(1, 131_072))
def test_more_bandwidth_and_smaller_kv_never_slow_a_step(shape: ModelShape, batch: int, context: int) -> None:
    assert decode_seconds(shape, H200, 8, batch, context) < decode_seconds(shape, H100, 8, batch, context)
    assert decode_seconds(shape, H100, 8, batch, context, KvFormat.FP8) < decode_seconds(shape, H100, 8, batch, context)


@given(dense, gpus, st.sampled_from([1, 2, 4]), st.integers(4096, 131_072))
def test_more_ranks_shorten_a_long_prefill(shape: ModelShape, gpu: Gpu, ranks: int, prompt: int) -> None:
    assert prefill_seconds(shape, gpu, 2 * ranks, prompt) < prefill_seconds(shape, gpu, ranks, prompt)


@pytest.mark.parametrize(
    "call",
    [
        lambda: prefill_seconds(LLAMA_70B, H100, 8, 0),
        lambda: prefill_seconds(LLAMA_70B, H100, 8, 131_073),
        lambda: prefill_seconds(LLAMA_70B, H100, 16, 4096),
        lambda: decode_seconds(LLAMA_70B, H100, 8, 0, 4096),
        lambda: decode_seconds(LLAMA_70B, H100, 8, 513, 4096),
        lambda: decode_seconds(LLAMA_70B, H100, 8, 1, 131_073),
        lambda: decode_seconds(LLAMA_70B, Gpu("A100", 80 * 1024**3, 2e12, 312e12, None), 8, 1, 4096),
        lambda: decode_seconds(model("Qwen/Qwen3-32B-FP8"), H100, 8, 1, 4096),
    ],
)
def test_outside_what_was_compared_there_is_no_number(call: object) -> None:
    with pytest.raises(OutsideValidityError):
        call()  # type: ignore[operator]


def test_a_split_that_vllm_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match="not a multiple of the fp8 weight block"):
        prefill_seconds(model("Qwen/Qwen3-235B-A22B-FP8"), H100, 8, 4096)
