"""Rules on the parts of a pod that the resource holds: what Kubernetes refuses of them when the operator makes the Deployments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.catalog.sources import CRD_3_2, KUBERNETES_DOCS
from dpd_infra.plan.quantities import quantity
from dpd_infra.rules.environment import ENVIRONMENT
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import count, entries, mapping, text

PROBE_KINDS = ("exec", "httpGet", "tcpSocket", "grpc")
VALUE_SOURCES = ("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef")

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_VOLUMES: Path = ("spec", "kubernetes", "volumes")
_INIT: Path = ("spec", "kubernetes", "initContainers")
_LATE = "The API server takes the resource, whose CRD does not look so deep, and refuses the Deployment that the operator makes of it: "


def _named_once(endpoint: EndpointSubject, place: Path, what: str) -> Iterator[Violation]:
    """Names of a list's entries that are no DNS label, or that stand twice."""
    first: dict[str, int] = {}
    for index, entry in enumerate(entries(endpoint.get(*place))):
        name = text(mapping(entry).get("name"))
        if not name:
            continue
        path: Path = (*place, index, "name")
        if not _LABEL.fullmatch(name):
            yield Violation(
                endpoint.at(*path), f"{name!r} is no name of a {what}", "use up to 63 lower-case letters, digits and hyphens", name
            )
        elif name in first:
            yield Violation(endpoint.at(*path), f"{what} {name} stands twice", "give one of the two another name", name)
        first.setdefault(name, index)


@rule(
    "DPD450",
    "Volumes are ones that a pod can have",
    severity=Severity.ERROR,
    why=f"{_LATE}a volume has one source and a DNS label for a name, and no two have one name.",
    sources=(KUBERNETES_DOCS, CRD_3_2),
    since="3.1",
)
def volumes_can_be(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A name that is no DNS label or stands twice, and a volume with several sources; one with none is an empty folder."""
    yield from _named_once(endpoint, _VOLUMES, "volume")
    for index, volume in enumerate(entries(endpoint.get(*_VOLUMES))):
        sources = [key for key, value in mapping(volume).items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield Violation(endpoint.at(*_VOLUMES, index), f"the volume has {' and '.join(sources)}", "keep one source")


@rule(
    "DPD451",
    "Probes ask in one way",
    severity=Severity.ERROR,
    why=f"{_LATE}a probe has one of {', '.join(PROBE_KINDS)}, and liveness and startup probes succeed at the first success.",
    sources=(KUBERNETES_DOCS, CRD_3_2),
)
def probes_can_be(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A probe without a way to ask or with two, and a successThreshold over 1 where only 1 is taken."""
    for name, probe in mapping(endpoint.reading.worker.get("probes")).items():
        if not isinstance(probe, Mapping):
            continue
        path: Path = ("spec", "worker", "probes", name)
        ways = [kind for kind in PROBE_KINDS if probe.get(kind) is not None]
        if len(ways) != 1:
            what = f"{name} has {' and '.join(ways) or 'no way to ask'}"
            yield Violation(endpoint.at(*path), what, "keep one of them" if ways else "add httpGet: {path: /health, port: 8000}")
        threshold = count(probe.get("successThreshold"))
        if name in {"livenessProbe", "startupProbe"} and threshold is not None and threshold > 1:
            place: Path = (*path, "successThreshold")
            patch = set_value(endpoint, place, 1)
            yield Violation(endpoint.at(*place), f"{name} wants {threshold} successes", "set it to 1", threshold, patch)


@rule(
    "DPD452",
    "A variable has one value",
    severity=Severity.ERROR,
    why=f"{_LATE}a variable has a value or one source to take it from, and a name without an equals sign.",
    sources=(KUBERNETES_DOCS, CRD_3_2),
)
def variables_can_be(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A variable with both value and valueFrom, a valueFrom with no source or with several, and a name that is none."""
    for path, entry in _variables(endpoint):
        name, source = text(entry.get("name")), entry.get("valueFrom")
        if source is None and name and "=" not in name:
            continue
        given = [key for key in VALUE_SOURCES if mapping(source).get(key) is not None]
        if not name or "=" in name:
            # What stands behind the sign may be a secret.
            shown = f"{name.partition('=')[0]}=…" if name else ""
            yield Violation(endpoint.at(*path, "name"), f"{shown!r} is no name of a variable", "name it without an equals sign", shown)
        elif isinstance(source, Mapping) and entry.get("value"):
            yield Violation(endpoint.at(*path, "valueFrom"), f"{name} has a value and valueFrom", "keep one of the two")
        elif isinstance(source, Mapping) and len(given) != 1:
            what = f"valueFrom of {name} has {' and '.join(given) or 'no source'}"
            yield Violation(endpoint.at(*path, "valueFrom"), what, "keep one source, as in secretKeyRef: {name: …, key: …}")


def _variables(endpoint: EndpointSubject) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    places: list[Path] = [ENVIRONMENT]
    places += [(*_INIT, index, "env") for index, _ in enumerate(entries(endpoint.get(*_INIT)))]
    for place in places:
        for index, entry in enumerate(entries(endpoint.get(*place))):
            if isinstance(entry, Mapping):
                yield (*place, index), entry


@rule(
    "DPD453",
    "Init containers are ones that a pod can have",
    severity=Severity.ERROR,
    why=f"{_LATE}a container has a DNS label for a name, and no two have one.",
    sources=(KUBERNETES_DOCS, CRD_3_2),
    since="3.1",
)
def init_containers_can_be(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A name that is no DNS label or stands twice."""
    yield from _named_once(endpoint, _INIT, "container")


@rule(
    "DPD456",
    "Amounts of a pod are none or more",
    severity=Severity.ERROR,
    why="The CRD's pattern of an amount takes a sign. The API server takes such a resource, and refuses the pods that ask for less than "
    "nothing (must be greater than or equal to 0).",
    sources=(KUBERNETES_DOCS, CRD_3_2),
)
def amounts_are_not_negative(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A request or limit below zero, of a server or of an init container, and such a size of an emptyDir."""
    for path, amount in _amounts(endpoint):
        found = quantity(amount)
        if found is not None and found < 0:
            what = f"{path[-1]} is {amount}, and nobody can have less than nothing"
            yield Violation(endpoint.at(*path), what, "write the amount without its sign, or leave it out", amount)


def _amounts(endpoint: EndpointSubject) -> Iterator[tuple[Path, Any]]:
    places: list[Path] = [server.resources_path for server in endpoint.reading.servers]
    places += [(*_INIT, index, "resources") for index, _ in enumerate(entries(endpoint.get(*_INIT)))]
    for place in places:
        for part in ("requests", "limits"):
            for name, amount in mapping(endpoint.get(*place, part)).items():
                yield (*place, part, name), amount
    for index, _ in enumerate(entries(endpoint.get(*_VOLUMES))):
        size: Path = (*_VOLUMES, index, "emptyDir", "sizeLimit")
        yield size, endpoint.get(*size)
