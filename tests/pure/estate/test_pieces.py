"""What a platform makes follows from what is there: every step is ours or theirs, and the network from both clusters."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from dpd_infra.plan.pieces import NetworkPiece, gpu_zone, pieces
from dpd_infra.spec.existing import NODE_ADDON_NAMES, ExistingSpec
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.spec.shape import build

NETWORK = {"vpcId": "vpc-0a", "zone": "us-east-2c"}
ARN = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghij12"


def platform(**existing: Any) -> PlatformSpec:
    return PlatformSpec.from_yaml_data({"name": "p", "existing": existing, "network": {"zone": "us-east-2a"}})


@pytest.mark.parametrize(
    ("network", "control_plane", "cluster"),
    list(itertools.product((False, True), repeat=3)),
    ids=lambda theirs: "theirs" if theirs else "ours",
)
def test_the_network_follows_from_both_clusters(*, network: bool, control_plane: bool, cluster: bool) -> None:
    existing: dict[str, Any] = {}
    if network:
        existing["network"] = NETWORK
    if control_plane:
        existing["controlPlane"] = {"name": "eks"}
    if cluster:
        existing["cluster"] = {"arn": ARN}
    found = pieces(platform(**existing))
    if network:
        expected = NetworkPiece.EXISTING
    elif not control_plane:
        expected = NetworkPiece.OWN
    else:
        expected = NetworkPiece.NONE if cluster else NetworkPiece.IN_EXISTING_VPC
    assert (found.network, found.control_plane, found.cluster) == (expected, not control_plane, not cluster)
    assert gpu_zone(platform(**existing)) == ("us-east-2c" if network else "us-east-2a")


@pytest.mark.parametrize(
    ("addons", "there"),
    [(True, NODE_ADDON_NAMES), (False, ()), ([], ()), (["metrics-server", "coredns"], ("coredns", "metrics-server"))],
    ids=["all", "none", "an empty list", "some, in the order of the catalog"],
)
def test_add_ons_that_are_there_are_not_made(addons: Any, there: tuple[str, ...]) -> None:
    spec = platform(addons=addons)
    assert spec.existing.addon_names == there
    assert pieces(spec).node_addons == tuple(name for name in NODE_ADDON_NAMES if name not in there)


def test_what_is_managed_elsewhere_must_be_there() -> None:
    with pytest.raises(ValueError, match="selfManagedAddons names cert-manager, which addons does not"):
        ExistingSpec.from_yaml_data({"addons": ["coredns"], "selfManagedAddons": ["cert-manager"]})


def test_an_operator_is_adopted_under_existing_or_by_its_own_section() -> None:
    assert pieces(platform()).operator is True
    assert pieces(platform(operator={})).operator is False
    adopted = PlatformSpec.from_yaml_data({"name": "p", "operator": {"adopt": True, "addonVersion": "v1.5.0-eksbuild.1"}})
    assert pieces(adopted).operator is False
    existing = platform(operator={"addonVersion": "v1.5.0-eksbuild.1"})
    assert existing.operator_spec == adopted.operator
    assert existing.operator_facts == adopted.operator_facts


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"cluster": {"arn": "arn:aws:eks:us-east-2:111122223333:cluster/x"}}, "arn"),
        ({"network": {**NETWORK, "gpuSubnetIds": ["my-subnet"]}}, "gpuSubnetIds"),
        ({"addons": ["core-dns"]}, "addons"),
        ({"controlPlane": {"name": "eks", "values": {"version": "1.33"}}}, "values"),
        ({"clusters": {}}, "clusters"),
    ],
    ids=["another service's ARN", "a subnet's name", "a misspelt add-on", "half of the values", "an unknown step"],
)
def test_what_is_misspelt_under_existing_is_found_at_its_place(section: dict[str, Any], key: str) -> None:
    _, findings = build(PlatformSpec, {"name": "p", "existing": section}, (), "platform")
    assert findings
    assert all(key in finding.path for finding in findings), findings


def test_a_closed_network_is_a_fact_of_the_operator_wherever_it_is_said() -> None:
    closed = PlatformSpec.from_yaml_data({"name": "p", "network": {"zone": "us-east-2a", "egress": "endpoints"}})
    existing = PlatformSpec.from_yaml_data({"name": "p", "existing": {"network": {**NETWORK, "closed": True}}})
    assert closed.operator_facts.closed_network is True
    assert existing.operator_facts.closed_network is True
    assert platform().operator_facts.closed_network is False
