"""What must hold of this stack, as a preview sees it and as an update does."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpd_infra.testing import UNKNOWN, Recording, assert_manifest, assert_order, assert_platform_order, run_project


@pytest.fixture(scope="module", params=[True, False], ids=["preview", "update"])
def recording(request: pytest.FixtureRequest) -> Recording:
    """One run of the program in each mode, for all tests of this file."""
    return run_project("dev", Path(__file__).parent, preview=request.param)


def test_the_gpu_nodes_are_protected(recording: Recording) -> None:
    assert recording.one("aws-native:sagemaker:Cluster").protect


def test_each_role_has_a_pool_of_its_own(recording: Recording) -> None:
    groups = recording.one("aws-native:sagemaker:Cluster").inputs["instanceGroups"]
    assert {group["instanceGroupName"]: group["instanceCount"] for group in groups} == {"decode": 1, "prefill": 2, "system": 2}


def test_prefill_has_more_replicas_than_decode(recording: Recording) -> None:
    roles = recording.one("InferenceEndpointConfig").inputs["spec"]["pdSpec"]
    assert roles["prefillSpec"]["replicas"] > roles["decodingSpec"]["replicas"]


def test_the_operator_takes_the_endpoint(recording: Recording) -> None:
    assert_manifest(recording)


def test_everything_waits_for_what_it_needs(recording: Recording) -> None:
    assert_platform_order(recording)
    assert_order(recording, "aws-native:sagemaker:Cluster", "InferenceEndpointConfig")


def test_everything_is_in_the_stacks_region(recording: Recording) -> None:
    assert all(provider.inputs["region"] == "us-east-2" for provider in recording.of_type("pulumi:providers:aws"))
    assert all(resource.provider for resource in recording.custom if not resource.type.startswith("pulumi:"))


def test_the_applications_vpc_is_peered_with_the_platforms(recording: Recording) -> None:
    peering, vpc = recording.one("VpcPeeringConnection"), recording.one("Vpc")
    assert peering.inputs["peerVpcId"] == "vpc-0fedcba9876543210"
    assert peering.property_dependencies["vpcId"] == (vpc.urn,)
    # A preview does not know the id of what it has not made; an update must, and must have the right one.
    assert peering.inputs["vpcId"] == (UNKNOWN if recording.preview else "chat-network-vpc-id")


def test_what_we_add_carries_our_tags(recording: Recording) -> None:
    assert recording.one("VpcPeeringConnection").inputs["tags"]["team"] == "chat"


def test_what_we_add_goes_through_the_platforms_provider(recording: Recording) -> None:
    assert recording.one("VpcPeeringConnection").provider == recording.one("Vpc").provider


def test_nothing_secret_is_exported(recording: Recording) -> None:
    assert set(recording.exports) == {"url", "peeringId"}
    assert not recording.secret_exports
