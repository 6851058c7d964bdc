"""The rules that hold of any resource: what it names exists, its own name is free and has its form. Each is broken, and kept by a hair."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from dpd_infra.rehearsal import Failure, OperatorBehaviour, SimulatedAccount
from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import AwsProvider, base
from dpd_infra.rehearsal.errors import AwsError, InitError, KubernetesError, SimulatedError
from dpd_infra.rehearsal.pulumi_eks import EksProvider
from dpd_infra.rehearsal.simulation import Call
from dpd_infra.rehearsal.waiting import parse
from dpd_infra.rehearsal.wire import encode
from dpd_infra.rehearsal.world.rule import ASSUMED, Said, WorldRule
from dpd_infra.rehearsal.world.rules import MODULES, RULES
from tests.conftest import ROOT
from tests.engine.raw_platform import POLICY, TRUST, RawPlatform
from tests.engine.unruled import unruled
from tests.engine.world_kit import Direct, make
from tests.engine.world_kit import World as Made

ZONE = {"availabilityZone": "us-east-2a"}
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
RELEASE = "kubernetes:helm.sh/v3:Release"
ADDON = "amazon-sagemaker-hyperpod-inference"
ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@pytest.fixture(scope="module")
def platform() -> Made:
    """A whole platform; each test takes a copy."""
    return make(RawPlatform())


@dataclass
class Network:
    """A VPC of 10.0.0.0/16 with one subnet, a route table and an internet gateway."""

    direct: Direct = field(default_factory=Direct)

    def __post_init__(self) -> None:
        self.vpc = self.make(base.VPC, cidrBlock="10.0.0.0/16")
        self.subnet = self.make(base.SUBNET, cidrBlock="10.0.0.0/24", **ZONE)
        self.table = self.make(base.ROUTE_TABLE)
        self.gateway = self.make(base.INTERNET_GATEWAY)
        self.group = self.make(base.SECURITY_GROUP, name="nodes")

    def make(self, token: str, **inputs: Any) -> Resource:
        """One more resource of the VPC."""
        of = {} if token == base.VPC or "vpcId" in inputs else {"vpcId": self.vpc.id}
        return self.direct.create(token, f"n{len(self.direct.account)}", {**of, **inputs})

    def rule(self, **shape: Any) -> Resource:
        """A rule of the security group."""
        return self.direct.create(base.INGRESS_RULE, f"n{len(self.direct.account)}", {"securityGroupId": self.group.id, **shape})


def _second_block(net: Network, *, subnet: bool = False) -> None:
    block = net.make(base.CIDR_ASSOCIATION, cidrBlock="10.1.0.0/16")
    if subnet:
        net.make(base.SUBNET, cidrBlock="10.1.0.0/24", **ZONE)
    net.direct.delete(block)


def _associated(net: Network) -> None:
    net.make(base.ROUTE_TABLE_ASSOCIATION, subnetId=net.subnet.id, routeTableId=net.table.id)
    net.direct.delete(net.table)


Act = Callable[[Network], Any]
NETWORK: tuple[tuple[str, str, Act, Act], ...] = (
    (
        "vpc-exists",
        "InvalidVpcID.NotFound: The vpc ID 'vpc-0' does not exist",
        lambda net: net.make(base.SUBNET, vpcId="vpc-0", cidrBlock="10.0.1.0/24", **ZONE),
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.1.0/24", **ZONE),
    ),
    (
        "subnet-exists",
        "InvalidSubnetID.NotFound: The subnet ID 'subnet-0' does not exist",
        lambda net: net.make(base.ROUTE_TABLE_ASSOCIATION, subnetId="subnet-0", routeTableId=net.table.id),
        lambda net: net.make(base.ROUTE_TABLE_ASSOCIATION, subnetId=net.subnet.id, routeTableId=net.table.id),
    ),
    (
        "security-group-exists",
        "InvalidGroup.NotFound: The security group 'sg-0' does not exist",
        lambda net: net.rule(referencedSecurityGroupId="sg-0", ipProtocol="-1"),
        lambda net: net.rule(referencedSecurityGroupId=net.group.id, ipProtocol="-1"),
    ),
    (
        "route-table-exists",
        "InvalidRouteTableID.NotFound: The routeTable ID 'rtb-0' does not exist",
        lambda net: net.make(base.ROUTE, routeTableId="rtb-0", destinationCidrBlock="0.0.0.0/0"),
        lambda net: net.make(base.ROUTE, routeTableId=net.table.id, destinationCidrBlock="0.0.0.0/0"),
    ),
    (
        "elastic-address-exists",
        "InvalidAllocationID.NotFound: The allocation ID 'eipalloc-0' does not exist",
        lambda net: net.make(base.NAT_GATEWAY, subnetId=net.subnet.id, allocationId="eipalloc-0"),
        lambda net: net.make(base.NAT_GATEWAY, subnetId=net.subnet.id, allocationId=net.make(base.EIP, domain="vpc").id),
    ),
    (
        "nat-gateway-exists",
        "InvalidNatGatewayID.NotFound: The natGateway ID 'nat-0' does not exist",
        lambda net: net.make(base.ROUTE, routeTableId=net.table.id, destinationCidrBlock="0.0.0.0/0", natGatewayId="nat-0"),
        lambda net: net.make(
            base.ROUTE,
            routeTableId=net.table.id,
            destinationCidrBlock="0.0.0.0/0",
            natGatewayId=net.make(base.NAT_GATEWAY, subnetId=net.subnet.id, connectivityType="private").id,
        ),
    ),
    (
        "internet-gateway-exists",
        "InvalidGatewayID.NotFound: The gateway ID 'igw-0' does not exist",
        lambda net: net.make(base.ROUTE, routeTableId=net.table.id, destinationCidrBlock="0.0.0.0/0", gatewayId="igw-0"),
        lambda net: net.make(base.ROUTE, routeTableId=net.table.id, destinationCidrBlock="0.0.0.0/0", gatewayId=net.gateway.id),
    ),
    (
        "one-internet-gateway",
        "InvalidParameterValue: Network vpc-",
        lambda net: net.make(base.INTERNET_GATEWAY),
        lambda net: net.make(base.INTERNET_GATEWAY, vpcId=net.make(base.VPC, cidrBlock="10.1.0.0/16").id),
    ),
    (
        "cidr-block",
        "Value (10.0.1.1/24) for parameter cidrBlock is invalid. This is not a valid CIDR block.",
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.1.1/24", **ZONE),
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.1.0/24", **ZONE),
    ),
    (
        "vpc-blocks-apart",
        "The CIDR '10.0.0.0/15' overlaps a CIDR block of vpc-",
        lambda net: net.make(base.CIDR_ASSOCIATION, cidrBlock="10.0.0.0/15"),
        lambda net: net.make(base.CIDR_ASSOCIATION, cidrBlock="10.1.0.0/16"),
    ),
    (
        "subnet-in-block",
        "InvalidSubnet.Range: The CIDR '10.1.0.0/24' is invalid.",
        lambda net: net.make(base.SUBNET, cidrBlock="10.1.0.0/24", **ZONE),
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.255.0/24", **ZONE),
    ),
    (
        "subnets-apart",
        "InvalidSubnet.Conflict: The CIDR '10.0.0.128/25' conflicts with another subnet",
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.0.128/25", **ZONE),
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.1.0/25", **ZONE),
    ),
    (
        "subnet-zone",
        "Value (us-west-2a) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability",
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.1.0/24", availabilityZone="us-west-2a"),
        lambda net: net.make(base.SUBNET, cidrBlock="10.0.1.0/24", availabilityZone="us-east-2b"),
    ),
    (
        "security-group-name",
        "InvalidGroup.Duplicate: The security group 'nodes' already exists for VPC 'vpc-",
        lambda net: net.make(base.SECURITY_GROUP, name="nodes"),
        lambda net: net.make(base.SECURITY_GROUP, name="nodes", vpcId=net.make(base.VPC, cidrBlock="10.1.0.0/16").id),
    ),
    (
        "security-group-rule",
        # As EC2 tells protocols and ports (lucidsoftware/cumulus #101, rubber/rubber #483).
        'the specified rule "peer: 0.0.0.0/0, TCP, from port: 1, to port: 65535, ALLOW" already exists',
        lambda net: [net.rule(cidrIpv4="0.0.0.0/0", ipProtocol="tcp", fromPort=1, toPort=65535) for _ in range(2)],
        lambda net: [net.rule(cidrIpv4="0.0.0.0/0", ipProtocol="tcp", fromPort=port, toPort=65535) for port in (1, 2)],
    ),
    (
        "security-group-rule",
        'the specified rule "peer: 0.0.0.0/0, ALL, ALLOW" already exists',
        lambda net: [net.rule(cidrIpv4="0.0.0.0/0", ipProtocol="-1") for _ in range(2)],
        lambda net: [net.rule(cidrIpv4=peer, ipProtocol="-1") for peer in ("0.0.0.0/0", "10.0.0.0/8")],
    ),
    (
        "route-once",
        "RouteAlreadyExists: The route identified by 0.0.0.0/0 already exists.",
        lambda net: [net.make(base.ROUTE, routeTableId=net.table.id, destinationCidrBlock="0.0.0.0/0") for _ in range(2)],
        lambda net: [net.make(base.ROUTE, routeTableId=net.table.id, destinationCidrBlock=to) for to in ("0.0.0.0/0", "10.9.0.0/16")],
    ),
    (
        "one-route-table",
        "Resource.AlreadyAssociated: the specified association for route table rtb-",
        lambda net: [net.make(base.ROUTE_TABLE_ASSOCIATION, subnetId=net.subnet.id, routeTableId=net.table.id) for _ in range(2)],
        lambda net: net.make(base.ROUTE_TABLE_ASSOCIATION, subnetId=net.subnet.id, routeTableId=net.table.id),
    ),
    (
        "vpc-block-in-use",
        "currently has a subnet within CIDR block 10.1.0.0/16",
        lambda net: _second_block(net, subnet=True),
        _second_block,
    ),
    (
        "route-table-dependents",
        "has dependencies and cannot be deleted.",
        _associated,
        lambda net: net.direct.delete(net.table),
    ),
)


def is_refused(act: Callable[[], Any], rule: str, words: str) -> None:
    """The act breaks this rule, in these words."""
    with pytest.raises(SimulatedError) as caught:
        act()
    assert words in str(caught.value)
    assert caught.value.rule is RULES[rule]


@pytest.mark.parametrize(("rule", "words", "broken", "kept"), NETWORK, ids=[f"{case[0]}: {case[1][:20]}" for case in NETWORK])
def test_a_networks_part_that_breaks_a_rule_is_refused_in_its_words(rule: str, words: str, broken: Act, kept: Act) -> None:
    net = Network()
    is_refused(lambda: broken(net), rule, words)
    kept(Network())


IDENTITY: tuple[tuple[str, str, str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    (
        "iam-role-exists",
        "EntityAlreadyExists: Role with name one already exists.",
        base.ROLE,
        {"name": "one", "assumeRolePolicy": TRUST},
        {"name": "two"},
    ),
    (
        "iam-role-there",
        "NoSuchEntity: The role with name none cannot be found.",
        base.ROLE_POLICY,
        {"role": "none", "policy": POLICY},
        {"role": "one"},
    ),
    (
        "iam-policy-exists",
        "EntityAlreadyExists: A policy called policy already exists. Duplicate names are not allowed.",
        base.POLICY,
        {"name": "policy", "policy": POLICY},
        {"name": "other"},
    ),
    (
        "iam-policy-there",
        "NoSuchEntity: Policy arn:aws:iam::123456789012:policy/none does not exist or is not attachable.",
        base.ROLE_POLICY_ATTACHMENT,
        {"role": "one", "policyArn": "arn:aws:iam::123456789012:policy/none"},
        {"policyArn": "arn:aws:iam::123456789012:policy/policy"},
    ),
    (
        "iam-oidc-provider-exists",
        "EntityAlreadyExists: Provider with url https://oidc.example already exists.",
        base.OIDC_PROVIDER,
        {"url": "https://oidc.example"},
        {"url": "https://other.example"},
    ),
    (
        "kms-alias-exists",
        "An alias with the name arn:aws:kms:us-east-2:123456789012:alias/key already exists",
        base.ALIAS,
        {"name": "alias/key", "targetKeyId": "KEY"},
        {"name": "alias/other"},
    ),
    (
        "kms-key-there",
        "NotFoundException: Key 'arn:aws:kms:us-east-2:123456789012:key/none' does not exist",
        base.ALIAS,
        {"name": "alias/other", "targetKeyId": "none"},
        {"targetKeyId": "KEY"},
    ),
    ("log-group-exists", "The specified log group already exists", base.LOG_GROUP, {"name": "/a"}, {"name": "/b"}),
    (
        "bucket-exists",
        "Your previous request to create the named bucket succeeded and you already own it.",
        base.BUCKET,
        {"bucket": "one"},
        {"bucket": "two"},
    ),
    (
        "bucket-there",
        "NoSuchBucket: The specified bucket does not exist",
        base.BUCKET_OBJECT,
        {"bucket": "none", "key": "a"},
        {"bucket": "one"},
    ),
)


@pytest.mark.parametrize(("rule", "words", "token", "inputs", "change"), IDENTITY, ids=[case[0] for case in IDENTITY])
def test_a_name_is_free_or_there(rule: str, words: str, token: str, inputs: Mapping[str, Any], change: Mapping[str, Any]) -> None:
    direct = Direct()
    direct.create(base.ROLE, "one", {"name": "one", "assumeRolePolicy": TRUST})
    direct.create(base.POLICY, "policy", {"name": "policy", "policy": POLICY})
    direct.create(base.OIDC_PROVIDER, "oidc", {"url": "https://oidc.example"})
    key = direct.create(base.KEY, "key", {}).id
    direct.create(base.ALIAS, "alias", {"name": "alias/key", "targetKeyId": key})
    direct.create(base.LOG_GROUP, "logs", {"name": "/a"})
    direct.create(base.BUCKET, "bucket", {"bucket": "one"})

    def given(**changed: Any) -> dict[str, Any]:
        return {name: key if value == "KEY" else value for name, value in {**inputs, **changed}.items()}

    is_refused(lambda: direct.create(token, "again", given()), rule, words)
    direct.create(token, "again", given(**change))


@pytest.mark.parametrize(
    ("rule", "token", "field", "bad", "good"),
    [
        ("iam-role-name", base.ROLE, "name", "r" * 65, "r" * 64),
        ("bucket-name", base.BUCKET, "bucket", "Models", "models"),
        ("eks-cluster-name", base.CLUSTER, "name", "-eks", "e-ks"),
        ("hyperpod-name-form", base.HYPERPOD_CLUSTER, "clusterName", "a" * 64, "a" * 63),
    ],
)
def test_a_name_has_its_form(rule: str, token: str, field: str, bad: str, good: str) -> None:
    direct = Direct()
    kind = direct.providers[token.partition(":")[0]].type_for(token)
    call = Call(direct.account, {"region": "us-east-2"}, token, "urn", {field: bad})
    (said,) = kind.check(call).values()
    assert said.rule is RULES[rule]
    assert said.startswith(f"invalid value for {field} (")
    call.inputs = {field: good}
    assert kind.check(call) == {}


def test_what_a_data_source_asks_for_exists(platform: Made) -> None:
    invokes = platform.direct.providers["aws"].invokes | platform.direct.providers["aws-native"].invokes
    settings = {"region": "us-east-2"}
    none = "arn:aws:sagemaker:us-east-2:123456789012:cluster/none"
    provider, script = platform.of(base.OIDC_PROVIDER).id, platform.of(base.BUCKET_OBJECT)
    for rule, token, bad, good, words in (
        ("eks-cluster-there", "aws:eks/getCluster:getCluster", {"name": "none"}, {"name": "test"}, "No cluster found for name: none."),
        (
            "addon-there",
            "aws:eks/getAddon:getAddon",
            {"clusterName": "test", "addonName": "none"},
            {"clusterName": "test", "addonName": "vpc-cni"},
            "No addon: none found in cluster: test",
        ),
        (
            "iam-oidc-provider-there",
            "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider",
            {"url": "https://none"},
            {"arn": provider},
            "NoSuchEntity: OpenIDConnect Provider not found for arn",
        ),
        (
            "object-there",
            "aws:s3/getObject:getObject",
            {"bucket": script.outputs["bucket"], "key": "none"},
            {"bucket": script.outputs["bucket"], "key": script.outputs["key"]},
            "NotFound: Not Found",
        ),
        (
            "hyperpod-there",
            "aws-native:sagemaker:getCluster",
            {"clusterArn": none},
            {"clusterArn": platform.of(base.HYPERPOD_CLUSTER).id},
            f"ResourceNotFoundException: cluster {none} does not exist",
        ),
    ):
        function = invokes[token]
        is_refused(lambda function=function, bad=bad: function(platform.account, settings, bad), rule, words)
        assert function(platform.account, settings, good)


def test_a_control_plane_is_one_is_reached_and_changes_in_steps(platform: Made) -> None:
    made = platform.copy()
    eks = made.of(base.CLUSTER)
    again = {**eks.inputs, "vpcConfig": {**eks.inputs["vpcConfig"]}}
    is_refused(lambda: made.direct.create(base.CLUSTER, "eks", again), "eks-cluster-exists", "Cluster already exists with name: test")
    closed = {**again, "name": "other", "vpcConfig": {**again["vpcConfig"], "endpointPublicAccess": False, "endpointPrivateAccess": False}}
    is_refused(
        lambda: made.direct.create(base.CLUSTER, "eks", closed), "eks-endpoint-access", "Private and public endpoint access cannot be false"
    )
    made.direct.create(base.CLUSTER, "eks", {**closed, "vpcConfig": {**closed["vpcConfig"], "endpointPrivateAccess": True}})
    is_refused(
        lambda: made.direct.update(eks, version="1.35"),
        "eks-version-steps",
        "Unsupported Kubernetes minor version update from 1.33 to 1.35",
    )
    is_refused(lambda: made.direct.update(eks, version="1.32"), "eks-version-steps", "update from 1.33 to 1.32")
    made.direct.update(eks, version="1.34")


@pytest.mark.parametrize(
    ("before", "after", "works"),
    [
        ("CONFIG_MAP", "API", False),
        ("CONFIG_MAP", "API_AND_CONFIG_MAP", True),
        ("API_AND_CONFIG_MAP", "API", True),
        ("API_AND_CONFIG_MAP", "CONFIG_MAP", False),
        ("API", "API_AND_CONFIG_MAP", False),
        ("API", "CONFIG_MAP", False),
    ],
)
def test_the_authentication_mode_goes_one_way_and_no_step_is_left_out(platform: Made, before: str, after: str, works: bool) -> None:
    """The order is told in terraform-aws-eks #2881, the words in pulumi-eks #1493."""
    made = platform.copy()
    eks = made.of(base.CLUSTER)
    eks.outputs["accessConfig"] = {**eks.outputs["accessConfig"], "authenticationMode": before}

    def change() -> None:
        made.direct.update(eks, accessConfig={"authenticationMode": after})

    if works:
        change()
    else:
        is_refused(change, "eks-mode-steps", f"Unsupported authentication mode update from {before} to {after}")


def test_a_control_plane_goes_when_nothing_protects_or_needs_it(platform: Made) -> None:
    made = platform.copy()
    eks = made.of(base.CLUSTER)
    eks.inputs["deletionProtection"] = True
    is_refused(lambda: made.direct.delete(eks), "eks-deletion-protection", "Cluster test cannot be deleted because deletion protection")
    eks.inputs["deletionProtection"] = False
    is_refused(lambda: made.direct.delete(eks), "eks-hyperpod-attached", "Cluster test is the orchestrator of HyperPod cluster test")
    made.account.remove(made.of(base.HYPERPOD_CLUSTER))
    made.direct.delete(eks)


def test_who_may_use_a_control_plane_has_an_entry_and_a_policy_of_ekss_own(platform: Made) -> None:
    made = platform.copy()
    role = "arn:aws:iam::123456789012:role/team"
    eks = made.of(base.CLUSTER)

    def entry(**changed: Any) -> Resource:
        return made.direct.create(base.ACCESS_ENTRY, "team", {"clusterName": "test", "principalArn": role, **changed})

    def policy(**changed: Any) -> Resource:
        inputs = {"clusterName": "test", "principalArn": role, "policyArn": ADMIN, "accessScope": {"type": "cluster"}}
        return made.direct.create(base.ACCESS_POLICY_ASSOCIATION, "team", {**inputs, **changed})

    session = "arn:aws:sts::123456789012:assumed-role/team/me"
    is_refused(lambda: entry(principalArn=session), "access-entry-principal", "The principalArn parameter format is not valid")
    is_refused(policy, "access-entry-there", "The specified principalArn could not be found. You can view your available access entries")
    entry()
    is_refused(entry, "access-entry-once", "The specified access entry resource is already in use on this cluster.")
    bad = "arn:aws:iam::aws:policy/AdministratorAccess"
    is_refused(lambda: policy(policyArn=bad), "access-policy", "The policyArn parameter format is not valid")
    policy()
    eks.outputs["accessConfig"] = {**eks.outputs["accessConfig"], "authenticationMode": "CONFIG_MAP"}
    is_refused(entry, "access-entry-mode", "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP]")


def test_an_addon_is_there_once_and_its_values_are_an_object(platform: Made) -> None:
    made = platform.copy()
    addon = made.of(base.ADDON, "vpc-cni")
    is_refused(lambda: made.direct.create(base.ADDON, "again", addon.inputs), "addon-once", "ResourceInUseException: Addon already exists.")
    made.account.remove(addon)
    # cookpad/terraform-aws-eks #331: `[$: null found, object expected]`.
    for text, kind in (("null", "null"), ("[]", "array"), ("a: b", "string"), ("1", "number"), ("true", "boolean")):
        is_refused(
            lambda text=text: made.direct.create(base.ADDON, "vpc-cni", {**addon.inputs, "configurationValues": text}),
            "addon-configuration-object",
            f"Json schema validation failed with error: [$: {kind} found, object expected]",
        )
    made.direct.create(base.ADDON, "vpc-cni", {**addon.inputs, "configurationValues": "{}"})


def config_map(name: str, namespace: str = "default") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def test_the_api_server_knows_who_calls_and_what_is_there(platform: Made) -> None:
    made = platform.copy()
    made.direct.create(CONFIG_MAP, "one", config_map("one"))
    words = 'resource default/one was not successfully created by the Kubernetes API server: configmaps "one" already exists'
    is_refused(lambda: made.direct.create(CONFIG_MAP, "again", config_map("one")), "kubernetes-name", words)
    made.direct.create(CONFIG_MAP, "two", config_map("one", "kube-system"))
    is_refused(
        lambda: made.direct.create(CONFIG_MAP, "three", config_map("one", "none")), "kubernetes-namespace", 'namespaces "none" not found'
    )
    entry = next(item for item in made.account.all(base.ACCESS_ENTRY))
    granted = made.account.all(base.ACCESS_POLICY_ASSOCIATION, principalArn=entry.outputs["principalArn"])
    for association in granted:
        made.account.remove(association)
    who = made.account.deployer_role_arn
    forbidden = f'configmaps is forbidden: User "{who}" cannot create resource "configmaps" in API group "" in the namespace "default"'
    is_refused(lambda: made.direct.create(CONFIG_MAP, "four", config_map("four")), "kubernetes-permission", forbidden)
    # A policy for one namespace is one for that namespace.
    scope = {"accessScope": {"type": "namespace", "namespaces": ["default"]}}
    made.direct.create(base.ACCESS_POLICY_ASSOCIATION, "here", {**granted[0].inputs, **scope})
    made.direct.create(CONFIG_MAP, "four", config_map("four"))
    is_refused(lambda: made.direct.create(CONFIG_MAP, "five", config_map("five", "kube-system")), "kubernetes-permission", "is forbidden")
    made.account.remove(entry)
    is_refused(
        lambda: made.direct.create(CONFIG_MAP, "six", config_map("six")),
        "kubernetes-credentials",
        "unable to load schema information from the API server: the server has asked for the client to provide credentials",
    )


def test_a_kubeconfig_is_one_and_names_a_cluster_that_answers(platform: Made) -> None:
    provider = platform.direct.providers["kubernetes"]
    broken = (
        *("- a\n- b\n", "{[[", "[" * 10_000, "\0", "a" * 5000, "{clusters: eks}", "{clusters: [eks]}", "{clusters: [{cluster: [1]}]}"),
        *("{users: {a: 1}}", "{users: [{user: [1]}]}", "{users: [{user: {exec: [1]}}]}", "{users: [{user: {exec: {args: 5}}}]}"),
    )
    for text in broken:
        is_refused(lambda text=text: provider.configure({"kubeconfig": text}), "kubeconfig", "failed to parse kubeconfig data")
    server = platform.of(base.CLUSTER).outputs["endpoint"]
    good = json.dumps({"clusters": [{"cluster": {"server": server}}]})
    assert provider.configure({"kubeconfig": good})["cluster"] == "test"
    settings = provider.configure({"kubeconfig": good.replace(server, "https://none")})
    call = Call(platform.account, settings, CONFIG_MAP, "urn", config_map("one"))
    is_refused(lambda: provider.authorize(call), "kubernetes-no-server", "no EKS cluster answers at https://none")


def test_a_helm_release_has_a_namespace_a_name_and_nodes(platform: Made) -> None:
    made = platform.copy()
    chart = {"chart": "chart", "name": "release", "namespace": "apps"}
    is_refused(lambda: made.direct.create(RELEASE, "one", chart), "helm-namespace", 'namespaces "apps" not found')
    made.direct.create(RELEASE, "one", {**chart, "createNamespace": True})
    is_refused(lambda: made.direct.create(RELEASE, "two", chart), "helm-name", "cannot re-use a name that is still in use")
    made.account.remove(made.of(base.HYPERPOD_CLUSTER))
    other = {**chart, "name": "other"}
    words = 'Helm release "apps/other" was created, but failed to initialize completely. Use Helm CLI to investigate'
    is_refused(lambda: made.direct.create(RELEASE, "three", other), "helm-wait", words)
    made.direct.create(RELEASE, "four", {**other, "name": "unawaited", "skipAwait": True})


def test_what_a_wait_says_is_understood_or_refused() -> None:
    # pulumi-kubernetes, provider/pkg/metadata: the text of its default case.
    is_refused(lambda: parse("{.baz}=boo"), "wait-for-prefix", 'expected a "jsonpath=" or "condition=" prefix, got "{.baz}=boo"')
    is_refused(lambda: parse("jsonpath={status[}"), "wait-for-path", "invalid JSONPath in pulumi.com/waitFor: status[")
    assert parse("jsonpath={.status.state}=Ready")
    assert parse("condition=Ready")


def test_an_endpoint_is_ready_when_its_pods_fit_and_have_loaded_and_the_operator_could(platform: Made) -> None:
    def rule_of(change: Callable[[Made], Any]) -> tuple[str, str]:
        made = platform.copy()
        made.direct.delete(made.of(ENDPOINT, "endpoint"))
        change(made)
        with pytest.raises(InitError) as caught:
            made.direct.create(ENDPOINT, "endpoint", platform.of(ENDPOINT, "endpoint").inputs)
        return caught.value.rule.name, str(caught.value)

    def without_nodes(made: Made) -> None:
        for group in made.of(base.HYPERPOD_CLUSTER).outputs["instanceGroups"]:
            if group["instanceGroupName"] == "prefill":
                group["instanceCount"] = 0

    def slow(made: Made, seconds: float = 601) -> None:
        made.account.operator = OperatorBehaviour(seconds=seconds)

    def failing(made: Made) -> None:
        made.account.operator = OperatorBehaviour(failure="model not found")

    name, said = rule_of(without_nodes)
    assert name == "pod-fits"
    assert "nodes are available: didn't match Pod's node affinity/selector" in said
    name, said = rule_of(slow)
    assert name == "endpoint-model-loaded"
    assert "pods are loading the model (600 of 601 s)" in said
    name, said = rule_of(failing)
    assert name == "endpoint-deployment"
    assert "status.state is DeploymentFailed: model not found" in said
    made = platform.copy()
    made.direct.delete(made.of(ENDPOINT, "endpoint"))
    slow(made, 600)
    made.direct.create(ENDPOINT, "endpoint", platform.of(ENDPOINT, "endpoint").inputs)


def test_an_object_that_nobody_makes_ready_times_out(platform: Made) -> None:
    made = platform.copy()
    waits = {**config_map("waits"), "metadata": {"name": "waits", "annotations": {"pulumi.com/waitFor": "jsonpath={.data.a}=b"}}}
    is_refused(lambda: made.direct.create(CONFIG_MAP, "waits", waits), "kubernetes-ready", "failed to fully initialize or become live")
    ready = {**waits, "metadata": {**waits["metadata"], "name": "ready"}, "data": {"a": "b"}}
    made.direct.create(CONFIG_MAP, "ready", ready)


def test_a_provider_has_its_types_and_knows_its_region() -> None:
    providers = Direct().providers
    for token in ("aws:ec2/none:None", "aws-native:ec2:None"):
        provider = providers[token.partition(":")[0]]
        is_refused(
            lambda provider=provider, token=token: provider.type_for(token), "provider-type", f"unrecognized resource type (Check): {token}"
        )
    assert providers["aws"].type_for("aws:dynamodb/table:Table")
    for package, rule in (("aws", "provider-region"), ("aws-native", "provider-region-native")):
        provider = providers[package]
        is_refused(lambda provider=provider: provider.configure({}), rule, f'missing required configuration key "{package}:region"')
        assert provider.configure({"region": "us-east-2"})


def test_an_id_is_one_resources() -> None:
    account = SimulatedAccount()
    account.add(Resource("a:b:C", "one", {}, {}))
    is_refused(lambda: account.add(Resource("a:b:C", "one", {}, {})), "one-of-an-id", "a:b:C one already exists")
    account.add(Resource("a:b:C", "one", {}, {}, region="us-east-2"))


def test_a_fault_that_was_asked_for_is_no_rule_of_the_world() -> None:
    account = SimulatedAccount(fail_on=Failure(message="lost"))
    with pytest.raises(SimulatedError, match="lost") as caught, account.operation("create", "a:b:C", "urn::one"):
        raise AssertionError
    assert caught.value.rule.name not in RULES
    assert [(refusal.rule, refusal.source) for refusal in account.refusals] == [("", "")]


# Nothing is refused without a rule


PACKAGE = ROOT / "dpd_infra" / "rehearsal"
WITHOUT_A_RULE = """
def f(call, message):
    raise AwsError("EC2", "CreateVpc", "Code", f"no {call}")

def g(call):
    text = "no"
    raise refused("CreateCluster", "Code", text)

def refused(operation, code, message) -> AwsError:
    return AwsError("EKS", operation, code, message)

def h():
    raise KubernetesError("no" + "thing")

def check(self, call) -> Mapping[str, Said]:
    return {"name": "bad"}
"""
WITH_A_RULE = """
def f(call):
    raise AwsError("EC2", "CreateVpc", "Code", rules.VPC_QUOTA())

def g(call):
    text = rules.VPC_QUOTA()
    raise refused("CreateCluster", "Code", text)

def refused(operation, code, message) -> AwsError:
    return AwsError("EKS", operation, code, message.within(f"{operation}: {message}"))
"""


def test_every_refusal_in_the_package_is_one_of_a_rule() -> None:
    found = {
        f"{file.relative_to(PACKAGE)}:{line}": text
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.name != "errors.py"
        for line, text in unruled(file.read_text(encoding="utf-8"))
    }
    assert found == {}


def test_a_refusal_without_a_rule_is_found() -> None:
    assert [line for line, _ in unruled(WITHOUT_A_RULE)] == [3, 7, 13, 16]
    assert list(unruled(WITH_A_RULE)) == []


MAKERS: tuple[Callable[[Any], SimulatedError], ...] = (
    SimulatedError,
    KubernetesError,
    lambda text: AwsError("EC2", "CreateVpc", "Code", text),
    lambda text: InitError([text], id="one", outputs={}),
)


def test_no_error_is_made_of_a_plain_text() -> None:
    rule = WorldRule("a", "It is.", "no", ASSUMED, verbatim=False)
    for error in MAKERS:
        with pytest.raises(TypeError, match="a refusal without a rule of the world: no"):
            error("no")
        assert error(rule()).rule is rule


def test_a_longer_text_is_still_of_the_rule_and_what_is_assumed_says_so() -> None:
    rule = WorldRule("a", "It is.", "no {what}", ASSUMED, verbatim=False)
    said = rule(what="node")
    assert said == "no node (in the rehearsal's words, assumed)"
    assert said.within(f"last error: {said}").rule is rule
    assert isinstance(said.within("x"), Said)


def test_a_rules_name_is_one_rules_and_the_same_words_are_one_rules() -> None:
    every = [rule for module in MODULES for rule in module.RULES]
    assert len(every) == len(RULES)
    words = [rule.message for rule in every if rule.message.count("{") < 1]
    assert len(words) == len(set(words))


class Context:
    """What a provider asks of a call from the engine."""

    def peer(self) -> str:
        """Who calls."""
        return "engine"

    def abort(self, _: grpc.StatusCode, details: str) -> None:
        """Nothing comes after it."""
        raise RuntimeError(details)


def test_what_the_rehearsal_does_not_simulate_it_says_so() -> None:
    account = SimulatedAccount()
    aws, eks, context = AwsProvider(account), EksProvider(account), cast("Any", Context())
    for call, rule in (
        (lambda: aws.Invoke(provider_pb2.InvokeRequest(tok="aws:index/none:none"), context), "rehearsal-function"),
        (lambda: aws.Call(provider_pb2.CallRequest(tok="aws:index/none:none"), context), "rehearsal-method"),
        (lambda: aws.Construct(provider_pb2.ConstructRequest(type="aws:index/none:none"), context), "rehearsal-component"),
        (lambda: eks.Construct(provider_pb2.ConstructRequest(type="eks:index:ManagedNodeGroup"), context), "rehearsal-component"),
        (lambda: eks.Construct(provider_pb2.ConstructRequest(type="eks:index:Cluster"), context), "rehearsal-default-vpc"),
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value).startswith(RULES[rule].message.split("{")[0])
    assert aws.Invoke(provider_pb2.InvokeRequest(tok="aws:index/getCallerIdentity:getCallerIdentity"), context)


def test_what_is_updated_exists() -> None:
    account = SimulatedAccount()
    provider, context = AwsProvider(account), cast("Any", Context())
    urn = f"urn:pulumi:dev::test::{base.LOG_GROUP}::logs"
    request = provider_pb2.UpdateRequest(id="/a", urn=urn, news=encode({"name": "/a", "retentionInDays": 7}), olds=encode({"name": "/a"}))
    with pytest.raises(RuntimeError, match="couldn't find resource"):
        provider.Update(request, context)
    assert [refusal.rule for refusal in account.refusals] == ["provider-resource-there"]
    account.add(Resource(base.LOG_GROUP, "/a", {}, {"name": "/a"}, urn=urn))
    provider.Update(request, context)
    assert [item.outputs["retentionInDays"] for item in account] == [7]


def test_every_rule_is_broken_here_or_beside() -> None:
    text = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("test_world_names.py", "test_world_rules.py"))
    assert not [name for name in RULES if f'"{name}"' not in text]
