"""Reading a raw manifest's parts into the words of the short form; what they cannot say is left to overrides."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import ValidationError

from dpd_infra.plan.endpoint_pods import role_efa_devices
from dpd_infra.render.endpoint import KUEUE_PRIORITY_LABEL, KUEUE_QUEUE_LABEL
from dpd_infra.render.endpoint_roles import EFA_RESOURCE, GPU_RESOURCE, INSTANCE_GROUP_LABEL
from dpd_infra.render.manifest_parts import as_object, gpus_of, more_resources, part_at, take
from dpd_infra.render.short_form_worker import put_cache, put_worker
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Path
from dpd_infra.spec.silence_annotation import SILENCE_ANNOTATION, read_silences, write_silences
from dpd_infra.spec.vocabulary import Role

_ROLE_KEYS = {Role.PREFILL: ("prefillSpec", "prefillAutoScaling"), Role.DECODE: ("decodingSpec", "decodingAutoScaling")}
STAND_IN_TYPE = "ml.p5.48xlarge"
"""Taken where the manifest says nothing of nodes, and overridden away again: the short form must say something."""


def short_form(wanted: dict[str, Any], name: str) -> dict[str, Any]:
    """The entry without overrides: every part of the manifest that the short form has a word for."""
    spec = as_object(wanted.get("spec"))
    entry: dict[str, Any] = {"model": _model(spec)}
    entry |= _nodes(spec)
    for steps, key in (
        (("metadata", "namespace"), "namespace"),
        (("spec", "invocationEndpoint"), "invocationEndpoint"),
        (("spec", "dataCapture"), "dataCapture"),
        (("spec", "kubernetes", "serviceAccountName"), "serviceAccount"),
    ):
        take(entry, (key,), wanted, steps)
    if (endpoint_name := spec.get("endpointName")) != name and endpoint_name is not None:
        entry["endpointName"] = endpoint_name
    _put_roles(entry, spec)
    _put_routing(entry, spec)
    put_worker(entry, spec)
    put_cache(entry, spec)
    for steps, place in _PLAIN_PARTS:
        take(entry, place, spec, steps)
    if isinstance(spec.get("tags"), list) and all(_is_tag(tag) for tag in spec["tags"]):
        entry["tags"] = {tag["name"]: tag["value"] for tag in spec["tags"]}
    if isinstance(seconds := spec.get("maxDeployTimeInSeconds"), int) and seconds % 60 == 0 and seconds > 0:
        entry["timeouts"] = {"deployMinutes": seconds // 60}
    _put_labels(entry, as_object(wanted["metadata"].get("labels")))
    _put_annotations(entry, as_object(wanted["metadata"].get("annotations")))
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
    source = as_object(spec.get("modelSourceConfig"))
    model: dict[str, Any] = {"name": spec.get("modelName", "model")}
    take(model, ("version",), spec, ("modelVersion",))
    take(model, ("prefetch",), source, ("prefetchEnabled",))
    kind = source.get("modelSourceType")
    if kind == "s3":
        take(model, ("s3", "bucket"), source, ("s3Storage", "bucketName"))
        take(model, ("s3", "prefix"), source, ("modelLocation",))
        take(model, ("s3", "region"), source, ("s3Storage", "region"))
        return model
    take(model, ("location",), source, ("modelLocation",))
    if kind == "fsx":
        for key, field in (("fileSystemId", "fileSystemId"), ("dnsName", "dnsName"), ("mountName", "mountName")):
            take(model, ("fsx", key), source, ("fsxStorage", field))
    elif kind == "huggingface":
        take(model, ("huggingFace", "modelId"), source, ("huggingFaceModel", "modelId"))
        take(model, ("huggingFace", "revision"), source, ("huggingFaceModel", "commitSHA"))
        take(model, ("huggingFace", "token", "secretName"), source, ("huggingFaceModel", "tokenSecretRef", "name"))
        take(model, ("huggingFace", "token", "key"), source, ("huggingFaceModel", "tokenSecretRef", "key"))
    elif kind == "kubernetesVolume":
        volumes = part_at(spec, ("kubernetes", "volumes"))
        mount = part_at(spec, ("worker", "modelVolumeMount", "name"))
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
        take(colocated, ("replicas",), spec, ("replicas",))
        take(colocated, ("autoscaling",), spec, ("autoScalingSpec",))
        gpus = gpus_of(as_object(part_at(spec, ("worker", "resources"))))
        # Its GPUs must be said where the catalog does not hold the nodes' count.
        colocated["gpus"] = gpus if gpus is not None and gpus > 0 else 1
        entry["colocated"] = colocated
        return
    for role, (role_key, scaling_key) in _ROLE_KEYS.items():
        body = as_object(pd.get(role_key))
        found: dict[str, Any] = {}
        take(found, ("replicas",), body, ("replicas",))
        take(found, ("args",), body, ("args",))
        take(found, ("autoscaling",), pd, ("autoScalingSpec", scaling_key))
        selector = dict(as_object(body.get("nodeSelector")))
        if INSTANCE_GROUP_LABEL in selector:
            found["instanceGroup"] = selector.pop(INSTANCE_GROUP_LABEL)
        if selector:
            found["nodeSelector"] = selector
        resources = as_object(body.get("resources"))
        if (gpus := gpus_of(resources)) is not None and gpus > 0:
            found["gpus"] = gpus
        more = more_resources(resources, {GPU_RESOURCE: str(gpus)})
        if more:
            found["resources"] = more
        if found:
            entry[role.value] = found
    _put_efa(entry)


def _put_efa(entry: dict[str, Any]) -> None:
    """Say `efa` where both roles ask for exactly what one of its words means."""
    asked = [as_object(as_object(entry.get(role.value)).get("resources")) for role in Role]
    if not all(EFA_RESOURCE in as_object(resources.get(part)) for resources in asked for part in ("requests", "limits")):
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
        take(routing, ("strategy",), own, ("routingStrategy",))
        take(routing, ("autoscaling",), own, ("autoScalingSpec",))
    else:
        routing["enabled"] = False
    take(routing, ("threshold",), spec, ("pdSpec", "routingThreshold"))
    if routing:
        entry["routing"] = routing


def _put_labels(entry: dict[str, Any], labels: dict[str, Any]) -> None:
    rest = dict(labels)
    if KUEUE_QUEUE_LABEL in rest:
        entry["kueue"] = {"queueName": rest.pop(KUEUE_QUEUE_LABEL)}
        if KUEUE_PRIORITY_LABEL in rest:
            entry["kueue"]["priorityClass"] = rest.pop(KUEUE_PRIORITY_LABEL)
    if rest:
        entry["labels"] = rest


def _is_tag(tag: Any) -> bool:
    return isinstance(tag, dict) and set(tag) == {"name", "value"} and all(isinstance(part, str) for part in tag.values())
