"""What `auto` stands for in one endpoint: read from its manifest, worked out by sizing, put back into the spec with its working."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.instance_types import InstanceType, instance_type
from dpd_infra.plan.endpoint_pods import most_by_scaling
from dpd_infra.plan.served import kv_format, model_as_served, model_by_name, model_names
from dpd_infra.plan.sizing.auto import Autos, WorkedOut, work_out
from dpd_infra.plan.sizing.auto_numbers import auto_gpu_memory_utilization
from dpd_infra.plan.sizing.buffer import CHUNK_TOKENS, DEFAULT_PD_BUFFER_BYTES
from dpd_infra.plan.sizing.load import workload_of
from dpd_infra.plan.sizing.memory import DEFAULT_GPU_MEMORY_UTILIZATION, DEFAULT_MAX_NUM_BATCHED_TOKENS
from dpd_infra.plan.sizing.serving import DECODE_MAX_NUM_SEQS, PREFILL_MAX_NUM_SEQS, RoleFlags, Serving
from dpd_infra.plan.worker_args import WorkerArgs, server_args
from dpd_infra.render.auto_places import AUTO, PLACES
from dpd_infra.spec.values import mapping
from dpd_infra.spec.vocabulary import Role

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint import EndpointSpec

_GUIDE: dict[str, Any] = {
    "pd_buffer": DEFAULT_PD_BUFFER_BYTES,
    "gpu_memory_utilization": DEFAULT_GPU_MEMORY_UTILIZATION,
    "prefill_max_num_seqs": PREFILL_MAX_NUM_SEQS,
    "decode_max_num_seqs": DECODE_MAX_NUM_SEQS,
    "prefillers": 1,
    "decoders": 1,
}
"""What stands in while there is no number, and where there is none."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A spec without `auto`."""

    spec: EndpointSpec
    how: Mapping[tuple[str, ...], str]
    """By the place in the spec: what its number was worked out from, or that the guide's stands in."""
    why_not: Mapping[tuple[str, ...], str]
    """By the place in the spec: why there is no number, and the guide's stands in."""


class _NotKnown(ValueError):
    """What every number needs is not known."""


def autos_of(spec: EndpointSpec) -> Autos:
    """Where a spec says `auto`."""
    said: dict[str, Any] = {name: getattr(getattr(spec, section), key) for name, (section, key) in PLACES.items()}
    return Autos(**{name: value == AUTO for name, value in said.items()})


def stand_ins(spec: EndpointSpec, autos: Autos) -> EndpointSpec:
    """The spec with the guide's numbers in place of `auto`: what the rest of it can be read from."""
    return _with(spec, {name: value for name, value in _GUIDE.items() if getattr(autos, name)})


def resolve(spec: EndpointSpec, autos: Autos, manifest: Mapping[str, Any]) -> Resolved:
    """The spec with numbers. `manifest`: rendered from the same spec with stand-ins, so that overrides and role flags count."""
    try:
        worked = _work_out(spec, autos, manifest)
    except ValueError as error:
        places = [PLACES[name] for name in PLACES if getattr(autos, name)]
        return _resolved(stand_ins(spec, autos), {}, dict.fromkeys(places, str(error)))
    serving = worked.serving
    share = serving.decode.gpu_memory_utilization
    values = {
        "pd_buffer": serving.pd_buffer_bytes,
        "gpu_memory_utilization": share,
        "prefill_max_num_seqs": serving.prefill.max_num_seqs,
        "decode_max_num_seqs": serving.decode.max_num_seqs,
        "prefillers": serving.prefillers,
        "decoders": serving.decoders,
    }
    return _resolved(
        _with(spec, {name: value for name, value in values.items() if getattr(autos, name)}),
        {PLACES[name]: text for name, text in worked.how.items()},
        {PLACES[name]: text for name, text in worked.why_not.items()},
    )


def _resolved(spec: EndpointSpec, how: Mapping[tuple[str, ...], str], why_not: Mapping[tuple[str, ...], str]) -> Resolved:
    guide = {place: f"the DPD guide's, as auto cannot be worked out: {text}" for place, text in why_not.items()}
    return Resolved(spec, {**how, **guide}, why_not)


def _work_out(spec: EndpointSpec, autos: Autos, manifest: Mapping[str, Any]) -> WorkedOut:
    body = manifest.get("spec")
    if not isinstance(body, dict):
        raise _NotKnown("the overrides leave no spec")
    apart = body.get("pdSpec") is not None
    prefill, decode = (server_args(manifest, role if apart else None) for role in Role)
    names = model_names(body)
    model = model_by_name(names)
    if model is None:
        raise _NotKnown(f"the catalog does not know this model ({', '.join(name for name, _ in names) or 'no name'})")
    model, cache = model_as_served(model, decode), kv_format(decode)
    ranks = decode.integer("tensor-parallel-size") if decode.last("tensor-parallel-size") else 1
    length = decode.integer("max-model-len") if decode.last("max-model-len") else model.max_model_len if model else None
    if model is None or cache is None or ranks is None or length is None or (decode.integer("pipeline-parallel-size") or 1) != 1:
        raise _NotKnown("what the worker's flags make of weights, KV cache, parallel sizes or max-model-len is not modelled")
    variables = {
        entry.get("name"): entry.get("value")
        for entry in (body.get("worker") or {}).get("environmentVariables") or []
        if isinstance(entry, dict)
    }
    said = spec.cache.pd_buffer_bytes
    buffer = _whole(variables.get("PD_BUFFER_SIZE"), said if isinstance(said, int) else DEFAULT_PD_BUFFER_BYTES)
    serving = Serving(
        model,
        _smallest(body),
        length,
        tensor_parallel_size=ranks,
        prefillers=spec.prefill.replicas if isinstance(spec.prefill.replicas, int) else 1,
        decoders=spec.decode.replicas if isinstance(spec.decode.replicas, int) else 1,
        prefill=_flags(prefill, PREFILL_MAX_NUM_SEQS),
        decode=_flags(decode, DECODE_MAX_NUM_SEQS),
        pd_buffer_bytes=buffer,
        kv_format=cache,
        chunk_tokens=_whole(variables.get("LMCACHE_CHUNK_SIZE"), CHUNK_TOKENS),
        prefillers_at_most=most_by_scaling(mapping(mapping(body.get("pdSpec")).get("autoScalingSpec")).get("prefillAutoScaling")),
    )
    load = workload_of(spec.load) if spec.load is not None else None
    worked = work_out(serving, autos, load, spec.routing.threshold)
    return worked if apart or not autos.gpu_memory_utilization else _without_buffer(worked)


def _without_buffer(worked: WorkedOut) -> WorkedOut:
    """The colocated twin: as many pods as there are of both roles, and no PD buffer that the GPU's memory has to leave room for."""
    serving = worked.serving
    share = auto_gpu_memory_utilization(serving.gpu, 0, serving.tensor_parallel_size)
    flags = replace(serving.decode, gpu_memory_utilization=share)
    how = {**worked.how, "gpu_memory_utilization": f"auto: what the reserve leaves of {serving.gpu.name}, without a PD buffer"}
    why_not = {name: text for name, text in worked.why_not.items() if name != "gpu_memory_utilization"}
    return WorkedOut(replace(serving, prefill=replace(serving.prefill, gpu_memory_utilization=share), decode=flags), how, why_not)


def _smallest(body: Mapping[str, Any]) -> InstanceType:
    """The instance type with the least memory a GPU among those the endpoint may run on: what fits there fits everywhere."""
    names = body.get("instanceTypes") or ([body["instanceType"]] if body.get("instanceType") else [])
    kinds = [instance_type(name) if isinstance(name, str) else None for name in names]
    known = [(kind.gpu.memory_bytes, kind) for kind in kinds if kind is not None and kind.gpu is not None]
    if not known or len(known) < len(kinds):
        where = ", ".join(map(str, names)) or "nodes found by affinity"
        raise _NotKnown(f"the catalog knows no GPU memory of {where}")
    return min(known, key=lambda pair: pair[0])[1]


def _flags(args: WorkerArgs, sequences: int) -> RoleFlags:
    share = args.number("gpu-memory-utilization")
    return RoleFlags(
        args.integer("max-num-seqs") or sequences,
        DEFAULT_GPU_MEMORY_UTILIZATION if share is None or not 0 < share <= 1 else share,
        args.integer("max-num-batched-tokens") or DEFAULT_MAX_NUM_BATCHED_TOKENS,
    )


def _whole(text: Any, default: int) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and 0 < int(text) < 2**63 else default


def _with(spec: EndpointSpec, values: Mapping[str, Any]) -> EndpointSpec:
    """A copy with these numbers. They were checked when they were worked out, and the copy is not validated again."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        section, key = PLACES[name]
        sections.setdefault(section, {})[key] = value
    return spec.model_copy(update={name: getattr(spec, name).model_copy(update=update) for name, update in sections.items()})
