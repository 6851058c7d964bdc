"""What an endpoint's pods take: GPUs, EFA devices, processors and memory, the tensor-parallel size, and how many pods there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.instance_types import InstanceType, instance_type
from dpd_infra.spec.values import count, mapping
from dpd_infra.spec.vocabulary import EfaRequests, Role

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint import EndpointSpec

DPD_GPUS = 8
"""All five types that DPD supports have eight GPUs. Taken where nodes are found by affinity; any other type is refused by a rule."""

DEFAULT_MAX_REPLICAS = 5
"""autoScalingSpec.maxReplicaCount where nothing is said (CRD)."""


def most_by_scaling(scaling: Any) -> int | None:
    """The most pods that autoscaling makes, by a block of a manifest such as prefillAutoScaling; None where there is no such block."""
    if not isinstance(scaling, dict):
        return None
    most = count(mapping(scaling).get("maxReplicaCount"))
    return DEFAULT_MAX_REPLICAS if most is None else most


def node_type(spec: EndpointSpec) -> InstanceType | None:
    """The facts of the only or preferred instance type; None where the catalog does not hold it or nodes are found by affinity."""
    return instance_type(spec.first_instance_type or "")


def _node_gpus(spec: EndpointSpec) -> int:
    kind = node_type(spec)
    return kind.gpus if kind and kind.gpus else DPD_GPUS


def role_gpus(spec: EndpointSpec, role: Role) -> int:
    """GPUs a pod of a role."""
    return spec.role(role).gpus or _node_gpus(spec)


def colocated_gpus(spec: EndpointSpec) -> int:
    """GPUs a pod of the endpoint while it is not disaggregated."""
    return spec.colocated.gpus or _node_gpus(spec)


def worker_gpus(spec: EndpointSpec) -> int:
    """GPUs in `worker.resources`: of a colocated pod, or of the larger role."""
    if not spec.disaggregated:
        return colocated_gpus(spec)
    return max(role_gpus(spec, role) for role in Role)


def tensor_parallel_size(spec: EndpointSpec) -> int:
    """`--tensor-parallel-size`: as said, else the GPUs of a pod; of the smaller role where they differ, which a rule refuses."""
    if spec.worker.tensor_parallel_size is not None:
        return spec.worker.tensor_parallel_size
    return min(role_gpus(spec, role) for role in Role) if spec.disaggregated else colocated_gpus(spec)


def role_efa_devices(spec: EndpointSpec, role: Role) -> int:
    """EFA devices that a pod of a role asks for: 0 where the spec asks for none."""
    kind = node_type(spec)
    if kind is None or spec.efa is EfaRequests.DOCUMENTED:
        return 0
    if spec.efa is EfaRequests.EXPLICIT:
        return kind.efa_devices
    return kind.efa_devices * role_gpus(spec, role) // kind.gpus


def worker_cpus(spec: EndpointSpec) -> int | None:
    """Half of the node's vCPUs, which is what the published example asks for on ml.p5.48xlarge; None where the node is not known."""
    kind = node_type(spec)
    return kind.vcpus // 2 if kind else None


def worker_memory_gib(spec: EndpointSpec) -> int | None:
    """Half of the node's memory, GiB, which is what the published example asks for on ml.p5.48xlarge; None where it is not known."""
    kind = node_type(spec)
    return kind.memory_gib // 2 if kind else None


def colocated_replicas(spec: EndpointSpec) -> int:
    """Pods of the colocated twin: as said, else those of both roles, so that both forms take the same GPUs.

    Of a spec without `auto`; where that has not been worked out a role counts for one.
    """
    if spec.colocated.replicas is not None:
        return spec.colocated.replicas
    return sum(said if isinstance(said, int) else 1 for said in (spec.prefill.replicas, spec.decode.replicas))
