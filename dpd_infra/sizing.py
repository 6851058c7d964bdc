"""From files and manifests to what sizing and advice take: endpoints of a stack file or a raw manifest as their serving side."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from dpd_infra.catalog.crd import KIND
from dpd_infra.catalog.instance_types import InstanceType, instance_type
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.plan.endpoint_pods import most_by_scaling
from dpd_infra.plan.sizing.auto import Autos, work_out
from dpd_infra.plan.sizing.buffer import CHUNK_TOKENS, DEFAULT_PD_BUFFER_BYTES
from dpd_infra.plan.sizing.memory import DEFAULT_GPU_MEMORY_UTILIZATION, DEFAULT_MAX_NUM_BATCHED_TOKENS
from dpd_infra.plan.sizing.serving import DECODE_MAX_NUM_SEQS, PREFILL_MAX_NUM_SEQS, RoleFlags, Serving
from dpd_infra.plan.sizing.text import short_data, short_form
from dpd_infra.plan.sizing.workload import Workload
from dpd_infra.rules.reading import ManifestReading, ServerReading
from dpd_infra.spec.stack_file import is_stack_file, read_stack_file
from dpd_infra.spec.vocabulary import Role
from dpd_infra.spec.yaml_source import Dialect, decode, load_documents

DEFAULT_ROUTING_THRESHOLD = 4096
"""`routingThreshold` where nothing is said (CRD)."""


_ENDPOINTS = "dpd-infra:endpoints"
NumberT = TypeVar("NumberT", int, float)


class NotSizedError(ValueError):
    """An endpoint that cannot be sized, and why."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is asked for in place of what a manifest says."""

    model: ModelShape | None = None
    instance: InstanceType | None = None
    tensor_parallel_size: int | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None
    pd_buffer_bytes: int | None = None
    prefillers: int | None = None
    decoders: int | None = None
    prefill_max_num_seqs: int | None = None
    decode_max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_format: KvFormat | None = None
    autos: Autos = field(default_factory=Autos)
    """What is to be worked out."""

    def open(self, said: Autos) -> Autos:
        """What is to be worked out in all: here, or in a file where nothing is said here."""
        here = {
            "pd_buffer": self.pd_buffer_bytes,
            "gpu_memory_utilization": self.gpu_memory_utilization,
            "prefill_max_num_seqs": self.prefill_max_num_seqs,
            "decode_max_num_seqs": self.decode_max_num_seqs,
            "prefillers": self.prefillers,
            "decoders": self.decoders,
        }
        names = [each.name for each in fields(Autos)]
        return Autos(**{name: getattr(self.autos, name) or (getattr(said, name) and here[name] is None) for name in names})


class FoundEndpoint(NamedTuple):
    """One endpoint of a file."""

    name: str
    manifest: Mapping[str, Any]
    nodes: int | None = None
    """Nodes of its instance groups; None where they are not known."""
    autos: Autos = Autos()
    """What the file leaves to be worked out."""
    load: Workload | None = None
    """The load that the file says."""


@dataclass(frozen=True, slots=True)
class SizedEndpoint:
    """One endpoint as sizing sees it."""

    name: str
    serving: Serving
    disaggregated: bool
    """False: the pods of a colocated endpoint, sized as if all but one were prefillers."""
    routing_threshold: int = DEFAULT_ROUTING_THRESHOLD
    invocation_endpoint: str = "v1/chat/completions"
    nodes: int | None = None
    """Nodes of its instance groups; None where they are not known."""
    load: Workload | None = None
    """What it has to serve, where that is known."""


def plain_serving(changes: Changes, load: Workload | None = None) -> Serving:
    """A serving side from what is asked for alone, with the DPD guide's defaults. Raises ValueError without a model or an instance type."""
    if changes.model is None or changes.instance is None:
        raise NotSizedError("a model and an instance type are needed")
    return _worked_out(_serving(changes, None), changes.autos, load, 0)


def sized_endpoint(
    name: str,
    manifest: Mapping[str, Any],
    changes: Changes | None = None,
    *,
    nodes: int | None = None,
    autos: Autos = Autos(),  # noqa: B008  # frozen
    load: Workload | None = None,
) -> SizedEndpoint:
    """One InferenceEndpointConfig as sizing sees it, under a load where one is known. `autos`: what its file leaves open.

    Raises `NotSizedError` for a model or an instance type that the catalog does not hold and for what cannot be worked out, ValueError for
    numbers that cannot be.
    """
    reading = ManifestReading(manifest)
    asked = changes or Changes()
    serving = _serving(asked, reading)
    pd, routing = reading.spec.get("pdSpec"), DEFAULT_ROUTING_THRESHOLD
    if isinstance(pd, dict) and isinstance(pd.get("routingThreshold"), int):
        routing = pd["routingThreshold"]
    serving = _worked_out(serving, asked.open(autos), load, routing)
    return SizedEndpoint(
        name, serving, reading.disaggregated, routing, str(reading.spec.get("invocationEndpoint") or "invocations"), nodes, load
    )


@dataclass(frozen=True)
class ShortSizing:
    """The sizes of an endpoint as a preview shows and a stack exports them, each worked out when it is asked for. Raises nothing."""

    name: str
    manifest: Mapping[str, Any]
    load: Workload | None

    @cached_property
    def text(self) -> str:
        """A few lines for people; for an endpoint that cannot be sized one with the reason."""
        try:
            serving, pods = self._sized
            return short_form(self.name, serving, self.load, pods=pods)
        except ValueError as error:
            return f"{self.name}: not sized, {error}"

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The same as plain data; for an endpoint that cannot be sized `notSized` with the reason."""
        try:
            serving, pods = self._sized
            return short_data(serving, self.load, pods=pods)
        except ValueError as error:
            return {"notSized": str(error)}

    @cached_property
    def _sized(self) -> tuple[Serving, int | None]:
        """The serving side, and the pods where one kind does both."""
        found = sized_endpoint(self.name, self.manifest)
        return found.serving, None if found.disaggregated else ManifestReading(self.manifest).decode.replicas


def short_sizing(name: str, manifest: Mapping[str, Any], load: Workload | None = None) -> ShortSizing:
    """The short form of one rendered endpoint: what cannot be sized says why."""
    return ShortSizing(name, manifest, load)


def _worked_out(serving: Serving, autos: Autos, load: Workload | None, routing_threshold: int) -> Serving:
    if not autos:
        return serving
    worked = work_out(serving, autos, load, routing_threshold)
    if worked.why_not:
        reasons: dict[str, list[str]] = {}
        for name, reason in worked.why_not.items():
            reasons.setdefault(reason, []).append(name)
        raise NotSizedError("; ".join(f"{' and '.join(names)}: auto cannot be worked out: {reason}" for reason, names in reasons.items()))
    return worked.serving


def manifests(path: pathlib.Path) -> Iterator[FoundEndpoint]:
    """The endpoints of a stack file or of a file of manifests.

    Raises `NotSizedError` for an endpoint of a stack file that is not valid (`dpd check` says what is wrong), OSError for a file that
    cannot be read, `YamlProblem` for one that is no YAML.
    """
    if is_stack_file(path):
        yield from _stack_manifests(path)
        return
    for document in load_documents(decode(path.read_bytes(), str(path)), str(path), Dialect.KUBERNETES):
        data = document.data
        config = data.get("config") if isinstance(data, dict) else None
        if isinstance(config, dict) and _ENDPOINTS in config:
            # A stack file under another name.
            yield from _stack_manifests(path)
            return
        if isinstance(data, dict) and data.get("kind") == KIND:
            metadata = data.get("metadata")
            yield FoundEndpoint(str(metadata.get("name", "endpoint")) if isinstance(metadata, dict) else "endpoint", data)


def _stack_manifests(path: pathlib.Path) -> Iterator[FoundEndpoint]:
    # Only the endpoints are built: to size them neither the platform nor the rules are needed.
    from dpd_infra.plan.sizing.load import workload_of  # noqa: PLC0415 - a raw manifest has no load
    from dpd_infra.render.auto import autos_of  # noqa: PLC0415 - nor anything open
    from dpd_infra.render.endpoint import endpoint_context, render_endpoint  # noqa: PLC0415 - a raw manifest needs no spec
    from dpd_infra.spec.endpoint import EndpointSpec  # noqa: PLC0415 - the same
    from dpd_infra.spec.shape import build  # noqa: PLC0415 - the same

    config = read_stack_file(path).config
    endpoints, platform = config.get(_ENDPOINTS), config.get("dpd-infra:platform")
    if endpoints is not None and not isinstance(endpoints, dict):
        raise NotSizedError(f"{_ENDPOINTS} of {path} is no mapping of names to endpoints; dpd check says more")
    groups = platform.get("instanceGroups") if isinstance(platform, dict) else None
    for name, entry in (endpoints or {}).items():
        spec, findings = build(EndpointSpec, entry, ("config", _ENDPOINTS, str(name)), str(name))
        if spec is None:
            raise NotSizedError(f"endpoint {name} is not valid ({findings[0].what}); dpd check says more")
        region = str(config.get("aws:region", ""))
        manifest = render_endpoint(str(name), spec, endpoint_context(str(name), region=region, addon_version="")).document
        nodes = _nodes(groups, spec.first_instance_type, (spec.prefill.instance_group, spec.decode.instance_group))
        yield FoundEndpoint(str(name), manifest, nodes, autos_of(spec), workload_of(spec.load) if spec.load is not None else None)


def _nodes(groups: Any, kind: str | None, named: tuple[str | None, str | None]) -> int | None:
    """Nodes that the endpoint's roles may run on: of their groups, or of all groups of the instance type."""
    if not isinstance(groups, dict):
        return None
    wanted = {name for name in named if name}
    count = 0
    for name, group in groups.items():
        if not isinstance(group, dict) or not isinstance(group.get("count"), int):
            continue
        if name in wanted or (None in named and group.get("instanceType") == kind):
            count += group["count"]
    return count or None


def _serving(asked: Changes, reading: ManifestReading | None) -> Serving:
    model, instance = asked.model or _model(reading), asked.instance or _instance(reading)
    if instance.gpu is None:
        raise NotSizedError(f"{instance.name} has no GPUs")
    prefill, decode = (reading.prefill, reading.decode) if reading else (None, None)
    ranks = _first(asked.tensor_parallel_size, decode.tensor_parallel_size if decode else None, min(8, instance.gpus))
    length = _first(asked.max_model_len, reading.max_model_len(reading.decode) if reading else None, model.max_model_len)
    prefillers, decoders = _replicas(asked, reading)
    flags = (
        _flags(asked, prefill, asked.prefill_max_num_seqs, PREFILL_MAX_NUM_SEQS),
        _flags(asked, decode, asked.decode_max_num_seqs, DECODE_MAX_NUM_SEQS),
    )
    buffer = _first(asked.pd_buffer_bytes, reading.pd_buffer_bytes if reading else None, DEFAULT_PD_BUFFER_BYTES)
    kv_format = asked.kv_format or (decode.kv_format if decode else None) or KvFormat.BF16
    # Unless their number is asked about.
    scaling = prefill.scaling if prefill is not None and prefill.name == Role.PREFILL and asked.prefillers is None else None
    return Serving(
        model,
        instance,
        length,
        tensor_parallel_size=ranks,
        prefillers=prefillers,
        decoders=decoders,
        prefill=flags[0],
        decode=flags[1],
        pd_buffer_bytes=buffer,
        kv_format=kv_format,
        chunk_tokens=_first(reading.chunk_tokens if reading else None, CHUNK_TOKENS),
        prefillers_at_most=most_by_scaling(scaling),
    )


def _model(reading: ManifestReading | None) -> ModelShape:
    if reading is None:
        raise NotSizedError("a model is needed")
    model = reading.model_in(reading.decode)
    if model is None:
        names = ", ".join(name for name, _ in reading.model_names) or "no name"
        raise NotSizedError(f"the catalog does not know this model ({names}); give its config.json")
    return model


def _instance(reading: ManifestReading | None) -> InstanceType:
    names = [name for name, _ in reading.instance_types] if reading else []
    found = next((kind for name in names if (kind := instance_type(name)) is not None and kind.gpu is not None), None)
    if found is None:
        raise NotSizedError(f"the catalog knows no GPU of {', '.join(names) or 'the nodes'}; give an instance type")
    return found


def _replicas(asked: Changes, reading: ManifestReading | None) -> tuple[int, int]:
    prefillers, decoders = 1, 1
    if reading is not None and reading.disaggregated:
        prefillers, decoders = reading.prefill.replicas, reading.decode.replicas
    elif reading is not None:
        prefillers = max(1, reading.prefill.replicas - 1)
    return _first(asked.prefillers, prefillers), _first(asked.decoders, decoders)


def _flags(asked: Changes, server: ServerReading | None, sequences: int | None, default: int) -> RoleFlags:
    said = (server.args.text("gpu-memory-utilization") if server else None) or ""
    try:
        share = float(said)
    except ValueError:
        share = DEFAULT_GPU_MEMORY_UTILIZATION
    batched = server.batched_tokens if server else None
    return RoleFlags(
        _first(sequences, server.most_sequences if server else None, default),
        _first(asked.gpu_memory_utilization, share),
        _first(asked.max_num_batched_tokens, batched, DEFAULT_MAX_NUM_BATCHED_TOKENS),
    )


def _first(*values: NumberT | None) -> NumberT:
    """The first that is given: 0 is given, and refused further on."""
    return next(value for value in values if value is not None)
