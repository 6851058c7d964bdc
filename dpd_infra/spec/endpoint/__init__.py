"""What a person may ask of an endpoint, in its short form: little to write, and every default with its source."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from dpd_infra.catalog.instance_types import DPD_INSTANCE_TYPES, instance_type
from dpd_infra.spec.base import Spec, StrictBool, section
from dpd_infra.spec.endpoint.change import ChangeSpec
from dpd_infra.spec.endpoint.defaults import sourced
from dpd_infra.spec.endpoint.load import LoadSpec
from dpd_infra.spec.endpoint.model import ModelSpec
from dpd_infra.spec.endpoint.roles import ColocatedSpec, RoleSpec
from dpd_infra.spec.endpoint.settings import (
    CacheSpec,
    DnsSpec,
    KueueSpec,
    LoadBalancerSpec,
    MetricsSpec,
    PlacementSpec,
    RoutingSpec,
    Silence,
    TimeoutsSpec,
    TlsSpec,
)
from dpd_infra.spec.endpoint.worker import WorkerSpec
from dpd_infra.spec.inference_endpoint_config.data_capture import DataCapture
from dpd_infra.spec.inference_endpoint_config.fields import CoreObject
from dpd_infra.spec.vocabulary import PUBLISHED_EXAMPLE, EfaRequests, Role

EndpointName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""An endpoint's name: it begins the name of a Kubernetes Service, so it is a DNS label that begins with a letter (RFC 1035)."""

Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""A Kubernetes namespace."""

InstanceTypeName = Annotated[str, StringConstraints(pattern=r"^ml\..*"), Field(examples=["ml.p5.48xlarge"])]
"""A HyperPod instance type with its prefix, `ml.p5.48xlarge` (CRD)."""

_FIXED = (("apiVersion",), ("kind",), ("status",), ("metadata", "name"), ("metadata", "namespace"))


class EndpointSpec(Spec):
    """One endpoint. It needs a model with its source and an instance type; the rest is the published example's or the CRD's default.

    Exactly one of instanceType, instanceTypes and nodeAffinity says where it runs.
    """

    model: ModelSpec
    """What is served."""
    instance_type: InstanceTypeName | None = Field(default=None, examples=["ml.p5.48xlarge"])
    """The instance type of all of its pods. DPD supports ml.p5, p5e, p5en .48xlarge and ml.p6-b200, p6-b300 .48xlarge."""
    instance_types: tuple[InstanceTypeName, ...] | None = Field(default=None, min_length=1)
    """Several types in order of preference (operator 2.3)."""
    node_affinity: CoreObject | None = None
    """A core/v1 NodeAffinity in place of instance types (operator 3.0)."""
    namespace: Namespace = sourced(PUBLISHED_EXAMPLE, default="default")
    """The namespace of the custom resource and of its pods."""
    endpoint_name: str | None = Field(default=None, max_length=63, pattern=r"^$|^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$")
    """The SageMaker endpoint. None: named as the endpoint is here; empty: no SageMaker endpoint, the load balancer only (CRD)."""
    disaggregated: StrictBool = sourced(PUBLISHED_EXAMPLE, default=True)
    """Prefill and decode apart. False: the colocated twin, on the same number of GPUs; nothing else need be changed, and back again."""
    prefill: RoleSpec = section()
    """The role that reads prompts."""
    decode: RoleSpec = section()
    """The role that writes tokens. One decode Deployment an endpoint (DPD guide)."""
    colocated: ColocatedSpec = section()
    """The pods while `disaggregated` is false."""
    load: LoadSpec | None = None
    """The load it has to serve, where it is known: what `auto` replicas are worked out from, and what `dpd size` and `dpd advise` ask
    about when no load is given to them."""
    routing: RoutingSpec = section()
    """The router."""
    worker: WorkerSpec = section()
    """The server."""
    cache: CacheSpec = section()
    """The KV cache."""
    placement: PlacementSpec = section()
    """Zones."""
    efa: EfaRequests = sourced(PUBLISHED_EXAMPLE, default=EfaRequests.DOCUMENTED)
    """Whether roles ask for EFA devices."""
    invocation_endpoint: str = sourced(PUBLISHED_EXAMPLE, default="v1/chat/completions")
    """The path that requests go to on the server."""
    load_balancer: LoadBalancerSpec = section()
    """The load balancer."""
    tls: TlsSpec | None = None
    """A certificate of your own."""
    dns: DnsSpec | None = None
    """A DNS record."""
    data_capture: DataCapture | None = None
    """Keep requests and answers in S3 (operator 3.1.2)."""
    metrics: MetricsSpec = section()
    """Metrics."""
    service_account: str | None = Field(
        default=None, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    )
    """The pods' service account (operator 3.1.2). None: the namespace's default."""
    kueue: KueueSpec | None = None
    """Task governance."""
    tags: dict[str, str] = Field(default_factory=dict)
    """AWS tags of the SageMaker endpoint."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the custom resource."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the custom resource."""
    timeouts: TimeoutsSpec = section()
    """How long things may take."""
    change: ChangeSpec = section()
    """How what cannot be changed on a live endpoint is changed."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Merged into the rendered manifest last: objects key by key, lists replaced whole, `null` removes (JSON merge patch);
    `spec.worker.environmentVariables` by name. Checked like the rest. Name, namespace, kind and status are not to be overridden."""
    silence: tuple[Silence, ...] = ()
    """Rules that do not apply here, with the reason."""

    @model_validator(mode="after")
    def _one_way_to_nodes(self) -> Self:
        ways = {"instanceType": self.instance_type, "instanceTypes": self.instance_types, "nodeAffinity": self.node_affinity}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) != 1:
            message = f"say exactly one of {', '.join(ways)}; here are {', '.join(given) or 'none'}"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _name_stays(self) -> Self:
        for path in _FIXED:
            part: Any = self.overrides
            for step in path:
                if not isinstance(part, dict) or step not in part:
                    # Anything but an object in the place of an object replaces all of it, the fixed part included.
                    reached = not isinstance(part, dict)
                    break
                part = part[step]
            else:
                reached = True
            if reached:
                message = f"overrides: {'.'.join(path)} is not to be overridden, other parts of the stack go by it"
                raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _counts_are_known(self) -> Self:
        kind = instance_type(self.first_instance_type or "")
        if not self.disaggregated and self.colocated.gpus is None and not (kind and kind.gpus):
            message = "colocated.gpus: how many GPUs a pod takes must be said, the catalog holds no GPU count for these nodes"
            raise ValueError(message)
        if self.efa is not EfaRequests.DOCUMENTED and not (kind and kind.efa_devices):
            message = f"efa: {self.efa} needs an instance type whose EFA devices the catalog holds: {', '.join(DPD_INSTANCE_TYPES)}"
            raise ValueError(message)
        return self

    @property
    def first_instance_type(self) -> str | None:
        """The instance type that GPU counts are taken from: the only or the preferred one; None under nodeAffinity."""
        return self.instance_type or (self.instance_types[0] if self.instance_types else None)

    def role(self, role: Role) -> RoleSpec:
        """One of the two roles."""
        return self.prefill if role is Role.PREFILL else self.decode


__all__ = ["EndpointName", "EndpointSpec", "InstanceTypeName", "Namespace", "Role"]
