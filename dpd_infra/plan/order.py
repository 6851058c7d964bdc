"""What must wait for what in an inference platform, and where a program's graph does not say so.

A resource that does not wait for what it needs may still come after it, when the other happens to be quicker: such a program deploys today
and fails another day. Only the graph shows it, so it is the graph that is held against these contracts, whoever wrote the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpd_infra.catalog.addons import CONTROL_PLANE_ADDONS, NODE_ADDONS
from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.catalog.sources import (
    EKS_PREREQUISITES_GUIDE,
    EKS_USER_GUIDE,
    HYPERPOD_CHART,
    IAM_USER_GUIDE,
    KUBERNETES_DOCS,
    SETUP_GUIDE,
    VPC_USER_GUIDE,
    Source,
)
from dpd_infra.plan.order_graph import OrderGraph, text_at
from dpd_infra.plan.tree import Registration

HYPERPOD = "aws-native:sagemaker:Cluster"
ENDPOINT = "InferenceEndpointConfig"
_EKS = "aws:eks/cluster:Cluster"
_ADDON = "aws:eks/addon:Addon"
_NAT = "aws:ec2/natGateway:NatGateway"
_CLUSTER_ADMIN = "cluster-access-policy/AmazonEKSClusterAdminPolicy"
_POLICIES = ("aws:iam/rolePolicy:RolePolicy", "aws:iam/rolePolicyAttachment:RolePolicyAttachment")
_RULES = ("SecurityGroupIngressRule", "SecurityGroupEgressRule", "SecurityGroupRule")
_ROLE_TAKERS = (_EKS, _ADDON, HYPERPOD, "aws:eks/nodeGroup:NodeGroup")

Need = tuple[Registration, str, Source]
"""What must be made first, why, and where that is said."""


@dataclass(frozen=True, slots=True)
class Unordered:
    """Two resources whose order the graph leaves open."""

    first: Registration
    """What must be made first."""
    then: Registration
    """What may be made before it."""
    why: str
    source: Source

    def __str__(self) -> str:
        return (
            f"{_said(self.then)} may be made before {_said(self.first)}\n"
            f"  why:  {self.why} [{self.source}]\n"
            f"  fix:  depends_on=[{self.first.name}] for {self.then.name}, or an input that comes from it"
        )


def unordered(resources: Sequence[Registration]) -> list[Unordered]:
    """Every pair of a program's resources that must have an order and has none.

    Only what the program makes is looked at: what it finds there already is older than all of it.
    """
    graph = OrderGraph(resources)
    found: list[Unordered] = []
    for resource in graph.resources:
        if not resource.custom or resource.read:
            continue
        seen: set[str] = set()
        for contract in _CONTRACTS:
            for first, why, source in contract(graph, resource):
                if first.urn not in graph.reach(resource) and first.urn not in seen and not first.read:
                    seen.add(first.urn)
                    found.append(Unordered(first, resource, why, source))
    return found


def _said(resource: Registration) -> str:
    return f"{resource.kind} {resource.name}"


def _network_of_nodes(graph: OrderGraph, nodes: Registration) -> Iterator[Need]:
    if nodes.type != HYPERPOD:
        return
    groups = graph.sources(nodes, "SecurityGroup")
    why = "Nodes fetch images and lifecycle scripts when they start: the way there has to be open."
    tables: set[str] = set()
    subnets, waiting = set[str](), graph.sources(nodes, "Subnet")
    while waiting:
        subnets |= waiting
        gateways: set[str] = set()
        for association in graph.of_kind("RouteTableAssociation"):
            if waiting & set(association.property_dependencies.get("subnetId", ())):
                tables |= graph.sources(association, "RouteTable")
                lost = "Nodes of a subnet without its routes reach nothing: they start before there is a way out."
                yield association, lost, VPC_USER_GUIDE
        for route in graph.of_kind("Route"):
            if tables & set(route.property_dependencies.get("routeTableId", ())):
                gateways |= graph.sources(route, "NatGateway")
                yield route, why, EKS_PREREQUISITES_GUIDE
        # A NAT gateway leads nowhere before its own subnet does.
        waiting = {urn for nat in graph.of_kind("NatGateway") if nat.urn in gateways for urn in graph.sources(nat, "Subnet")} - subnets
    vpcs = graph.reached(nodes, "Vpc")
    for endpoint in graph.of_kind("VpcEndpoint"):
        used = set(endpoint.property_dependencies.get("routeTableIds", ()))
        if used & tables or (endpoint.inputs.get("vpcEndpointType") == "Interface" and graph.reached(endpoint, "Vpc") & vpcs):
            yield endpoint, why, EKS_PREREQUISITES_GUIDE
    for kind in _RULES:
        for rule in graph.of_kind(kind):
            if groups & set(rule.property_dependencies.get("securityGroupId", ())):
                yield (
                    rule,
                    "EFA needs all traffic of the group to and from itself: without it the nodes' checks fail.",
                    EKS_PREREQUISITES_GUIDE,
                )


def _cluster_of_nodes(graph: OrderGraph, nodes: Registration) -> Iterator[Need]:
    if nodes.type != HYPERPOD:
        return
    names = {addon.name for addon in CONTROL_PLANE_ADDONS}
    for addon in graph.of_kind("Addon"):
        if addon.inputs.get("addonName") in names and graph.one_cluster(addon, nodes):
            yield addon, "A node without network, proxy and pod identity does not turn ready.", EKS_PREREQUISITES_GUIDE
    for kind in ("Release", "Chart"):
        for chart in graph.of_kind(kind):
            if "hyperpod" in str(chart.inputs.get("chart", "")).lower() and graph.one_cluster(chart, nodes):
                why = "Device plugins and the health-monitoring agent must be on the EKS cluster before HyperPod makes its first node."
                yield chart, why, HYPERPOD_CHART
    scripts = [text_at(group, "lifeCycleConfig", "sourceS3Uri") for group in nodes.inputs.get("instanceGroups") or ()]
    buckets = graph.sources(nodes, "Bucket")
    for kind in ("BucketObjectv2", "BucketObject"):
        for script in graph.of_kind(kind):
            bucket, key = script.inputs.get("bucket"), text_at(script.inputs, "key")
            of_nodes = [uri for uri in scripts if isinstance(bucket, str) and f"{uri}/".startswith(f"s3://{bucket}/")]
            if not of_nodes and buckets & set(script.property_dependencies.get("bucket", ())):
                of_nodes = scripts
            # What lies beside the scripts is nothing that a node runs.
            if any(not uri or f"/{key}".startswith(f"/{_folder(uri)}") for uri in of_nodes):
                yield (
                    script,
                    "Each node runs the lifecycle scripts when it starts, and fails where they are not there.",
                    EKS_PREREQUISITES_GUIDE,
                )


def _folder(uri: str) -> str:
    """`scripts/` of `s3://bucket/scripts`; empty for the bucket itself."""
    folder = uri.removeprefix("s3://").partition("/")[2].strip("/")
    return f"{folder}/" if folder else ""


def _policies_of_role(graph: OrderGraph, taker: Registration) -> Iterator[Need]:
    if taker.type not in _ROLE_TAKERS:
        return
    roles = graph.sources(taker, "Role")
    for kind in _POLICIES:
        for policy in graph.of_type(kind):
            if roles & set(policy.property_dependencies.get("role", ())):
                why = "What takes a role uses it at once, and is refused where the policy is not there yet."
                yield policy, why, IAM_USER_GUIDE


def _addons(graph: OrderGraph, addon: Registration) -> Iterator[Need]:
    if addon.type != _ADDON:
        return
    name = addon.inputs.get("addonName")
    if (name in {each.name for each in NODE_ADDONS} and not graph.of_kind("NodeGroup")) or name == ADDON_NAME:
        for nodes in graph.of_type(HYPERPOD):
            if graph.one_cluster(nodes, addon):
                yield nodes, "The add-on turns ACTIVE only on nodes: without them it waits until it times out.", EKS_USER_GUIDE
    if name == ADDON_NAME:
        needed = {each.name for each in NODE_ADDONS}
        for other in graph.of_kind("Addon"):
            if other.inputs.get("addonName") in needed and graph.one_cluster(other, addon):
                yield other, "The inference operator needs it to be there when it is installed.", SETUP_GUIDE
    if name == ADDON_NAME or addon.inputs.get("serviceAccountRoleArn"):
        for provider in graph.of_kind("OpenIdConnectProvider"):
            if graph.one_cluster(provider, addon):
                yield provider, "Pods take their role through the cluster's OIDC provider.", EKS_USER_GUIDE


def _endpoints(graph: OrderGraph, endpoint: Registration) -> Iterator[Need]:
    if endpoint.kind != ENDPOINT:
        return
    for addon in graph.of_kind("Addon"):
        if addon.inputs.get("addonName") == ADDON_NAME and graph.one_cluster(addon, endpoint):
            yield (
                addon,
                "The custom resource is known once the operator is there; destroyed in the other order, its finalizer hangs.",
                SETUP_GUIDE,
            )


def _objects(graph: OrderGraph, thing: Registration) -> Iterator[Need]:
    """Of every object in a Kubernetes cluster: its namespace, and the right to make it."""
    if not thing.type.startswith("kubernetes:"):
        return
    namespace = text_at(thing.inputs, "metadata", "namespace") or text_at(thing.inputs, "namespace")
    for other in graph.of_kind("Namespace"):
        if namespace and text_at(other.inputs, "metadata", "name") == namespace and other.provider == thing.provider:
            yield other, "Kubernetes refuses an object whose namespace is not there.", KUBERNETES_DOCS
    rights = [
        right
        for right in graph.of_kind("AccessPolicyAssociation")
        if str(right.inputs.get("policyArn", "")).endswith(_CLUSTER_ADMIN) and graph.one_cluster(right, thing)
    ]
    if rights and not any(right.urn in graph.reach(thing) for right in rights) and not _creator_is_admin(graph, thing):
        yield rights[0], "Until the access policy is associated, the Kubernetes API refuses whoever deploys.", EKS_USER_GUIDE


def _creator_is_admin(graph: OrderGraph, thing: Registration) -> bool:
    """Whether an EKS cluster gives whoever made it the right from the start: its default, which is an input that may be left out."""
    clusters = [cluster for cluster in graph.of_type(_EKS) if graph.one_cluster(cluster, thing)]
    config = [cluster.inputs.get("accessConfig") or {} for cluster in clusters]
    return any(each.get("bootstrapClusterCreatorAdminPermissions", True) is not False for each in config if isinstance(each, dict))


def _gateways(graph: OrderGraph, nat: Registration) -> Iterator[Need]:
    if nat.type != _NAT:
        return
    for kind in ("InternetGateway", "InternetGatewayAttachment"):
        for gateway in graph.of_kind(kind):
            if graph.reached(gateway, "Vpc") & graph.reached(nat, "Vpc"):
                yield gateway, "A NAT gateway cannot be made in a VPC without an internet gateway.", VPC_USER_GUIDE


_CONTRACTS: Sequence[Callable[[OrderGraph, Registration], Iterator[Need]]] = (
    _network_of_nodes,
    _cluster_of_nodes,
    _policies_of_role,
    _addons,
    _endpoints,
    _objects,
    _gateways,
)
