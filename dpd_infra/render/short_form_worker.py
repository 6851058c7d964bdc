"""Reading a raw manifest's worker and cache into the words of the short form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from dpd_infra.render.endpoint_roles import GPU_RESOURCE
from dpd_infra.render.manifest_parts import as_object, gpus_of, more_resources, take
from dpd_infra.spec.vocabulary import DEFAULT_ENVIRONMENT, DPD_ENVIRONMENT, PD_BUFFER_VARIABLE

_FLAGS = ("--model", "--host", "--port", "--tensor-parallel-size", "--max-model-len", "--gpu-memory-utilization")
"""The flags with which a rendered worker begins, each with its value."""

_COUNT = re.compile(r"[1-9][0-9]{0,17}")


def put_worker(entry: dict[str, Any], spec: dict[str, Any]) -> None:
    """Put what the short form says of the worker into an entry; PD_BUFFER_SIZE goes to its cache."""
    source = as_object(spec.get("worker"))
    worker: dict[str, Any] = {}
    for place, steps in (
        ("image", ("image",)),
        ("command", ("command",)),
        ("workingDir", ("workingDir",)),
        ("port", ("modelInvocationPort", "containerPort")),
        ("portName", ("modelInvocationPort", "name")),
        ("volumeName", ("modelVolumeMount", "name")),
        ("mountPath", ("modelVolumeMount", "mountPath")),
        ("probes", ("probes",)),
        ("requestLimits", ("requestLimits",)),
    ):
        take(worker, (place,), source, steps)
    _put_args(worker, source.get("args"))
    more = more_resources(as_object(source.get("resources")), {})
    for amounts in more.values():
        # A pod's GPUs are said by the roles, or by `colocated`.
        if amounts.get(GPU_RESOURCE) == str(gpus_of(as_object(source.get("resources")))):
            del amounts[GPU_RESOURCE]
    worker["resources"] = {part: amounts for part, amounts in more.items() if amounts}
    environment = _environment(source.get("environmentVariables"), disaggregated="disaggregated" not in entry)
    size = environment.pop(PD_BUFFER_VARIABLE, None)
    if isinstance(size, str) and _COUNT.fullmatch(size):
        entry["cache"] = {"pdBufferBytes": int(size)}
    worker["environment"] = environment
    entry["worker"] = {key: value for key, value in worker.items() if value not in ({}, None)}


def _put_args(worker: dict[str, Any], args: Any) -> None:
    """The flags that a rendered worker begins with as fields, the rest as they are; in another order all of them are left to overrides."""
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        return
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "--tensor-parallel-size": ("tensorParallelSize", int),
        "--max-model-len": ("maxModelLen", int),
        "--gpu-memory-utilization": ("gpuMemoryUtilization", float),
    }
    for flag, value in _pairs(args):
        if flag in readers:
            field, read = readers[flag]
            try:
                worker[field] = read(value)
            except ValueError:
                continue
    count = 2 * len(_FLAGS)
    if tuple(args[:count:2]) == _FLAGS and len(args) > count:
        worker["args"] = args[count:]


def _pairs(args: list[str]) -> Iterator[tuple[str, str]]:
    for index, arg in enumerate(args):
        flag, equals, value = arg.partition("=")
        if equals:
            yield flag, value
        elif index + 1 < len(args):
            yield arg, args[index + 1]


def _environment(variables: Any, *, disaggregated: bool) -> dict[str, Any]:
    """The variables by name, those that are defaults anyway left out and missing defaults as nothing."""
    if not isinstance(variables, list):
        return {}
    found: dict[str, Any] = {}
    for variable in variables:
        if isinstance(variable, dict) and isinstance(variable.get("name"), str):
            found[variable["name"]] = variable.get("value", variable.get("valueFrom"))
    defaults = DEFAULT_ENVIRONMENT | (DPD_ENVIRONMENT if disaggregated else {})
    own = {name: value for name, value in found.items() if defaults.get(name) != value and value is not None}
    return own | {name: None for name in defaults if name not in found}


def put_cache(entry: dict[str, Any], spec: dict[str, Any]) -> None:
    """Put what the short form says of the KV cache into an entry, beside what `put_worker` has put there."""
    source = as_object(spec.get("kvCacheSpec"))
    cache: dict[str, Any] = dict(entry.pop("cache", {}))
    take(cache, ("l1",), source, ("enableL1Cache",))
    if source.get("enableL2Cache") is True:
        take(cache, ("l2", "backend"), source, ("l2CacheSpec", "l2CacheBackend"))
        take(cache, ("l2", "url"), source, ("l2CacheSpec", "l2CacheLocalUrl"))
    take(cache, ("configFile",), source, ("cacheConfigFile",))
    if cache:
        entry["cache"] = cache
