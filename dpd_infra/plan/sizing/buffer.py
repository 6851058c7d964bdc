"""The PD buffer: chunks, what a request takes, how many requests it guarantees, and where it begins to make prefills wait."""

from __future__ import annotations

from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import DPD_GUIDE, LMCACHE, Confidence
from dpd_infra.plan.sizing.kv_cache import kv_bytes, kv_bytes_per_token
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula

CHUNK_TOKENS = 256
"""LMCache's `chunk_size` by default (LMCache 0.4.3, v1/config.py)."""

DEFAULT_PD_BUFFER_BYTES = 8_589_934_592
"""PD_BUFFER_SIZE of the DPD guide's examples: 8 GiB, on each rank."""

SUGGESTED_PD_BUFFER_BYTES = (8_589_934_592, 17_179_869_184, 34_359_738_368)
"""The sizes the DPD guide names: 8, 16 and 32 GiB."""


class BufferTooSmallError(ValueError):
    """The buffer does not hold one chunk: LMCache refuses to start."""


@formula("chunk_tokens * kv_bytes_per_token", Unit.BYTES, Confidence.EXACT, LMCACHE, note="per rank")
def chunk_bytes(model: ModelShape, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16, chunk_tokens: int = CHUNK_TOKENS) -> int:
    """Bytes of one LMCache chunk on one rank. Llama 3 70B at TP 8: 10,485,760 (10 MiB)."""
    at_least(1, chunk_tokens=chunk_tokens)
    return chunk_tokens * kv_bytes_per_token(model, tensor_parallel_size, kv_format)


@formula("floor(pd_buffer_bytes / chunk_size_bytes)", Unit.CHUNKS, Confidence.EXACT, LMCACHE)
def buffer_chunks(pd_buffer_bytes: int, chunk_size_bytes: int) -> int:
    """Chunks that the buffer holds. LMCache 0.4.3 floors PD_BUFFER_SIZE to whole chunks.

    Raises `BufferTooSmallError` for a buffer smaller than one chunk, which LMCache refuses.
    """
    at_least(1, chunk_size_bytes=chunk_size_bytes)
    if pd_buffer_bytes < chunk_size_bytes:
        raise BufferTooSmallError(f"a PD buffer of {pd_buffer_bytes:,} bytes is smaller than one chunk of {chunk_size_bytes:,} bytes")
    return pd_buffer_bytes // chunk_size_bytes


@formula("floor(pd_buffer_bytes / chunk_size_bytes) * chunk_size_bytes", Unit.BYTES, Confidence.EXACT, LMCACHE)
def used_buffer_bytes(pd_buffer_bytes: int, chunk_size_bytes: int) -> int:
    """Bytes of the buffer that LMCache allocates; the rest of PD_BUFFER_SIZE stays unused."""
    return buffer_chunks(pd_buffer_bytes, chunk_size_bytes) * chunk_size_bytes


@formula("ceil(tokens / chunk_tokens)", Unit.CHUNKS, Confidence.EXACT, LMCACHE)
def request_chunks(tokens: int, chunk_tokens: int = CHUNK_TOKENS) -> int:
    """Chunks one prompt of `tokens` tokens takes: the last partial chunk takes a whole slot."""
    at_least(1, tokens=tokens)
    at_least(1, chunk_tokens=chunk_tokens)
    return -(-tokens // chunk_tokens)


@formula("ceil(tokens / chunk_tokens) * chunk_tokens * kv_bytes_per_token", Unit.BYTES, Confidence.EXACT, LMCACHE, note="per rank")
def request_buffer_bytes(
    model: ModelShape, tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16, chunk_tokens: int = CHUNK_TOKENS
) -> int:
    """Bytes one prompt takes in the PD buffer of one rank, whole chunks. 6,000 tokens of Llama 3 70B at TP 8: 24 chunks, 0.234375 GiB."""
    return request_chunks(tokens, chunk_tokens) * chunk_bytes(model, tensor_parallel_size, kv_format, chunk_tokens)


@formula("floor(floor(pd_buffer_bytes / chunk_bytes) / ceil(tokens / chunk_tokens))", Unit.REQUESTS, Confidence.EXACT, LMCACHE)
def guaranteed_requests(
    model: ModelShape,
    pd_buffer_bytes: int,
    tokens: int,
    tensor_parallel_size: int,
    kv_format: KvFormat = KvFormat.BF16,
    chunk_tokens: int = CHUNK_TOKENS,
) -> int:
    """Prompts of `tokens` tokens that the buffer holds whole at one time; 0 where not even one fits."""
    return buffer_chunks(pd_buffer_bytes, chunk_bytes(model, tensor_parallel_size, kv_format, chunk_tokens)) // request_chunks(
        tokens, chunk_tokens
    )


@formula(
    "pd_buffer_bytes / (tokens * kv_bytes_per_token)",
    Unit.REQUESTS,
    Confidence.EXACT,
    DPD_GUIDE,
    note="without padding to chunks: the DPD guide's own count, always a little too many",
)
def unpadded_requests(
    model: ModelShape, pd_buffer_bytes: int, tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16
) -> float:
    """Prompts that would fit if chunks were not padded. 6,000 tokens of Llama 3 70B at TP 8 in 8 GiB: 34.95, the guide's "about 35"."""
    at_least(1, tokens=tokens)
    return pd_buffer_bytes / kv_bytes(model, tokens, tensor_parallel_size, kv_format)


@formula(
    "ceil(max_model_len / chunk_tokens) * chunk_bytes",
    Unit.BYTES,
    Confidence.EXACT,
    LMCACHE,
    note="per rank: below it a prompt of full length never fits, and its prefill waits for ever",
)
def minimum_pd_buffer_bytes(
    model: ModelShape, max_model_len: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16, chunk_tokens: int = CHUNK_TOKENS
) -> int:
    """The smallest PD buffer that takes one prompt of `max_model_len` tokens."""
    return request_buffer_bytes(model, max_model_len, tensor_parallel_size, kv_format, chunk_tokens)


@formula(
    "concurrent_prefills * ceil(max_model_len / chunk_tokens) * chunk_bytes",
    Unit.BYTES,
    Confidence.EXACT,
    LMCACHE,
    note="a worst case: all prefills at full length at once, each holding part of what it needs. To warn about, not to fail on",
)
def hold_and_wait_pd_buffer_bytes(
    model: ModelShape,
    concurrent_prefills: int,
    max_model_len: int,
    tensor_parallel_size: int,
    kv_format: KvFormat = KvFormat.BF16,
    chunk_tokens: int = CHUNK_TOKENS,
) -> int:
    """The PD buffer at which no prefill ever waits for another one's chunks.

    LMCache 0.4.3 takes chunks one at a time and frees them after the decoder retrieved them. `concurrent_prefills` is the
    prefillers' replicas times their max-num-seqs.
    """
    at_least(1, concurrent_prefills=concurrent_prefills)
    return concurrent_prefills * minimum_pd_buffer_bytes(model, max_model_len, tensor_parallel_size, kv_format, chunk_tokens)


@formula(
    "max_num_batched_tokens * kv_bytes_per_token",
    Unit.BYTES,
    Confidence.EXACT,
    LMCACHE,
    note="per rank: a buffer below it makes prefiller, decoder and router wait for each other (LMCache pull request 1215)",
)
def prefill_step_kv_bytes(
    model: ModelShape, max_num_batched_tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16
) -> int:
    """KV bytes that one prefill step can produce on one rank."""
    return kv_bytes(model, max_num_batched_tokens, tensor_parallel_size, kv_format)
