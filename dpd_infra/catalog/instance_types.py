"""The instance types HyperPod offers for this work: GPUs, memory, EFA devices and addresses, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpd_infra.catalog.sources import AI_CONFIGURATOR, DPD_BLOG, DPD_GUIDE, HYPERPOD_CONSTANTS, PREREQUISITES_GUIDE, Source

GIB = 1024**3
GB = 10**9
TERA = 10**12


class Architecture(StrEnum):
    """A node's processor architecture. The operator's images are amd64 only (operator chart)."""

    AMD64 = "amd64"
    ARM64 = "arm64"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of a node."""

    name: str
    memory_bytes: int
    """HBM that a driver reports."""
    memory_bandwidth_bytes_per_second: float
    bf16_flops: float
    """Dense bf16 peak, FLOP/s."""
    fp8_flops: float | None
    """Dense fp8 peak, FLOP/s; None where no figure was verified."""
    nvlink_bytes_per_second: float = 0
    """To the other GPUs of the node, one direction (AIConfigurator 0.12, systems/*.yaml, `intra_node_bw`); 0 where no figure was found."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One `ml.` type. Node labels carry the prefix too: `node.kubernetes.io/instance-type: ml.p5.48xlarge`."""

    name: str
    vcpus: int
    memory_gib: int
    gpu: Gpu | None = None
    gpus: int = 0
    efa_devices: int = 0
    """What the EFA device plugin advertises as `vpc.amazonaws.com/efa`."""
    efa_bytes_per_second_per_gpu: float = 0
    addresses: int = 0
    """Subnet addresses one node can use on EKS."""
    pods: int | None = None
    """Pods a node can hold; None where no figure was found."""
    dpd: bool = False
    """One of the five types that DPD supports."""
    architecture: Architecture = Architecture.AMD64
    sources: tuple[Source, ...] = ()


H100 = Gpu("H100", 80 * GIB, 3.35 * TERA, 989 * TERA, 1979 * TERA, 450 * GB)
H200 = Gpu("H200", 141 * GB, 4.8 * TERA, 989 * TERA, 1979 * TERA, 450 * GB)
B200 = Gpu("B200", int(179.1 * GIB), 7.7 * TERA, 2250 * TERA, 4500 * TERA, 900 * GB)
# Published figures differ by source; these are half of the data sheet's sparse ones (AIConfigurator, systems/b300_sxm.yaml).
B300 = Gpu("B300", int(268.6 * GIB), 7.75 * TERA, 2250 * TERA, 4500 * TERA, 900 * GB)

GPU_NODE_ADDRESSES = 81
"""50 on the primary card and 31 on the others: documented for a P5 node, and taken for every EFA type for want of other figures."""

SYSTEM_NODE_ADDRESSES = 50
"""The primary card's share of the P5 figure: HyperPod gives every node one pod ENI. No figure is published for CPU types."""

_GPU_SOURCES = (HYPERPOD_CONSTANTS, DPD_BLOG, DPD_GUIDE, PREREQUISITES_GUIDE, AI_CONFIGURATOR)


def _gpu_node(name: str, gpu: Gpu, *, efa: int, efa_gb_per_gpu: int, memory_gib: int = 2048, pods: int | None = None) -> InstanceType:
    return InstanceType(
        name=name,
        vcpus=192,
        memory_gib=memory_gib,
        gpu=gpu,
        gpus=8,
        efa_devices=efa,
        efa_bytes_per_second_per_gpu=efa_gb_per_gpu * GB,
        addresses=GPU_NODE_ADDRESSES,
        pods=pods,
        dpd=True,
        sources=_GPU_SOURCES,
    )


def _cpu_node(name: str, vcpus: int, memory_gib: int, architecture: Architecture = Architecture.AMD64) -> InstanceType:
    return InstanceType(name, vcpus, memory_gib, addresses=SYSTEM_NODE_ADDRESSES, architecture=architecture, sources=(HYPERPOD_CONSTANTS,))


_TYPES = (
    _gpu_node("ml.p5.48xlarge", H100, efa=32, efa_gb_per_gpu=50, pods=49),
    _gpu_node("ml.p5e.48xlarge", H200, efa=32, efa_gb_per_gpu=50),
    _gpu_node("ml.p5en.48xlarge", H200, efa=16, efa_gb_per_gpu=50),
    _gpu_node("ml.p6-b200.48xlarge", B200, efa=8, efa_gb_per_gpu=50),
    _gpu_node("ml.p6-b300.48xlarge", B300, efa=16, efa_gb_per_gpu=100, memory_gib=4096),
    *(
        _cpu_node(f"ml.c5.{size}", vcpus, memory)
        for size, vcpus, memory in (
            ("4xlarge", 16, 32),
            ("9xlarge", 36, 72),
            ("12xlarge", 48, 96),
            ("18xlarge", 72, 144),
            ("24xlarge", 96, 192),
        )
    ),
    *(
        _cpu_node(f"ml.m5.{size}", vcpus, memory)
        for size, vcpus, memory in (
            ("4xlarge", 16, 64),
            ("8xlarge", 32, 128),
            ("12xlarge", 48, 192),
            ("16xlarge", 64, 256),
            ("24xlarge", 96, 384),
        )
    ),
)

INSTANCE_TYPES: dict[str, InstanceType] = {kind.name: kind for kind in _TYPES}
"""By name, with the `ml.` prefix."""

DPD_INSTANCE_TYPES: tuple[str, ...] = tuple(kind.name for kind in _TYPES if kind.dpd)
"""The only types that DPD supports (DPD guide)."""


def instance_type(name: str) -> InstanceType | None:
    """The facts of one type, or None for a type this catalog does not hold."""
    return INSTANCE_TYPES.get(name)
