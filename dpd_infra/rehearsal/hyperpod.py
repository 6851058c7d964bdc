"""The simulated HyperPod cluster: the order of its checks, from the request's shape to the nodes that it gets.

What HyperPod refuses is documented, its words mostly are not: those that a source quotes are used, others name the cause in plain words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpd_infra.catalog.kubernetes_versions import HYPERPOD_VERSIONS
from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import active_addon, install_operator
from dpd_infra.rehearsal.aws.eks import API_MODES
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.world import api_shapes, hyperpod_limits, hyperpod_network, trust
from dpd_infra.rehearsal.world.nodes import Group, group_specs, groups
from dpd_infra.rehearsal.world.replacements import sdk_replacements
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import hyperpod as rules

DEPENDENCY_CHARTS = ("hyperpod-dependencies", "HyperPodHelmChart")
"""What the path of HyperPod's dependency chart contains."""

NODE_SERVICE = "sagemaker.amazonaws.com"
SCALER_SERVICE = "hyperpod.sagemaker.amazonaws.com"
"""Who takes a group's role, and the role of an autoscaling cluster (EKS autoscaling guide)."""

RELEASE = "kubernetes:helm.sh/v3:Release"

_FIXED_IN_A_GROUP = ("capacityRequirements", "overrideVpcConfig")
_NOT_IN_AN_UPDATE = ("orchestrator", "vpcConfig", "tags")
"""Properties that no UpdateCluster request carries: two replace the cluster, and tags go through AddTags."""


def refused(operation: str, code: str, message: Said) -> SimulatedError:
    """A Cloud Control refusal in the words of the provider."""
    return SimulatedError(message.within(f'operation {operation} failed with "{code}": {message}'))


class HyperPodCluster(ResourceType):
    """AWS::SageMaker::Cluster on EKS. Its id is its ARN; a change of name, orchestrator or network deletes it first."""

    token = base.HYPERPOD_CLUSTER
    delete_before_replace = True
    unordered = ("instanceGroups", "tags", "vpcConfig.subnets", "vpcConfig.securityGroupIds", "instanceGroups.onStartDeepHealthChecks")

    def extra_replaces(self, call: Call, old: Mapping[str, Any]) -> tuple[str, ...]:
        return sdk_replacements("pulumi_aws_native", self.token)

    def check(self, call: Call) -> Mapping[str, Said]:
        return base.name_problem(call, "clusterName", r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", rules.NAME_FORM)

    def create(self, call: Call) -> Made:
        name = call.text("clusterName") or call.name
        _shape("CREATE", "CreateCluster", {**call.inputs, "clusterName": name})
        there = [item for item in call.account.all(self.token, clusterName=name) if item.region == call.region]
        if there:
            raise refused("CREATE", "AlreadyExists", call.taken(rules.NAME_IS_FREE(name=name), there[0]))
        eks = _orchestrator(call)
        arn = call.arn("sagemaker", f"cluster/{call.account.hex('', call.urn, length=12)}")
        candidate = Resource(self.token, arn, {}, {**call.inputs, "clusterName": name}, region=call.region)
        hyperpod_network.check(call, eks, candidate)
        _groups(call, candidate, "CREATE")
        if call.account.operator_preinstalled:
            install_operator(call.account, eks.id, call.region)
        return Made(
            arn,
            {
                "clusterArn": arn,
                "clusterName": name,
                "clusterStatus": "InService",
                "creationTime": "2026-01-01T00:00:00Z",
                "failureMessage": "",
            },
        )

    def update(self, call: Call) -> Mapping[str, Any]:
        request = {key: value for key, value in call.inputs.items() if key not in _NOT_IN_AN_UPDATE}
        name = str(call.now().get("clusterName") or call.text("clusterName"))
        _shape("UPDATE", "UpdateCluster", {**request, "clusterName": name})
        before = {group["instanceGroupName"]: group for group in group_specs(call.now())}
        for group in group_specs(call.inputs):
            old = before.get(group["instanceGroupName"], group)
            for key in _FIXED_IN_A_GROUP:
                if old.get(key) != group.get(key):
                    raise refused("UPDATE", "InvalidRequest", rules.FIXED_IN_A_GROUP(field=key, group=group["instanceGroupName"]))
        candidate = Resource(self.token, call.id, {}, {**call.now(), **call.inputs}, region=call.region)
        _groups(call, candidate, "UPDATE")
        return {"clusterStatus": "InService"}


def _shape(operation: str, api: str, request: Mapping[str, Any]) -> None:
    problem = api_shapes.request_problem(api, request)
    if problem:
        raise refused(operation, "InvalidRequest", rules.REQUEST_SHAPE(problem=problem))


def _orchestrator(call: Call) -> Resource:
    arn = call.text("orchestrator.eks.clusterArn")
    eks = call.account.first(base.CLUSTER, arn=arn)
    if eks is None:
        raise refused("CREATE", "NotFound", rules.EKS_EXISTS(arn=arn))
    mode = eks.get("accessConfig.authenticationMode")
    if mode not in API_MODES:
        raise refused("CREATE", "InvalidRequest", rules.EKS_MODE(cluster=eks.id, mode=mode))
    version = str(eks.outputs.get("version") or "")
    if version and version not in HYPERPOD_VERSIONS:
        first, last = HYPERPOD_VERSIONS[0], HYPERPOD_VERSIONS[-1]
        raise refused("CREATE", "InvalidRequest", rules.EKS_VERSION(cluster=eks.id, version=version, first=first, last=last))
    releases = call.account.in_cluster(eks.id, RELEASE)
    charts = [item.outputs.get("chart", "") for item in releases if item.outputs["namespace"] == "kube-system"]
    if not call.account.dependencies_preinstalled and not any(word in chart for chart in charts for word in DEPENDENCY_CHARTS):
        raise refused("CREATE", "InvalidRequest", rules.DEPENDENCIES(cluster=eks.id))
    if eks.get("bootstrapSelfManagedAddons", True) is False and not active_addon(call, eks.id, "vpc-cni"):
        raise refused("CREATE", "GeneralServiceException", rules.NETWORK_PLUGIN(cluster=eks.id))
    return eks


def _groups(call: Call, candidate: Resource, operation: str) -> None:
    specs = group_specs(candidate.outputs)
    names = [group["instanceGroupName"] for group in specs]
    if len(set(names)) != len(names):
        raise refused(operation, "InvalidRequest", rules.UNIQUE_GROUPS(names=", ".join(sorted(names))))
    _provisioning(candidate, specs, operation)
    for group in specs:
        _role(call, group, operation)
        _lifecycle(call, group, operation)
    if scaler := candidate.outputs.get("clusterRole"):
        _may_take(call, str(scaler), SCALER_SERVICE, operation)
    for message, code in hyperpod_limits.breaches(call.account, candidate):
        raise refused(operation, code, message)
    of_cluster = [group for group in groups(call.account, candidate) if group.cluster is candidate]
    _capacity(call, candidate, of_cluster, operation)


def _provisioning(candidate: Resource, specs: Iterable[Mapping[str, Any]], operation: str) -> None:
    continuous = candidate.outputs.get("nodeProvisioningMode") == "Continuous"
    for group in specs:
        name = group["instanceGroupName"]
        for key, what in (("capacityRequirements", "Spot capacity"), ("instanceRequirements", "A list of instance types")):
            asked = group.get(key) and (key != "capacityRequirements" or "spot" in group[key])
            if asked and not continuous:
                raise refused(operation, "InvalidRequest", rules.NEEDS_CONTINUOUS(what=f"{what} (group {name})"))
        if group.get("onStartDeepHealthChecks") and (group.get("kubernetesConfig") or {}).get("taints"):
            raise refused(operation, "InvalidRequest", rules.NO_TAINTS_WITH_CHECKS(group=name))
    if (candidate.outputs.get("autoScaling") or {}).get("mode") == "Enable" and not continuous:
        raise refused(operation, "InvalidRequest", rules.NEEDS_CONTINUOUS(what="Karpenter"))


def _capacity(call: Call, candidate: Resource, found: list[Group], operation: str) -> None:
    short = [group for group in found if group.count < group.wanted]
    if not short:
        return
    if candidate.outputs.get("nodeProvisioningMode") != "Continuous":
        raise refused(operation, "GeneralServiceException", rules.CAPACITY())
    for group in short:
        # With continuous provisioning the cluster is in service all the same, and what waits for the nodes fails.
        missing = f"instance group {group.name} has {group.count} of {group.wanted} {group.type}"
        call.warn(f"{missing}: {rules.CAPACITY()} The cluster is in service and goes on asking for them.")


def _role(call: Call, group: Mapping[str, Any], operation: str) -> None:
    role = _may_take(call, str(group["executionRole"]), NODE_SERVICE, operation)
    if not call.account.all(base.ROLE_POLICY, base.ROLE_POLICY_ATTACHMENT, role=role.id):
        message = rules.ROLE_POLICIES(role=group["executionRole"], group=group["instanceGroupName"])
        raise refused(operation, "AccessDenied", message)


def _may_take(call: Call, arn: str, service: str, operation: str) -> Resource:
    role = call.account.first(base.ROLE, arn=arn)
    if role is None:
        raise refused(operation, "InvalidRequest", rules.ROLE_EXISTS(role=arn))
    if not trust.may_take(role, trust.service(service, call.account)):
        raise refused(operation, "InvalidRequest", rules.ROLE_TRUST(role=arn, service=service))
    return role


def _lifecycle(call: Call, group: Mapping[str, Any], operation: str) -> None:
    config = group.get("lifeCycleConfig") or {}
    uri = str(config.get("sourceS3Uri") or "")
    if not uri:
        return
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    script = config.get("onCreate") or config.get("onInitComplete") or ""
    key = "/".join(part for part in (prefix.strip("/"), script) if part)
    if call.account.find(base.BUCKET_OBJECT, f"{bucket}/{key}") is None:
        raise refused(operation, "InvalidRequest", rules.LIFECYCLE(bucket=bucket, key=key, group=group["instanceGroupName"]))
