"""The worker in an endpoint's manifest: the server's flags, environment, port, volume and resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpd_infra.plan.endpoint_pods import tensor_parallel_size, worker_cpus, worker_gpus, worker_memory_gib
from dpd_infra.plan.mirrors import mirrored
from dpd_infra.render.draft import Draft, SpecReader
from dpd_infra.render.endpoint_roles import GPU_RESOURCE, put_resources
from dpd_infra.render.provenance import Origin
from dpd_infra.spec.finding import Path
from dpd_infra.spec.vocabulary import DEFAULT_ENVIRONMENT, DPD_ENVIRONMENT, PD_BUFFER_VARIABLE, PUBLISHED_EXAMPLE

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint import EndpointSpec

_WORKER: Path = ("spec", "worker")

_HALF_NODE = f"half of the node, as in the published example on ml.p5.48xlarge ({PUBLISHED_EXAMPLE.reference})"

_VARIABLE_ORDER = ("HF_HOME", PD_BUFFER_VARIABLE, "LMCACHE_SAVE_DECODE_CACHE", "PYTHONHASHSEED")
"""The published example's order."""


def put_worker(draft: Draft, said: SpecReader, spec: EndpointSpec, image_mirrors: Mapping[str, str]) -> None:
    """`spec.worker`; its image comes from a mirror where there is one for it."""
    image, image_origin = said.read("worker", "image")
    draft.put((*_WORKER, "image"), mirrored(image, image_mirrors), image_origin)
    for field, key in (("command", "command"), ("working_dir", "workingDir")):
        value, origin = said.read("worker", field)
        if value is not None:
            draft.put((*_WORKER, key), value, origin, same_shape=True)
    _put_args(draft, said, spec)
    draft.put((*_WORKER, "modelInvocationPort", "containerPort"), *said.read("worker", "port"))
    draft.put((*_WORKER, "modelInvocationPort", "name"), *said.read("worker", "port_name"))
    draft.put((*_WORKER, "modelVolumeMount", "name"), *said.read("worker", "volume_name"))
    draft.put((*_WORKER, "modelVolumeMount", "mountPath"), *said.read("worker", "mount_path"))
    put_resources(draft, said, (*_WORKER, "resources"), _amounts(said, spec), ("worker", "resources"))
    _put_environment(draft, said, spec)
    for field, key in (("probes", "probes"), ("request_limits", "requestLimits")):
        value, origin = said.read("worker", field)
        if value is not None:
            draft.put((*_WORKER, key), value, origin, same_shape=True)


def _put_args(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    size, size_origin = said.read("worker", "tensor_parallel_size")
    if size is None:
        size_origin = said.derived("the GPUs of a pod", "worker", "tensor_parallel_size")
    host = said.derived(str(PUBLISHED_EXAMPLE), "worker", "args")
    flags: list[tuple[str, str, Origin]] = [
        ("--model", spec.worker.mount_path, said.read("worker", "mount_path")[1]),
        ("--host", "0.0.0.0", host),  # noqa: S104 - in the pod: the sidecar and the kubelet must reach it
        ("--port", str(spec.worker.port), said.read("worker", "port")[1]),
        ("--tensor-parallel-size", str(tensor_parallel_size(spec)), size_origin),
        ("--max-model-len", str(spec.worker.max_model_len), said.read("worker", "max_model_len")[1]),
        ("--gpu-memory-utilization", repr(spec.worker.gpu_memory_utilization), said.read("worker", "gpu_memory_utilization")[1]),
    ]
    for flag, value, origin in flags:
        draft.append((*_WORKER, "args"), flag, origin)
        draft.append((*_WORKER, "args"), value, origin)
    further = [("worker", "args")] if spec.disaggregated else [("worker", "args"), ("colocated", "args")]
    for names in further:
        values, origin = said.read(*names)
        for index, value in enumerate(values):
            draft.append((*_WORKER, "args"), value, origin.below((index,)))


def _amounts(said: SpecReader, spec: EndpointSpec) -> dict[str, tuple[str, Origin]]:
    half = said.derived(_HALF_NODE, "worker", "resources")
    amounts: dict[str, tuple[str, Origin]] = {}
    cpus, memory = worker_cpus(spec), worker_memory_gib(spec)
    if cpus is not None:
        amounts["cpu"] = (str(cpus), half)
    if memory is not None:
        amounts["memory"] = (f"{memory}Gi", half)
    amounts[GPU_RESOURCE] = (str(worker_gpus(spec)), said.derived("the GPUs of a pod", "worker", "resources"))
    return amounts


def _put_environment(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    written, root = said.read("worker", "environment")
    example = said.derived(str(PUBLISHED_EXAMPLE), "worker", "environment")
    values: dict[str, tuple[Any, Origin]] = {}
    defaults = DEFAULT_ENVIRONMENT | DPD_ENVIRONMENT if spec.disaggregated else DEFAULT_ENVIRONMENT
    for name in _VARIABLE_ORDER:
        if name in defaults:
            values[name] = (defaults[name], example)
        elif name == PD_BUFFER_VARIABLE and spec.disaggregated:
            size, origin = said.read("cache", "pd_buffer_bytes")
            values[name] = (str(size), origin)
    values |= {name: (value, root.below((name,))) for name, value in written.items()}
    for name, (value, origin) in values.items():
        if value is not None:
            body = {"valueFrom": value} if isinstance(value, dict) else {"value": value}
            draft.append((*_WORKER, "environmentVariables"), {"name": name, **body}, origin)
