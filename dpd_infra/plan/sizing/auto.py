"""What a user left out: PD buffer, gpu-memory-utilization, max-num-seqs and replicas, from the same formulas as everything else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dpd_infra.plan.sizing.auto_numbers import (
    MOST_REPLICAS,
    auto_decode_max_num_seqs,
    auto_gpu_memory_utilization,
    auto_pd_buffer_bytes,
    auto_prefill_max_num_seqs,
    auto_replicas,
)
from dpd_infra.plan.sizing.buffer import DEFAULT_PD_BUFFER_BYTES
from dpd_infra.plan.sizing.memory import DEFAULT_GPU_MEMORY_UTILIZATION
from dpd_infra.plan.sizing.quantity import Unit, human
from dpd_infra.plan.sizing.serving import (
    COLOCATED_GPU_MEMORY_UTILIZATION,
    DECODE_MAX_NUM_SEQS,
    PREFILL_MAX_NUM_SEQS,
    RoleFlags,
    Serving,
)
from dpd_infra.plan.sizing.step import MAX_BATCH
from dpd_infra.plan.sizing.workload import Workload


@dataclass(frozen=True, slots=True)
class Autos:
    """What is to be worked out; the names are those of the fields in their documentation."""

    pd_buffer: bool = False
    gpu_memory_utilization: bool = False
    prefill_max_num_seqs: bool = False
    decode_max_num_seqs: bool = False
    prefillers: bool = False
    decoders: bool = False

    def __bool__(self) -> bool:
        """Whether anything is."""
        return self != _NOTHING

    @property
    def replicas(self) -> bool:
        """Whether any replicas are."""
        return self.prefillers or self.decoders


_NOTHING = Autos()


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """The numbers that `auto` stands for."""

    serving: Serving
    """All of them, and what they were worked out from."""
    how: dict[str, str] = field(default_factory=dict[str, str])
    """By the names of `Autos`: what a number was worked out from."""
    why_not: dict[str, str] = field(default_factory=dict[str, str])
    """By the names of `Autos`: why there is no number. The serving side then holds the guide's."""


def stand_in(serving: Serving, autos: Autos) -> Serving:
    """A serving side with the DPD guide's numbers where others are to be worked out."""
    prefill, decode = serving.prefill, serving.decode
    if autos.gpu_memory_utilization:
        prefill = replace(prefill, gpu_memory_utilization=DEFAULT_GPU_MEMORY_UTILIZATION)
        decode = replace(decode, gpu_memory_utilization=DEFAULT_GPU_MEMORY_UTILIZATION)
    if autos.prefill_max_num_seqs:
        prefill = replace(prefill, max_num_seqs=PREFILL_MAX_NUM_SEQS)
    if autos.decode_max_num_seqs:
        decode = replace(decode, max_num_seqs=DECODE_MAX_NUM_SEQS)
    return replace(
        serving,
        prefill=prefill,
        decode=decode,
        pd_buffer_bytes=DEFAULT_PD_BUFFER_BYTES if autos.pd_buffer else serving.pd_buffer_bytes,
        prefillers=1 if autos.prefillers else serving.prefillers,
        decoders=1 if autos.decoders else serving.decoders,
    )


def work_out(serving: Serving, autos: Autos, workload: Workload | None, routing_threshold: int = 0) -> WorkedOut:
    """Every number that is to be worked out, in the order in which one rests on the other.

    Replicas, then the buffer (for the prefills of all prefillers), then the share of the GPU, then the sequences; replicas once more where
    that has changed what a decoder holds, and the rest with them. Numbers that were there before do not count: the same question
    has the same answer.
    """
    found = stand_in(serving, autos)
    if not autos:
        return WorkedOut(found)
    why_not: dict[str, str] = {}
    for _ in range(_ROUNDS):
        before = found
        if autos.replicas and (counted := _with_replicas(found, autos, workload, routing_threshold, why_not)) is not None:
            found = counted
        found = _with_memory(found, autos, workload, why_not)
        if found == before:
            break
    how = {name: text for name, text in _how(found, autos, workload).items() if name not in why_not}
    return WorkedOut(found, how, why_not)


_ROUNDS = 4
"""Buffer and sequences hardly ever change the replicas a second time; the bound is against a circle."""


def _with_replicas(serving: Serving, autos: Autos, workload: Workload | None, threshold: int, why_not: dict[str, str]) -> Serving | None:
    names = [name for name in ("prefillers", "decoders") if getattr(autos, name)]
    for name in names:
        why_not.pop(name, None)
    reason, found = "", None
    if workload is None:
        reason = "the endpoint has no load"
    else:
        try:
            found = auto_replicas(serving, workload, threshold, prefillers=autos.prefillers, decoders=autos.decoders)
            prefill, decode = (
                MOST_REPLICAS if autos.prefillers else serving.prefillers,
                MOST_REPLICAS if autos.decoders else serving.decoders,
            )
            reason = "" if found else f"{prefill} prefill and {decode} decode replicas do not keep up with {_load(workload)}"
        except ValueError as error:
            reason = str(error)
    why_not |= dict.fromkeys(names, reason) if reason else {}
    return found


def _with_memory(serving: Serving, autos: Autos, workload: Workload | None, why_not: dict[str, str]) -> Serving:
    found, ranks = serving, serving.tensor_parallel_size
    if autos.pd_buffer:
        # What is left beside the share: of the guide where that is to be worked out too, so that the buffer comes first.
        share = (
            DEFAULT_GPU_MEMORY_UTILIZATION
            if autos.gpu_memory_utilization
            else max(found.prefill.gpu_memory_utilization, found.decode.gpu_memory_utilization)
        )
        sequences = PREFILL_MAX_NUM_SEQS if autos.prefill_max_num_seqs else found.prefill.max_num_seqs
        size = auto_pd_buffer_bytes(
            found.model,
            found.gpu,
            ranks,
            share,
            found.max_model_len,
            found.most_prefillers * sequences,
            found.kv_format,
            found.chunk_tokens,
            found.prefill.max_num_batched_tokens,
        )
        found = replace(found, pd_buffer_bytes=size)
    if autos.gpu_memory_utilization:
        try:
            share = auto_gpu_memory_utilization(found.gpu, found.pd_buffer_bytes, ranks)
            found = replace(found, prefill=_share(found.prefill, share), decode=_share(found.decode, share))
        except ValueError as error:
            why_not["gpu_memory_utilization"] = str(error)
    if autos.prefill_max_num_seqs:
        found = replace(found, prefill=replace(found.prefill, max_num_seqs=auto_prefill_max_num_seqs(found)))
    if autos.decode_max_num_seqs:
        count = auto_decode_max_num_seqs(found, _longest_usual(found, workload))
        found = replace(found, decode=replace(found.decode, max_num_seqs=count))
    return found


def _share(flags: RoleFlags, share: float) -> RoleFlags:
    return replace(flags, gpu_memory_utilization=share)


def _longest_usual(serving: Serving, workload: Workload | None) -> int:
    """Tokens of a sequence at its end: of a load's mean one, else of the longest that is taken."""
    if workload is None:
        return serving.max_model_len
    return min(serving.max_model_len, round(workload.input.mean + workload.output.mean))


def _how(serving: Serving, autos: Autos, workload: Workload | None) -> dict[str, str]:
    model, gpu, ranks = serving.model.name, serving.gpu.name, serving.tensor_parallel_size
    size, length = human(serving.pd_buffer_bytes, Unit.BYTES), f"{serving.max_model_len:,}"
    prefills = serving.most_prefillers * (PREFILL_MAX_NUM_SEQS if autos.prefill_max_num_seqs else serving.prefill.max_num_seqs)
    context = _longest_usual(serving, workload)
    texts = {
        "pd_buffer": f"{size} for {prefills} prefills of up to {length} tokens of {model} on {gpu}, tensor-parallel size {ranks}",
        "gpu_memory_utilization": f"what a PD buffer of {size} and the reserve leave of {gpu}, at most {COLOCATED_GPU_MEMORY_UTILIZATION}",
        "prefill_max_num_seqs": f"prompts of {length} tokens of {model} in a PD buffer of {size}, at most {PREFILL_MAX_NUM_SEQS}",
        "decode_max_num_seqs": f"sequences of {context:,} tokens of {model} in the KV pool of {gpu}, at most {MAX_BATCH}",
        "prefillers": f"the fewest that keep up with {_load(workload)}" if workload else "",
        "decoders": f"the fewest that keep up with {_load(workload)}" if workload else "",
    }
    return {name: f"auto: {text}" for name, text in texts.items() if getattr(autos, name)}


def _load(workload: Workload) -> str:
    amount = (
        f"{workload.requests_per_second:g} requests a second"
        if workload.requests_per_second is not None
        else f"{workload.concurrency:,} users"
    )
    return f"{amount} of {workload.input.mean:,.0f} tokens in and {workload.output.mean:,.0f} out"
