"""Reading a raw manifest's parts into the words of the short form; what they cannot say is left to overrides."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from dpd_infra.plan.endpoint_pods import role_efa_devices
from dpd_infra.render.endpoint import KUEUE_PRIORITY_LABEL, KUEUE_QUEUE_LABEL
from dpd_infra.render.endpoint_roles import EFA_RESOURCE, GPU_RESOURCE, INSTANCE_GROUP_LABEL
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Path
from dpd_infra.spec.silence_annotation import SILENCE_ANNOTATION, read_silences, write_silences
from dpd_infra.spec.vocabulary import DEFAULT_ENVIRONMENT, DPD_ENVIRONMENT, PD_BUFFER_VARIABLE, Role

_ROLE_KEYS = {Role.PREFILL: ("prefillSpec", "prefillAutoScaling"), Role.DECODE: ("decodingSpec", "decodingAutoScaling")}
_FLAGS = ("--model", "--host", "--port", "--tensor-parallel-size", "--max-model-len", "--gpu-memory-utilization")
"""The flags with which a rendered worker begins, each with its value."""

STAND_IN_TYPE = "ml.p5.48xlarge"
"""Taken where the manifest says nothing of nodes, and overridden away again: the short form must say something."""


def short_form(wanted: dict[str, Any], name: str) -> dict[str, Any]:
    """The entry without overrides: every part of the manifest that the short form has a word for."""
    spec = _object(wanted.get("spec"))
    entry: dict[str, Any] = {"model": _model(spec)}
    entry |= _nodes(spec)
    for steps, key in (
        (("metadata", "namespace"), "namespace"),
        (("spec", "invocationEndpoint"), "invocationEndpoint"),
        (("spec", "dataCapture"), "dataCapture"),
        (("spec", "kubernetes", "serviceAccountName"), "serviceAccount"),
    ):
        _take(entry, (key,), wanted, steps)
    if (endpoint_name := spec.get("endpointName")) != name and endpoint_name is not None:
        entry["endpointName"] = endpoint_name
    _put_roles(entry, spec)
    _put_routing(entry, spec)
    _put_worker(entry, spec)
    _put_cache(entry, spec)
    for steps, place in _PLAIN_PARTS:
        _take(entry, place, spec, steps)
    if isinstance(spec.get("tags"), list) and all(_is_tag(tag) for tag in spec["tags"]):
        entry["tags"] = {tag["name"]: tag["value"] for tag in spec["tags"]}
    if isinstance(seconds := spec.get("maxDeployTimeInSeconds"), int) and seconds % 60 == 0 and seconds > 0:
        entry["timeouts"] = {"deployMinutes": seconds // 60}
    _put_labels(entry, _object(wanted["metadata"].get("labels")))
    _put_annotations(entry, _object(wanted["metadata"].get("annotations")))
    return entry


def _put_annotations(entry: dict[str, Any], annotations: dict[str, Any]) -> None:
    """The annotations; that of silenced rules as the entry's own word for them, where that comes to the same text."""
    left = copy.deepcopy(annotations)
    text = annotations.get(SILENCE_ANNOTATION)
    silences = [(silence.rule, silence.reason) for silence in read_silences(text)]
    if silences and write_silences(silences) == text:
        entry["silence"] = [{"rule": rule, "reason": reason} for rule, reason in silences]
        del left[SILENCE_ANNOTATION]
    if left:
        entry["annotations"] = left


_PLAIN_PARTS: tuple[tuple[Path, Path], ...] = (
    (("pdSpec", "topologySpec", "sameAZ"), ("placement", "sameZone")),
    (("pdSpec", "topologySpec", "availabilityZone"), ("placement", "zone")),
    (("pdSpec", "topologySpec", "placementGroup"), ("placement", "placementGroup")),
    (("loadBalancer", "healthCheckPath"), ("loadBalancer", "healthCheckPath")),
    (("loadBalancer", "routingAlgorithm"), ("loadBalancer", "algorithm")),
    (("loadBalancer", "idleTimeoutSeconds"), ("loadBalancer", "idleTimeoutSeconds")),
    (("tlsConfig", "customCertificateConfig", "acmArn"), ("tls", "certificateArn")),
    (("tlsConfig", "customCertificateConfig", "domainName"), ("tls", "domainName")),
    (("tlsConfig", "tlsCertificateOutputS3Uri"), ("tls", "outputS3Uri")),
    (("dnsConfig", "hostedZoneId"), ("dns", "hostedZoneId")),
    (("metrics", "enabled"), ("metrics", "enabled")),
    (("metrics", "metricsScrapeIntervalSeconds"), ("metrics", "scrapeIntervalSeconds")),
    (("metrics", "modelMetrics", "path"), ("metrics", "path")),
    (("metrics", "modelMetrics", "port"), ("metrics", "port")),
)
"""Parts of the resource's spec, and where the short form holds them."""


def _model(spec: dict[str, Any]) -> dict[str, Any]:
    source = _object(spec.get("modelSourceConfig"))
    model: dict[str, Any] = {"name": spec.get("modelName", "model")}
    _take(model, ("version",), spec, ("modelVersion",))
    _take(model, ("prefetch",), source, ("prefetchEnabled",))
    kind = source.get("modelSourceType")
    if kind == "s3":
        _take(model, ("s3", "bucket"), source, ("s3Storage", "bucketName"))
        _take(model, ("s3", "prefix"), source, ("modelLocation",))
        _take(model, ("s3", "region"), source, ("s3Storage", "region"))
        return model
    _take(model, ("location",), source, ("modelLocation",))
    if kind == "fsx":
        for key, field in (("fileSystemId", "fileSystemId"), ("dnsName", "dnsName"), ("mountName", "mountName")):
            _take(model, ("fsx", key), source, ("fsxStorage", field))
    elif kind == "huggingface":
        _take(model, ("huggingFace", "modelId"), source, ("huggingFaceModel", "modelId"))
        _take(model, ("huggingFace", "revision"), source, ("huggingFaceModel", "commitSHA"))
        _take(model, ("huggingFace", "token", "secretName"), source, ("huggingFaceModel", "tokenSecretRef", "name"))
        _take(model, ("huggingFace", "token", "key"), source, ("huggingFaceModel", "tokenSecretRef", "key"))
    elif kind == "kubernetesVolume":
        volumes = _at(spec, ("kubernetes", "volumes"))
        mount = _at(spec, ("worker", "modelVolumeMount", "name"))
        named = (
            [volume for volume in volumes if isinstance(volume, dict) and volume.get("name") == mount] if isinstance(volumes, list) else []
        )
        if named:
            model["kubernetesVolume"] = {"volume": {key: value for key, value in named[0].items() if key != "name"}}
    return model


def _nodes(spec: dict[str, Any]) -> dict[str, Any]:
    given = {key: spec[key] for key in ("instanceType", "instanceTypes", "nodeAffinity") if key in spec}
    return dict([next(iter(given.items()))]) if given else {"instanceType": STAND_IN_TYPE}


def _put_roles(entry: dict[str, Any], spec: dict[str, Any]) -> None:
    pd = spec.get("pdSpec")
    if not isinstance(pd, dict):
        entry["disaggregated"] = False
        colocated: dict[str, Any] = {}
        _take(colocated, ("replicas",), spec, ("replicas",))
        _take(colocated, ("autoscaling",), spec, ("autoScalingSpec",))
        gpus = _gpus(_object(_at(spec, ("worker", "resources"))))
        # Its GPUs must be said where the catalog does not hold the nodes' count.
        colocated["gpus"] = gpus if gpus is not None and gpus > 0 else 1
        entry["colocated"] = colocated
        return
    for role, (role_key, scaling_key) in _ROLE_KEYS.items():
        body = _object(pd.get(role_key))
        found: dict[str, Any] = {}
        _take(found, ("replicas",), body, ("replicas",))
        _take(found, ("args",), body, ("args",))
        _take(found, ("autoscaling",), pd, ("autoScalingSpec", scaling_key))
        selector = dict(_object(body.get("nodeSelector")))
        if INSTANCE_GROUP_LABEL in selector:
            found["instanceGroup"] = selector.pop(INSTANCE_GROUP_LABEL)
        if selector:
            found["nodeSelector"] = selector
        resources = _object(body.get("resources"))
        if (gpus := _gpus(resources)) is not None and gpus > 0:
            found["gpus"] = gpus
        more = _more_resources(resources, {GPU_RESOURCE: str(gpus)})
        if more:
            found["resources"] = more
        if found:
            entry[role.value] = found
    _put_efa(entry)


def _put_efa(entry: dict[str, Any]) -> None:
    """Say `efa` where both roles ask for exactly what one of its words means."""
    asked = [_object(_object(entry.get(role.value)).get("resources")) for role in Role]
    if not all(EFA_RESOURCE in _object(resources.get(part)) for resources in asked for part in ("requests", "limits")):
        return
    for word in ("explicit", "fraction"):
        try:
            spec = EndpointSpec.from_yaml_data({**copy.deepcopy(entry), "efa": word})
        except ValidationError:
            return
        counts = [str(role_efa_devices(spec, role)) for role in Role]
        if all(
            resources[part][EFA_RESOURCE] == count
            for resources, count in zip(asked, counts, strict=True)
            for part in ("requests", "limits")
        ):
            entry["efa"] = word
            for role, resources in zip(Role, asked, strict=True):
                for part in ("requests", "limits"):
                    del resources[part][EFA_RESOURCE]
                left = {part: amounts for part, amounts in resources.items() if amounts}
                entry[role.value] = {key: value for key, value in entry[role.value].items() if key != "resources"} | (
                    {"resources": left} if left else {}
                )
            return


def _put_routing(entry: dict[str, Any], spec: dict[str, Any]) -> None:
    routing: dict[str, Any] = {}
    own = spec.get("intelligentRoutingSpec")
    if isinstance(own, dict) and own.get("enabled") is True:
        _take(routing, ("strategy",), own, ("routingStrategy",))
        _take(routing, ("autoscaling",), own, ("autoScalingSpec",))
    else:
        routing["enabled"] = False
    _take(routing, ("threshold",), spec, ("pdSpec", "routingThreshold"))
    if routing:
        entry["routing"] = routing


def _put_worker(entry: dict[str, Any], spec: dict[str, Any]) -> None:
    source = _object(spec.get("worker"))
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
        _take(worker, (place,), source, steps)
    _put_args(worker, source.get("args"))
    more = _more_resources(_object(source.get("resources")), {})
    for amounts in more.values():
        # A pod's GPUs are said by the roles, or by `colocated`.
        if amounts.get(GPU_RESOURCE) == str(_gpus(_object(source.get("resources")))):
            del amounts[GPU_RESOURCE]
    worker["resources"] = {part: amounts for part, amounts in more.items() if amounts}
    environment = _environment(source.get("environmentVariables"), disaggregated="disaggregated" not in entry)
    size = environment.pop(PD_BUFFER_VARIABLE, None)
    if isinstance(size, str) and size.isascii() and size.isdigit() and size == str(int(size)) and int(size) > 0:
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


def _put_cache(entry: dict[str, Any], spec: dict[str, Any]) -> None:
    source = _object(spec.get("kvCacheSpec"))
    cache: dict[str, Any] = dict(entry.pop("cache", {}))
    _take(cache, ("l1",), source, ("enableL1Cache",))
    if source.get("enableL2Cache") is True:
        _take(cache, ("l2", "backend"), source, ("l2CacheSpec", "l2CacheBackend"))
        _take(cache, ("l2", "url"), source, ("l2CacheSpec", "l2CacheLocalUrl"))
    _take(cache, ("configFile",), source, ("cacheConfigFile",))
    if cache:
        entry["cache"] = cache


def _put_labels(entry: dict[str, Any], labels: dict[str, Any]) -> None:
    rest = dict(labels)
    if KUEUE_QUEUE_LABEL in rest:
        entry["kueue"] = {"queueName": rest.pop(KUEUE_QUEUE_LABEL)}
        if KUEUE_PRIORITY_LABEL in rest:
            entry["kueue"]["priorityClass"] = rest.pop(KUEUE_PRIORITY_LABEL)
    if rest:
        entry["labels"] = rest


def _gpus(resources: dict[str, Any]) -> int | None:
    for part in ("requests", "limits"):
        value = _object(resources.get(part)).get(GPU_RESOURCE)
        if isinstance(value, (str, int)) and str(value).isascii() and str(value).isdigit():
            return int(value)
    return None


def _more_resources(resources: dict[str, Any], worked_out: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Requests and limits beside those that follow from the rest of the entry."""
    more: dict[str, dict[str, Any]] = {}
    for part in ("requests", "limits"):
        amounts = {key: value for key, value in _object(resources.get(part)).items() if worked_out.get(key) != value}
        if amounts:
            more[part] = amounts
    return more


def _is_tag(tag: Any) -> bool:
    return isinstance(tag, dict) and set(tag) == {"name", "value"} and all(isinstance(part, str) for part in tag.values())


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def _take(target: dict[str, Any], place: Path, source: dict[str, Any], steps: Path) -> None:
    """Copy a part of the source, where it has it, to a place in the target."""
    value = _at(source, steps)
    if value is None:
        return
    for step in place[:-1]:
        target = target.setdefault(str(step), {})
    target[str(place[-1])] = copy.deepcopy(value)
