"""Rules on the model server: the port it listens on and the paths it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpd_infra.catalog.images import worker_image
from dpd_infra.catalog.sources import CACHING_ROUTING_GUIDE, CRD_3_2, DJL_SERVING, DPD_GUIDE, KUBERNETES_DOCS, PUBLIC_SAMPLES, VLLM
from dpd_infra.plan.worker_args import Flag
from dpd_infra.rules.patches import set_flag, set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation, told_once
from dpd_infra.rules.wording import named
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import count, mapping, text

DEFAULT_METRICS_PORT = 8080
"""metrics.modelMetrics.port where nothing is said (CRD)."""

_PORT: Path = ("spec", "worker", "modelInvocationPort", "containerPort")
_METRICS_PORT: Path = ("spec", "metrics", "modelMetrics", "port")


def server_port(endpoint: EndpointSubject) -> tuple[int, Flag | None] | None:
    """Where the server listens, and the flag that says so; None where it is not known."""
    server = endpoint.reading.server
    if server is None:
        return None
    flag = endpoint.reading.decode.args.last(server.port_flag) if server.port_flag else None
    if flag is not None:
        return (flag.integer, flag) if flag.integer is not None else None
    moved = [name for name in endpoint.reading.environment if name in {"SAGEMAKER_BIND_TO_PORT", "SERVING_PORT"}]
    return None if moved or (server.port_flag and _opaque(endpoint)) else (server.port, None)


def _opaque(endpoint: EndpointSubject) -> bool:
    """Whether flags come from where they cannot be read: a configuration file, or a script of the user's own."""
    args = endpoint.reading.decode.args
    command = endpoint.reading.worker.get("command")
    return args.last("config") is not None or (isinstance(command, list) and bool(command) and not args.flags)


@rule(
    "DPD402",
    "The invocation port is the server's",
    severity=Severity.ERROR,
    why="Sidecar, probes and load balancer reach the server on modelInvocationPort.containerPort: where it listens elsewhere, health "
    "never turns green.",
    sources=(VLLM, DJL_SERVING, PUBLIC_SAMPLES),
)
def invocation_port(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A containerPort other than the server's --port, or than the image's own port."""
    found, asked = server_port(endpoint), count(endpoint.get(*_PORT))
    server = endpoint.reading.server
    if found is None or server is None or asked is None or found[0] == asked:
        return
    port, flag = found
    said = f"--port {port}" if flag else f"{server.name} listens on {port}{' by itself, no --port is given' if server.port_flag else ''}"
    add = f", or add --port {asked} to worker.args" if server.port_flag and not flag else ""
    is_short = endpoint.spec is not None
    yield Violation(
        endpoint.at(*_PORT),
        f"containerPort is {asked}, {said}",
        f"set {named(endpoint, 'modelInvocationPort.containerPort', 'worker.port', _PORT)} to {port}{add}",
        value=asked,
        patch=set_flag(endpoint, flag, asked) if is_short and flag else set_value(endpoint, _PORT, port),
        related=(endpoint.at(*flag.path),) if flag else (),
    )


@rule(
    "DPD403",
    "The metrics port is the server's",
    severity=Severity.ERROR,
    why="The collector reads the server's metrics on modelMetrics.port: on another port there is nothing, and router and cache metrics "
    "stay empty.",
    sources=(CACHING_ROUTING_GUIDE, PUBLIC_SAMPLES),
)
def metrics_port(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A modelMetrics.port that is given and is not the server's."""
    asked, port = count(endpoint.get(*_METRICS_PORT)), _metrics_source(endpoint)
    if asked is None or port is None or asked == port:
        return
    yield Violation(
        endpoint.at(*_METRICS_PORT),
        f"metrics.modelMetrics.port is {asked}, the server listens on {port}",
        f"set {_metrics_name(endpoint)} to {port}",
        value=asked,
        patch=set_value(endpoint, _METRICS_PORT, port),
    )


@rule(
    "DPD404",
    "The default metrics port is the server's",
    severity=Severity.ADVICE,
    why=f"The metrics port is {DEFAULT_METRICS_PORT} where nothing is said, and AWS's caching guide wants it equal to the invocation "
    "port: otherwise the server's own metrics (TTFT, waiting requests, cache) are missing from dashboards and autoscaling.",
    sources=(CACHING_ROUTING_GUIDE, CRD_3_2),
)
def default_metrics_port(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Metrics on without `metrics.port` (in a manifest `metrics.modelMetrics.port`), and a server that listens elsewhere than on 8080."""
    port = _other_port_than_default(endpoint)
    others = None if port is None else told_once(endpoint, "DPD404", _metrics_untouched)
    if others is None:
        return
    yield Violation(
        endpoint.at("spec", "metrics"),
        f"no metrics port is given, {DEFAULT_METRICS_PORT} is the default and the server listens on {port}{others}",
        f"set {_metrics_name(endpoint)} to {port}",
        patch=set_value(endpoint, _METRICS_PORT, port, ("metrics", "port")),
    )


def _other_port_than_default(endpoint: EndpointSubject) -> int | None:
    """The server's port where no metrics port is given and the default is another one; None elsewhere."""
    port = _metrics_source(endpoint)
    return None if port == DEFAULT_METRICS_PORT or endpoint.get(*_METRICS_PORT) is not None else port


def _metrics_untouched(endpoint: EndpointSubject) -> bool:
    return endpoint.spec is not None and "metrics" not in endpoint.spec.model_fields_set and _other_port_than_default(endpoint) is not None


def _metrics_name(endpoint: EndpointSubject) -> str:
    return named(endpoint, "metrics.modelMetrics.port", "metrics.port", _METRICS_PORT)


def _metrics_source(endpoint: EndpointSubject) -> int | None:
    """The port that metrics are served on; None where metrics are off or it is not known."""
    metrics = endpoint.get("spec", "metrics")
    if metrics is not None and (not isinstance(metrics, dict) or metrics.get("enabled") is False):
        return None
    found = server_port(endpoint)
    return found[0] if found is not None else None


@rule(
    "DPD405",
    "The health check asks for a path the server answers",
    severity=Severity.ERROR,
    why="A health check that gets 404 keeps every target unhealthy.",
    sources=(VLLM, CRD_3_2),
)
def health_path(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A healthCheckPath that vLLM does not serve."""
    path: Path = ("spec", "loadBalancer", "healthCheckPath")
    asked, server = endpoint.get(*path), endpoint.reading.server
    root = endpoint.reading.decode.args.text("root-path") or ""
    if not isinstance(asked, str) or server is None or not server.health_paths:
        return
    if asked.removeprefix(root).rstrip("/") not in server.health_paths:
        what = f"healthCheckPath is {asked}, {server.name} answers {', '.join(server.health_paths)}"
        yield Violation(
            endpoint.at(*path), what, "set loadBalancer.healthCheckPath to /health", asked, set_value(endpoint, path, "/health")
        )


@rule(
    "DPD406",
    "Requests go to a path the server answers",
    severity=Severity.WARNING,
    why="The operator sends requests to http://host:port/<invocationEndpoint>: a path that the server does not know answers 404 to all "
    "of them.",
    sources=(VLLM, CRD_3_2),
)
def invocation_path(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An invocationEndpoint that vLLM does not serve."""
    asked, server = endpoint.get("spec", "invocationEndpoint"), endpoint.reading.server
    if not isinstance(asked, str) or server is None or not server.invocation_paths:
        return
    if asked.strip("/") not in server.invocation_paths:
        what = f"invocationEndpoint is {asked!r}, which {server.name} does not serve"
        fix = f"write {server.invocation_paths[0]} or {server.invocation_paths[1]}"
        yield Violation(endpoint.at("spec", "invocationEndpoint"), what, fix, asked)


@rule(
    "DPD407",
    "The server listens to the pod's address",
    severity=Severity.ERROR,
    why="On 127.0.0.1 only the pod itself reaches the server: the kubelet's probes fail.",
    sources=(VLLM, KUBERNETES_DOCS),
)
def server_host(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`--host` of the loopback interface."""
    flag = endpoint.reading.decode.args.last("host")
    if flag is not None and flag.value in {"127.0.0.1", "localhost", "::1"}:
        yield Violation(endpoint.at(*flag.path), f"--host is {flag.value}", "write --host 0.0.0.0", flag.value)


@rule(
    "DPD408",
    "The server loads the model that is mounted",
    severity=Severity.ERROR,
    why="The operator mounts the model's files at modelVolumeMount.mountPath, and the documented images hold no model: from another path "
    "nothing is loaded, and without --model vLLM serves a small model of its own choice.",
    sources=(DPD_GUIDE, VLLM),
)
def served_model(endpoint: EndpointSubject) -> Iterator[Violation]:
    """In a documented image: `--model` of a path outside the mount, or no model at all."""
    reading = endpoint.reading
    mount = text(mapping(reading.worker.get("modelVolumeMount")).get("mountPath")) or "/opt/ml/model"
    if worker_image(reading.image) is None or reading.worker.get("command") is not None or _opaque(endpoint):
        return
    flag = reading.decode.args.last("model")
    named = [word for word in reading.decode.args.positionals if word.text != "serve"]
    if flag is None and not named and "SM_VLLM_MODEL" not in reading.environment:
        yield Violation(endpoint.at("spec", "worker", "args"), "worker.args names no model", f"add --model {mount}")
        return
    said, place = (flag.value, flag.path) if flag else (named[0].text, named[0].path) if named else (None, ())
    if said and said.startswith("/") and not (said.rstrip("/") + "/").startswith(mount.rstrip("/") + "/"):
        fix = f"write --model {mount}, or mount the model at {said}"
        yield Violation(endpoint.at(*place), f"the server loads {said}, the model is mounted at {mount}", fix, said)


@rule(
    "DPD414",
    "The server loads the files that are mounted, not the hub's",
    severity=Severity.WARNING,
    why="The operator mounts the model of modelSourceConfig; a server that is given a name of the Hugging Face hub downloads that in every "
    "pod instead, which needs a way out and, for gated models, a token that the worker does not have.",
    sources=(DPD_GUIDE, VLLM),
)
def model_of_the_hub(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`--model` with `organisation/model` in a documented image."""
    reading = endpoint.reading
    flag = reading.decode.args.last("model")
    value = flag.value if flag is not None else None
    if flag is None or value is None or worker_image(reading.image) is None or reading.worker.get("command") is not None:
        return
    if _HUB_NAME.fullmatch(value):
        mount = text(mapping(reading.worker.get("modelVolumeMount")).get("mountPath")) or "/opt/ml/model"
        yield Violation(endpoint.at(*flag.path), f"--model is {value}, a name of the hub", f"write --model {mount}", value)


_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+")
