"""Disaggregated prefill and decode: `spec.pdSpec` (operator 3.2)."""

from __future__ import annotations

from pydantic import Field

from dpd_infra.spec.base import StrictBool, StrictInt
from dpd_infra.spec.inference_endpoint_config.autoscaling import AutoScaling
from dpd_infra.spec.inference_endpoint_config.fields import CrdModel, Int32NotNegative
from dpd_infra.spec.inference_endpoint_config.worker import Resources


class RoleConfig(CrdModel):
    """One role's Deployment. Image and environment are the worker's."""

    args: tuple[str, ...] | None = None
    """vLLM flags of this role; they follow the worker's and win."""
    node_selector: dict[str, str] | None = None
    """Labels of the nodes to run on."""
    replicas: StrictInt = Field(default=1, ge=1, le=2**31 - 1, json_schema_extra={"format": "int32"})
    """Pods of the role."""
    resources: Resources | None = None
    """Requests and limits; GPUs must be among them for DPD to work."""


class RoleAutoScaling(CrdModel):
    """Autoscaling of each role by itself."""

    decoding_auto_scaling: AutoScaling | None = None
    """Of the decode role."""
    prefill_auto_scaling: AutoScaling | None = None
    """Of the prefill role."""


class Topology(CrdModel):
    """Where both roles may run."""

    availability_zone: str | None = None
    """The zone; any where it is left out."""
    placement_group: str | None = None
    """A placement group's name."""
    same_az: StrictBool = Field(default=True, alias="sameAZ")
    """Keep both roles in one zone."""


class DisaggregationConfig(CrdModel):
    """Prefill and decode in Deployments of their own. The presence of pdSpec switches DPD on."""

    auto_scaling_spec: RoleAutoScaling | None = None
    """Autoscaling by role."""
    decoding_spec: RoleConfig
    """The decode role; the CRD's word for it is decoding."""
    prefill_spec: RoleConfig
    """The prefill role."""
    routing_threshold: Int32NotNegative = 4096
    """Estimated input tokens from which on the prefill role does the prefill; 0: always."""
    topology_spec: Topology | None = None
    """Zones."""
