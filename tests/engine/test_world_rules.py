"""Each rule of the simulated world is broken once, with the message that the facts give, and kept once by a hair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from dpd_infra.catalog.sources import Source
from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.world import World
from dpd_infra.rehearsal.world.rules import RULES
from tests.engine.raw_platform import POLICY, TRUST, RawPlatform, trust
from tests.engine.world_kit import Direct, make
from tests.engine.world_kit import World as Made

ADDON = "amazon-sagemaker-hyperpod-inference"
ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"
NODE_ADDONS = RawPlatform().node_addons
SUBJECT = "hyperpod-inference-system:"


def world(**data: Any) -> SimulatedAccount:
    return SimulatedAccount(world=World.from_yaml_data(data))


@cache
def kept(options: str, data: str) -> None:
    """A platform that comes up whole. Many rules are kept by the same one."""
    make(RawPlatform(**json.loads(options)), world(**json.loads(data)))


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in NODE_ADDONS if name not in names)


@dataclass(frozen=True)
class Case:
    """A platform that breaks a rule, and one that just keeps it."""

    rule: str
    broken: Mapping[str, Any]
    message: str
    """As hyperpod.md, field reports and the services' own documents have it."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    """The world file's data while the rule is broken."""
    kept_world: Mapping[str, Any] = field(default_factory=dict)


PLATFORMS = (
    Case("eks-role-trust", {"eks_service": "ec2.amazonaws.com"}, "does not exist or the trusted entity is not correct"),
    Case(
        "hyperpod-authentication-mode",
        {"authentication_mode": "CONFIG_MAP", "deployer_access": False, "dependencies": False},
        "HyperPod needs API or API_AND_CONFIG_MAP",
        {"authentication_mode": "API_AND_CONFIG_MAP"},
    ),
    Case("hyperpod-kubernetes-version", {"version": "1.36"}, "HyperPod supports 1.30 to 1.35", {"version": "1.35"}),
    Case("hyperpod-dependencies", {"dependencies": False}, "Dependencies are not installed"),
    Case("hyperpod-way-out", {"default_route": False}, "no default route through a NAT gateway"),
    Case("hyperpod-egress", {"way_out": False}, "lets them out to others"),
    # An open way to everywhere does not stand for the rule to itself (HyperPod prerequisites).
    Case(
        "hyperpod-efa-security-group",
        {"efa_rules": ("in",)},
        "EFA health checks did not run successfully",
        {"groups": {"system": 2}, "endpoint": False},
    ),
    Case("hyperpod-efa-security-group", {"efa_rules": ("out",)}, "EFA health checks did not run successfully"),
    Case(
        "hyperpod-capacity",
        {"continuous": False},
        "We currently do not have sufficient capacity for the requested instance type(s). Please try again.",
        {"continuous": False},
        {"capacity": {"us-east-2b": {"ml.p5.48xlarge": 8}}},
        {"capacity": {"us-east-2a": {"ml.p5.48xlarge": 2}}},
    ),
    Case(
        "hyperpod-type-quota",
        {},
        "The account-level service limit 'ml.p5.48xlarge for cluster usage' is 3 Instances, with current utilization of 2 Instances and a "
        "request delta of 2 Instances.",
        {},
        {"quotas": {"clusterInstances": {"ml.p5.48xlarge": 3}}, "existing": {"instances": {"ml.p5.48xlarge": 2}}},
        {"quotas": {"clusterInstances": {"ml.p5.48xlarge": 4}}, "existing": {"instances": {"ml.p5.48xlarge": 2}}},
    ),
    Case(
        "hyperpod-type-quota",
        {"spot": True},
        "'ml.p5.48xlarge for cluster spot instance usage' is 1 Instances",
        {"spot": True},
        {"quotas": {"clusterSpotInstances": {"ml.p5.48xlarge": 1}}},
        {"quotas": {"clusterSpotInstances": {"ml.p5.48xlarge": 2}, "clusterInstances": {"ml.p5.48xlarge": 0}}},
    ),
    Case(
        "hyperpod-instance-quotas",
        {},
        "'Maximum number instances allowed per SageMaker HyperPod cluster' is 3, and 4 instances",
        {},
        {"quotas": {"instancesPerCluster": 3}},
        {"quotas": {"instancesPerCluster": 4}},
    ),
    Case(
        "hyperpod-instance-quotas",
        {},
        "'Total number of instances allowed across SageMaker HyperPod clusters' is 5, and 6 instances",
        {},
        {"quotas": {"instancesOfAllClusters": 5}, "existing": {"instances": {"ml.c5.4xlarge": 2}}},
        {"quotas": {"instancesOfAllClusters": 6}, "existing": {"instances": {"ml.c5.4xlarge": 2}}},
    ),
    Case(
        "hyperpod-volume-quota",
        {"group_options": {"instance_storage_configs": [{"ebs_volume_config": {"volume_size_in_gb": 1025}}]}},
        "is 1024; group decode asks for 1025 GB",
        {"group_options": {"instance_storage_configs": [{"ebs_volume_config": {"volume_size_in_gb": 1024}}]}},
        {"quotas": {"volumeGb": 1024}},
        {"quotas": {"volumeGb": 1024}},
    ),
    # 81 addresses a P5 node and 50 a system node: 2 x 81 + 2 x 50 = 262 of a /24's 251; a /23 has 507.
    Case("hyperpod-addresses", {"subnet_size": 24}, "262 needed, 250 there", {"subnet_size": 23}),
    Case(
        "hyperpod-network-interfaces",
        {},
        "'Network interfaces per Region' is 6, and 7 would be in use",
        {},
        {"quotas": {"networkInterfaces": 6}},
        # One of the NAT gateway, two of the control plane, four of nodes, and two of the load balancer later.
        {"quotas": {"networkInterfaces": 7}},
    ),
    Case("hyperpod-role-trust", {"node_service": "ec2.amazonaws.com"}, "does not let sagemaker.amazonaws.com assume it"),
    Case("hyperpod-role-policies", {"node_policy": False}, "no policy is attached"),
    Case("hyperpod-lifecycle-script", {"lifecycle_script": False}, "s3://sagemaker-test-lifecycle/scripts/on_create.sh"),
    Case(
        "hyperpod-continuous",
        {"spot": True, "continuous": False},
        "Spot capacity (group decode) needs NodeProvisioningMode Continuous",
        {"spot": True},
    ),
    Case(
        "hyperpod-taints-and-checks",
        {
            "group_options": {
                "on_start_deep_health_checks": ["InstanceStress"],
                "kubernetes_config": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            }
        },
        "has custom taints and deep health checks",
        {"group_options": {"on_start_deep_health_checks": ["InstanceStress"]}},
    ),
    Case(
        "hyperpod-request",
        {"group_options": {"threads_per_core": 3}},
        "Value '3' at 'instanceGroups.1.member.threadsPerCore' failed to satisfy constraint: Member must have value less than or equal",
        {"group_options": {"threads_per_core": 2}},
    ),
    Case(
        "addon-needs-nodes",
        {"groups": {"system": 0}, "endpoint": False, "node_addons": ("coredns",)},
        "coredns: InsufficientNumberOfReplicas",
        {"groups": {"system": 1}, "endpoint": False},
    ),
    Case(
        "operator-s3-driver",
        {"node_addons": without("aws-mountpoint-s3-csi-driver")},
        "S3 CSI driver not installed (missing CSIDriver s3.csi.aws.com)",
    ),
    Case(
        "operator-fsx-driver",
        {"node_addons": without("aws-fsx-csi-driver")},
        "FSx CSI driver not installed (missing CSIDriver fsx.csi.aws.com)",
    ),
    Case("operator-cert-manager", {"node_addons": without("cert-manager")}, "Missing required CRD: certificaterequests.cert-manager.io"),
    Case(
        "operator-load-balancer-controller",
        {"operator_configuration": ("executionRoleArn", "tlsCertificateS3Bucket", "albOff")},
        "ALB Controller not installed (missing aws-load-balancer-controller pods)",
    ),
    Case(
        "operator-keda",
        {"operator_configuration": ("executionRoleArn", "tlsCertificateS3Bucket", "alb", "kedaOff")},
        "KEDA operator not installed (missing keda-operator pods)",
    ),
    Case(
        "operator-role-prefix",
        {"operator_role": "HyperPodInference-test"},
        "executionRoleArn must have a role name with prefix 'SageMakerHyperPodInference'",
        {"operator_role": "SageMakerHyperPodInference"},
    ),
    Case(
        "operator-role-subject",
        # The Helm chart's service account, which guides name for the add-on too (contradiction C4).
        {"operator_subject": f"{SUBJECT}hyperpod-inference-operator-controller-manager"},
        "UpdateClusterInference: Not authorized to perform sts:AssumeRoleWithWebIdentity",
    ),
    Case("operator-role-subject", {"oidc_provider": False}, "Not authorized to perform sts:AssumeRoleWithWebIdentity"),
    Case(
        "operator-pod-slots",
        {"groups": {"system": 1}, "group_options": {"instance_type": "ml.t3.large"}, "endpoint": False},
        "11 of the 13 pods fit",
        {"groups": {"system": 1}, "group_options": {"instance_type": "ml.t3.xlarge"}, "endpoint": False},
    ),
    Case(
        "operator-configuration", {"operator_configuration": ("executionRoleArn",)}, "tlsCertificateS3Bucket: is missing but it is required"
    ),
    Case("kubernetes-kind", {"operator": False}, 'no matches for kind "InferenceEndpointConfig" in version'),
    Case(
        "custom-resource-schema",
        {"endpoint_spec": {"worker": {"image": "x", "resources": {}}}},
        'InferenceEndpointConfig.inference.sagemaker.aws.amazon.com "dpd-test" is invalid: [spec.worker.modelInvocationPort: Required',
    ),
    Case("vpc-quota", {}, "The maximum number of VPCs has been reached.", {}, {"quotas": {"vpcs": 0}}, {"quotas": {"vpcs": 1}}),
    Case(
        "elastic-address-quota",
        {},
        "The maximum number of addresses has been reached.",
        {},
        {"quotas": {"elasticAddresses": 0}},
        {"quotas": {"elasticAddresses": 1}},
    ),
    Case(
        "internet-gateway-quota",
        {},
        "The maximum number of internet gateways has been reached.",
        {},
        {"quotas": {"internetGateways": 0}},
        {"quotas": {"internetGateways": 1}},
    ),
)


@pytest.mark.parametrize("case", PLATFORMS, ids=[f"{case.rule}: {case.message[:30]}" for case in PLATFORMS])
def test_a_platform_that_breaks_a_rule_is_refused_in_its_words(case: Case) -> None:
    with pytest.raises(SimulatedError) as caught:
        make(RawPlatform(**case.broken), world(**case.world))
    assert case.message in str(caught.value)
    assert caught.value.rule is RULES[case.rule]
    kept(json.dumps(case.kept), json.dumps(case.kept_world))


NOT_READY = (
    # The endpoint exists and the operator cannot finish it: its timeout ends the wait, with the reason in its status.
    Case(
        "endpoint-network-permission",
        {"operator_policy": False},
        "Please ensure that the execution role for variant AllTraffic has sufficient perm",
    ),
    Case(
        "s3-driver-role",
        {"driver_subject": "kube-system:s3-csi-driver-controller-sa"},
        "Not authorized to perform sts:AssumeRoleWithWebIdentity",
    ),
    Case(
        "load-balancer-role",
        {"operator_configuration": ("executionRoleArn", "tlsCertificateS3Bucket")},
        "FailedBuildModel: not authorized to perform ec2:CreateSecurityGroup",
    ),
    Case("s3-driver-permissions", {"driver_action": "s3:ListBucket"}, "not authorized to perform s3:GetObject"),
    Case("load-balancer-role", {"load_balancer_action": "elasticloadbalancing:*"}, "ingress has no address"),
    Case("load-balancer-role", {"load_balancer_subject": "kube-system:aws-load-balancer-controller"}, "ingress has no address"),
    Case("load-balancer-zone", {"tagged_zones": "b"}, "Target.NotInUse", {"tagged_zones": "ab"}),
    Case("load-balancer-zone", {"tagged_zones": "b"}, "Target.NotInUse", {}),
)


@pytest.mark.parametrize("case", NOT_READY, ids=[f"{case.rule}: {case.message[:30]}" for case in NOT_READY])
def test_an_endpoint_that_cannot_be_finished_says_why_at_its_timeout(case: Case) -> None:
    with pytest.raises(SimulatedError) as caught:
        make(RawPlatform(**case.broken))
    assert "timed out after 600 s waiting for jsonpath={.status.state}=DeploymentComplete" in str(caught.value)
    assert case.message in str(caught.value)
    kept(json.dumps(case.kept), "{}")


def test_capacity_that_is_not_there_is_found_by_what_waits_for_the_nodes() -> None:
    """With continuous provisioning the cluster is in service before it has a node (the guides' order of installation)."""
    account = world(capacity={"us-east-2a": {"ml.p5.48xlarge": 1}})
    with pytest.raises(SimulatedError) as caught:
        make(RawPlatform(), account)
    assert "prefill has 0 of 1 nodes: no capacity" in str(caught.value)
    assert len(account.all(base.HYPERPOD_CLUSTER)) == 1
    assert any("instance group prefill has 0 of 1 ml.p5.48xlarge" in text for _, text in account.warnings)


def test_a_group_below_its_minimum_has_no_node_at_all() -> None:
    account = world(capacity={"us-east-2a": {"ml.c5.4xlarge": 2}})
    with pytest.raises(SimulatedError, match="InsufficientNumberOfReplicas"):
        make(RawPlatform(groups={"system": 3}, group_options={"min_instance_count": 3}, endpoint=False), account)
    make(
        RawPlatform(groups={"system": 3}, group_options={"min_instance_count": 2}, endpoint=False),
        world(capacity={"us-east-2a": {"ml.c5.4xlarge": 2}}),
    )


@pytest.fixture(scope="module")
def platform() -> Made:
    """A whole platform with one endpoint; each test takes a copy."""
    return make(RawPlatform())


@contextmanager
def refused(rule: str, words: str) -> Iterator[None]:
    """The block is refused in these words, by this rule or by a status that its message stands in."""
    with pytest.raises(SimulatedError, match=words) as caught:
        yield
    told = caught.value.rule is RULES[rule] or RULES[rule].message.split("{")[0] in str(caught.value)
    assert told, (rule, caught.value)


def endpoint_of(made: Made) -> Any:
    return made.of(ENDPOINT, "endpoint")


def test_an_operator_that_went_first_leaves_finalizers_and_the_deletion_hangs(platform: Made) -> None:
    made = platform.copy()
    addon, endpoint = made.of(base.ADDON, ADDON), endpoint_of(made)
    made.direct.delete(addon)
    with pytest.raises(SimulatedError, match="timed out waiting for the condition") as caught:
        made.direct.delete(endpoint)
    assert caught.value.rule is RULES["finalizers"]
    assert ("finalizers might be preventing deletion") in [text for _, text in made.account.warnings]
    with refused("crd-terminating", "create not allowed while custom resource definition is terminating"):
        made.direct.create(ENDPOINT, "another", {**endpoint.inputs, "metadata": {"name": "another"}})
    with pytest.raises(SimulatedError) as again:
        made.direct.create(base.ADDON, ADDON, addon.inputs)
    assert again.value.rule is RULES["operator-reinstall"]


def test_in_the_right_order_the_endpoint_takes_its_load_balancer_along(platform: Made) -> None:
    made = platform.copy()
    assert len(made.account.all("elasticloadbalancing:loadBalancer", "sagemaker:endpoint")) == 2
    made.direct.delete(endpoint_of(made))
    assert not made.account.all("elasticloadbalancing:loadBalancer", "sagemaker:endpoint")
    made.direct.delete(made.of(base.ADDON, ADDON))
    made.direct.create(base.ADDON, ADDON, made.of(base.ADDON, ADDON).inputs)


def test_a_preserved_operator_goes_on_running(platform: Made) -> None:
    made = platform.copy()
    addon = made.of(base.ADDON, ADDON)
    addon.inputs["preserve"] = True
    made.direct.delete(addon)
    made.direct.delete(endpoint_of(made))


def test_an_operator_without_nodes_answers_no_conversion(platform: Made) -> None:
    made = platform.copy()
    for group in made.of(base.HYPERPOD_CLUSTER).outputs["instanceGroups"]:
        group["instanceCount"] = 0
    endpoint = endpoint_of(made)
    with pytest.raises(SimulatedError, match="no endpoints available for service") as caught:
        made.direct.update(endpoint)
    assert caught.value.rule is RULES["conversion-webhook"]
    with pytest.raises(SimulatedError, match="timed out waiting for the condition"):
        made.direct.delete(endpoint)


def test_a_custom_resource_that_no_operator_sees_hangs_until_its_timeout() -> None:
    """The CRD is there, from the program itself, and nothing reconciles."""
    made = make(RawPlatform(operator=False, endpoint=False))
    names = {"kind": "InferenceEndpointConfig", "plural": "inferenceendpointconfigs"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "inferenceendpointconfigs.inference.sagemaker.aws.amazon.com"},
        "spec": {"group": "inference.sagemaker.aws.amazon.com", "names": names},
    }
    endpoint = endpoint_of(make(RawPlatform())).inputs
    with pytest.raises(SimulatedError, match="no matches for kind"):
        made.direct.create(ENDPOINT, "endpoint", endpoint)
    made.direct.create("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "crd", definition)
    with pytest.raises(SimulatedError, match=r"timed out after 600 s waiting .*DeploymentComplete; status.state is unknown"):
        made.direct.create(ENDPOINT, "endpoint", endpoint)


def test_what_a_cluster_held_is_out_of_reach_once_it_is_gone(platform: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made = platform.copy()
    endpoint, release = endpoint_of(made), made.of("kubernetes:helm.sh/v3:Release")
    made.account.remove(made.of(base.CLUSTER))
    with pytest.raises(SimulatedError, match="PULUMI_K8S_DELETE_UNREACHABLE") as caught:
        made.direct.delete(endpoint)
    assert caught.value.rule is RULES["kubernetes-unreachable"]
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    made.direct.delete(endpoint)
    # A release ignores the switch when it is deleted (pulumi-kubernetes #2675), not when it is read.
    with pytest.raises(SimulatedError, match="unreachable cluster"):
        made.direct.delete(release)


def test_what_a_controller_made_blocks_the_network(platform: Made) -> None:
    """The EKS cluster goes with an endpoint in it, as it does when the endpoint was taken out of the state: its load balancer stays."""
    made = platform.copy()
    account = made.account
    account.remove(made.of(base.HYPERPOD_CLUSTER))
    made.direct.delete(made.of(base.CLUSTER))
    left = account.all("elasticloadbalancing:loadBalancer")[0]
    subnet = account.find(base.SUBNET, left.outputs["subnetIds"][0], region="us-east-2")
    assert subnet is not None
    with pytest.raises(SimulatedError, match="DependencyViolation") as caught:
        made.direct.delete(subnet)
    assert caught.value.rule is RULES["subnet-dependents"]
    assert any("made by the load balancer controller for default/dpd-test" in text for _, text in account.warnings)
    group = account.find(base.SECURITY_GROUP, left.outputs["securityGroupIds"][0], region="us-east-2")
    assert group is not None
    with refused("security-group-dependents", r"DependencyViolation: resource sg-\w+ has a dependent object"):
        made.direct.delete(group)
    account.remove(left)
    made.direct.delete(subnet)
    with pytest.raises(SimulatedError, match="has dependencies and cannot be deleted") as blocked:
        made.direct.delete(made.of(base.VPC))
    assert blocked.value.rule is RULES["vpc-dependents"]
    assert any("was made by a controller or a service" in text for _, text in account.warnings)


def test_nodes_and_the_control_plane_hold_their_subnets_and_groups(platform: Made) -> None:
    made = platform.copy()
    for name in ("private-a", "private-b"):
        with pytest.raises(SimulatedError, match="DependencyViolation"):
            made.direct.delete(made.of(base.SUBNET, name))
    with pytest.raises(SimulatedError, match="DependencyViolation"):
        made.direct.delete(made.of(base.SECURITY_GROUP))
    with pytest.raises(SimulatedError, match="some mapped public address") as caught:
        made.direct.delete(made.of(base.INTERNET_GATEWAY))
    assert caught.value.rule is RULES["internet-gateway-dependents"]


def test_a_full_subnet_takes_nothing_more() -> None:
    direct = Direct()
    vpc = direct.create(base.VPC, "vpc", {"cidrBlock": "10.0.0.0/16"})
    direct.create(base.INTERNET_GATEWAY, "igw", {"vpcId": vpc.id})
    # A /28 has 16 addresses, of which AWS keeps 5.
    subnet = direct.create(base.SUBNET, "small", {"vpcId": vpc.id, "cidrBlock": "10.0.0.0/28", "availabilityZone": "us-east-2a"})
    for number in range(11):
        address = direct.create(base.EIP, f"eip-{number}", {"domain": "vpc"})
        direct.create(base.NAT_GATEWAY, f"nat-{number}", {"subnetId": subnet.id, "allocationId": address.id})
    address = direct.create(base.EIP, "eip", {"domain": "vpc"})
    with pytest.raises(SimulatedError, match="InsufficientFreeAddressesInSubnet") as caught:
        direct.create(base.NAT_GATEWAY, "nat", {"subnetId": subnet.id, "allocationId": address.id})
    assert caught.value.rule is RULES["subnet-addresses"]


def test_a_load_balancer_needs_eight_free_addresses(platform: Made) -> None:
    def fill(left: int) -> Made:
        made = platform.copy()
        made.direct.delete(endpoint_of(made))
        subnet = made.of(base.SUBNET, "private-b")
        # 8187 of a /19, one of them the control plane's.
        subnet.outputs["addressesInUse"] = 8187 - 1 - left
        return made

    made = fill(7)
    with refused("load-balancer-addresses", "ELB requires at least 8 free IP addresses in each subnet"):
        made.direct.create(ENDPOINT, "endpoint", endpoint_of(platform).inputs)
    made = fill(8)
    made.direct.create(ENDPOINT, "endpoint", endpoint_of(platform).inputs)


def test_a_sagemaker_endpoint_has_one_owner(platform: Made) -> None:
    made = platform.copy()
    endpoint = endpoint_of(made)
    cluster = made.of(base.HYPERPOD_CLUSTER)
    for group in cluster.outputs["instanceGroups"]:
        group["instanceCount"] *= 2
    twin = {**endpoint.inputs, "metadata": {**endpoint.inputs["metadata"], "name": "twin"}}
    with refused("endpoint-name", "Cannot create already existing endpoint"):
        made.direct.create(ENDPOINT, "twin", twin)
    other = {**twin, "metadata": {**twin["metadata"], "name": "other"}, "spec": {**twin["spec"], "endpointName": "other"}}
    made.account.remove(made.account.in_cluster("test", ENDPOINT)[-1])
    made.direct.create(ENDPOINT, "other", other)


def test_the_certificate_is_fetched_through_nat_or_the_gateway_endpoint(platform: Made) -> None:
    made = platform.copy()
    route = made.of(base.ROUTE, "private-a")
    made.account.remove(route)
    endpoint = endpoint_of(made)
    with refused("endpoint-certificate-route", "Error downloading CA certificate: Connect timeout on endpoint URL"):
        made.direct.update(endpoint)
    table = made.of(base.ROUTE_TABLE, "private-a").id
    vpc = made.of(base.VPC).id
    gateway = {"vpcId": vpc, "serviceName": "com.amazonaws.us-east-2.s3", "vpcEndpointType": "Gateway", "routeTableIds": [table]}
    made.direct.create(base.VPC_ENDPOINT, "s3", gateway)
    made.direct.update(endpoint)


def test_intelligent_routing_cannot_be_added_or_switched(platform: Made) -> None:
    made = platform.copy()
    endpoint = endpoint_of(made)
    spec = endpoint.inputs["spec"]
    with pytest.raises(SimulatedError, match="cannot be added to or switched on an existing deployment") as caught:
        made.direct.update(endpoint, spec={**spec, "intelligentRoutingSpec": {"enabled": True}})
    assert caught.value.rule is RULES["endpoint-routing-fixed"]
    endpoint.outputs["spec"] = {**spec, "intelligentRoutingSpec": {"enabled": True, "routingStrategy": "session"}}
    made.direct.update(endpoint, spec={**spec, "intelligentRoutingSpec": {"enabled": True, "routingStrategy": "prefixaware"}})
    endpoint.outputs["spec"] = {**spec, "intelligentRoutingSpec": {"enabled": True}}
    with pytest.raises(SimulatedError, match="cannot be added to or switched on an existing deployment"):
        made.direct.update(endpoint, spec={key: value for key, value in spec.items() if key != "intelligentRoutingSpec"})


def test_a_field_that_the_crd_does_not_have_is_refused_as_server_side_apply_does(platform: Made) -> None:
    made = platform.copy()
    made.of(base.ADDON, ADDON).outputs["addonVersion"] = "v1.2.0-eksbuild.1"
    with refused("custom-resource-fields", r"failed to create typed patch object .*\.spec\.pdSpec: field not declared in schema"):
        made.direct.update(endpoint_of(made))
    made.of(base.ADDON, ADDON).outputs["addonVersion"] = "v1.3.0-eksbuild.1"
    made.direct.update(endpoint_of(made))


@pytest.mark.parametrize("field", ["capacityRequirements", "overrideVpcConfig"])
def test_what_is_fixed_in_a_group_cannot_be_changed(platform: Made, field: str) -> None:
    made = platform.copy()
    cluster = made.of(base.HYPERPOD_CLUSTER)
    network = cluster.outputs["vpcConfig"]
    value = {"spot": {}} if field == "capacityRequirements" else dict(network)
    groups = [{**group, field: value} if group["instanceGroupName"] == "prefill" else group for group in cluster.inputs["instanceGroups"]]
    with refused("hyperpod-fixed-in-a-group", f"{field} of instance group prefill cannot be changed"):
        made.direct.update(cluster, instanceGroups=groups)
    added = [*cluster.inputs["instanceGroups"], {**groups[1], "instanceGroupName": "another", "instanceCount": 0}]
    made.direct.update(cluster, instanceGroups=added)


def test_an_efa_group_has_one_zone(platform: Made) -> None:
    made = platform.copy()
    cluster = made.of(base.HYPERPOD_CLUSTER)
    both = [made.of(base.SUBNET, f"private-{zone}").id for zone in "ab"]
    made.account.remove(cluster)

    def inputs(name: str) -> dict[str, Any]:
        network = {"subnets": both, "securityGroupIds": cluster.inputs["vpcConfig"]["securityGroupIds"]}
        groups = [
            {**group, "overrideVpcConfig": network} if group["instanceGroupName"] == name else group
            for group in cluster.inputs["instanceGroups"]
        ]
        return {**cluster.inputs, "instanceGroups": groups}

    with refused(
        "hyperpod-efa-one-zone", "Instance group prefill has EFA and subnets in several availability zones: us-east-2a, us-east-2b"
    ):
        made.direct.create(base.HYPERPOD_CLUSTER, "hyperpod", inputs("prefill"))
    made.direct.create(base.HYPERPOD_CLUSTER, "hyperpod", inputs("system"))


def test_the_rest_of_what_hyperpod_refuses(platform: Made) -> None:
    cluster = platform.of(base.HYPERPOD_CLUSTER)

    def rule_of(change: Callable[[Made], Mapping[str, Any]]) -> str:
        made = platform.copy()
        made.account.remove(made.of(base.HYPERPOD_CLUSTER))
        changed = change(made)
        with pytest.raises(SimulatedError) as caught:
            made.direct.create(base.HYPERPOD_CLUSTER, "hyperpod", {**cluster.inputs, **changed})
        return caught.value.rule.name if caught.value.rule else str(caught.value)

    def other_vpc(made: Made) -> Mapping[str, Any]:
        vpc = made.direct.create(base.VPC, "other", {"cidrBlock": "10.9.0.0/16"})
        block = {"cidrBlock": "10.9.0.0/20", "availabilityZone": "us-east-2a"}
        subnet = made.direct.create(base.SUBNET, "other", {"vpcId": vpc.id, **block})
        return {"vpcConfig": {**cluster.inputs["vpcConfig"], "subnets": [subnet.id]}}

    def no_cni(made: Made) -> Mapping[str, Any]:
        made.account.remove(made.of(base.ADDON, "vpc-cni"))
        return {}

    groups = cluster.inputs["instanceGroups"]
    no_role = [{**groups[0], "executionRole": "arn:aws:iam::123456789012:role/missing"}]
    nowhere = {"eks": {"clusterArn": "arn:aws:eks:us-east-2:123456789012:cluster/missing"}}
    assert rule_of(other_vpc) == "hyperpod-subnet-in-vpc"
    assert rule_of(no_cni) == "hyperpod-vpc-cni"
    assert rule_of(lambda _: {"instanceGroups": [groups[0], groups[0]]}) == "hyperpod-group-names"
    assert rule_of(lambda _: {"instanceGroups": no_role}) == "hyperpod-role"
    assert rule_of(lambda _: {"orchestrator": nowhere}) == "hyperpod-eks"
    made = platform.copy()
    with refused("hyperpod-name", "with identifier 'test' already exists"):
        made.direct.create(base.HYPERPOD_CLUSTER, "hyperpod", cluster.inputs)
    made.account.remove(made.of(base.BUCKET, "tls"))
    made.account.remove(made.of(base.ADDON, ADDON))
    with refused("operator-tls-bucket", "NoSuchBucket: The specified bucket does not exist: hyperpod-tls-test"):
        made.direct.create(base.ADDON, ADDON, platform.of(base.ADDON, ADDON).inputs)


def test_the_control_plane_needs_its_policy_and_two_zones(platform: Made) -> None:
    eks = platform.of(base.CLUSTER)
    made = platform.copy()
    made.account.remove(made.of(base.CLUSTER))
    one_zone = {"subnetIds": eks.inputs["vpcConfig"]["subnetIds"][:1]}
    with pytest.raises(SimulatedError, match="at least two different AZs") as caught:
        made.direct.create(base.CLUSTER, "eks", {**eks.inputs, "vpcConfig": one_zone})
    assert caught.value.rule is RULES["eks-two-zones"]
    attachment = next(item for item in made.account.all(base.ROLE_POLICY_ATTACHMENT) if item.outputs["role"].startswith("eks"))
    made.account.remove(attachment)
    with pytest.raises(SimulatedError, match="Amazon EKS Managed Policies") as missing:
        made.direct.create(base.CLUSTER, "eks", eks.inputs)
    assert missing.value.rule is RULES["eks-role-policy"]


def test_a_bucket_with_something_in_it_stays(platform: Made) -> None:
    made = platform.copy()
    bucket = made.of(base.BUCKET, "lifecycle")
    with refused("bucket-empty", "BucketNotEmpty: The bucket you tried to delete is not empty"):
        made.direct.delete(bucket)
    made.direct.delete(made.of(base.BUCKET_OBJECT, "on_create.sh"))
    made.direct.delete(bucket)


def test_iam_refuses_what_breaks_its_grammar_its_principals_and_its_quotas() -> None:
    direct = Direct()
    with pytest.raises(SimulatedError, match="MalformedPolicyDocument: Missing required field Principal") as caught:
        direct.create(base.ROLE, "role", {"assumeRolePolicy": POLICY.replace('"Resource": "*"', '"Sid": "a"')})
    assert caught.value.rule is RULES["iam-grammar"]
    missing = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:role/none"}, "Action": "sts:AssumeRole"}],
        }
    )
    with pytest.raises(SimulatedError, match='Invalid principal in policy: "AWS":"arn:aws:iam::123456789012:role/none"') as unknown:
        direct.create(base.ROLE, "role", {"assumeRolePolicy": missing})
    assert unknown.value.rule is RULES["iam-principal"]
    direct.create(base.ROLE, "none", {"name": "none", "assumeRolePolicy": TRUST})
    direct.create(base.ROLE, "role", {"name": "role", "assumeRolePolicy": missing})
    for number in range(10):
        direct.create(base.ROLE_POLICY_ATTACHMENT, str(number), {"role": "role", "policyArn": f"arn:aws:iam::aws:policy/Policy{number}"})
    with refused("iam-policies-per-role", "Cannot exceed quota for PoliciesPerRole: 10"):
        direct.create(base.ROLE_POLICY_ATTACHMENT, "11", {"role": "role", "policyArn": "arn:aws:iam::aws:policy/Eleventh"})


def test_iam_counts_the_size_of_documents_without_their_white_space() -> None:
    direct = Direct()

    def padded(size: int, document: str = POLICY) -> str:
        text = "".join(document.split())
        first = text.index('"Statement"')
        return f'{text[:first]}"Id":"{"x" * (size - len(text) - 8)}",{" " * 99}{text[first:]}'

    for kind, document, limit, name, rule, message in (
        (base.ROLE, TRUST, 2048, "assumeRolePolicy", "iam-trust-size", "LimitExceeded: Cannot exceed quota for ACLSizePerRole: 2048"),
        (base.POLICY, POLICY, 6144, "policy", "iam-policy-size", "LimitExceeded: Cannot exceed quota for PolicySize: 6144"),
    ):
        with refused(rule, message):
            direct.create(kind, "large", {name: padded(limit + 1, document)})
        direct.create(kind, "fits", {name: padded(limit, document)})
    direct.create(base.ROLE, "role", {"name": "role", "assumeRolePolicy": TRUST})
    direct.create(base.ROLE_POLICY, "first", {"role": "role", "policy": padded(6144)})
    with refused("iam-inline-size", "LimitExceeded: Maximum policy size of 10240 bytes exceeded for role role"):
        direct.create(base.ROLE_POLICY, "second", {"role": "role", "policy": padded(10240 - 6144 + 1)})
    direct.create(base.ROLE_POLICY, "second", {"role": "role", "policy": padded(10240 - 6144)})


def test_a_role_and_a_policy_go_after_what_ties_them() -> None:
    direct = Direct()
    role = direct.create(base.ROLE, "role", {"name": "role", "assumeRolePolicy": TRUST})
    policy = direct.create(base.POLICY, "policy", {"policy": POLICY})
    attached = direct.create(base.ROLE_POLICY_ATTACHMENT, "attached", {"role": "role", "policyArn": policy.id})
    inline = direct.create(base.ROLE_POLICY, "inline", {"role": "role", "policy": POLICY})
    with refused("iam-policy-detached", "DeleteConflict: Cannot delete a policy attached to entities."):
        direct.delete(policy)
    with refused("iam-role-detached", "DeleteConflict: Cannot delete entity, must detach all policies first."):
        direct.delete(role)
    direct.delete(attached)
    direct.delete(policy)
    with refused("iam-role-without-policies", "DeleteConflict: Cannot delete entity, must delete policies first."):
        direct.delete(role)
    direct.delete(inline)
    direct.delete(role)


def test_a_nat_gateway_comes_after_the_internet_gateway_and_goes_before_its_address() -> None:
    direct = Direct()
    vpc = direct.create(base.VPC, "vpc", {"cidrBlock": "10.0.0.0/16"})
    subnet = direct.create(base.SUBNET, "a", {"vpcId": vpc.id, "cidrBlock": "10.0.0.0/24", "availabilityZone": "us-east-2a"})
    address = direct.create(base.EIP, "nat", {"domain": "vpc"})
    inputs = {"subnetId": subnet.id, "allocationId": address.id}
    with refused("nat-gateway-needs-internet-gateway", f"Gateway.NotAttached: Network {vpc.id} has no Internet gateway attached"):
        direct.create(base.NAT_GATEWAY, "nat", inputs)
    direct.create(base.NAT_GATEWAY, "private", {"subnetId": subnet.id, "connectivityType": "private"})
    direct.create(base.INTERNET_GATEWAY, "public", {"vpcId": vpc.id})
    gateway = direct.create(base.NAT_GATEWAY, "nat", inputs)
    with refused("elastic-address-in-use", "InvalidIPAddress.InUse"):
        direct.delete(address)
    direct.delete(gateway)
    direct.delete(address)


def test_a_trust_policy_is_read_with_its_conditions() -> None:
    account = trust("eks.amazonaws.com").replace('"Action"', '"Condition": {"StringEquals": {"aws:SourceAccount": "%s"}}, "Action"')
    make(RawPlatform(hyperpod=False, node_addons=(), operator=False, endpoint=False))
    for number, works in (("123456789012", True), ("210987654321", False)):
        direct = Direct()
        vpc = direct.create(base.VPC, "vpc", {"cidrBlock": "10.0.0.0/16"})
        subnets = [
            direct.create(
                base.SUBNET, zone, {"vpcId": vpc.id, "cidrBlock": f"10.0.{index}.0/24", "availabilityZone": f"us-east-2{zone}"}
            ).id
            for index, zone in enumerate("ab")
        ]
        role = direct.create(base.ROLE, "eks", {"name": "eks", "assumeRolePolicy": account % number})
        direct.create(base.ROLE_POLICY_ATTACHMENT, "eks", {"role": "eks", "policyArn": "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"})
        inputs = {"name": "eks", "roleArn": role.outputs["arn"], "vpcConfig": {"subnetIds": subnets}}
        if works:
            direct.create(base.CLUSTER, "eks", inputs)
        else:
            with pytest.raises(SimulatedError, match="the trusted entity is not correct"):
                direct.create(base.CLUSTER, "eks", inputs)


def test_every_rule_says_what_holds_and_where_it_was_read() -> None:
    for rule in RULES.values():
        assert rule.holds.endswith("."), rule.name
        assert isinstance(rule.source, Source), rule.name
        assert rule.message, rule.name


def test_words_of_our_own_are_marked_as_such() -> None:
    own = RULES["hyperpod-dependencies"](cluster="eks")
    assert own.endswith("(in the rehearsal's words, after: HyperPod dependencies chart)")
    assert str(RULES["operator-keda"]()) == "KEDA operator not installed (missing keda-operator pods)"


def test_what_was_refused_is_kept_with_its_rule_and_source() -> None:
    account = SimulatedAccount()
    with pytest.raises(SimulatedError) as caught, account.operation("create", base.HYPERPOD_CLUSTER, "urn::hyperpod"):
        raise SimulatedError(RULES["operator-keda"]())
    account.refuse("create", base.ADDON, "urn::addon", caught.value)
    assert [(refusal.rule, refusal.urn) for refusal in account.refusals] == [
        ("operator-keda", "urn::hyperpod"),
        ("operator-keda", "urn::addon"),
    ]
    assert "sagemaker-hyperpod-model-deployment-ts-cli" in account.refusals[0].source
