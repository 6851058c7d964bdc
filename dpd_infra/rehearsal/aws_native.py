"""The simulated AWS Cloud Control provider (pulumi-aws-native): the HyperPod cluster, and a generic resource for all else.

What HyperPod refuses is documented, its words mostly are not: the messages here name the cause in plain words.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import active_addon, install_operator
from dpd_infra.rehearsal.aws.eks import API_MODES
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.known_types import is_type_of
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType

DEPENDENCY_CHARTS = ("hyperpod-dependencies", "HyperPodHelmChart")
"""What the path of HyperPod's dependency chart contains."""

RESERVED_ADDRESSES = 5
"""Addresses of a subnet that AWS keeps (VPC user guide, subnet sizing)."""

_FIXED_IN_A_GROUP = ("capacityRequirements", "overrideVpcConfig")
"""What UpdateCluster refuses to change in a group (HyperPod prerequisites; read-only CLI notes)."""

RELEASE = "kubernetes:helm.sh/v3:Release"


def refused(operation: str, code: str, message: str) -> SimulatedError:
    """A Cloud Control refusal in the words of the provider."""
    return SimulatedError(f'operation {operation} failed with "{code}": {message}')


class HyperPodCluster(ResourceType):
    """AWS::SageMaker::Cluster on EKS. Its id is its ARN; a change of name, orchestrator or network deletes it first."""

    token = base.HYPERPOD_CLUSTER
    replace_on = ("clusterName", "orchestrator.eks", "vpcConfig")
    delete_before_replace = True
    unordered = ("instanceGroups", "tags", "vpcConfig.subnets", "vpcConfig.securityGroupIds", "instanceGroups.onStartDeepHealthChecks")

    def check(self, call: Call) -> Mapping[str, str]:
        return base.name_problem(call, "clusterName", r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", "1 to 63 letters, digits or inner hyphens")

    def create(self, call: Call) -> Made:
        name = call.text("clusterName") or call.name
        if any(item.outputs.get("clusterName") == name for item in call.account.all(self.token) if item.region == call.region):
            message = f"Resource of type 'AWS::SageMaker::Cluster' with identifier '{name}' already exists."
            raise refused("CREATE", "AlreadyExists", message)
        eks = self._orchestrator(call)
        self._network(call, eks)
        self._groups(call, "CREATE")
        arn = call.arn("sagemaker", f"cluster/{call.account.hex('', call.urn, length=12)}")
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
        before = {group["instanceGroupName"]: group for group in call.now().get("instanceGroups") or []}
        for group in call.inputs.get("instanceGroups") or []:
            old = before.get(group["instanceGroupName"], group)
            for key in _FIXED_IN_A_GROUP:
                if old.get(key) != group.get(key):
                    message = f"{key} of instance group {group['instanceGroupName']} cannot be changed after the group was made."
                    raise refused("UPDATE", "InvalidRequest", message)
        self._groups(call, "UPDATE")
        return {"clusterStatus": "InService"}

    def _orchestrator(self, call: Call) -> Resource:
        arn = call.text("orchestrator.eks.clusterArn")
        eks = call.account.first(base.CLUSTER, arn=arn)
        if eks is None:
            raise refused("CREATE", "NotFound", f"EKS cluster {arn} does not exist.")
        mode = eks.get("accessConfig.authenticationMode")
        if mode not in API_MODES:
            message = f"EKS cluster {eks.id} has authentication mode {mode}; HyperPod needs API or API_AND_CONFIG_MAP."
            raise refused("CREATE", "InvalidRequest", message)
        charts = [
            item.outputs.get("chart", "") for item in call.account.in_cluster(eks.id, RELEASE) if item.outputs["namespace"] == "kube-system"
        ]
        if not call.account.dependencies_preinstalled and not any(word in chart for chart in charts for word in DEPENDENCY_CHARTS):
            message = f"Dependencies are not installed on EKS cluster {eks.id}: install the HyperPod Helm chart in kube-system first."
            raise refused("CREATE", "InvalidRequest", message)
        if eks.get("bootstrapSelfManagedAddons", True) is False and not active_addon(call, eks.id, "vpc-cni"):
            message = f"Nodes did not join EKS cluster {eks.id}: NetworkPluginNotReady, the add-on vpc-cni is missing."
            raise refused("CREATE", "GeneralServiceException", message)
        return eks

    def _network(self, call: Call, eks: Resource) -> None:
        config: Mapping[str, Any] = call.inputs.get("vpcConfig") or {}
        for id in config.get("securityGroupIds") or []:
            base.existing_security_group(call, id, "CreateCluster", "SageMaker")
        for id in config.get("subnets") or []:
            subnet = base.existing_subnet(call, id, "CreateCluster", "SageMaker")
            if subnet.outputs["vpcId"] != eks.get("vpcConfig.vpcId"):
                raise refused("CREATE", "InvalidRequest", f"Subnet {id} is not in the VPC of EKS cluster {eks.id}.")
            if not _has_way_out(call, subnet) and not _has_endpoints(call, str(subnet.outputs["vpcId"])):
                message = (
                    f"Instances in subnet {id} could not reach the service: its route table has no default route through a NAT gateway, "
                    "and the VPC lacks interface endpoints."
                )
                raise refused("CREATE", "GeneralServiceException", message)

    def _groups(self, call: Call, operation: str) -> None:
        names = [group["instanceGroupName"] for group in call.inputs.get("instanceGroups") or []]
        if len(set(names)) != len(names):
            raise refused(operation, "InvalidRequest", f"InstanceGroupName must be unique: {', '.join(sorted(names))}")
        for group in call.inputs.get("instanceGroups") or []:
            self._role(call, group, operation)
            self._lifecycle(call, group, operation)
        self._addresses(call, operation)

    def _addresses(self, call: Call, operation: str) -> None:
        subnets = [
            base.existing_subnet(call, id, operation, "SageMaker") for id in (call.inputs.get("vpcConfig") or {}).get("subnets") or []
        ]
        there = sum(ipaddress.ip_network(item.outputs["cidrBlock"]).num_addresses - RESERVED_ADDRESSES for item in subnets)
        groups = [group for group in call.inputs.get("instanceGroups") or [] if not group.get("overrideVpcConfig")]
        kinds = [(INSTANCE_TYPES.get(str(group.get("instanceType"))), int(group["instanceCount"])) for group in groups]
        needed = sum(kind.addresses * count for kind, count in kinds if kind is not None)
        if subnets and needed > there:
            message = f"Insufficient free addresses in {', '.join(item.id for item in subnets)}: {needed} needed, {there} there."
            raise refused(operation, "GeneralServiceException", message)

    def _role(self, call: Call, group: Mapping[str, Any], operation: str) -> None:
        arn = group["executionRole"]
        role = call.account.first(base.ROLE, arn=arn)
        if role is None:
            raise refused(operation, "InvalidRequest", f"Could not assume role {arn}: it does not exist.")
        if not call.account.all(base.ROLE_POLICY, base.ROLE_POLICY_ATTACHMENT, role=role.id):
            message = f"Role {arn} of instance group {group['instanceGroupName']} is not authorized to perform: no policy is attached."
            raise refused(operation, "AccessDenied", message)

    def _lifecycle(self, call: Call, group: Mapping[str, Any], operation: str) -> None:
        config = group.get("lifeCycleConfig") or {}
        uri = str(config.get("sourceS3Uri") or "")
        if not uri:
            return
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        script = config.get("onCreate") or config.get("onInitComplete") or ""
        key = "/".join(part for part in (prefix.strip("/"), script) if part)
        if call.account.find(base.BUCKET_OBJECT, f"{bucket}/{key}") is None:
            message = f"Lifecycle script s3://{bucket}/{key} of instance group {group['instanceGroupName']} does not exist."
            raise refused(operation, "InvalidRequest", message)


def _has_way_out(call: Call, subnet: Resource) -> bool:
    association = call.account.first(base.ROUTE_TABLE_ASSOCIATION, subnetId=subnet.id)
    if association is None:
        return False
    table = association.outputs["routeTableId"]
    routes = call.account.all(base.ROUTE, routeTableId=table, destinationCidrBlock="0.0.0.0/0")
    made = call.account.find(base.ROUTE_TABLE, table, region=call.region)
    inline = [route for route in (made.outputs.get("routes") or [] if made else []) if route.get("cidrBlock") == "0.0.0.0/0"]
    return any(route.outputs.get("natGatewayId") or route.outputs.get("transitGatewayId") for route in routes) or any(
        route.get("natGatewayId") or route.get("transitGatewayId") for route in inline
    )


NEEDED_ENDPOINTS = frozenset({"ec2", "ecr.api", "ecr.dkr", "eks-auth", "logs", "monitoring", "sts"})
"""Services that a node calls before it is of use; without a way out each needs an interface endpoint (AWS's Terraform modules)."""


def _has_endpoints(call: Call, vpc: str) -> bool:
    names = {str(item.outputs.get("serviceName")) for item in call.account.all(base.VPC_ENDPOINT, vpcId=vpc)}
    wanted = {f"com.amazonaws.{call.region}.{service}" for service in (*NEEDED_ENDPOINTS, "s3")}
    return wanted <= names


def _described_cluster(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    arn = str(arguments["clusterArn"])
    found = next((item for item in account.all(base.HYPERPOD_CLUSTER) if item.outputs.get("clusterArn") == arn), None)
    if found is None:
        raise SimulatedError(f"reading resource state: operation READ failed: ResourceNotFoundException: cluster {arn} does not exist")
    # What can only be set when a cluster is made, its name and its network, is not in the answer (pulumi-aws-native, getCluster).
    return {key: value for key, value in found.outputs.items() if key not in ("clusterName", "vpcConfig")}


def gpus_of(instance_type: str) -> int:
    """GPUs of one node of that type; 0 where the catalog does not know it."""
    known = INSTANCE_TYPES.get(instance_type)
    return known.gpus if known else 0


class AwsNativeProvider(SimulatedProvider):
    """Every type of pulumi-aws-native; only the HyperPod cluster has a model of its own."""

    package = "aws-native"
    distribution = "pulumi-aws-native"

    def __init__(self, account: SimulatedAccount) -> None:
        super().__init__(account, (HyperPodCluster(),), {"aws-native:sagemaker:getCluster": _described_cluster})

    def type_for(self, token: str) -> ResourceType:
        if token not in self.types:
            if not is_type_of("pulumi_aws_native", token):
                raise SimulatedError(f"unrecognized resource type (Check): {token}")
            self.types[token] = base.GenericType(token)
        return self.types[token]

    def configure(self, settings: dict[str, Any]) -> dict[str, Any]:
        if not settings.get("region"):
            raise SimulatedError('missing required configuration key "aws-native:region": Region must be set')
        return settings
