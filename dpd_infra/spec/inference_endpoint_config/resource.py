"""The custom resource itself: metadata, the whole spec, and the status that the operator writes."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from dpd_infra.spec.inference_endpoint_config.autoscaling import AutoScaling
from dpd_infra.spec.inference_endpoint_config.data_capture import DataCapture
from dpd_infra.spec.inference_endpoint_config.disaggregation import DisaggregationConfig
from dpd_infra.spec.inference_endpoint_config.fields import CoreObject, CrdModel, Int32, since
from dpd_infra.spec.inference_endpoint_config.model_source import ModelSourceConfig
from dpd_infra.spec.inference_endpoint_config.placement import ModelCache, PodAdditions
from dpd_infra.spec.inference_endpoint_config.status import InferenceEndpointConfigStatus
from dpd_infra.spec.inference_endpoint_config.traffic import Dns, InferenceGateway, IntelligentRouting, KvCache, LoadBalancer, Metrics, Tls
from dpd_infra.spec.inference_endpoint_config.worker import Worker


class Tag(CrdModel):
    """An AWS tag of the SageMaker endpoint."""

    name: str
    """The tag's key."""
    value: str
    """Its value."""


class ObjectMeta(CrdModel):
    """meta/v1 ObjectMeta: what people write of it; what the API server adds is kept as it is."""

    model_config = ConfigDict(extra="allow")

    name: str
    """The endpoint's name."""
    namespace: str = "default"
    """Its namespace."""
    labels: dict[str, str] | None = None
    """Labels; Kueue reads its queue here."""
    annotations: dict[str, str] | None = None
    """Annotations."""


class InferenceEndpointConfigSpec(CrdModel):
    """Everything that can be asked of an endpoint. Required: modelName, modelSourceConfig, worker."""

    initial_replica_count: Int32 | None = Field(default=None, alias="InitialReplicaCount")
    """Deprecated and without effect (CRD): use replicas, and autoScalingSpec.minReplicaCount."""
    auto_scaling_spec: AutoScaling | None = None
    """Autoscaling. Whether it acts beside pdSpec is not documented; roles have their own there."""
    data_capture: DataCapture | None = Field(default=None, json_schema_extra=since("3.1.2"))
    """Keep requests and answers in S3."""
    dns_config: Dns | None = Field(default=None, json_schema_extra=since("3.1.2"))
    """A DNS record; needs tlsConfig.customCertificateConfig."""
    endpoint_name: str | None = Field(default=None, max_length=63, pattern=r"^$|^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$")
    """The SageMaker endpoint; none where it is empty or left out."""
    inference_gateway: InferenceGateway | None = Field(default=None, json_schema_extra=since("gateway"))
    """Join an inference gateway."""
    instance_type: str | None = Field(default=None, pattern=r"^ml\..*")
    """One instance type; excludes instanceTypes and nodeAffinity."""
    instance_types: tuple[str, ...] | None = Field(default=None, json_schema_extra=since("2.3"))
    """Instance types in order of preference; excludes instanceType and nodeAffinity."""
    intelligent_routing_spec: IntelligentRouting | None = Field(default=None, json_schema_extra=since("2.1"))
    """The router. Under pdSpec there is one anyway."""
    invocation_endpoint: str = "invocations"
    """The path on the server, without a host."""
    kubernetes: PodAdditions | None = Field(default=None, json_schema_extra=since("3.1"))
    """Additions to the pods."""
    kv_cache_spec: KvCache | None = Field(default=None, json_schema_extra=since("2.1"))
    """The KV cache."""
    load_balancer: LoadBalancer | None = None
    """The load balancer."""
    max_deploy_time_in_seconds: Int32 = 3600
    """How long a deployment may take."""
    metrics: Metrics | None = None
    """Metrics."""
    model_cache_config: ModelCache | None = Field(default=None, json_schema_extra=since("3.3"))
    """What nodes keep between pods."""
    model_name: str = Field(max_length=63, pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
    """The model's name in SageMaker. The CRD's pattern has no end."""
    model_source_config: ModelSourceConfig
    """Where the model's files come from."""
    model_version: str | None = None
    """The model's version in SageMaker."""
    node_affinity: CoreObject | None = Field(default=None, json_schema_extra=since("3.0"))
    """core/v1 NodeAffinity; excludes instanceType and instanceTypes."""
    pd_spec: DisaggregationConfig | None = Field(default=None, json_schema_extra=since("3.2"))
    """Disaggregated prefill and decode."""
    replicas: Int32 = 1
    """Pods. Whether it acts beside pdSpec is not documented."""
    tags: tuple[Tag, ...] | None = None
    """AWS tags of the SageMaker endpoint."""
    tls_config: Tls | None = None
    """The certificate."""
    worker: Worker
    """The server."""


class InferenceEndpointConfig(CrdModel):
    """The custom resource `inference.sagemaker.aws.amazon.com/v1`, field by field.

    For those who want all of it; `EndpointSpec` is the short form. Building one raises `pydantic.ValidationError` with every problem.
    """

    api_version: Literal["inference.sagemaker.aws.amazon.com/v1"] = "inference.sagemaker.aws.amazon.com/v1"
    """The API's group and version."""
    kind: Literal["InferenceEndpointConfig"] = "InferenceEndpointConfig"
    """The resource's kind."""
    metadata: ObjectMeta
    """Name, namespace, labels."""
    spec: InferenceEndpointConfigSpec
    """What is asked for."""
    status: InferenceEndpointConfigStatus | None = None
    """What the operator reports; nobody else writes it."""

    @classmethod
    def from_manifest(cls, document: dict[str, Any]) -> Self:
        """Read a manifest; a key with `null` counts as left out, as for the API server. Raises `pydantic.ValidationError`."""
        return cls.from_yaml_data(_without_nulls(document))

    def to_manifest(self) -> dict[str, Any]:
        """The manifest as plain data: apiVersion, kind, metadata, and of the spec only what was set."""
        data = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            **{key: data[key] for key in ("metadata", "spec", "status") if key in data},
        }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
