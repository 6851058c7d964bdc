"""Rules on when a pod counts as alive and how long it may load: probes and the time for a deployment."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, DPD_GUIDE, KUBERNETES_DOCS, VLLM
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.server_rules import server_port
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import count, mapping, text

LOAD_SECONDS = 600
"""A 70B model loads from cold S3 in 5 to 10 minutes (DPD guide)."""

DEFAULT_DEPLOY_SECONDS = 3600
"""maxDeployTimeInSeconds where nothing is said (CRD)."""


@rule(
    "DPD409",
    "Probes ask where the server answers",
    severity=Severity.ERROR,
    why="The kubelet restarts a container whose liveness or startup probe fails, and keeps one whose readiness probe fails out of service.",
    sources=(KUBERNETES_DOCS, VLLM),
)
def probe_targets(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An httpGet or tcpSocket probe on another port, or on a path that vLLM does not serve."""
    found, server = server_port(endpoint), endpoint.reading.server
    if found is None or server is None:
        return
    names = {"http", "grpc", text(mapping(endpoint.reading.worker.get("modelInvocationPort")).get("name"))}
    for name, probe in mapping(endpoint.reading.worker.get("probes")).items():
        for kind in ("httpGet", "tcpSocket"):
            target = mapping(mapping(probe).get(kind))
            path: Path = ("spec", "worker", "probes", name, kind)
            port, asked = target.get("port"), target.get("path")
            number = int(port) if isinstance(port, str) and port.isdigit() and len(port) <= len("65535") else port
            if isinstance(port, (int, str)) and number != found[0] and port not in names:
                patch = set_value(endpoint, (*path, "port"), found[0])
                what = f"{name} asks port {port}, the server listens on {found[0]}"
                yield Violation(endpoint.at(*path, "port"), what, f"set it to {found[0]}", port, patch)
            if kind == "httpGet" and isinstance(asked, str) and server.health_paths and asked.rstrip("/") not in server.health_paths:
                patch = set_value(endpoint, (*path, "path"), "/health")
                yield Violation(
                    endpoint.at(*path, "path"),
                    f"{name} asks {asked}, which {server.name} does not serve",
                    "set it to /health",
                    asked,
                    patch,
                )


@rule(
    "DPD410",
    "Probes wait for the model",
    severity=Severity.WARNING,
    why="A 70B model loads in 5 to 10 minutes, and the server answers only then: a startup probe, or a liveness probe without one, that "
    "gives up earlier restarts the container for ever.",
    sources=(DPD_GUIDE, KUBERNETES_DOCS),
)
def probes_wait(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A startup probe, or a liveness probe where there is none, that gives up in under 10 minutes."""
    probes = mapping(endpoint.reading.worker.get("probes"))
    name = "livenessProbe" if probes.get("startupProbe") is None else "startupProbe"
    probe = probes.get(name)
    if not isinstance(probe, dict):
        return
    delay, period, failures = (
        default if (given := count(probe.get(key))) is None else given
        for key, default in (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
    )
    waits = delay + period * failures
    if waits < LOAD_SECONDS:
        alone = ", there is no startupProbe" if name == "livenessProbe" else ""
        fix = "set its failureThreshold to 90 and periodSeconds to 10"
        if alone:
            fix = "add a startupProbe with failureThreshold: 90 and periodSeconds: 10, or initialDelaySeconds: 600"
        yield Violation(endpoint.at("spec", "worker", "probes", name), f"{name} gives up after {waits} seconds{alone}", fix)


@rule(
    "DPD411",
    "There is time to load the model",
    severity=Severity.WARNING,
    why="A 70B model alone takes 5 to 10 minutes to load from cold S3: with less the operator calls the deployment failed.",
    sources=(DPD_GUIDE, CRD_3_2),
)
def deploy_time(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A maxDeployTimeInSeconds of 10 minutes or less."""
    path: Path = ("spec", "maxDeployTimeInSeconds")
    seconds = count(endpoint.get(*path))
    if seconds is not None and seconds <= LOAD_SECONDS:
        what = f"maxDeployTimeInSeconds is {seconds}"
        patch = set_value(endpoint, path, DEFAULT_DEPLOY_SECONDS) if endpoint.spec is None else None
        yield Violation(endpoint.at(*path), what, f"leave it out ({DEFAULT_DEPLOY_SECONDS} is the default)", seconds, patch)
