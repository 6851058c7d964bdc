"""Ordering contracts: wherever B needs A, the graph of a whole stack has a path from B to A, in a preview and in an update."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import dpd_infra as dpd
from dpd_infra.plan.project import Project, use_project
from tests.conftest import ROOT
from tests.graph.recorder import Recorded, Recording, run_program

ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"

CONTRACTS: tuple[tuple[str, str, str], ...] = (
    # HyperPod on EKS, the order of the guides and of AWS's Terraform modules: A, then B, and where it is said.
    ("network-vpc", "control-plane-cluster", "VPC before EKS"),
    ("network-gpu", "cluster-cluster", "GPU subnet before the nodes"),
    ("network-efa-from-itself", "cluster-cluster", "EFA rules before the nodes"),
    ("network-efa-to-itself", "cluster-cluster", "EFA rules before the nodes"),
    ("network-nodes-to-anywhere", "cluster-cluster", "the nodes' way out before the nodes"),
    ("network-private-default", "cluster-cluster", "NAT route before the nodes"),
    ("network-public-default", "network-nat", "internet gateway route before NAT"),
    ("network-public-default", "cluster-cluster", "the NAT gateway's own way out before the nodes"),
    ("network-public-routes", "cluster-cluster", "the NAT gateway's own way out before the nodes"),
    ("network-gpu-routes", "cluster-cluster", "the GPU subnet's routes before the nodes"),
    ("network-s3", "cluster-cluster", "S3 endpoint before the nodes"),
    ("network-s3", "operator-addon", "S3 endpoint before the operator: the certificate is fetched by it"),
    ("control-plane-cluster", "control-plane-vpc-cni", "EKS before its add-ons"),
    ("control-plane-vpc-cni", "dependencies-release", "vpc-cni before the dependencies chart"),
    ("control-plane-vpc-cni", "cluster-cluster", "vpc-cni before the nodes"),
    ("control-plane-kube-proxy", "cluster-cluster", "kube-proxy before the nodes"),
    ("control-plane-eks-pod-identity-agent", "cluster-cluster", "pod identity agent before the nodes"),
    ("control-plane-eks-pod-identity-agent", "addons-cert-manager", "pod identity agent before cert-manager"),
    ("dependencies-release", "cluster-cluster", "the dependencies chart before HyperPod"),
    ("cluster-lifecycle-on_create.sh", "cluster-cluster", "lifecycle scripts before HyperPod"),
    ("cluster-lifecycle-on_create_main.sh", "cluster-cluster", "lifecycle scripts before HyperPod"),
    ("cluster-execution", "cluster-cluster", "execution role before HyperPod"),
    ("cluster-execution-permissions", "cluster-cluster", "policies before what takes the role"),
    ("cluster-execution-AmazonSageMakerClusterInstanceRolePolicy", "cluster-cluster", "policies before what takes the role"),
    ("control-plane-role-AmazonEKSClusterPolicy", "control-plane-cluster", "policies before what takes the role"),
    ("cluster-cluster", "addons-coredns", "nodes before coredns"),
    ("addons-coredns", "addons-cert-manager", "coredns ACTIVE is the gate that nodes exist"),
    ("addons-coredns", "addons-aws-mountpoint-s3-csi-driver", "coredns ACTIVE is the gate that nodes exist"),
    ("addons-cert-manager", "addons-aws-mountpoint-s3-csi-driver", "cert-manager, then the drivers"),
    ("addons-cert-manager", "addons-aws-fsx-csi-driver", "cert-manager, then the drivers"),
    ("addons-cert-manager", "addons-metrics-server", "cert-manager, then metrics-server"),
    ("addons-s3-csi-permissions", "addons-aws-mountpoint-s3-csi-driver", "policies before what takes the role"),
    ("addons-fsx-csi-permissions", "addons-aws-fsx-csi-driver", "policies before what takes the role"),
    ("control-plane-oidc", "addons-s3-csi", "OIDC provider before the roles that trust it"),
    ("control-plane-oidc", "operator-execution", "OIDC provider before the roles that trust it"),
    ("addons-cert-manager", "operator-addon", "dependency add-ons before the operator"),
    ("addons-aws-mountpoint-s3-csi-driver", "operator-addon", "dependency add-ons before the operator"),
    ("addons-aws-fsx-csi-driver", "operator-addon", "dependency add-ons before the operator"),
    ("addons-metrics-server", "operator-addon", "dependency add-ons before the operator"),
    ("operator-execution-AmazonSageMakerHyperPodInferenceAccess", "operator-addon", "policies before what takes the role"),
    ("operator-execution-permissions", "operator-addon", "policies before what takes the role"),
    ("operator-load-balancer-controller-permissions", "operator-addon", "policies before what takes the role"),
    ("operator-keda-permissions", "operator-addon", "policies before what takes the role"),
    ("operator-tls", "operator-addon", "certificate bucket before the operator"),
    ("network-gpu", "operator-addon", "tagged subnets before the operator"),
    ("operator-addon", "llama-70b", "the operator before any endpoint"),
)


def program() -> Any:
    """The shipped dev stack."""
    stack = dpd.StackSpec.from_file(ROOT / "stacks" / "Pulumi.dev.yaml")
    assert stack.platform is not None
    with use_project(Project(root=ROOT, chart_required=False)):
        platform = dpd.Platform("inference", stack.platform, aws_settings=stack.aws)
    return [dpd.Endpoint(name, spec, operator=platform.operator) for name, spec in stack.endpoints.items()]


@cache
def recorded(*, preview: bool) -> Recording:
    return run_program(program, preview=preview)


def find(recording: Recording, suffix: str) -> Recorded:
    found = [resource for resource in recording.custom if resource.name in (suffix, f"inference-{suffix}")]
    # An add-on and its role, a subnet and its association share a name: the one that others need is the one without a parent of its kind.
    found.sort(key=lambda resource: ("Association" in resource.type or "Eip" in resource.type or "Alias" in resource.type, resource.type))
    assert found, f"no resource {suffix}"
    return found[0]


@pytest.mark.parametrize(("first", "then", "why"), CONTRACTS, ids=[f"{first} before {then}" for first, then, _ in CONTRACTS])
def test_the_graph_has_a_path(first: str, then: str, why: str, preview: bool) -> None:
    recording = recorded(preview=preview)
    assert recording.depends_path(find(recording, then), find(recording, first)), why


def test_deployer_access_comes_before_every_kubernetes_resource(preview: bool) -> None:
    recording = recorded(preview=preview)
    associations = recording.of_type("aws:eks/accessPolicyAssociation:AccessPolicyAssociation")
    in_cluster = [resource for resource in recording.custom if resource.type.startswith("kubernetes:")]
    assert associations
    assert len(in_cluster) >= 2
    for resource in in_cluster:
        for association in associations:
            assert recording.depends_path(resource, association), (resource, association)


def test_nothing_waits_for_itself(preview: bool) -> None:
    recording = recorded(preview=preview)
    for resource in recording.custom:
        for dependency in resource.dependencies:
            assert dependency != resource.urn


def test_every_resource_goes_through_a_provider_of_the_stack(preview: bool) -> None:
    # A default provider would follow the environment and not the stack's region and role.
    recording = recorded(preview=preview)
    for resource in recording.custom:
        if not resource.type.startswith("pulumi:"):
            assert resource.provider, resource


def test_the_shipped_stack_names_nothing_twice_in_an_account(preview: bool) -> None:
    recording = recorded(preview=preview)
    names = [resource.inputs["name"] for resource in recording.of_type("aws:iam/role:Role")]
    assert len(names) == len(set(names)) == 7
    assert all("us-east-2" in name for name in names)
