"""Data capture in three tiers: the SageMaker endpoint, the load balancer's access logs, the model pod."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from dpd_infra.spec.base import StrictBool, StrictInt
from dpd_infra.spec.inference_endpoint_config.fields import CrdModel


class CaptureMode(StrEnum):
    """Which side of a request is captured."""

    INPUT = "Input"
    OUTPUT = "Output"


def _no_double(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if values is not None and len(set(values)) != len(values):
        message = "the same entry stands here twice; the API server takes each once"
        raise ValueError(message)
    return values


ContentTypes = Annotated[
    tuple[str, ...] | None,
    Field(min_length=1, max_length=10, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_no_double),
]
"""One to ten content types, each once (CRD, list type `set`)."""


class CaptureOption(CrdModel):
    """One side of a request to capture."""

    capture_mode: CaptureMode
    """Input or Output."""


class CaptureContentTypes(CrdModel):
    """How bodies are read by their content type."""

    csv_content_types: ContentTypes = None
    """Content types to take as CSV, such as `text/csv`."""
    json_content_types: ContentTypes = None
    """Content types to take as JSON, such as `application/json`."""


class SageMakerEndpointCapture(CrdModel):
    """Tier 1: SageMaker's own data capture."""

    capture_content_type_header: CaptureContentTypes | None = None
    """How bodies are read."""
    capture_options: tuple[CaptureOption, ...] | None = Field(default=None, min_length=1, max_length=32)
    """What to capture; both sides where it is left out."""
    enabled: StrictBool
    """Capture or not."""
    initial_sampling_percentage: StrictInt | None = Field(default=None, ge=0, le=100, json_schema_extra={"format": "int32"})
    """How many requests of a hundred; all where it is left out."""
    kms_key_id: str | None = Field(default=None, max_length=2048, pattern=r"^[a-zA-Z0-9:/_-]*$")
    """A KMS key: id, ARN, alias name or alias ARN."""


class LoadBalancerCapture(CrdModel):
    """Tier 2: the load balancer's access logs."""

    enabled: StrictBool
    """Capture or not."""


class CaptureBuffer(CrdModel):
    """How tier 3 gathers records before it writes them."""

    batch_size: StrictInt = Field(default=10, ge=1, le=1000, json_schema_extra={"format": "int32"})
    """Records a write."""
    flush_interval_seconds: StrictInt = Field(default=60, ge=10, le=300, json_schema_extra={"format": "int32"})
    """The longest a record waits."""


class CapturePayload(CrdModel):
    """How much of a body tier 3 keeps."""

    max_payload_size_kb: StrictInt = Field(default=0, ge=0, le=10240, alias="maxPayloadSizeKB", json_schema_extra={"format": "int32"})
    """KB; 0 keeps all."""


class ModelPodCapture(CrdModel):
    """Tier 3: the model pod writes to S3."""

    buffer_config: CaptureBuffer | None = None
    """How records are gathered."""
    capture_content_type_header: CaptureContentTypes | None = None
    """How bodies are read."""
    capture_options: tuple[CaptureOption, ...] | None = Field(default=None, min_length=1, max_length=32)
    """What to capture; both sides where it is left out."""
    enabled: StrictBool
    """Capture or not."""
    initial_sampling_percentage: StrictInt | None = Field(default=None, ge=0, le=100, json_schema_extra={"format": "int32"})
    """How many requests of a hundred; all where it is left out."""
    kms_key_id: str | None = Field(default=None, max_length=2048, pattern=r"^[a-zA-Z0-9:/_-]*$")
    """A KMS key: id, ARN, alias name or alias ARN."""
    payload_config: CapturePayload | None = None
    """How much of a body is kept."""


class DataCapture(CrdModel):
    """Data capture of one endpoint (operator 3.1.2); needs `hyperpodClusterArn` in the add-on's configuration."""

    load_balancer: LoadBalancerCapture | None = None
    """Tier 2; its bucket needs a policy for the load balancer's log delivery."""
    model_pod: ModelPodCapture | None = None
    """Tier 3; the S3 CSI driver's role needs s3:PutObject."""
    s3_uri: str | None = Field(default=None, max_length=512, pattern=r"^s3://([^/]+)(/[^,=]*)?$")
    """Where all tiers write; the TLS certificate bucket where it is left out."""
    sagemaker_endpoint: SageMakerEndpointCapture | None = None
    """Tier 1."""
