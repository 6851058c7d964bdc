"""What nodes have: rows of HyperPod's own table (sagemaker-hyperpod-cli, training/constants.py) and of the VPC CNI's."""

from __future__ import annotations

import pytest

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.catalog.node_sizes import NODE_SIZES, node_size


@pytest.mark.parametrize(
    ("name", "vcpus", "memory", "gpus", "efa"),
    [
        ("ml.g5.2xlarge", 8, 32, 1, 0),
        ("ml.g6e.48xlarge", 192, 1536, 8, 4),
        ("ml.p4d.24xlarge", 96, 1152, 8, 4),
        ("ml.c5.9xlarge", 36, 72, 0, 0),
        ("ml.r7i.48xlarge", 192, 1536, 0, 1),
        ("ml.m6i.32xlarge", 128, 512, 0, 1),
        ("ml.p5.48xlarge", 192, 2048, 8, 32),
    ],
)
def test_a_node_has_what_hyperpods_table_says(name: str, vcpus: int, memory: int, gpus: int, efa: int) -> None:
    size = node_size(name)
    assert size is not None
    assert (size.vcpus, size.memory_gib, size.gpus, size.efa_devices) == (vcpus, memory, gpus, efa)


# eni-max-pods.txt: most pods = interfaces * (addresses - 1) + 2; HyperPod has one interface, and the first address of it is the node's.
@pytest.mark.parametrize(
    ("name", "interfaces", "most"),
    [
        ("ml.c5.large", 3, 29),
        ("ml.m5.xlarge", 4, 58),
        ("ml.c5.4xlarge", 8, 234),
        ("ml.m5.24xlarge", 15, 737),
        ("ml.t3.medium", 3, 17),
        ("ml.g5.12xlarge", 15, 737),
        ("ml.p4d.24xlarge", 15, 737),
        ("ml.p5.48xlarge", 2, 100),
    ],
)
def test_pods_are_the_addresses_of_one_interface(name: str, interfaces: int, most: int) -> None:
    size = node_size(name)
    assert size is not None
    assert size.pods == (most - 2) // interfaces


def test_both_tables_agree_on_the_types_that_are_in_both() -> None:
    for name, kind in INSTANCE_TYPES.items():
        size = node_size(name)
        assert size is not None
        assert (size.vcpus, size.memory_gib, size.gpus, size.efa_devices) == (kind.vcpus, kind.memory_gib, kind.gpus, kind.efa_devices)


def test_a_type_that_is_nowhere_is_not_known() -> None:
    assert node_size("ml.x9.large") is None
    assert "ml.p5.48xlarge" not in NODE_SIZES
