"""What may be asked of the prefill role, of the decode role, and of the pods of an endpoint that is not disaggregated."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpd_infra.catalog.sources import CRD_3_2
from dpd_infra.spec.base import Spec, StrictInt, section
from dpd_infra.spec.endpoint.defaults import Auto, sourced
from dpd_infra.spec.inference_endpoint_config.autoscaling import AutoScaling
from dpd_infra.spec.inference_endpoint_config.fields import Quantity


class RoleResources(Spec):
    """Requests and limits beside those that are worked out; an entry here wins over the one worked out."""

    requests: dict[str, Quantity] = Field(default_factory=dict)
    """By resource name: `cpu`, `memory`, `hugepages-2Mi`, …"""
    limits: dict[str, Quantity] = Field(default_factory=dict)
    """By resource name."""


class RoleSpec(Spec):
    """One role's Deployment. A role has no environment, image or instance type of its own (CRD)."""

    replicas: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | Auto = sourced(CRD_3_2, default=1)
    """Pods of the role; each takes the GPUs of one node, or `gpus` of them. `auto`: the fewest that keep up with the endpoint's `load`."""
    max_num_seqs: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | Auto | None = None
    """`--max-num-seqs`: sequences that a pod works on at one time. None: not said, the image's own (16 for prefill and 32 for decode by the
    DPD guide). `auto`: for decode what its KV pool holds, for prefill the prompts of full length that the PD buffer holds, at most 16."""
    instance_group: str | None = Field(default=None, min_length=1, max_length=63)
    """The HyperPod instance group to run on. None: any node of the instance type."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    """Further node labels to ask for."""
    args: tuple[str, ...] = ()
    """vLLM flags of this role alone; they follow the worker's flags and win over them (CRD)."""
    gpus: StrictInt | None = Field(default=None, ge=1)
    """GPUs a pod. None: all that the instance type has."""
    resources: RoleResources = section()
    """Requests and limits beside the GPUs. The published example asks for GPUs only."""
    autoscaling: AutoScaling | None = None
    """Scale this role with KEDA."""


class ColocatedSpec(Spec):
    """The endpoint while `disaggregated` is false: one kind of pod that does both. Not read while it is true."""

    replicas: StrictInt | None = Field(default=None, ge=0, le=2**31 - 1)
    """Pods. None: prefill and decode replicas together, which is the same number of GPUs."""
    gpus: StrictInt | None = Field(default=None, ge=1)
    """GPUs a pod. None: all that the instance type has."""
    args: tuple[str, ...] = ()
    """vLLM flags of these pods alone, after the worker's."""
    autoscaling: AutoScaling | None = None
    """Scale with KEDA."""
