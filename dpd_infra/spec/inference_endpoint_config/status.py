"""What the operator reports of an endpoint: `status`. Fields of later operators are kept as they are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from dpd_infra.spec.base import StrictBool, StrictInt
from dpd_infra.spec.inference_endpoint_config.fields import CrdModel, Int32


class Reported(CrdModel):
    """A part of the status."""

    model_config = ConfigDict(extra="allow")


Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""A moment as the API server writes it, RFC 3339."""

Int64 = Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1, json_schema_extra={"format": "int64"})]
"""An integer of 64 bits."""


class DeploymentState(StrEnum):
    """The endpoint's life."""

    DEPLOYMENT_PENDING = "DeploymentPending"
    DEPLOYMENT_IN_PROGRESS = "DeploymentInProgress"
    DEPLOYMENT_FAILED = "DeploymentFailed"
    DEPLOYMENT_COMPLETE = "DeploymentComplete"
    DELETION_PENDING = "DeletionPending"
    DELETION_IN_PROGRESS = "DeletionInProgress"
    DELETION_FAILED = "DeletionFailed"
    DELETION_COMPLETE = "DeletionComplete"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Reported):
    """meta/v1 Condition. A disaggregated endpoint's first one reads "DPD prefill and decode deployments are ready"."""

    last_transition_time: Time
    """When its status changed."""
    message: str = Field(max_length=32768)
    """For people."""
    observed_generation: StrictInt | None = Field(default=None, ge=0, le=2**63 - 1, json_schema_extra={"format": "int64"})
    """Which generation of the spec it is about."""
    reason: str = Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    """For programs."""
    status: ConditionStatus
    """Whether it holds."""
    type: str = Field(
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    )
    """What it is about."""


class DeploymentCondition(Reported):
    """apps/v1 DeploymentCondition."""

    last_transition_time: Time | None = None
    """When its status changed."""
    last_update_time: Time | None = None
    """When it was written."""
    message: str | None = None
    """For people."""
    reason: str | None = None
    """For programs."""
    status: str
    """True, False or Unknown."""
    type: str
    """What it is about."""


class DeploymentCounts(Reported):
    """apps/v1 DeploymentStatus."""

    available_replicas: Int32 | None = None
    """Pods that have been ready for long enough."""
    collision_count: Int32 | None = None
    """How often a name was taken."""
    conditions: tuple[DeploymentCondition, ...] | None = None
    """The Deployment's conditions."""
    observed_generation: Int64 | None = None
    """Which generation of the Deployment this is about."""
    ready_replicas: Int32 | None = None
    """Pods that are ready."""
    replicas: Int32 | None = None
    """Pods that are there."""
    terminating_replicas: Int32 | None = None
    """Pods that are going."""
    unavailable_replicas: Int32 | None = None
    """Pods that are missing."""
    updated_replicas: Int32 | None = None
    """Pods of the newest form."""


class DeploymentReport(Reported):
    """The Deployment behind the endpoint. There is one block only, none by role."""

    deployment_object_overall_state: str | None = None
    """In one word."""
    last_updated: Time
    """When this was written."""
    message: str | None = None
    """For people."""
    name: str
    """The Deployment."""
    reason: str | None = None
    """For programs."""
    status: DeploymentCounts | None = None
    """Its own status."""


class PodCaptureHealth(StrEnum):
    """Whether tier 3 of data capture works."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


class PodCaptureReport(Reported):
    """Tier 3 of data capture."""

    last_transition_time: Time | None = None
    """When its status changed."""
    message: str | None = None
    """For people."""
    reason: str | None = None
    """Such as OOMKilled or S3UploadFailure."""
    status: PodCaptureHealth
    """Whether it works."""


class DataCaptureReport(Reported):
    """Data capture."""

    model_pod: PodCaptureReport | None = None
    """Tier 3."""


class DnsHealth(StrEnum):
    """Whether the DNS record stands."""

    ACTIVE = "Active"
    PENDING = "Pending"
    ERROR = "Error"


class DnsReport(Reported):
    """The DNS record. An error here does not hold readiness back."""

    dns_health: DnsHealth | None = None
    """Whether it stands."""
    hosted_zone_id: str | None = None
    """Its zone."""
    last_transition_time: Time | None = None
    """When its health changed."""
    managed_by_operator: StrictBool
    """Whether the operator made it."""
    message: str | None = None
    """For people."""
    previous_hosted_zone_id: str | None = None
    """Where it stood before."""
    previous_record_name: str | None = None
    """What it was before."""
    record_name: str | None = None
    """The record."""


class SageMakerEndpointReport(Reported):
    """The SageMaker endpoint."""

    config_arn: str | None = Field(default=None, pattern=r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:endpoint-config/.*|^$)")
    """Its configuration."""
    endpoint_arn: str | None = Field(default=None, pattern=r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:endpoint/.*|^$)")
    """The endpoint."""
    model_arn: str | None = Field(default=None, pattern=r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:model/.*|^$)")
    """Its model."""
    state: str
    """Such as CreationCompleted."""


class EndpointsReport(Reported):
    """Endpoints outside of the cluster."""

    sagemaker: SageMakerEndpointReport | None = None
    """The SageMaker endpoint."""


class ModelMetricsReport(Reported):
    """Where the server's metrics are scraped."""

    path: str | None = None
    """The path."""
    port: Int32 | None = None
    """The port."""


class MetricsReport(Reported):
    """Metrics."""

    enabled: StrictBool
    """Whether they are collected."""
    error_message: str | None = None
    """What went wrong."""
    metrics_scrape_interval_seconds: Int32 | None = None
    """How often."""
    model_metrics: ModelMetricsReport | None = None
    """The server's."""
    state: str | None = None
    """In one word."""


class CertificateHealth(StrEnum):
    """How long the certificate is good for; Expiring is under 60 days."""

    VALID = "Valid"
    EXPIRING = "Expiring"
    EXPIRED = "Expired"


class CertificateReport(Reported):
    """The endpoint's certificate."""

    certificate_arn: str | None = Field(
        default=None, alias="certificateARN", pattern=r"arn:aws[a-z\-]*:acm:[a-z0-9\-]*:[0-9]{12}:certificate/.*"
    )
    """In ACM."""
    certificate_domain_names: tuple[str, ...] | None = None
    """Its domains."""
    certificate_health: CertificateHealth | None = None
    """How long it is good for."""
    certificate_name: str | None = None
    """The cert-manager Certificate."""
    imported_certificates: tuple[str, ...] | None = None
    """What was imported into ACM."""
    issuer_name: str | None = None
    """The cert-manager Issuer."""
    last_cert_expiry_time: Time | None = None
    """When it ends."""
    tls_certificate_output_s3_bucket: str | None = None
    """Where the CA's certificate is."""
    tls_certificate_s3_keys: tuple[str, ...] | None = None
    """Its keys there."""


class InferenceEndpointConfigStatus(Reported):
    """The operator's own word on an endpoint."""

    conditions: tuple[Condition, ...] | None = None
    """Newest first."""
    data_capture_status: DataCaptureReport | None = None
    """Data capture."""
    deployment_status: DeploymentReport | None = None
    """The Deployment."""
    dns_status: DnsReport | None = None
    """The DNS record."""
    endpoints: EndpointsReport | None = None
    """Endpoints outside of the cluster."""
    metrics_status: MetricsReport | None = None
    """Metrics."""
    observed_generation: Int64 | None = None
    """Which generation of the spec this is about."""
    replicas: Int32 | None = None
    """Pods."""
    selector: str | None = None
    """The pods' labels, for the scale subresource."""
    state: DeploymentState | None = None
    """The endpoint's life; what `up` waits for."""
    tls_certificate: CertificateReport | None = None
    """The certificate."""
