"""What may be asked of an endpoint beside its model, roles and worker: routing, cache, placement, certificate, metrics and more."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dpd_infra.catalog.sources import CRD_3_2
from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.endpoint.defaults import Auto, sourced
from dpd_infra.spec.inference_endpoint_config.autoscaling import AutoScaling
from dpd_infra.spec.inference_endpoint_config.traffic import LoadBalancingAlgorithm, RoutingStrategy
from dpd_infra.spec.vocabulary import PUBLISHED_EXAMPLE

GIB = 1024**3


class RoutingSpec(Spec):
    """The router: which requests are disaggregated, and which prefiller takes them."""

    threshold: StrictInt = sourced(CRD_3_2, default=4096, ge=0, le=2**31 - 1)
    """Estimated input tokens from which on the prefill role does the prefill; below it the decoder does its own. 0: always."""
    strategy: RoutingStrategy = sourced(CRD_3_2, default=RoutingStrategy.PREFIX_AWARE)
    """How a prefiller is picked."""
    enabled: StrictBool = sourced(PUBLISHED_EXAMPLE, default=True)
    """Write an intelligentRoutingSpec. It can be neither added to nor taken from a live endpoint (CRD)."""
    autoscaling: AutoScaling | None = None
    """Scale the router with KEDA."""


class CacheBackend(StrEnum):
    """Where the second level of the KV cache lives (CRD)."""

    REDIS = "redis"
    TIERED_STORAGE = "tieredstorage"


class SecondLevelCache(Spec):
    """A second level of the KV cache, shared between pods. Its data is not encrypted at rest (KV caching guide)."""

    backend: CacheBackend
    """redis, or the cluster's tiered storage (which must be switched on and is shared by all of its endpoints)."""
    url: str | None = None
    """Where redis is. Tiered storage needs none."""


class CacheSpec(Spec):
    """The KV cache beside the GPU's own memory."""

    l1: StrictBool = sourced(PUBLISHED_EXAMPLE, default=True)
    """Keep KV in the node's memory (honoured from operator 3.3 on where it is false)."""
    l2: SecondLevelCache | None = None
    """A shared second level."""
    config_file: str | None = None
    """A cache configuration file in the container; it overrides the rest (CRD)."""
    pd_buffer_bytes: Annotated[StrictInt, Field(gt=0)] | Auto = sourced(PUBLISHED_EXAMPLE, default=8 * GIB)
    """PD_BUFFER_SIZE: what each GPU of the decoder sets aside for KV that arrives. Bytes a rank. `auto`: what all prefills of full length
    take at once, 8 GiB at least and never more than fits."""


class PlacementSpec(Spec):
    """Where the two roles run."""

    same_zone: StrictBool | None = None
    """Keep both roles in one zone. None: the operator's default, yes. EFA does not cross zones."""
    zone: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$|^$")
    """The zone, `us-east-2a`. None: any."""
    placement_group: str | None = None
    """The name of a placement group. How it acts on HyperPod nodes is not documented."""


class TlsSpec(Spec):
    """The load balancer's certificate; the operator makes a self-signed one without it."""

    certificate_arn: str | None = Field(default=None, pattern=r"^arn:aws:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-fA-F0-9-]+$")
    """A certificate in ACM, issued, of the same region, not self-signed (operator 3.1). Needs domainName."""
    domain_name: str | None = Field(
        default=None, max_length=253, pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$"
    )
    """The domain of the certificate to use, lower case, not a wildcard."""
    output_s3_uri: str | None = Field(default=None, pattern=r"^s3://([^/]+)/?(.*)$")
    """Where a self-signed certificate is written. None: the operator's TLS bucket."""


class DnsSpec(Spec):
    """A Route 53 record for the endpoint's domain (operator 3.1.2)."""

    hosted_zone_id: str = Field(pattern=r"^Z[A-Z0-9]+$")
    """The hosted zone."""


class LoadBalancerSpec(Spec):
    """The endpoint's load balancer."""

    health_check_path: str = sourced(PUBLISHED_EXAMPLE, default="/health", pattern=r"^/.*")
    """The server's health path: vLLM serves /health, while the operator's default is /ping."""
    algorithm: LoadBalancingAlgorithm | None = None
    """None: the operator's default, least_outstanding_requests."""
    idle_timeout_seconds: StrictInt | None = Field(default=None, ge=1, le=4000)
    """How long a silent connection is kept (operator 3.3). None: the operator's default, 60."""


class MetricsSpec(Spec):
    """What is scraped from the endpoint's pods."""

    enabled: StrictBool = sourced(PUBLISHED_EXAMPLE, default=True)
    """Collect metrics."""
    scrape_interval_seconds: StrictInt | None = Field(default=None, ge=5, le=300)
    """None: the operator's default, 15."""
    path: str | None = Field(default=None, pattern=r"^/[a-zA-Z0-9\-_.\/]*$")
    """The server's metrics path. None: the operator's default, /metrics."""
    port: StrictInt | None = Field(default=None, ge=1024, le=65535)
    """The server's metrics port. None: the operator's default, 8080; vLLM serves its metrics on its own port."""


class KueueSpec(Spec):
    """Task governance: which queue admits the endpoint's pods. Written as labels, which is what Kueue reads."""

    queue_name: str = Field(min_length=1, max_length=63)
    """The LocalQueue of the endpoint's namespace."""
    priority_class: str | None = Field(default=None, min_length=1, max_length=63)
    """The priority class."""


class TimeoutsSpec(Spec):
    """How long things may take."""

    deploy_minutes: StrictInt = sourced(CRD_3_2, default=60, ge=1, le=(2**31 - 1) // 60)
    """How long the operator waits for a deployment (maxDeployTimeInSeconds) and `up` for the operator. A 70B model loads from S3 in 5 to
    10 minutes (DPD guide)."""
    delete_minutes: StrictInt = sourced(
        "a choice of this library: the operator takes load balancer and SageMaker endpoint down", default=30, ge=1
    )
    """How long `destroy` waits for the operator to take the endpoint down."""


class Silence(Spec):
    """One rule that does not apply to this endpoint, and why."""

    rule: str = Field(pattern=r"^DPD[0-9]{3}$")
    """The rule's id."""
    reason: str = Field(min_length=1)
    """Why; it is shown wherever findings are."""
