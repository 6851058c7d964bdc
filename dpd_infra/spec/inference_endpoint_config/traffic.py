"""How requests reach the model and what is kept of them: router, cache, load balancer, certificate, DNS record, metrics."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from dpd_infra.spec.base import StrictBool, StrictInt
from dpd_infra.spec.inference_endpoint_config.autoscaling import AutoScaling
from dpd_infra.spec.inference_endpoint_config.fields import CrdModel, since


class RoutingStrategy(StrEnum):
    """How the router picks a pod; under pdSpec, a prefiller."""

    PREFIX_AWARE = "prefixaware"
    KV_AWARE = "kvaware"
    SESSION = "session"
    ROUND_ROBIN = "roundrobin"


class IntelligentRouting(CrdModel):
    """The router. It cannot be added to a live endpoint."""

    auto_scaling_spec: AutoScaling | None = None
    """Autoscaling of the router."""
    enabled: StrictBool = False
    """Cannot be changed once it is set."""
    routing_strategy: RoutingStrategy = RoutingStrategy.PREFIX_AWARE
    """How a pod is picked."""


class L2Cache(CrdModel):
    """The second level of the KV cache."""

    l2_cache_backend: str | None = Field(default=None, pattern=r"(?i)redis|tieredstorage")
    """redis or tieredstorage; required by the operator where this block stands. The CRD's pattern is not anchored."""
    l2_cache_local_url: str | None = None
    """Where redis is."""


class KvCache(CrdModel):
    """The KV cache beside the GPU's own memory."""

    cache_config_file: str | None = None
    """A configuration file in the container; it overrides the rest."""
    enable_l1_cache: StrictBool = True
    """Keep KV in the node's memory; false is honoured from operator 3.3 on."""
    enable_l2_cache: StrictBool = False
    """Use the second level; false is honoured from operator 3.3 on."""
    l2_cache_spec: L2Cache | None = None
    """The second level."""


class LoadBalancingAlgorithm(StrEnum):
    """How the load balancer spreads requests."""

    LEAST_OUTSTANDING_REQUESTS = "least_outstanding_requests"
    ROUND_ROBIN = "round_robin"


class LoadBalancer(CrdModel):
    """The Application Load Balancer."""

    health_check_path: str = Field(default="/ping", pattern=r"^/.*")
    """The server's health path; vLLM serves /health."""
    idle_timeout_seconds: StrictInt = Field(default=60, ge=1, le=4000, json_schema_extra={"format": "int32"} | since("3.3"))
    """How long a silent connection is kept."""
    routing_algorithm: LoadBalancingAlgorithm = LoadBalancingAlgorithm.LEAST_OUTSTANDING_REQUESTS
    """How requests are spread."""


class CustomCertificate(CrdModel):
    """A certificate of your own in ACM (operator 3.1)."""

    acm_arn: str = Field(pattern=r"^arn:aws:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-fA-F0-9-]+$")
    """The certificate; the `aws` partition only."""
    domain_name: str = Field(max_length=253, pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$")
    """The certificate's domain to use: lower case, not a wildcard."""


class Tls(CrdModel):
    """The endpoint's certificate; self-signed where there is none of your own."""

    custom_certificate_config: CustomCertificate | None = Field(default=None, json_schema_extra=since("3.1"))
    """A certificate of your own."""
    tls_certificate_output_s3_uri: str | None = Field(default=None, pattern=r"^s3://([^/]+)/?(.*)$")
    """Where a self-signed certificate is written."""


class Dns(CrdModel):
    """A Route 53 record (operator 3.1.2); needs a certificate of your own."""

    hosted_zone_id: str = Field(pattern=r"^Z[A-Z0-9]+$")
    """The hosted zone."""


class ModelMetrics(CrdModel):
    """Where the server shows its metrics."""

    path: str = Field(default="/metrics", pattern=r"^/[a-zA-Z0-9\-_.\/]*$")
    """The path."""
    port: StrictInt = Field(default=8080, ge=1024, le=65535, json_schema_extra={"format": "int32"})
    """The port; vLLM serves its metrics on its own port."""


class Metrics(CrdModel):
    """What is scraped."""

    enabled: StrictBool = True
    """Collect metrics."""
    metrics_scrape_interval_seconds: StrictInt = Field(default=15, ge=5, le=300, json_schema_extra={"format": "int32"})
    """How often."""
    model_metrics: ModelMetrics | None = None
    """The server's metrics."""


class InferenceGateway(CrdModel):
    """The inference gateway (add-on v2); excludes an enabled intelligentRoutingSpec."""

    enabled: StrictBool = False
    """Join the gateway."""
    name: str | None = None
    """The InferenceGatewayConfig."""
