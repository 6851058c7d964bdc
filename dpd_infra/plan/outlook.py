"""What a plan says of a stack beside its tree: subnets with their room, instance groups, IAM roles with their policies, and endpoints.

All of it is read from what the program registers, so a resource that somebody added by hand is in it too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any

from dpd_infra.catalog.instance_types import GPU_NODE_ADDRESSES, instance_type
from dpd_infra.plan.groups import GROUP_LABEL
from dpd_infra.plan.subnets import RESERVED_ADDRESSES
from dpd_infra.plan.tree import Registration

EKS_SUBNET_ADDRESSES = 6
"""What EKS needs of every subnet of its control plane (EKS user guide, network requirements; it recommends 16)."""

ENDPOINT = "InferenceEndpointConfig"
_GPU = "nvidia.com/gpu"
_SUBNET = "aws:ec2/subnet:Subnet"
_EKS = "aws:eks/cluster:Cluster"
_NAT = "aws:ec2/natGateway:NatGateway"
_VPC_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
_HYPERPOD = "aws-native:sagemaker:Cluster"
_ROLE = "aws:iam/role:Role"
_POLICY = "aws:iam/policy:Policy"
_ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"


@dataclass(frozen=True, slots=True)
class SubnetOutlook:
    """One subnet."""

    name: str
    zone: str
    cidr: str
    usable: int
    """Addresses that AWS leaves: all but five."""
    needed: Mapping[str, int]
    """Addresses by what takes them, as far as the stack makes it."""

    @property
    def room(self) -> int:
        """Addresses that are left for what is not in the stack: load balancers, and whatever comes later."""
        return self.usable - sum(self.needed.values())


@dataclass(frozen=True, slots=True)
class GroupOutlook:
    """One instance group."""

    name: str
    instance_type: str
    count: int
    gpus: int | None
    """GPUs of all nodes; None for a type that the catalog does not hold."""
    addresses: int
    """Addresses that all nodes can take: 81 a GPU node (HyperPod prerequisites)."""
    efa_devices: int | None
    deep_health_checks: tuple[str, ...]
    asked_gpus: int
    """GPUs that endpoints of the stack ask of this very group."""


@dataclass(frozen=True, slots=True)
class RoleOutlook:
    """One IAM role."""

    name: str
    """Its name in AWS."""
    resource: str
    """The resource's name in the program."""
    description: str
    trusted_by: tuple[str, ...]
    """Who may take it."""
    trust: Any
    """The trust policy."""
    managed: tuple[str, ...]
    """ARNs of attached policies, and names of attached policies of the stack."""
    inline: Mapping[str, Any]
    """Inline policies by name."""


@dataclass(frozen=True, slots=True)
class PolicyOutlook:
    """One managed policy that the stack makes."""

    name: str
    document: Any


@dataclass(frozen=True, slots=True)
class EndpointRoleOutlook:
    """One role of an endpoint; `colocated` for one that is not disaggregated."""

    role: str
    replicas: int
    gpus: int | None
    """GPUs of one replica."""
    instance_group: str | None
    instance_type: str | None


@dataclass(frozen=True, slots=True)
class EndpointOutlook:
    """One endpoint."""

    name: str
    namespace: str
    model: str
    disaggregated: bool
    roles: tuple[EndpointRoleOutlook, ...]
    routing_threshold: int | None
    routing_strategy: str | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """All of it."""

    subnets: tuple[SubnetOutlook, ...] = ()
    groups: tuple[GroupOutlook, ...] = ()
    roles: tuple[RoleOutlook, ...] = ()
    policies: tuple[PolicyOutlook, ...] = ()
    endpoints: tuple[EndpointOutlook, ...] = field(default=())


def outlook(resources: Sequence[Registration]) -> Outlook:
    """What a program's registrations say. A value that is not known is left out, or shown as it is."""
    endpoints = tuple(_endpoint(resource) for resource in resources if resource.kind == ENDPOINT)
    groups = tuple(_groups(resources, endpoints))
    roles = tuple(_role(resource, resources) for resource in resources if resource.type == _ROLE)
    policies = tuple(
        PolicyOutlook(str(resource.inputs.get("name") or resource.name), _document(resource.inputs.get("policy")))
        for resource in resources
        if resource.type == _POLICY
    )
    return Outlook(tuple(_subnets(resources, groups)), groups, roles, policies, endpoints)


def _subnets(resources: Sequence[Registration], groups: Sequence[GroupOutlook]) -> Iterator[SubnetOutlook]:
    for subnet in resources:
        cidr = subnet.inputs.get("cidrBlock")
        if subnet.type == _SUBNET and isinstance(cidr, str):
            usable = IPv4Network(cidr).num_addresses - RESERVED_ADDRESSES
            needed = {what: count for what, count in _taken(subnet, resources, groups) if count}
            yield SubnetOutlook(subnet.name, str(subnet.inputs.get("availabilityZone", "")), cidr, usable, needed)


def _taken(subnet: Registration, resources: Sequence[Registration], groups: Sequence[GroupOutlook]) -> Iterator[tuple[str, int]]:
    def users(type_: str, key: str) -> list[Registration]:
        return [each for each in resources if each.type == type_ and subnet.urn in each.property_dependencies.get(key, ())]

    nodes = sum(group.addresses for group in groups)
    yield "nodes", nodes * len(users(_HYPERPOD, "vpcConfig"))
    yield "EKS control plane", EKS_SUBNET_ADDRESSES * len(users(_EKS, "vpcConfig"))
    yield "NAT gateway", len(users(_NAT, "subnetId"))
    yield "interface endpoints", len(users(_VPC_ENDPOINT, "subnetIds"))


def _groups(resources: Sequence[Registration], endpoints: Sequence[EndpointOutlook]) -> Iterator[GroupOutlook]:
    by_group: Counter[str] = Counter()
    by_type: Counter[str] = Counter()
    for endpoint in endpoints:
        for role in endpoint.roles:
            gpus = (role.gpus or 0) * role.replicas
            if role.instance_group is not None:
                by_group[role.instance_group] += gpus
            elif role.instance_type is not None:
                by_type[role.instance_type] += gpus
    for cluster in resources:
        listed = cluster.inputs.get("instanceGroups") if cluster.type == _HYPERPOD else None
        groups = listed if isinstance(listed, list) else []
        of_type = Counter(str(group.get("instanceType")) for group in groups if isinstance(group, Mapping))
        for group in groups:
            name, kind, count = str(group["instanceGroupName"]), str(group.get("instanceType", "")), int(group["instanceCount"])
            facts = instance_type(kind)
            yield GroupOutlook(
                name=name,
                instance_type=kind,
                count=count,
                gpus=facts.gpus * count if facts else None,
                addresses=count * (facts.addresses if facts else GPU_NODE_ADDRESSES),
                efa_devices=facts.efa_devices * count if facts else None,
                deep_health_checks=tuple(map(str, group.get("onStartDeepHealthChecks") or ())),
                asked_gpus=by_group[name] + (by_type[kind] if of_type[kind] == 1 else 0),
            )


def _role(role: Registration, resources: Sequence[Registration]) -> RoleOutlook:
    name = str(role.inputs.get("name") or role.name)

    def of_role(type_: str) -> list[Registration]:
        return [
            each
            for each in resources
            if each.type == type_ and (role.urn in each.property_dependencies.get("role", ()) or each.inputs.get("role") == name)
        ]

    own = {each.urn: str(each.inputs.get("name") or each.name) for each in resources if each.type == _POLICY}
    attached = [
        next((own[urn] for urn in each.property_dependencies.get("policyArn", ()) if urn in own), str(each.inputs.get("policyArn")))
        for each in of_role(_ATTACHMENT)
    ]
    trust = _document(role.inputs.get("assumeRolePolicy"))
    return RoleOutlook(
        name=name,
        resource=role.name,
        description=str(role.inputs.get("description") or ""),
        trusted_by=tuple(_principals(trust)),
        trust=trust,
        managed=(*map(str, role.inputs.get("managedPolicyArns") or ()), *attached),
        inline={str(each.inputs.get("name") or each.name): _document(each.inputs.get("policy")) for each in of_role(_ROLE_POLICY)},
    )


def statements(document: Any) -> list[Mapping[str, Any]]:
    """The statements of a policy document; none of one that is not known."""
    found = document.get("Statement") if isinstance(document, Mapping) else None
    listed = found if isinstance(found, list) else [found]
    return [each for each in listed if isinstance(each, Mapping)]


def as_list(value: Any) -> list[str]:
    """An `Action` or a `Resource`: one text or several."""
    return [str(each) for each in value] if isinstance(value, list) else [str(value)] if value else []


def _principals(document: Any) -> Iterator[str]:
    seen: set[str] = set()
    for statement in statements(document):
        principal = statement.get("Principal")
        for values in principal.values() if isinstance(principal, Mapping) else (principal,):
            for each in as_list(values):
                if each not in seen:
                    seen.add(each)
                    yield each


def _document(value: Any) -> Any:
    """A policy as data; what is no JSON text stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _endpoint(resource: Registration) -> EndpointOutlook:
    metadata, body = _mapping(resource.inputs.get("metadata")), _mapping(resource.inputs.get("spec"))
    parts, routing = _mapping(body.get("pdSpec")), _mapping(body.get("intelligentRoutingSpec"))
    kind = body.get("instanceType") or next(iter(body.get("instanceTypes") or ()), None)
    if parts:
        roles = tuple(
            _endpoint_role(name, _mapping(parts.get(key)), kind) for name, key in (("prefill", "prefillSpec"), ("decode", "decodingSpec"))
        )
    else:
        worker = {**_mapping(body.get("worker")), "replicas": body.get("replicas", 1)}
        roles = (_endpoint_role("colocated", {**worker, "nodeSelector": body.get("nodeSelector")}, kind),)
    return EndpointOutlook(
        name=str(metadata.get("name") or resource.name),
        namespace=str(metadata.get("namespace") or "default"),
        model=str(body.get("modelName") or ""),
        disaggregated=bool(parts),
        roles=roles,
        routing_threshold=parts.get("routingThreshold") if parts else None,
        routing_strategy=routing.get("routingStrategy") if routing.get("enabled") else None,
    )


def _endpoint_role(name: str, part: Mapping[str, Any], kind: Any) -> EndpointRoleOutlook:
    resources = _mapping(part.get("resources"))
    gpus = _mapping(resources.get("requests")).get(_GPU) or _mapping(resources.get("limits")).get(_GPU)
    group = _mapping(part.get("nodeSelector")).get(GROUP_LABEL)
    replicas: Any = part.get("replicas", 1)
    return EndpointRoleOutlook(
        role=name,
        replicas=replicas if isinstance(replicas, int) else 1,
        gpus=int(str(gpus)) if str(gpus).isdigit() else None,
        instance_group=str(group) if group else None,
        instance_type=str(kind) if kind else None,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
