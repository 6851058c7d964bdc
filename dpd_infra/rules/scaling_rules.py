"""Rules on autoscaling: bounds, triggers, and metrics that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.catalog.sources import CRD_3_2, DPD_BLOG, KEDA_DOCS, KUBERNETES_DOCS, VLLM, thread
from dpd_infra.plan.endpoint_pods import most_by_scaling
from dpd_infra.rules.patches import remove, set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import count, entries, mapping, text

_TRIGGERS = {"cloudWatchTrigger": "cloudWatchTriggerList", "prometheusTrigger": "prometheusTriggerList"}
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9_:])vllm_(?=[a-z])")


def _blocks(endpoint: EndpointSubject) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Every autoScalingSpec: what it scales, its place, and itself."""
    for server in endpoint.reading.servers:
        if server.scaling is not None:
            yield server.name, server.scaling_path, server.scaling
    router = endpoint.get("spec", "intelligentRoutingSpec", "autoScalingSpec")
    if isinstance(router, Mapping):
        yield "router", ("spec", "intelligentRoutingSpec", "autoScalingSpec"), router


def _triggers(place: Path, block: Mapping[str, Any]) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """The triggers in force, `cloudWatch` or `prometheus`; a list wins over the single one beside it (CRD)."""
    for one, many in _TRIGGERS.items():
        kind = one.removesuffix("Trigger")
        listed = entries(block.get(many))
        for index, trigger in enumerate(listed):
            if isinstance(trigger, Mapping):
                yield kind, (*place, many, index), trigger
        if not listed and isinstance(block.get(one), Mapping):
            yield kind, (*place, one), block[one]


@rule(
    "DPD433",
    "A CloudWatch trigger watches this endpoint",
    severity=Severity.ERROR,
    why="A CloudWatch dimension is compared letter by letter: one that differs from endpointName by a dot or a hyphen gets no data, and "
    "the scaler never moves.",
    sources=(thread("aws-samples/sagemaker-genai-hosting-examples"), KEDA_DOCS),
)
def cloudwatch_dimension(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A dimension EndpointName that is not the endpoint's name."""
    name = text(endpoint.get("spec", "endpointName"))
    for _, place, block in _blocks(endpoint):
        for kind, path, trigger in _triggers(place, block):
            for index, dimension in enumerate(entries(trigger.get("dimensions")) if kind == "cloudWatch" else ()):
                value = mapping(dimension).get("value")
                if mapping(dimension).get("name") == "EndpointName" and isinstance(value, str) and value != name:
                    at: Path = (*path, "dimensions", index, "value")
                    what = f"the dimension EndpointName is {value}, the endpoint is {name or 'not a SageMaker endpoint'}"
                    patch = set_value(endpoint, at, name) if name else None
                    yield Violation(endpoint.at(*at), what, f"write {name}" if name else "name the endpoint", value, patch)


@rule(
    "DPD434",
    "PromQL names vLLM's series as vLLM does",
    severity=Severity.WARNING,
    why="vLLM's series begin with `vllm:`; with an underscore the query finds nothing and the scaler never moves.",
    sources=(thread("volcano-sh/kthena", 868), VLLM),
)
def promql_names(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`vllm_…` in a Prometheus query."""
    for _, place, block in _blocks(endpoint):
        for kind, path, trigger in _triggers(place, block):
            query = text(trigger.get("query"))
            if kind == "prometheus" and (found := _UNDERSCORE.search(query)):
                right = _UNDERSCORE.sub("vllm:", query)
                series = re.match(r"\w+", query[found.start() :])
                patch = set_value(endpoint, (*path, "query"), right)
                what = f"the query names {series.group() if series else 'vllm_…'}"
                yield Violation(endpoint.at(*path, "query"), what, f"write {right}", query, patch)


@rule(
    "DPD435",
    "The minimum is not over the maximum",
    severity=Severity.ERROR,
    why="KEDA refuses a ScaledObject whose minimum is over its maximum, and Kubernetes an autoscaler whose maximum is 0.",
    sources=(KEDA_DOCS, KUBERNETES_DOCS, CRD_3_2),
)
def scaling_bounds(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A minReplicaCount over maxReplicaCount (5 where nothing is said), or a maxReplicaCount of 0."""
    for scaled, place, block in _blocks(endpoint):
        least, most = count(block.get("minReplicaCount")), most_by_scaling(block)
        least = 1 if least is None else least
        if most is not None and least > most:
            what = f"{scaled}: minReplicaCount is {least}, maxReplicaCount {most}"
            yield Violation(endpoint.at(*place, "minReplicaCount"), what, f"raise maxReplicaCount to {least} or more", least)
        elif most == 0:
            yield Violation(endpoint.at(*place, "maxReplicaCount"), f"{scaled}: maxReplicaCount is 0", "write 1 or more", 0)


@rule(
    "DPD436",
    "Autoscaling has a trigger",
    severity=Severity.WARNING,
    why="KEDA refuses a ScaledObject without a trigger; what the operator makes of an autoScalingSpec without one is documented nowhere.",
    sources=(KEDA_DOCS,),
)
def scaling_has_trigger(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An autoScalingSpec without any trigger."""
    for scaled, place, block in _blocks(endpoint):
        if not any(True for _ in _triggers(place, block)):
            yield Violation(endpoint.at(*place), f"{scaled}: no trigger is given", "add cloudWatchTrigger or prometheusTrigger")


@rule(
    "DPD437",
    "A trigger has what it needs",
    severity=Severity.ERROR,
    why="KEDA refuses a trigger without its metric or its target, and Kubernetes a target that is not above 0.",
    sources=(KEDA_DOCS, KUBERNETES_DOCS, CRD_3_2),
)
def trigger_is_complete(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A CloudWatch trigger without namespace, metric or target; a Prometheus trigger without address, query or target."""
    needed = {"cloudWatch": ("namespace", "metricName", "targetValue"), "prometheus": ("serverAddress", "query", "targetValue")}
    for scaled, place, block in _blocks(endpoint):
        for kind, path, trigger in _triggers(place, block):
            missing = [key for key in needed[kind] if trigger.get(key) in (None, "")]
            target = trigger.get("targetValue")
            if missing:
                what = f"{scaled}: the {kind} trigger lacks {' and '.join(missing)}"
                yield Violation(endpoint.at(*path), what, f"add {', '.join(missing)}")
            elif isinstance(target, (int, float)) and target <= 0:
                what = f"{scaled}: the {kind} trigger's targetValue is {target}"
                yield Violation(endpoint.at(*path, "targetValue"), what, "write what one pod is to have of it, above 0", target)


@rule(
    "DPD438",
    "A list of triggers is all there is",
    severity=Severity.WARNING,
    why="Where a trigger list is given the single trigger beside it is not read.",
    sources=(CRD_3_2,),
)
def trigger_beside_list(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A trigger and a trigger list of one kind."""
    for scaled, place, block in _blocks(endpoint):
        for one, many in _TRIGGERS.items():
            if block.get(one) is not None and entries(block.get(many)):
                yield Violation(endpoint.at(*place, one), f"{scaled}: {one} stands beside {many}", f"move it into {many}, or remove it")


@rule(
    "DPD448",
    "An activation is read",
    severity=Severity.WARNING,
    why="activationTargetValue says from where on to scale from 0 to 1: it is read only where minReplicaCount is 0, which is 1 by default.",
    sources=(CRD_3_2, KEDA_DOCS),
)
def activation_is_read(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An activationTargetValue over 0 and a minReplicaCount that is not 0."""
    for scaled, place, block in _blocks(endpoint):
        for _, path, trigger in _triggers(place, block):
            value = trigger.get("activationTargetValue")
            if isinstance(value, (int, float)) and value > 0 and block.get("minReplicaCount") != 0:
                at: Path = (*path, "activationTargetValue")
                what = f"{scaled}: activationTargetValue is {value}, minReplicaCount {block.get('minReplicaCount', 1)}"
                yield Violation(endpoint.at(*at), what, "remove it", value, remove(endpoint, at))


@rule(
    "DPD439",
    "Roles do not scale to nothing",
    severity=Severity.WARNING,
    why="A role with no pods takes the endpoint down with it until a node has loaded the model again; that the router waits for that is "
    "documented nowhere.",
    sources=(DPD_BLOG, thread("llm-d/llm-d-workload-variant-autoscaler", 250, 736)),
    since="3.2",
)
def roles_stay(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A minReplicaCount of 0 for a role."""
    if not endpoint.reading.disaggregated:
        return
    for server in endpoint.reading.servers:
        if server.scaling is not None and count(server.scaling.get("minReplicaCount")) == 0:
            path = (*server.scaling_path, "minReplicaCount")
            what = f"{server.name} may be scaled to 0"
            yield Violation(endpoint.at(*path), what, "set minReplicaCount to 1", 0, set_value(endpoint, path, 1))
