"""The VPC's layout: blocks never overlap, stay inside, and none moves when something is added."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.subnets import RESERVED_ADDRESSES, SubnetKind, addresses_needed, control_plane_zones, plan_subnets, secondary_cidr
from dpd_infra.spec.cluster import InstanceGroupSpec
from dpd_infra.spec.network import NetworkSpec

LETTERS = "abcdefgh"


@st.composite
def vpc_blocks(draw: st.DrawFn) -> str:
    prefix = draw(st.integers(16, 20))
    return str(IPv4Network((draw(st.integers(0, 2**32 - 1)) >> (32 - prefix) << (32 - prefix), prefix)))


@st.composite
def networks(draw: st.DrawFn) -> NetworkSpec:
    letter = draw(st.sampled_from(LETTERS))
    zones = draw(
        st.one_of(
            st.just(()), st.sets(st.sampled_from(LETTERS), min_size=2).map(lambda found: tuple(f"us-east-1{x}" for x in sorted(found)))
        )
    )
    return NetworkSpec(zone=f"us-east-1{letter}", control_plane_zones=zones, cidr=draw(vpc_blocks()))


@given(networks())
def test_subnets_lie_in_the_vpc_and_never_overlap(spec: NetworkSpec) -> None:
    blocks = [IPv4Network(subnet.cidr) for subnet in plan_subnets(spec)]
    assert all(block.subnet_of(IPv4Network(spec.cidr)) for block in blocks)
    assert all(not one.overlaps(other) for index, one in enumerate(blocks) for other in blocks[index + 1 :])


@given(networks(), st.sets(st.sampled_from(LETTERS)))
def test_no_block_moves_when_a_zone_is_added(spec: NetworkSpec, more: set[str]) -> None:
    zones = set(control_plane_zones(spec)) | {f"us-east-1{letter}" for letter in more}
    before = {subnet.name: subnet for subnet in plan_subnets(spec)}
    after = {subnet.name: subnet for subnet in plan_subnets(spec.model_copy(update={"control_plane_zones": tuple(sorted(zones))}))}
    assert before.items() <= after.items()


@given(networks())
def test_eks_has_subnets_in_two_zones_or_more(spec: NetworkSpec) -> None:
    zones = {subnet.zone for subnet in plan_subnets(spec) if subnet.kind is SubnetKind.CONTROL_PLANE}
    assert len(zones) >= 2


@given(networks())
def test_there_is_one_gpu_subnet_in_the_gpu_zone_and_it_takes_half_of_the_vpc(spec: NetworkSpec) -> None:
    [gpu] = [subnet for subnet in plan_subnets(spec) if subnet.kind is SubnetKind.GPU]
    assert gpu.zone == spec.zone
    assert gpu.usable_addresses == IPv4Network(spec.cidr).num_addresses // 2 - RESERVED_ADDRESSES


@given(networks())
def test_the_nat_gateways_subnet_is_in_the_gpu_zone(spec: NetworkSpec) -> None:
    [public] = [subnet for subnet in plan_subnets(spec) if subnet.kind is SubnetKind.PUBLIC]
    assert public.zone == spec.zone


def test_the_default_vpc_holds_four_hundred_p5_nodes() -> None:
    # HyperPod prerequisites: 81 addresses a P5 node. 10.0.0.0/16, half of it less AWS's five: 32,763 / 81 = 404.
    [gpu] = [subnet for subnet in plan_subnets(NetworkSpec(zone="us-east-2a")) if subnet.kind is SubnetKind.GPU]
    group = InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=404)
    assert addresses_needed({"gpu": group}) == 404 * 81 <= gpu.usable_addresses < 405 * 81


def test_addresses_are_counted_over_all_groups() -> None:
    groups = {
        "prefill": InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=3),
        "decode": InstanceGroupSpec(instance_type="ml.p5en.48xlarge", count=1),
    }
    assert addresses_needed(groups) == 4 * 81


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("us-east-2a", ("us-east-2a", "us-east-2b")),
        ("us-east-2c", ("us-east-2a", "us-east-2c")),
        ("ap-northeast-1a", ("ap-northeast-1a", "ap-northeast-1c")),
    ],
)
def test_the_second_zone_is_the_first_one_that_accounts_have(zone: str, expected: tuple[str, ...]) -> None:
    assert control_plane_zones(NetworkSpec(zone=zone)) == expected


@pytest.mark.parametrize(
    ("gpu_cidr", "secondary"),
    [("10.0.128.0/18", None), ("10.1.0.0/16", "10.1.0.0/16"), (None, None)],
)
def test_a_gpu_block_outside_the_vpc_is_a_secondary_one(gpu_cidr: str | None, secondary: str | None) -> None:
    # awsome-distributed-ai: worker subnets in 10.1.0.0/16 beside a VPC of 10.192.0.0/16.
    assert secondary_cidr(NetworkSpec(zone="us-east-2a", gpu_cidr=gpu_cidr)) == secondary
