"""Additions to the pods, and what is cached on their nodes: `spec.kubernetes` and `spec.modelCacheConfig`."""

from __future__ import annotations

from pydantic import Field

from dpd_infra.spec.base import StrictBool
from dpd_infra.spec.inference_endpoint_config.fields import DNS_SUBDOMAIN_PATTERN, CoreObject, CrdModel, since


class PodAdditions(CrdModel):
    """Additions to the inference pods (operator 3.1)."""

    init_containers: tuple[CoreObject, ...] | None = None
    """core/v1 Containers that run before the server."""
    scheduler_name: str | None = Field(default=None, max_length=253, pattern=DNS_SUBDOMAIN_PATTERN)
    """The scheduler; the cluster's default where it is left out."""
    service_account_name: str | None = Field(default=None, max_length=253, pattern=DNS_SUBDOMAIN_PATTERN, json_schema_extra=since("3.1.2"))
    """The service account; the namespace's default where it is left out."""
    tolerations: tuple[CoreObject, ...] | None = Field(default=None, json_schema_extra=since("3.7"))
    """core/v1 Tolerations."""
    volumes: tuple[CoreObject, ...] | None = None
    """core/v1 Volumes; a kubernetesVolume source names one of them."""


class ImageCache(CrdModel):
    """Keep worker images on the nodes."""

    enabled: StrictBool
    """Keep them."""


class WeightsCache(CrdModel):
    """Keep model weights on the nodes' NVMe."""

    enabled: StrictBool = False
    """Keep them."""
    host_path: str = Field(default="/opt/dlami/nvme", min_length=1, max_length=255)
    """Where on the node."""


class ModelCache(CrdModel):
    """What nodes keep between pods (operator 3.3)."""

    image_cache: ImageCache | None = None
    """Images."""
    weights_cache: WeightsCache | None = None
    """Weights."""
