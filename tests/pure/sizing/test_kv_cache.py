"""KV cache bytes and the PD buffer against the exact points of the documents, and their monotonicity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.catalog.models import MODELS, KvFormat, ModelShape, find_model
from dpd_infra.plan.sizing.buffer import (
    BufferTooSmallError,
    buffer_chunks,
    chunk_bytes,
    guaranteed_requests,
    hold_and_wait_pd_buffer_bytes,
    minimum_pd_buffer_bytes,
    prefill_step_kv_bytes,
    request_buffer_bytes,
    request_chunks,
    unpadded_requests,
    used_buffer_bytes,
)
from dpd_infra.plan.sizing.kv_cache import (
    kv_bytes,
    kv_bytes_per_token,
    kv_bytes_read,
    sequence_kv_bytes,
    tensor_parallel_divides_heads,
    tensor_parallel_problems,
)

GIB = 1024**3
models = st.sampled_from([shape for shape, _ in MODELS])
parallel = st.sampled_from([1, 2, 4, 8])
kv_formats = st.sampled_from(list(KvFormat))


def model(name: str) -> ModelShape:
    found = find_model(name)
    assert found is not None
    return found


LLAMA_70B = model("Llama-3.3-70B-Instruct")


@pytest.mark.parametrize(
    ("name", "tensor_parallel_size", "expected"),
    [
        ("Llama-3.3-70B-Instruct", 1, 327_680),
        ("Llama-3.3-70B-Instruct", 2, 163_840),
        ("Llama-3.3-70B-Instruct", 4, 81_920),
        ("Llama-3.3-70B-Instruct", 8, 40_960),
        ("Llama-3.3-70B-Instruct", 16, 40_960),
        ("Llama-3.1-8B", 1, 131_072),
        ("Llama-3.1-8B", 8, 16_384),
        ("DeepSeek-V3", 1, 70_272),
        ("DeepSeek-V3", 8, 70_272),
    ],
)
def test_bytes_per_token_are_the_documented_ones(name: str, tensor_parallel_size: int, expected: int) -> None:
    assert kv_bytes_per_token(model(name), tensor_parallel_size) == expected
    assert kv_bytes_per_token(model(name), tensor_parallel_size, KvFormat.FP8) * 2 == expected


def test_a_chunk_of_llama_70b_is_ten_mebibytes() -> None:
    assert chunk_bytes(LLAMA_70B, 8) == 10_485_760


def test_the_default_buffer_holds_819_chunks_and_leaves_two_mebibytes_unused() -> None:
    assert buffer_chunks(8_589_934_592, 10_485_760) == 819
    assert used_buffer_bytes(8_589_934_592, 10_485_760) == 8_587_837_440
    assert 8_589_934_592 - used_buffer_bytes(8_589_934_592, 10_485_760) == 2_097_152


def test_six_thousand_tokens_take_24_chunks() -> None:
    assert kv_bytes(LLAMA_70B, 6000, 8) == 245_760_000
    assert request_chunks(6000) == 24
    assert request_buffer_bytes(LLAMA_70B, 6000, 8) / GIB == 0.234375


def test_the_log_line_of_6035_tokens_is_24_chunks() -> None:
    # The DPD guide's sample: 6035 tokens, size 0.2344, cost 1.3304 ms, throughput 176.1686.
    size_gib = request_buffer_bytes(LLAMA_70B, 6035, 8) / GIB
    assert round(size_gib, 4) == 0.2344
    assert size_gib / 1.3304e-3 == pytest.approx(176.1686, rel=1e-4)


def test_requests_in_the_default_buffer() -> None:
    assert unpadded_requests(LLAMA_70B, 8_589_934_592, 6000, 8) == pytest.approx(34.95, abs=0.005)
    assert guaranteed_requests(LLAMA_70B, 8_589_934_592, 6000, 8) == 34
    assert guaranteed_requests(LLAMA_70B, 8_589_934_592, 16_384, 8) == 12


def test_sixteen_prefills_at_full_length_hold_ten_gibibytes() -> None:
    assert hold_and_wait_pd_buffer_bytes(LLAMA_70B, 16, 16_384, 8) == 10 * GIB


def test_a_buffer_smaller_than_a_chunk_is_refused_as_lmcache_does() -> None:
    with pytest.raises(BufferTooSmallError):
        buffer_chunks(10_485_759, 10_485_760)
    assert buffer_chunks(10_485_760, 10_485_760) == 1


def test_a_prefill_step_larger_than_the_buffer_is_seen() -> None:
    # The case of LMCache pull request 1215: 32,768 batched tokens of 70B at TP 8 against a 1 GiB buffer.
    assert prefill_step_kv_bytes(LLAMA_70B, 32_768, 8) > GIB


@given(models, parallel, kv_formats, st.integers(1, 131_072))
def test_the_minimum_buffer_takes_exactly_one_prompt_of_full_length(shape: ModelShape, tp: int, kv_format: KvFormat, length: int) -> None:
    smallest = minimum_pd_buffer_bytes(shape, length, tp, kv_format)
    assert guaranteed_requests(shape, smallest, length, tp, kv_format) == 1
    if smallest - 1 >= chunk_bytes(shape, tp, kv_format):
        assert guaranteed_requests(shape, smallest - 1, length, tp, kv_format) == 0


@given(models, parallel, kv_formats, st.integers(1, 131_072))
def test_padding_never_takes_less_than_the_tokens_nor_a_whole_chunk_more(
    shape: ModelShape, tp: int, kv_format: KvFormat, tokens: int
) -> None:
    raw, padded = kv_bytes(shape, tokens, tp, kv_format), request_buffer_bytes(shape, tokens, tp, kv_format)
    assert raw <= padded < raw + chunk_bytes(shape, tp, kv_format)


@given(models, kv_formats)
def test_more_ranks_never_hold_more_bytes_each_and_never_fewer_in_all(shape: ModelShape, kv_format: KvFormat) -> None:
    per_rank = [kv_bytes_per_token(shape, tp, kv_format) for tp in (1, 2, 4, 8, 16)]
    assert per_rank == sorted(per_rank, reverse=True)
    total = [each * tp for each, tp in zip(per_rank, (1, 2, 4, 8, 16), strict=True)]
    assert total == sorted(total)


@given(models, parallel, st.integers(1, 131_071), st.integers(1, 10**11))
def test_longer_prompts_never_fit_more_often_and_larger_buffers_never_less(shape: ModelShape, tp: int, tokens: int, extra: int) -> None:
    buffer = chunk_bytes(shape, tp) * 100
    assert guaranteed_requests(shape, buffer, tokens + 1, tp) <= guaranteed_requests(shape, buffer, tokens, tp)
    assert guaranteed_requests(shape, buffer + extra, tokens, tp) >= guaranteed_requests(shape, buffer, tokens, tp)


@given(models, parallel, st.integers(1, 131_072))
def test_the_guaranteed_count_is_never_above_the_unpadded_one(shape: ModelShape, tp: int, tokens: int) -> None:
    buffer = chunk_bytes(shape, tp) * 700
    assert guaranteed_requests(shape, buffer, tokens, tp) <= unpadded_requests(shape, buffer, tokens, tp)


def test_a_windowed_layer_reads_its_window_only_and_stores_everything() -> None:
    gpt_oss = model("gpt-oss-120b")
    token = kv_bytes_per_token(gpt_oss, 8)
    assert kv_bytes_read(gpt_oss, 100, 8) == 100 * token
    # 36 layers, 18 with a window of 128: half of the layers see 10,000 tokens, half 128.
    assert kv_bytes_read(gpt_oss, 10_000, 8) == token // 36 * 18 * (10_000 + 128)
    assert sequence_kv_bytes(gpt_oss, 10_000, 8) == 10_000 * token


def test_a_sequence_takes_whole_blocks() -> None:
    assert sequence_kv_bytes(LLAMA_70B, 1, 8) == 16 * 40_960
    assert sequence_kv_bytes(LLAMA_70B, 16_384, 8) == 16_384 * 40_960


@pytest.mark.parametrize(
    ("name", "size", "divides"),
    [("Llama-3.3-70B", 8, True), ("Llama-3.3-70B", 6, False), ("Llama-3.3-70B", 0, False), ("Qwen3-235B-A22B", 8, True)],
)
def test_a_tensor_parallel_size_that_does_not_divide_the_heads_is_named(name: str, size: int, *, divides: bool) -> None:
    assert tensor_parallel_divides_heads(model(name), size) is divides
    assert (not tensor_parallel_problems(model(name), size)) is divides


@pytest.mark.parametrize(
    "call",
    [lambda: kv_bytes_per_token(LLAMA_70B, 0), lambda: request_chunks(0), lambda: request_chunks(5, 0), lambda: kv_bytes(LLAMA_70B, -1, 8)],
)
def test_values_outside_the_stated_range_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        call()  # type: ignore[operator]
