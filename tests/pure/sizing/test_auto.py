"""What is left out is worked out so that it fits."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import B200, H100, H200, INSTANCE_TYPES, Gpu
from dpd_infra.catalog.models import ModelShape, find_model
from dpd_infra.plan.sizing.auto import Autos, work_out
from dpd_infra.plan.sizing.auto_numbers import (
    auto_decode_max_num_seqs,
    auto_gpu_memory_utilization,
    auto_pd_buffer_bytes,
    auto_prefill_max_num_seqs,
    auto_replicas,
)
from dpd_infra.plan.sizing.buffer import hold_and_wait_pd_buffer_bytes, minimum_pd_buffer_bytes
from dpd_infra.plan.sizing.memory import Fit, gpu_memory_budget
from dpd_infra.plan.sizing.outcome import disaggregated
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.workload import Lengths, Workload

GIB = 1024**3


def llama() -> ModelShape:
    found = find_model("Llama-3.3-70B-Instruct")
    assert found is not None
    return found


LLAMA_70B = llama()
SERVING = Serving(LLAMA_70B, INSTANCE_TYPES["ml.p5.48xlarge"], 16_384)


@pytest.mark.parametrize(
    ("gpu", "share", "prefills", "chunks"),
    # A chunk is 10 MiB, a prompt of 16,384 tokens takes 64 of them. What fits: 80 GiB less the share, 3.5 GiB, 392 MiB and 1 GiB to spare.
    [
        (H100, 0.75, 16, 16 * 64),
        (H100, 0.75, 32, 24 * 64),
        (H100, 0.9, 16, 4 * 64),
        (H200, 0.75, 16, 16 * 64),
        (H200, 0.75, 4, 819),
        (B200, 0.75, 32, 32 * 64),
    ],
)
def test_the_buffer_takes_all_prefills_or_as_many_as_fit_and_the_guides_size_at_least(
    gpu: Gpu, share: float, prefills: int, chunks: int
) -> None:
    assert auto_pd_buffer_bytes(LLAMA_70B, gpu, 8, share, 16_384, prefills) == chunks * 10 * 1024**2


@given(
    st.sampled_from([H100, H200, B200]),
    st.sampled_from([0.5, 0.75, 0.85, 0.9]),
    st.integers(1, 64),
    st.integers(1, 131_072),
    st.sampled_from([64, 256, 1000]),
    st.integers(1, 32_768),
)
def test_no_other_size_would_do_better(gpu: Gpu, share: float, prefills: int, length: int, chunk: int, step: int) -> None:
    size = auto_pd_buffer_bytes(LLAMA_70B, gpu, 8, share, length, prefills, chunk_tokens=chunk, max_num_batched_tokens=step)
    prompt = minimum_pd_buffer_bytes(LLAMA_70B, length, 8, chunk_tokens=chunk)
    all_prompts = hold_and_wait_pd_buffer_bytes(LLAMA_70B, prefills, length, 8, chunk_tokens=chunk)
    assert size % (chunk * 40_960) == 0
    assert size >= max(prompt, step * 40_960)

    def fit(buffer: int) -> Fit:
        return gpu_memory_budget(LLAMA_70B, gpu, 8, gpu_memory_utilization=share, pd_buffer_bytes=buffer).buffer_fit

    if fit(max(prompt, -(-step // chunk) * chunk * 40_960)) is Fit.FITS:
        assert fit(size) is Fit.FITS
    if size < all_prompts:
        # One prompt more would not fit.
        assert fit(size // prompt * prompt + prompt) is not Fit.FITS


@given(st.sampled_from([H100, H200, B200]), st.integers(0, 60 * GIB))
def test_the_share_leaves_the_buffer_its_room_and_a_gibibyte(gpu: Gpu, buffer: int) -> None:
    share = auto_gpu_memory_utilization(gpu, buffer, 8)
    budget = gpu_memory_budget(LLAMA_70B, gpu, 8, gpu_memory_utilization=share, pd_buffer_bytes=buffer)
    assert budget.buffer_fit is Fit.FITS
    assert share <= 0.9


@given(st.integers(1, 16_384))
def test_a_decoder_runs_as_many_sequences_as_its_pool_holds(context: int) -> None:
    count = auto_decode_max_num_seqs(SERVING, context)
    assert count * context <= SERVING.decode_budget.kv_pool_tokens
    assert count == 512 or (count + 1) * (context + 16) > SERVING.decode_budget.kv_pool_tokens


@settings(max_examples=30)
@given(st.floats(0.1, 60), st.integers(100, 12_000), st.integers(10, 800))
def test_replicas_are_the_fewest_that_keep_up(rate: float, prompt: int, answer: int) -> None:
    load = Workload(Lengths.constant(prompt), Lengths.constant(answer), requests_per_second=rate)
    found = auto_replicas(SERVING, load)
    assert found is not None
    assert disaggregated(found, load).keeps_up
    for fewer in ({"prefillers": found.prefillers - 1}, {"decoders": found.decoders - 1}):
        if min(fewer.values()) >= 1:
            assert not disaggregated(replace(found, **fewer), load).keeps_up


def test_a_closed_load_needs_one_of_each_and_an_impossible_one_is_none() -> None:
    users = Workload(Lengths.constant(4096), Lengths.constant(256), concurrency=64)
    assert auto_replicas(SERVING, users) == SERVING
    flood = Workload(Lengths.constant(16_000), Lengths.constant(256), requests_per_second=1000)
    assert auto_replicas(SERVING, flood) is None


@given(st.integers(1, 12), st.integers(1, 131_072), st.integers(1, 40))
def test_so_many_prefills_never_wait_for_each_others_chunks(prefillers: int, length: int, gibibytes: int) -> None:
    serving = replace(SERVING, prefillers=prefillers, max_model_len=length, pd_buffer_bytes=gibibytes * GIB)
    count = auto_prefill_max_num_seqs(serving)
    assert 1 <= count <= 16
    scaled = auto_prefill_max_num_seqs(replace(serving, prefillers=1, prefillers_at_most=prefillers))
    assert scaled == count
    needed = hold_and_wait_pd_buffer_bytes(LLAMA_70B, prefillers * count, length, 8)
    assert count == 1 or needed <= serving.pd_buffer_bytes
    assert count == 16 or hold_and_wait_pd_buffer_bytes(LLAMA_70B, prefillers * (count + 1), length, 8) > serving.pd_buffer_bytes


@settings(max_examples=40)
@given(
    st.builds(Autos, *[st.booleans()] * 6),
    st.sampled_from(["ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.p6-b200.48xlarge"]),
    st.floats(0.1, 30),
    st.integers(100, 12_000),
    st.integers(1, 64),
)
def test_what_is_worked_out_fits_and_is_worked_out_the_same_again(autos: Autos, nodes: str, rate: float, prompt: int, users: int) -> None:
    serving = replace(SERVING, instance=INSTANCE_TYPES[nodes], prefillers=2, decoders=3)
    load = Workload(Lengths.constant(prompt), Lengths.constant(300), requests_per_second=rate)
    found = work_out(serving, autos, load)
    assert work_out(found.serving, autos, load) == found
    assert {*found.how, *found.why_not} == {each.name for each in fields(Autos) if getattr(autos, each.name)}
    if autos.pd_buffer or autos.gpu_memory_utilization:
        assert found.serving.decode_budget.buffer_fit is Fit.FITS
    if autos.prefillers and autos.decoders and not found.why_not:
        assert disaggregated(found.serving, load).keeps_up
    closed = work_out(serving, autos, Workload(Lengths.constant(prompt), Lengths.constant(300), concurrency=users))
    assert closed.why_not == {}
