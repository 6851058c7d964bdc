"""Rules on the PD buffer: whether prompts fit into it, one by one and together."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.images import worker_image
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import DPD_GUIDE, LMCACHE, thread
from dpd_infra.plan.sizing.buffer import (
    DEFAULT_PD_BUFFER_BYTES,
    SUGGESTED_PD_BUFFER_BYTES,
    chunk_bytes,
    guaranteed_requests,
    hold_and_wait_pd_buffer_bytes,
    minimum_pd_buffer_bytes,
    prefill_step_kv_bytes,
    used_buffer_bytes,
)
from dpd_infra.plan.sizing.kv_cache import kv_bytes_per_token
from dpd_infra.plan.sizing.quantity import Unit, human
from dpd_infra.render.auto_places import AUTO
from dpd_infra.rules.environment import ENVIRONMENT, Variable
from dpd_infra.rules.patches import set_flag, set_value, set_variable
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation, once_an_endpoint, told_once
from dpd_infra.rules.wording import buffer_size
from dpd_infra.spec.finding import Patch, Path, Severity
from dpd_infra.spec.vocabulary import PD_BUFFER_VARIABLE

_SHORT: Path = ("cache", "pdBufferBytes")
_FLAG = "max-num-batched-tokens"


class _Buffer:
    """What the rules here need together; made only where all of it is known."""

    def __init__(
        self, variable: Variable, size: int, model: ModelShape, ranks: int, kv_format: KvFormat, chunk_tokens: int, longest: int | None
    ) -> None:
        self.variable, self.size, self.model, self.ranks, self.kv_format = variable, size, model, ranks, kv_format
        self.chunk_tokens, self.longest = chunk_tokens, longest
        self.chunk = chunk_bytes(model, ranks, kv_format, chunk_tokens)


@once_an_endpoint
def _buffer(endpoint: EndpointSubject) -> _Buffer | None:
    reading = endpoint.reading
    if not reading.disaggregated:
        return None
    variable, size, decode = reading.environment.get(PD_BUFFER_VARIABLE), reading.pd_buffer_bytes, reading.decode
    ranks, kv_format, tokens = decode.tensor_parallel_size, decode.kv_format, reading.chunk_tokens
    if variable is None or size is None or reading.model is None or not ranks or ranks < 1 or kv_format is None or tokens is None:
        return None
    return _Buffer(variable, size, reading.model, ranks, kv_format, tokens, reading.max_model_len(decode))


def _human(size: float) -> str:
    return human(size, Unit.BYTES)


def _patch(endpoint: EndpointSubject, buffer: _Buffer, least: int) -> Patch | None:
    """The next of the guide's sizes; nothing beyond the largest, which wants its memory worked out first."""
    size = next((size for size in SUGGESTED_PD_BUFFER_BYTES if size >= least), None)
    if size is None:
        return None
    written = set_value(endpoint, buffer.variable.path, str(size))
    # The short form's own field is a number, an override's entry is text.
    return Patch(written.path, size) if written is not None and written.path[-1] == _SHORT[-1] else written


@rule(
    "DPD103",
    "PD_BUFFER_SIZE is a number of bytes",
    severity=Severity.ERROR,
    why="With disaggregation LMCache does not start without the size of its buffer, and it takes bytes only: no unit, no quotes inside.",
    sources=(DPD_GUIDE, LMCACHE),
    since="3.2",
)
def buffer_is_given(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Absent, or not a positive whole number."""
    reading = endpoint.reading
    variable = reading.environment.get(PD_BUFFER_VARIABLE)
    if not reading.disaggregated or reading.pd_buffer_bytes is not None or (variable is not None and variable.value is None):
        return
    what = f"PD_BUFFER_SIZE is {variable.value!r}" if variable else "PD_BUFFER_SIZE is not set"
    yield Violation(
        endpoint.at(*(variable.path if variable else ENVIRONMENT)),
        what,
        f"write {DEFAULT_PD_BUFFER_BYTES} (8 GiB, the guide's size)",
        value=variable.value if variable else None,
        patch=set_variable(endpoint, PD_BUFFER_VARIABLE, str(DEFAULT_PD_BUFFER_BYTES)) if endpoint.spec is None else None,
    )


@rule(
    "DPD104",
    "The PD buffer takes one prompt of full length",
    severity=Severity.ERROR,
    why="LMCache refuses a buffer smaller than one chunk; one smaller than the longest prompt lets that prompt's prefill wait for ever.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1337, 2080, 2365)),
    since="3.2",
)
def buffer_takes_a_prompt(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Smaller than one chunk, or than one prompt of max-model-len tokens, of a model of the catalog."""
    buffer = _buffer(endpoint)
    if buffer is None:
        return
    least, of_what = buffer.chunk, f"one chunk of {buffer.chunk_tokens} tokens"
    if buffer.longest is not None:
        least = minimum_pd_buffer_bytes(buffer.model, buffer.longest, buffer.ranks, buffer.kv_format, buffer.chunk_tokens)
        of_what = f"one prompt of {buffer.longest:,} tokens (--max-model-len)"
    if buffer.size >= least:
        return
    yield Violation(
        endpoint.at(*buffer.variable.path),
        f"PD_BUFFER_SIZE is {buffer.size:,} bytes ({_human(buffer.size)}); {of_what} of {buffer.model.name} at tensor-parallel size "
        f"{buffer.ranks} takes {least:,} ({_human(least)})",
        f"set {buffer_size(endpoint)} to {least} or more",
        value=buffer.size,
        patch=_patch(endpoint, buffer, least),
    )


@rule(
    "DPD105",
    "The PD buffer is a whole number of chunks",
    severity=Severity.ADVICE,
    why="LMCache 0.4.3 rounds the buffer down to whole chunks; older releases refuse to start. The documented images hold 0.4.3; what "
    "another image holds is not known here.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1909, 1990, 2104, 2694)),
    since="3.2",
)
def buffer_is_whole_chunks(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A size that chunks do not divide, with an image other than the documented ones."""
    buffer = _buffer(endpoint)
    if buffer is None or worker_image(endpoint.reading.image) is not None or buffer.size < buffer.chunk or not buffer.size % buffer.chunk:
        return
    used = used_buffer_bytes(buffer.size, buffer.chunk)
    yield Violation(
        endpoint.at(*buffer.variable.path),
        f"PD_BUFFER_SIZE {buffer.size:,} is {buffer.size / buffer.chunk:.2f} chunks of {buffer.chunk:,} bytes",
        f"set {buffer_size(endpoint)} to {used} ({used // buffer.chunk} chunks)",
        value=buffer.size,
    )


@rule(
    "DPD106",
    "Prefills do not wait for each other's chunks",
    severity=Severity.ADVICE,
    why="LMCache 0.4.3 takes chunks of the decoder's buffer one at a time: prompts that together need more than all of it can each hold "
    "a part and wait for the rest. A worst case: every prefill at full length at the same moment.",
    sources=(LMCACHE, thread("LMCache/LMCache", 1337, 2080, 2365), DPD_GUIDE),
    since="3.2",
)
def buffer_takes_all_prefills(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Prefill replicas times max-num-seqs times max-model-len over the buffer."""
    buffer = _buffer(endpoint)
    prefill = endpoint.reading.prefill
    sequences = prefill.most_sequences
    if buffer is None or buffer.longest is None or not sequences or sequences < 1 or prefill.most_replicas < 1:
        return
    concurrent = sequences * prefill.most_replicas
    most = hold_and_wait_pd_buffer_bytes(buffer.model, concurrent, buffer.longest, buffer.ranks, buffer.kv_format, buffer.chunk_tokens)
    fits = 0
    if buffer.size >= buffer.chunk:
        fits = guaranteed_requests(buffer.model, buffer.size, buffer.longest, buffer.ranks, buffer.kv_format, buffer.chunk_tokens)
    others = None if buffer.size >= most or fits < 1 else told_once(endpoint, "DPD106", _sizes_untouched)
    if others is None:
        return
    each = fits // prefill.most_replicas
    chosen = endpoint.spec is not None and endpoint.spec.cache.pd_buffer_bytes == AUTO
    # What `auto` chose is the most that fits: the way out leads elsewhere.
    ways = [f"raise {buffer_size(endpoint)} to {most}"] if most <= SUGGESTED_PD_BUFFER_BYTES[-1] and not chosen else []
    ways += [f"give the prefill role --max-num-seqs {each}"] if each else []
    ways += [] if ways else ["lower --max-model-len or the number of prefillers"]
    flag = prefill.args.last("max-num-seqs")
    at = endpoint.at(*buffer.variable.path)
    if chosen:
        at = endpoint.at(
            *(flag.path if flag else (*prefill.scaling_path, "maxReplicaCount") if prefill.scaling else (*prefill.path, "replicas"))
        )
    given = f"--max-num-seqs {sequences}" if flag else f"--max-num-seqs {sequences} by default"
    yield Violation(
        at,
        f"{prefill.most_replicas} prefiller{'s' if prefill.most_replicas > 1 else ''} with {given} can hold {concurrent} prompts of "
        f"{buffer.longest:,} tokens, which take {_human(most)}; the buffer of {_human(buffer.size)} takes {fits}{others}",
        ", or ".join(ways),
        value=sequences if chosen else buffer.size,
    )


def _sizes_untouched(endpoint: EndpointSubject) -> bool:
    """Whether buffer, sequences and lengths of one prefiller are what the DPD guide shows, by default."""
    buffer, prefill = _buffer(endpoint), endpoint.reading.prefill
    flag = prefill.args.last("max-model-len")
    return (
        buffer is not None
        and prefill.most_replicas == 1
        and prefill.args.last("max-num-seqs") is None
        and endpoint.is_default(*buffer.variable.path)
        and (flag is None or endpoint.is_default(*flag.path))
    )


@rule(
    "DPD107",
    "The PD buffer takes what one prefill step writes",
    severity=Severity.ERROR,
    why="A prefill step that writes more KV cache than the decoder's buffer holds never ends: prefiller, decoder and router wait for "
    "each other.",
    sources=(thread("LMCache/LMCache", 1215, 1162), LMCACHE),
    since="3.2",
)
def buffer_takes_a_step(endpoint: EndpointSubject) -> Iterator[Violation]:
    """max-num-batched-tokens times the KV bytes of a token over the buffer."""
    buffer = _buffer(endpoint)
    tokens = endpoint.reading.prefill.batched_tokens
    if buffer is None or tokens is None or tokens < 1:
        return
    step = prefill_step_kv_bytes(buffer.model, tokens, buffer.ranks, buffer.kv_format)
    if buffer.size >= step:
        return
    flag = endpoint.reading.prefill.args.last(_FLAG)
    most = buffer.size // kv_bytes_per_token(buffer.model, buffer.ranks, buffer.kv_format)
    yield Violation(
        endpoint.at(*(flag.path if flag else buffer.variable.path)),
        f"one step of {tokens:,} tokens (--{_FLAG}{'' if flag else ', by default'}) writes {step:,} bytes ({_human(step)}) of KV cache a "
        f"rank, PD_BUFFER_SIZE is {buffer.size:,} ({_human(buffer.size)})",
        f"write --{_FLAG} {most} or less, or raise {buffer_size(endpoint)} to {step}",
        value=tokens if flag else buffer.size,
        patch=set_flag(endpoint, flag, most) if flag and most >= buffer.chunk_tokens else None,
    )
