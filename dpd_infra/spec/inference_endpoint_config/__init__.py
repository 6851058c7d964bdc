"""The InferenceEndpointConfig custom resource, field by field: names, types, defaults, ranges and patterns are the CRD's.

Objects of Kubernetes' core/v1 (containers, volumes, probes, affinity) are plain data here; `catalog.crd.validate` checks them.
The resource is imported when it is first asked for: the short form of an endpoint needs parts of it only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpd_infra.spec.inference_endpoint_config.resource import InferenceEndpointConfig, InferenceEndpointConfigSpec, ObjectMeta, Tag

__all__ = ["InferenceEndpointConfig", "InferenceEndpointConfigSpec", "ObjectMeta", "Tag"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from dpd_infra.spec.inference_endpoint_config import resource

    return getattr(resource, name)
