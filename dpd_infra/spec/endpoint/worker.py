"""What may be asked of the worker: the vLLM server that both roles run."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, Strict, model_validator

from dpd_infra.catalog.images import HYPERPOD_VLLM, ImagePart
from dpd_infra.catalog.sources import CRD_3_2
from dpd_infra.spec.base import Spec, StrictInt, section
from dpd_infra.spec.endpoint.defaults import Auto, sourced
from dpd_infra.spec.endpoint.roles import RoleResources
from dpd_infra.spec.inference_endpoint_config.fields import CoreObject
from dpd_infra.spec.inference_endpoint_config.worker import Probes, RequestLimits
from dpd_infra.spec.vocabulary import PD_BUFFER_VARIABLE, PUBLISHED_EXAMPLE


class WorkerSpec(Spec):
    """The server's image, flags, port and environment."""

    image: str = sourced(HYPERPOD_VLLM.source, default=HYPERPOD_VLLM.reference, min_length=1)
    """The image. Both roles run the same one."""
    image_holds: tuple[ImagePart, ...] = ()
    """For an image that is not in the catalog: a statement of what it holds. DPD needs vllm, lmcache, nixl and efa."""
    port: StrictInt = sourced(PUBLISHED_EXAMPLE, default=8000, ge=1, le=65535)
    """Where the server listens; also its `--port`."""
    port_name: str = sourced(CRD_3_2, default="http", pattern=r"^http$|^grpc$")
    """http or grpc."""
    tensor_parallel_size: StrictInt | None = Field(default=None, ge=1)
    """`--tensor-parallel-size` of both roles. None: the GPUs of a pod."""
    max_model_len: StrictInt = sourced(PUBLISHED_EXAMPLE, default=16384, ge=1)
    """`--max-model-len`, tokens."""
    gpu_memory_utilization: Annotated[float, Strict(), Field(gt=0, le=1)] | Auto = sourced(PUBLISHED_EXAMPLE, default=0.75)
    """`--gpu-memory-utilization`. The rest of the GPU's memory holds the PD buffer, the CUDA context and the graphs. `auto`: the most
    that leaves all of them room and 1 GiB to spare, at most 0.9."""
    args: tuple[str, ...] = ()
    """Further vLLM flags, after the ones above."""
    command: tuple[str, ...] | None = None
    """The entry point. None: the image's own."""
    working_dir: str | None = None
    """The working directory. None: the image's own."""
    environment: dict[str, str | CoreObject | None] = Field(default_factory=dict)
    """Environment variables by name, over the defaults: text, a core/v1 EnvVarSource such as `{secretKeyRef: {name: …, key: …}}`, or
    nothing (`null`) to leave a default out."""
    resources: RoleResources = section()
    """Requests and limits over the defaults: half of the instance's vCPUs and memory, and the GPUs of a pod. The operator
    ignores them while the endpoint is disaggregated, and the CRD asks for them all the same."""
    probes: Probes | None = None
    """Health checks by the kubelet."""
    request_limits: RequestLimits | None = None
    """Limits of the sidecar (operator 3.1)."""
    volume_name: str = sourced(PUBLISHED_EXAMPLE, default="model-weights", min_length=1, max_length=63)
    """The name of the model volume."""
    mount_path: str = sourced(CRD_3_2, default="/opt/ml/model", pattern=r"^/")
    """Where the model's files appear in the container; also the server's `--model`."""

    @model_validator(mode="after")
    def _buffer_has_a_field(self) -> Self:
        if PD_BUFFER_VARIABLE in self.environment:
            message = f"{PD_BUFFER_VARIABLE} is set by cache.pdBufferBytes: write the number there"
            raise ValueError(message)
        return self
