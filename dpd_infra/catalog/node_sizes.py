"""What a node of each HyperPod instance type has: processors, memory, GPUs, EFA devices and pods; also of types without DPD."""

from __future__ import annotations

from dataclasses import dataclass

from dpd_infra.catalog.instance_types import instance_type
from dpd_infra.catalog.sources import HYPERPOD_CONSTANTS, VPC_CNI_LIMITS


@dataclass(frozen=True, slots=True)
class NodeSize:
    """The whole of a node; what daemons and the kubelet take is not subtracted."""

    name: str
    """With its `ml.` prefix."""
    vcpus: int
    memory_gib: int
    gpus: int
    efa_devices: int
    pods: int | None
    """Pods that HyperPod's one network interface a node has addresses for; None where no figure was found."""


SOURCES = (HYPERPOD_CONSTANTS, VPC_CNI_LIMITS)

_STANDARD_SIZES = {"large": 9, "xlarge": 14, "2xlarge": 14, "4xlarge": 29, "8xlarge": 29, "9xlarge": 29, "12xlarge": 29}
"""Pods by size: addresses of one interface less its own (amazon-vpc-cni-k8s, eni-max-pods.txt); 49 from 16xlarge on. The same rule gives
the 49 that were read on ml.p5.48xlarge, and the 14 of small types under which add-ons starve."""

_MOST_PODS = 49

_PROCESSORS = {
    "large": 2,
    "xlarge": 4,
    "2xlarge": 8,
    "4xlarge": 16,
    "8xlarge": 32,
    "9xlarge": 36,
    "12xlarge": 48,
    "16xlarge": 64,
    "18xlarge": 72,
    "24xlarge": 96,
    "32xlarge": 128,
    "48xlarge": 192,
}

_FAMILIES = {
    "c5": (2, ("large", "xlarge", "2xlarge", "4xlarge", "9xlarge", "12xlarge", "18xlarge", "24xlarge")),
    "m5": (4, ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge")),
    "c6i": (2, ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "32xlarge")),
    "m6i": (4, ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "32xlarge")),
    "r6i": (8, ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "32xlarge")),
    "m7i": (4, ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")),
    "r7i": (8, ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")),
}
"""Families of CPU types: GiB a processor, and the sizes that HyperPod lists."""

_EFA_OF_THE_LARGEST = frozenset({"c6i.32xlarge", "m6i.32xlarge", "r6i.32xlarge", "m7i.48xlarge", "r7i.48xlarge"})

_OTHERS: tuple[tuple[str, int, int, int, int, int | None], ...] = (
    ("t3.medium", 2, 4, 0, 0, 5),
    ("t3.large", 2, 8, 0, 0, 11),
    ("t3.xlarge", 4, 16, 0, 0, 14),
    ("t3.2xlarge", 8, 32, 0, 0, 14),
    ("p4d.24xlarge", 96, 1152, 8, 4, 49),
    ("p4de.24xlarge", 96, 1152, 8, 4, 49),
    ("p5.4xlarge", 16, 256, 1, 1, None),
    ("p6e-gb200.36xlarge", 144, 960, 4, 0, None),
    ("g5.xlarge", 4, 16, 1, 0, 14),
    ("g5.2xlarge", 8, 32, 1, 0, 14),
    ("g5.4xlarge", 16, 64, 1, 0, 29),
    ("g5.8xlarge", 32, 128, 1, 1, 29),
    ("g5.12xlarge", 48, 192, 4, 1, 49),
    ("g5.16xlarge", 64, 256, 1, 1, 29),
    ("g5.24xlarge", 96, 384, 4, 1, 49),
    ("g5.48xlarge", 192, 768, 8, 1, 49),
    ("g6.xlarge", 4, 16, 1, 0, 14),
    ("g6.2xlarge", 8, 32, 1, 0, 14),
    ("g6.4xlarge", 16, 64, 1, 0, 29),
    ("g6.8xlarge", 32, 128, 1, 1, 29),
    ("g6.12xlarge", 48, 192, 4, 1, 29),
    ("g6.16xlarge", 64, 256, 1, 1, 49),
    ("g6.24xlarge", 96, 384, 4, 1, 49),
    ("g6.48xlarge", 192, 768, 8, 1, 49),
    ("gr6.4xlarge", 16, 128, 1, 0, 29),
    ("gr6.8xlarge", 32, 256, 1, 1, 29),
    ("g6e.xlarge", 4, 32, 1, 0, 14),
    ("g6e.2xlarge", 8, 64, 1, 0, 14),
    ("g6e.4xlarge", 16, 128, 1, 0, 29),
    ("g6e.8xlarge", 32, 256, 1, 1, 29),
    ("g6e.12xlarge", 48, 384, 4, 1, None),
    ("g6e.16xlarge", 64, 512, 1, 1, 49),
    ("g6e.24xlarge", 96, 768, 4, 2, None),
    ("g6e.48xlarge", 192, 1536, 8, 4, None),
    ("g7e.2xlarge", 8, 64, 1, 0, None),
    ("g7e.4xlarge", 16, 128, 1, 0, None),
    ("g7e.8xlarge", 32, 256, 1, 1, None),
    ("g7e.12xlarge", 48, 512, 2, 1, None),
    ("g7e.24xlarge", 96, 1024, 4, 2, None),
    ("g7e.48xlarge", 192, 2048, 8, 4, None),
)


def _table() -> dict[str, NodeSize]:
    sizes = [NodeSize(f"ml.{name}", vcpus, memory, gpus, efa, pods) for name, vcpus, memory, gpus, efa, pods in _OTHERS]
    for family, (gib, names) in _FAMILIES.items():
        for size in names:
            vcpus, devices = _PROCESSORS[size], int(f"{family}.{size}" in _EFA_OF_THE_LARGEST)
            sizes.append(NodeSize(f"ml.{family}.{size}", vcpus, vcpus * gib, 0, devices, _STANDARD_SIZES.get(size, _MOST_PODS)))
    return {size.name: size for size in sizes}


NODE_SIZES: dict[str, NodeSize] = _table()
"""By name; the five types of DPD are in `instance_types` and come through `node_size` too."""


def node_size(name: str) -> NodeSize | None:
    """What a node of a type has; None for a type that is in neither table."""
    kind = instance_type(name)
    if kind is None or name in NODE_SIZES:
        return NODE_SIZES.get(name)
    return NodeSize(name, kind.vcpus, kind.memory_gib, kind.gpus, kind.efa_devices, kind.pods)
