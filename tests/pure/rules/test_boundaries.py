"""Rules on numbers trip exactly beyond their bound: the bounds are written out here from the documents, not taken from the code."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pure.rules.kit import Raw, env, flag, more, put, raw, role

KV_BYTES_PER_TOKEN = 40_960
"""Llama 70B, tensor-parallel size 8, bf16, a rank (sizing.md, exact points)."""
CHUNK_BYTES = 10_485_760
GIB = 2**30

SOME = settings(max_examples=60)
LENGTHS = st.integers(min_value=1, max_value=131_072)
BUFFERS = st.integers(min_value=1, max_value=64 * GIB)


def trips(given_input: Raw, rule: str) -> bool:
    return any(finding.rule == rule for finding in given_input.findings)


@SOME
@given(LENGTHS, BUFFERS)
def test_a_buffer_is_too_small_exactly_below_the_chunks_of_the_longest_prompt(length: int, buffer: int) -> None:
    needed = -(-length // 256) * CHUNK_BYTES
    for size in (buffer, needed - 1, needed):
        given_input = raw(flag("--max-model-len", str(length)), env("PD_BUFFER_SIZE", str(size)))
        assert trips(given_input, "DPD104") == (size < needed)


@SOME
@given(st.integers(min_value=1, max_value=200_000), BUFFERS)
def test_a_step_is_too_large_exactly_above_the_buffer(tokens: int, buffer: int) -> None:
    for size in (buffer, tokens * KV_BYTES_PER_TOKEN - 1, tokens * KV_BYTES_PER_TOKEN):
        given_input = raw(more("--max-num-batched-tokens", str(tokens)), env("PD_BUFFER_SIZE", str(size)))
        assert trips(given_input, "DPD107") == (size < tokens * KV_BYTES_PER_TOKEN)


@SOME
@given(LENGTHS, st.integers(min_value=1, max_value=64), st.integers(min_value=1, max_value=4))
def test_prefills_wait_exactly_where_all_of_them_need_more_than_the_buffer(length: int, sequences: int, replicas: int) -> None:
    given_input = raw(
        flag("--max-model-len", str(length)),
        role("prefillSpec", "--max-num-seqs", str(sequences)),
        put("spec|pdSpec|prefillSpec|replicas", replicas),
    )
    one = -(-length // 256) * CHUNK_BYTES
    fits_one = one <= 8 * GIB // CHUNK_BYTES * CHUNK_BYTES
    assert trips(given_input, "DPD106") == (fits_one and sequences * replicas * one > 8 * GIB)


@SOME
@given(st.integers(min_value=0, max_value=40_000), st.integers(min_value=1, max_value=40_000))
def test_nothing_is_disaggregated_exactly_from_the_longest_prompt_on(threshold: int, length: int) -> None:
    given_input = raw(put("spec|pdSpec|routingThreshold", threshold), flag("--max-model-len", str(length)))
    assert trips(given_input, "DPD303") == (threshold >= length)
    assert trips(given_input, "DPD304") == (threshold == 0)
    assert trips(given_input, "DPD305") == (0 < threshold < 4000)


@SOME
@given(st.floats(min_value=0.3, max_value=1), BUFFERS)
def test_a_buffer_never_fits_beside_a_share_that_leaves_less(utilization: float, buffer: int) -> None:
    given_input = raw(flag("--gpu-memory-utilization", repr(utilization)), env("PD_BUFFER_SIZE", str(buffer)))
    left = 80 * GIB - int(80 * GIB * utilization)
    # Within a byte of rounding either answer is right.
    if abs(buffer - left) > 1:
        assert trips(given_input, "DPD204") == (buffer > left)
    assert not (trips(given_input, "DPD204") and trips(given_input, "DPD205"))


@SOME
@given(st.integers(min_value=1, max_value=46), st.integers(min_value=1, max_value=46))
def test_names_are_too_long_exactly_above_46(name: int, namespace: int) -> None:
    given_input = raw(put("metadata|name", "n" * name), put("metadata|namespace", "m" * namespace))
    assert trips(given_input, "DPD004") == (name + namespace > 46)
