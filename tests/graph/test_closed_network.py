"""A network without a way out, and flow logs: what is made, what is left out, and who may speak to whom."""

from __future__ import annotations

from typing import Any

import pytest

from dpd_infra.catalog.interface_endpoints import SERVICES
from dpd_infra.components.dependencies import HyperPodDependencies
from dpd_infra.components.network import Network
from dpd_infra.plan.project import Project
from dpd_infra.spec.dependencies import DependenciesSpec
from dpd_infra.spec.network import NetworkSpec
from tests.conftest import ROOT
from tests.graph.kit import ACCOUNT_FACTS, assert_tagged
from tests.graph.recorder import Recording, run_program
from tests.graph.test_teams import control_plane

PUBLISHED = {"ec2", "ecr.api", "ecr.dkr", "sts", "logs", "monitoring", "ssm", "ssmmessages", "ec2messages", "eks-auth"}
"""The endpoints of AWS's Terraform modules for a closed network."""


def record(preview: bool, **change: Any) -> Recording:
    spec = NetworkSpec.from_yaml_data(
        {"zone": "us-east-2b", "controlPlaneZones": ["us-east-2a", "us-east-2b"], "egress": "endpoints", **change}
    )

    def program() -> dict[str, Any]:
        network = Network("net", spec, account=ACCOUNT_FACTS, cluster_name="prod")
        return {"nat": network.nat_public_ip, "waits": [resource.pulumi_resource_name for resource in network.handle.resources]}

    return run_program(program, preview=preview)


def test_nothing_leads_out(preview: bool) -> None:
    recording = record(preview)
    for gone in ("InternetGateway", "NatGateway", "Eip", "Route"):
        assert recording.of_type(gone) == []
    assert {r.name for r in recording.of_type("Subnet")} == {"net-gpu", "net-control-plane-a", "net-control-plane-b"}
    assert recording.returned["nat"] is None


def test_every_published_service_has_an_endpoint_in_one_subnet_of_the_gpu_zone(preview: bool) -> None:
    recording = record(preview, interfaceEndpoints=["aps-workspaces"])
    interfaces = [r for r in recording.of_type("VpcEndpoint") if r.inputs["vpcEndpointType"] == "Interface"]
    services = {r.inputs["serviceName"].removeprefix("com.amazonaws.us-east-2.") for r in interfaces}
    assert services >= PUBLISHED | {"aps-workspaces"}
    assert services == {*SERVICES, "aps-workspaces"}
    assert all(r.inputs["privateDnsEnabled"] is True for r in interfaces)
    if not preview:
        assert {tuple(r.inputs["subnetIds"]) for r in interfaces} == {("net-control-plane-b-id",)}
    [gateway] = [r for r in recording.of_type("VpcEndpoint") if r.inputs["vpcEndpointType"] == "Gateway"]
    assert gateway.inputs["serviceName"] == "com.amazonaws.us-east-2.s3"


def test_nodes_wait_for_every_endpoint() -> None:
    recording = record(False)
    endpoints = {r.name for r in recording.of_type("VpcEndpoint")}
    assert endpoints <= set(recording.returned["waits"])


def test_nodes_reach_the_vpc_and_s3_and_endpoints_answer_the_vpc_alone() -> None:
    recording = record(False, gpuCidr="100.64.0.0/16")
    out = {
        r.name.removeprefix("net-nodes-to-"): r.inputs.get("cidrIpv4") or r.inputs.get("prefixListId")
        for r in recording.of_type("SecurityGroupEgressRule")
        if r.inputs["securityGroupId"] == "net-nodes-id"
    }
    assert (out["vpc"], out["gpu"]) == ("10.0.0.0/16", "100.64.0.0/16")
    assert set(out) == {"vpc", "gpu", "s3"}
    into = {
        (r.inputs["cidrIpv4"], r.inputs["fromPort"], r.inputs["toPort"])
        for r in recording.of_type("SecurityGroupIngressRule")
        if r.inputs["securityGroupId"] == "net-endpoints-id"
    }
    assert into == {("10.0.0.0/16", 443, 443), ("100.64.0.0/16", 443, 443)}


def test_a_closed_network_is_tagged_like_an_open_one(preview: bool) -> None:
    assert_tagged(record(preview))


def test_flow_logs_are_made_on_request_with_their_own_role(preview: bool) -> None:
    assert record(preview).of_type("FlowLog") == []
    recording = record(preview, egress="nat", flowLogs={"traffic": "REJECT", "retentionDays": 30})
    log = recording.one("FlowLog")
    assert log.inputs["trafficType"] == "REJECT"
    group = recording.one("LogGroup")
    assert (group.inputs["name"], group.inputs["retentionInDays"]) == ("/aws/vpc-flow-logs/inference-prod", 30)
    assert recording.depends_path(log, recording.named("net-flow-logs-role-permissions"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"egress": "nat", "interfaceEndpoints": ["acm"]}, "interfaceEndpoints go with egress: endpoints"),
        ({"routeTableId": "rtb-0a", "gpuCidr": "10.1.0.0/16"}, "controlPlaneZones, interfaceEndpoints and flowLogs"),
        ({"routeTableId": "rtb-0a", "controlPlaneZones": []}, "write its block, gpuCidr"),
    ],
    ids=["endpoints beside nat", "zones of a vpc that is not ours", "no block"],
)
def test_settings_that_contradict_each_other_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        record(True, **change)


def test_the_device_plugins_come_from_the_mirrors(preview: bool) -> None:
    mirrors = {
        "nvcr.io": "111122223333.dkr.ecr.us-east-2.amazonaws.com/nvcr",
        "602401143452.dkr.ecr.us-west-2.amazonaws.com": "602401143452.dkr.ecr.us-east-2.amazonaws.com",
    }

    def program() -> None:
        HyperPodDependencies(
            "deps",
            DependenciesSpec(),
            account=ACCOUNT_FACTS,
            control_plane=control_plane(),
            image_mirrors=mirrors,
            project=Project(root=ROOT, chart_required=False),
        )

    values = run_program(program, preview=preview).one("Release").inputs["values"]
    assert (
        values["nvidia-device-plugin"]["image"]["repository"]
        == "111122223333.dkr.ecr.us-east-2.amazonaws.com/nvcr/nvidia/k8s-device-plugin"
    )
    plugin = values["aws-efa-k8s-device-plugin"]["image"]["repository"]
    assert plugin == "602401143452.dkr.ecr.us-east-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"
