"""The worker: the container that serves the model, its port, volume, resources, probes and limits."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from dpd_infra.spec.base import StrictInt
from dpd_infra.spec.inference_endpoint_config.fields import CoreObject, CrdModel, Quantity, since


class EnvironmentVariable(CrdModel):
    """One environment variable of the worker."""

    name: str
    """Its name; each name once."""
    value: str | None = None
    """Its value. Always text: `"0"`, never `0`."""
    value_from: CoreObject | None = None
    """core/v1 EnvVarSource: a Secret, a ConfigMap, a field of the pod."""


class ResourceClaim(CrdModel):
    """A claim of dynamic resource allocation."""

    name: str
    """An entry of the pod's resourceClaims."""
    request: str | None = None
    """One request of the claim; all of it where it is left out."""


class Resources(CrdModel):
    """core/v1 ResourceRequirements."""

    claims: tuple[ResourceClaim, ...] | None = None
    """Claims, each name once."""
    limits: dict[str, Quantity] | None = None
    """The most the container may use, by resource name."""
    requests: dict[str, Quantity] | None = None
    """What the scheduler sets aside, by resource name; the limits where it is left out."""

    @model_validator(mode="after")
    def _each_claim_once(self) -> Self:
        refuse_doubles("claims", [claim.name for claim in self.claims or ()])
        return self


class ModelInvocationPort(CrdModel):
    """Where the model server listens."""

    container_port: StrictInt = Field(ge=1, le=65535, json_schema_extra={"format": "int32"})
    """The server's port."""
    name: str = Field(default="http", pattern=r"^http$|^grpc$")
    """http or grpc."""


class ModelVolumeMount(CrdModel):
    """Where the model's files appear in the container."""

    mount_path: str = "/opt/ml/model"
    """The path in the container."""
    name: str
    """The volume's name; a kubernetesVolume source names its volume the same."""


class Probes(CrdModel):
    """core/v1 Probes of the worker."""

    liveness_probe: CoreObject | None = None
    """Restart the container when it fails."""
    readiness_probe: CoreObject | None = None
    """Send requests only while it succeeds; the operator has its own where it is left out."""
    startup_probe: CoreObject | None = None
    """Hold the other probes until it succeeds."""


class RequestLimits(CrdModel):
    """What the nginx sidecar of each pod lets through (operator 3.1)."""

    max_concurrent_requests: StrictInt | None = Field(default=None, ge=1, json_schema_extra={"format": "int32"})
    """Requests at the same time, a pod; no limit where it is left out."""
    max_queue_size: StrictInt | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Requests that wait beyond that; none where it is left out."""
    overflow_status_code: StrictInt = Field(default=429, ge=400, le=599, json_schema_extra={"format": "int32"})
    """The HTTP status of a request that is let go."""


class Worker(CrdModel):
    """The model server's container. Under pdSpec both roles run it, each with its own args and resources added."""

    args: tuple[str, ...] | None = None
    """Arguments of the entry point; a role's args follow them and win."""
    command: tuple[str, ...] | None = None
    """The entry point, not run in a shell; the image's own where it is left out."""
    environment_variables: tuple[EnvironmentVariable, ...] | None = None
    """The container's environment, the same for both roles. The CRD says that it cannot be updated."""
    image: str
    """The server's image. DPD needs one that holds vLLM, LMCache, NIXL and the EFA libfabric provider."""
    model_invocation_port: ModelInvocationPort
    """Where the server listens."""
    model_volume_mount: ModelVolumeMount
    """Where the model's files appear."""
    probes: Probes | None = None
    """Health checks by the kubelet."""
    request_limits: RequestLimits | None = Field(default=None, json_schema_extra=since("3.1"))
    """Limits of the sidecar."""
    resources: Resources
    """CPU, memory and GPUs. Required always, and ignored under pdSpec (CRD)."""
    working_dir: str | None = None
    """The container's working directory."""

    @model_validator(mode="after")
    def _each_variable_once(self) -> Self:
        refuse_doubles("environmentVariables", [variable.name for variable in self.environment_variables or ()])
        return self


def refuse_doubles(where: str, names: list[Any]) -> None:
    """Raise `ValueError` where a list-map holds one key twice: the API server refuses the document."""
    doubles = sorted({str(name) for name in names if names.count(name) > 1})
    if doubles:
        message = f"{where}: {', '.join(doubles)} stands there twice; the API server takes each name once"
        raise ValueError(message)
