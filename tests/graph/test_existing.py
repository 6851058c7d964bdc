"""A platform whose steps are ours or somebody else's: all sixteen mixtures, in a preview and in an update."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dpd_infra.plan.project import Project, use_project
from dpd_infra.platform import Platform
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.stack import StackRefused
from dpd_infra.testing import Answers
from dpd_infra.testing.estate import estate_invokes
from tests.conftest import ROOT
from tests.engine.estate import GPU_SUBNET, TABLE, THEIR_EKS, Estate
from tests.graph.mock_outputs import ACCOUNT
from tests.graph.recorder import Recording, run_program

STEPS = ("network", "control_plane", "cluster", "operator")
MIXTURES: list[dict[str, Any]] = [dict(zip(STEPS, theirs, strict=True)) for theirs in itertools.product((False, True), repeat=len(STEPS))]
COMPONENTS = {"control_plane": "ControlPlane", "cluster": "HyperPodCluster"}
READS = {
    "aws:ec2/getSubnet:getSubnet",
    "aws:eks/getAddon:getAddon",
    "aws:eks/getCluster:getCluster",
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider",
    "aws:iam/getSessionContext:getSessionContext",
    "aws:index/getCallerIdentity:getCallerIdentity",
    "aws:index/getPartition:getPartition",
    "aws:s3/getObject:getObject",
    "aws-native:sagemaker:getCluster",
}


def record(data: dict[str, Any], *, preview: bool, expect: type[BaseException] | None = None) -> Recording:
    spec = PlatformSpec.from_yaml_data(json.loads(json.dumps(data).replace("123456789012", ACCOUNT)))

    def program() -> Any:
        with use_project(Project(root=ROOT, chart_required=False)):
            return Platform("inference", spec).outputs

    invokes = estate_invokes(spec.existing, Answers(), spec.name)
    return run_program(program, preview=preview, config={"aws:region": "us-east-2"}, invokes=invokes, expect=expect)


def mixture_id(mixture: dict[str, Any]) -> str:
    theirs = [step for step, is_theirs in mixture.items() if is_theirs]
    return "theirs: " + (", ".join(theirs) or "nothing")


@pytest.mark.parametrize("mixture", MIXTURES, ids=mixture_id)
def test_a_mixture_waits_for_nothing_that_is_not_made_and_makes_nothing_of_theirs(mixture: dict[str, Any], preview: bool) -> None:
    recording = record(Estate(**mixture).platform, preview=preview)
    urns = {r.urn for r in recording.resources}
    for resource in recording.resources:
        waits = {*resource.dependencies, *itertools.chain(*resource.property_dependencies.values())}
        assert waits <= urns, resource
        assert not resource.import_id
        assert not resource.read
    for step, component in COMPONENTS.items():
        assert len(recording.of_type(component)) == (0 if mixture[step] else 1)
    assert len(recording.of_type("Vpc")) == (1 if not mixture["network"] and not mixture["control_plane"] else 0)
    installed = [r for r in recording.of_type("aws:eks/addon:Addon") if r.inputs["addonName"] == "amazon-sagemaker-hyperpod-inference"]
    assert len(installed) == (0 if mixture["operator"] else 1)
    assert {token for token, _ in recording.invokes} <= READS


@pytest.mark.parametrize("mixture", MIXTURES, ids=mixture_id)
def test_every_mixture_exports_what_endpoints_elsewhere_need(mixture: dict[str, Any]) -> None:
    outputs = record(Estate(**mixture).platform, preview=False).returned
    needed = {"region", "eksClusterName", "eksEndpoint", "eksCertificateAuthority", "kubernetesIdentifier", "hyperPodClusterName"}
    assert needed <= set(outputs)
    assert all(isinstance(outputs[key], str) for key in needed)
    assert outputs["kubernetesIdentifier"] == f"{outputs['eksClusterName']}-0"


def test_beside_an_existing_eks_cluster_the_network_is_one_subnet_in_its_vpc(preview: bool) -> None:
    recording = record(Estate(control_plane=True).platform, preview=preview)
    component = recording.one("GpuSubnet")
    subnet = recording.named("inference-network-gpu")
    assert {r.type.rsplit(":", 1)[-1] for r in recording.children(component)} == {
        "Subnet",
        "RouteTableAssociation",
        "SecurityGroup",
        "SecurityGroupIngressRule",
        "SecurityGroupEgressRule",
    }
    assert (subnet.inputs["vpcId"], subnet.inputs["cidrBlock"]) == ("vpc-0123456789abcdef0", "10.50.128.0/18")
    assert recording.one("RouteTableAssociation").inputs["routeTableId"] == TABLE
    nodes = recording.named("inference-network-nodes")
    # The cluster's own group is the one with the mark: the controller refuses an interface with two.
    assert not [key for key in nodes.inputs["tags"] if key.startswith("kubernetes.io/cluster/")]
    if not preview:
        groups = recording.one("aws-native:sagemaker:Cluster").inputs["vpcConfig"]["securityGroupIds"]
        assert groups == ["inference-network-efa-id", "inference-network-nodes-id", "sg-0123456789abcdef0"]


def test_a_gpu_block_outside_the_existing_vpc_is_associated_first(preview: bool) -> None:
    platform = Estate(control_plane=True).platform
    platform["network"]["gpuCidr"] = "100.64.0.0/16"
    recording = record(platform, preview=preview)
    association = recording.one("VpcIpv4CidrBlockAssociation")
    assert association.inputs["cidrBlock"] == "100.64.0.0/16"
    assert association.urn in recording.named("inference-network-gpu").dependencies


def test_existing_ids_reach_the_clusters_as_they_are(preview: bool) -> None:
    recording = record(Estate(network=True).platform, preview=preview)
    assert recording.one("aws:eks/cluster:Cluster").inputs["vpcConfig"]["securityGroupIds"] == ["sg-0a", "sg-0b"]
    config = recording.one("aws-native:sagemaker:Cluster").inputs["vpcConfig"]
    assert config == {"subnets": [GPU_SUBNET], "securityGroupIds": ["sg-0a", "sg-0b"]}


def test_only_the_add_ons_that_are_missing_are_made_and_the_first_of_them_is_the_gate(preview: bool) -> None:
    recording = record(Estate(control_plane=True).platform, preview=preview)
    made = {r.inputs["addonName"] for r in recording.of_type("aws:eks/addon:Addon")}
    assert made == {
        "cert-manager",
        "aws-mountpoint-s3-csi-driver",
        "aws-fsx-csi-driver",
        "metrics-server",
        "amazon-sagemaker-hyperpod-inference",
    }
    cert_manager = recording.named("inference-addons-cert-manager")
    cluster = recording.one("aws-native:sagemaker:Cluster")
    assert cluster.urn in cert_manager.dependencies
    # It waits for the first nodes, which coredns does elsewhere.
    assert cert_manager.timeouts["create"] == "60m"
    for name in ("aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server"):
        assert cert_manager.urn in recording.named(f"inference-addons-{name}").dependencies


def test_a_driver_of_somebody_elses_gets_no_role_of_ours(preview: bool) -> None:
    platform = Estate(control_plane=True).platform
    platform["existing"]["addons"] = ["coredns", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver"]
    roles = {r.name for r in record(platform, preview=preview).of_type("Role")}
    assert not {"inference-addons-s3-csi", "inference-addons-fsx-csi"} & roles


def test_self_managed_add_ons_are_not_read() -> None:
    platform = Estate(control_plane=True, cluster=True).platform
    platform["existing"]["selfManagedAddons"] = ["cert-manager"]
    asked = {arguments["addonName"] for token, arguments in record(platform, preview=False).invokes if token == "aws:eks/getAddon:getAddon"}
    assert "cert-manager" not in asked
    assert "metrics-server" in asked


def test_the_load_balancer_role_names_the_vpc_of_an_existing_eks_cluster() -> None:
    recording = record(Estate(control_plane=True, cluster=True).platform, preview=False)
    assert "vpc/vpc-0123456789abcdef0" in recording.named("inference-operator-load-balancer-controller-permissions").inputs["policy"]


def test_every_kubernetes_resource_goes_through_the_existing_clusters_provider(preview: bool) -> None:
    recording = record(Estate(control_plane=True).platform, preview=preview)
    provider = recording.named(f"{THEIR_EKS}-kubernetes")
    assert {r.provider for r in recording.custom if r.type.startswith("kubernetes:")} == {provider.urn}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"network": {"zone": "us-east-2a"}}, "DPD543"),
        ({"controlPlane": {"private": True}}, "DPD540"),
        ({"instanceGroups": {}}, "DPD541"),
    ],
    ids=["no route table", "both", "no groups"],
)
def test_a_contradiction_registers_nothing(change: dict[str, Any], rule: str) -> None:
    recording = record({**Estate(control_plane=True).platform, **change}, preview=True, expect=StackRefused)
    assert rule in str(recording.error)
    assert recording.resources == []
