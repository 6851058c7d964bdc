"""The network's resources: what routes where, who may talk to whom, and what a load balancer finds."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from dpd_infra.components.network import Network
from dpd_infra.spec.network import NetworkSpec
from tests.graph.kit import ACCOUNT_FACTS, assert_tagged
from tests.graph.recorder import UNKNOWN, Recording, run_program

SPEC = NetworkSpec(zone="us-east-2b", control_plane_zones=("us-east-2a", "us-east-2b", "us-east-2c"))
INTERNAL = "kubernetes.io/role/internal-elb"


def record(preview: bool, spec: NetworkSpec = SPEC, cluster_name: str | None = "prod") -> Recording:
    def program() -> dict[str, Any]:
        network = Network("net", spec, account=ACCOUNT_FACTS, cluster_name=cluster_name)
        handle = network.handle
        return {
            "vpc": handle.vpc_id,
            "gpu": handle.gpu_subnet_ids,
            "control_plane": handle.control_plane_subnet_ids,
            "groups": handle.node_security_group_ids,
        }

    return run_program(program, preview=preview)


def test_everything_below_the_component_is_its_child_and_tagged(preview: bool) -> None:
    recording = record(preview)
    component = recording.one("dpd:index:Network")
    assert {r.name for r in recording.custom} == {r.name for r in recording.children(component)}
    assert_tagged(recording)


def test_a_preview_knows_no_ids_and_an_update_knows_all() -> None:
    assert record(True).returned == dict.fromkeys(("vpc", "gpu", "control_plane", "groups"), UNKNOWN)
    assert record(False).returned == {
        "vpc": "net-vpc-id",
        "gpu": ["net-gpu-id"],
        "control_plane": ["net-control-plane-a-id", "net-control-plane-b-id", "net-control-plane-c-id"],
        "groups": ["net-efa-id", "net-nodes-id"],
    }


def test_the_vpc_resolves_the_private_endpoint(preview: bool) -> None:
    vpc = record(preview).one("Vpc")
    assert (vpc.inputs["enableDnsSupport"], vpc.inputs["enableDnsHostnames"]) == (True, True)


def test_the_efa_group_has_exactly_a_rule_from_itself_and_one_to_itself() -> None:
    recording = record(False)
    rules = [
        (r.type.rsplit(":", 1)[-1], r.inputs["ipProtocol"], r.inputs.get("referencedSecurityGroupId"), r.inputs.get("cidrIpv4"))
        for r in [*recording.of_type("SecurityGroupIngressRule"), *recording.of_type("SecurityGroupEgressRule")]
        if r.inputs["securityGroupId"] == "net-efa-id"
    ]
    assert sorted(rules, key=str) == [
        ("SecurityGroupEgressRule", "-1", "net-efa-id", None),
        ("SecurityGroupIngressRule", "-1", "net-efa-id", None),
    ]


def test_no_group_has_inline_rules_and_the_default_one_has_none(preview: bool) -> None:
    recording = record(preview)
    assert all(not {"ingress", "egress"} & group.inputs.keys() for group in recording.of_type("SecurityGroup"))
    default = recording.one("DefaultSecurityGroup").inputs
    assert (default["ingress"], default["egress"]) == ([], [])


def test_the_way_out_is_in_the_nodes_group_alone_and_nothing_is_open_inwards() -> None:
    recording = record(False)
    outward = [r.inputs["securityGroupId"] for r in recording.of_type("SecurityGroupEgressRule") if r.inputs.get("cidrIpv4") == "0.0.0.0/0"]
    assert outward == ["net-nodes-id"]
    assert all("cidrIpv4" not in r.inputs for r in recording.of_type("SecurityGroupIngressRule"))


def test_exactly_one_of_the_nodes_groups_is_the_clusters_for_the_load_balancer_controller(preview: bool) -> None:
    marked = [g.name for g in record(preview).of_type("SecurityGroup") if "kubernetes.io/cluster/prod" in g.inputs["tags"]]
    assert marked == ["net-nodes"]


def test_without_a_cluster_no_group_is_marked(preview: bool) -> None:
    groups = record(preview, cluster_name=None).of_type("SecurityGroup")
    assert not [key for group in groups for key in group.inputs["tags"] if key.startswith("kubernetes.io/cluster/")]


def test_the_s3_endpoint_is_on_every_route_table() -> None:
    recording = record(False)
    endpoint = recording.one("VpcEndpoint").inputs
    assert endpoint["serviceName"] == "com.amazonaws.us-east-2.s3"
    assert endpoint["vpcEndpointType"] == "Gateway"
    assert sorted(endpoint["routeTableIds"]) == sorted(f"{table.name}-id" for table in recording.of_type("RouteTable"))


def test_every_subnet_has_a_route_table_and_only_the_public_one_reaches_the_internet_gateway() -> None:
    recording = record(False)
    tables = {a.inputs["subnetId"]: a.inputs["routeTableId"] for a in recording.of_type("RouteTableAssociation")}
    assert tables.keys() == {f"{subnet.name}-id" for subnet in recording.of_type("Subnet")}
    defaults = {
        r.inputs["routeTableId"]: r.inputs.get("gatewayId") or r.inputs["natGatewayId"] for r in recording.of_type("aws:ec2/route:Route")
    }
    assert {subnet: defaults[table] for subnet, table in tables.items()} == {
        "net-gpu-id": "net-nat-id",
        "net-control-plane-a-id": "net-nat-id",
        "net-control-plane-b-id": "net-nat-id",
        "net-control-plane-c-id": "net-nat-id",
        "net-public-b-id": "net-internet-id",
    }


def test_nat_stands_in_the_gpu_zone_and_waits_for_the_internet_route(preview: bool) -> None:
    recording = record(preview)
    nat = recording.one("NatGateway")
    public = recording.named("net-public-b")
    assert public.inputs["availabilityZone"] == "us-east-2b"
    assert recording.depends_path(nat, public)
    assert recording.depends_path(nat, recording.named("net-public-default"))
    assert recording.depends_path(recording.one("Eip"), recording.one("InternetGateway"))


def test_load_balancers_find_one_subnet_a_zone_and_in_the_gpu_zone_the_nodes_own(preview: bool) -> None:
    marked = {s.name: s.inputs["availabilityZone"] for s in record(preview).of_type("Subnet") if s.inputs["tags"].get(INTERNAL) == "1"}
    assert marked == {"net-gpu": "us-east-2b", "net-control-plane-a": "us-east-2a", "net-control-plane-c": "us-east-2c"}


def test_a_gpu_block_outside_the_vpc_is_associated_before_its_subnet(preview: bool) -> None:
    recording = record(preview, NetworkSpec(zone="us-east-2b", gpu_cidr="10.64.0.0/16"))
    block = recording.one("VpcIpv4CidrBlockAssociation")
    assert block.inputs["cidrBlock"] == "10.64.0.0/16"
    assert recording.depends_path(recording.named("net-gpu"), block)


def test_a_gpu_block_inside_the_vpc_needs_no_association(preview: bool) -> None:
    assert not record(preview, NetworkSpec(zone="us-east-2b", gpu_cidr="10.0.128.0/17")).of_type("VpcIpv4CidrBlockAssociation")


def test_a_node_waits_for_the_way_out_s3_and_every_rule(preview: bool) -> None:
    def program() -> None:
        network = Network("net", SPEC, account=ACCOUNT_FACTS)
        _waiting("waits-for-network", network.handle.resources)

    recording = run_program(program, preview=preview)
    node = recording.named("waits-for-network")
    for name in (
        "net-private-default",
        "net-nat",
        "net-s3",
        "net-efa-from-itself",
        "net-efa-to-itself",
        "net-nodes-to-anywhere",
        "net-gpu",
    ):
        assert any(recording.depends_path(node, r) for r in recording.resources if r.name == name), name


def _waiting(name: str, resources: tuple[pulumi.Resource, ...]) -> pulumi.CustomResource:
    return pulumi.CustomResource("aws:test:Node", name, {}, pulumi.ResourceOptions(depends_on=list(resources)))


def test_no_two_resources_share_a_name(preview: bool) -> None:
    found = [r.name for r in record(preview).custom]
    assert len(found) == len(set(found))


def test_two_networks_of_one_program_do_not_collide(preview: bool) -> None:
    def program() -> None:
        Network("one", SPEC, account=ACCOUNT_FACTS)
        Network("two", SPEC, account=ACCOUNT_FACTS)

    recording = run_program(program, preview=preview)
    assert len(recording.of_type("Vpc")) == 2


@pytest.mark.parametrize("option", ["protect", "retain_on_delete"])
def test_no_resource_carries_an_option_that_would_outlive_the_cluster(preview: bool, option: str) -> None:
    assert not [r for r in record(preview).custom if getattr(r, option)]


def test_only_subnets_are_deleted_before_they_are_made_anew(preview: bool) -> None:
    recording = record(preview)
    assert {r.name for r in recording.custom if r.delete_before_replace} == {r.name for r in recording.of_type("Subnet")}
