"""Simulated EKS: clusters, access entries and add-ons, with the add-ons that wait for nodes or for each other."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.base import existing_security_group, existing_subnet, name_problem
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.world import trust
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import account as rules
from dpd_infra.rehearsal.world.rules import eks
from dpd_infra.rehearsal.world.rules.kubernetes import SUBNET_ZONES

EKS_SERVICE = "eks.amazonaws.com"
CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
MINIMUM_ZONES = 2
API_MODES = ("API", "API_AND_CONFIG_MAP")
MODE_STEPS = (("CONFIG_MAP", "API_AND_CONFIG_MAP"), ("API_AND_CONFIG_MAP", "API"))
"""What the authentication mode can go to, and no other way (the rule has its sources)."""


def refused(operation: str, code: str, message: Said, status: int = 400) -> AwsError:
    """An error of the EKS API."""
    return AwsError("EKS", operation, code, message, status=status)


def existing_cluster(call: Call, name: str, operation: str) -> Resource:
    """The EKS cluster with that name."""
    found = call.account.find(base.CLUSTER, name, region=call.region)
    if found is None:
        raise refused(operation, "ResourceNotFoundException", eks.CLUSTER_IS_THERE(name=name), 404)
    return found


class Cluster(ResourceType):
    """An EKS control plane: its role with its policy, subnets in two zones, encryption that cannot be taken back."""

    token = base.CLUSTER
    autoname = "name"
    unknown_inside = ("vpcConfig.clusterSecurityGroupId", "vpcConfig.vpcId")

    def check(self, call: Call) -> Mapping[str, Said]:
        return name_problem(call, "name", r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", eks.CLUSTER_NAME)

    def extra_replaces(self, call: Call, old: Mapping[str, Any]) -> tuple[str, ...]:
        # Encryption can be switched on in place, never off.
        return ("encryptionConfig",) if old.get("encryptionConfig") and not call.inputs.get("encryptionConfig") else ()

    def create(self, call: Call) -> Made:
        name = call.text("name")
        if (there := call.account.find(base.CLUSTER, name, region=call.region)) is not None:
            raise refused("CreateCluster", "ResourceInUseException", call.taken(eks.CLUSTER_IS_FREE(name=name), there), 409)
        self._role(call)
        vpc = self._network(call)
        key = call.account.hex("", call.urn, length=32).upper()
        host = f"{call.region}.eks.amazonaws.com"
        issuer = f"https://oidc.eks.{call.region}.amazonaws.com/id/{key}"
        self._log_group(call, name)
        certificate = base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{key}\n-----END CERTIFICATE-----\n".encode()).decode()
        mode = call.text("accessConfig.authenticationMode") or "CONFIG_MAP"
        return Made(
            name,
            {
                "accessConfig": {"authenticationMode": mode},
                "arn": call.arn("eks", f"cluster/{name}"),
                "certificateAuthority": {"data": certificate},
                "certificateAuthorities": [{"data": certificate}],
                "createdAt": "2026-01-01T00:00:00Z",
                "endpoint": f"https://{key}.gr7.{host}",
                "identities": [{"oidcs": [{"issuer": issuer}]}],
                "platformVersion": "eks.1",
                "status": "ACTIVE",
                "vpcConfig": {"clusterSecurityGroupId": f"sg-{key[:17].lower()}", "vpcId": vpc},
            },
        )

    def _role(self, call: Call) -> None:
        arn = call.text("roleArn")
        role = call.account.first(base.ROLE, arn=arn)
        if role is None or not trust.may_take(role, trust.service(EKS_SERVICE, call.account)):
            raise refused("CreateCluster", "InvalidParameterException", rules.EKS_ROLE(arn=arn))
        if not call.account.all(base.ROLE_POLICY_ATTACHMENT, role=role.id, policyArn=CLUSTER_POLICY):
            raise refused("CreateCluster", "InvalidRequestException", rules.EKS_ROLE_POLICY(policy=CLUSTER_POLICY))

    def _network(self, call: Call) -> str:
        config = call.inputs.get("vpcConfig") or {}
        subnets = [existing_subnet(call, id, "CreateCluster", "EKS") for id in config.get("subnetIds") or []]
        if len({subnet.outputs["availabilityZone"] for subnet in subnets}) < MINIMUM_ZONES:
            raise refused("CreateCluster", "InvalidParameterException", SUBNET_ZONES())
        for group in config.get("securityGroupIds") or []:
            existing_security_group(call, group, "CreateCluster", "EKS")
        if not config.get("endpointPrivateAccess") and config.get("endpointPublicAccess") is False:
            raise refused("CreateCluster", "InvalidParameterException", eks.ENDPOINT_ACCESS())
        return str(subnets[0].outputs["vpcId"])

    def _log_group(self, call: Call, name: str) -> None:
        # EKS makes the log group itself when logging is on and nobody made it before.
        group = f"/aws/eks/{name}/cluster"
        if call.inputs.get("enabledClusterLogTypes") and not call.account.find(base.LOG_GROUP, group, region=call.region):
            call.account.add(Resource(base.LOG_GROUP, group, {}, {"name": group}, region=call.region))

    def update(self, call: Call) -> Mapping[str, Any]:
        old, new = call.record.get("accessConfig.authenticationMode") if call.record else None, call.text("accessConfig.authenticationMode")
        if old and new and old != new and (old, new) not in MODE_STEPS:
            message = eks.MODE_STEPS(before=old, after=new)
            raise refused("UpdateClusterConfig", "InvalidParameterException", message)
        before, after = str(call.now().get("version") or ""), call.text("version")
        if before and after and _minor(after) not in (_minor(before), _minor(before) + 1):
            message = eks.VERSION_STEPS(before=before, after=after)
            raise refused("UpdateClusterVersion", "InvalidParameterException", message)
        return {}

    def delete(self, call: Call) -> None:
        if call.inputs.get("deletionProtection"):
            raise refused("DeleteCluster", "InvalidRequestException", eks.DELETION_PROTECTION(name=call.id))
        arn = call.now().get("arn")
        attached = [item for item in call.account.all(base.HYPERPOD_CLUSTER) if item.get("orchestrator.eks.clusterArn") == arn]
        if attached:
            message = eks.HYPERPOD_ATTACHED(name=call.id, hyperpod=attached[0].get("clusterName"))
            raise refused("DeleteCluster", "ResourceInUseException", message, 409)
        left = [item for item in call.account.all(base.ADDON) if item.outputs.get("clusterName") == call.id and item.region == call.region]
        for item in (*call.account.in_cluster(call.id), *left):
            call.account.remove(item)


def _minor(version: str) -> int:
    return int(version.rpartition(".")[2])


class AccessEntry(ResourceType):
    """Who may use the Kubernetes API: one entry a principal, and only in the API authentication modes."""

    token = base.ACCESS_ENTRY

    def create(self, call: Call) -> Made:
        name, principal = call.text("clusterName"), call.text("principalArn")
        cluster = existing_cluster(call, name, "CreateAccessEntry")
        if cluster.get("accessConfig.authenticationMode") not in API_MODES:
            raise refused("CreateAccessEntry", "InvalidRequestException", eks.ENTRY_MODE())
        if not principal.startswith("arn:aws:iam::"):
            raise refused("CreateAccessEntry", "InvalidParameterException", eks.ENTRY_PRINCIPAL())
        there = call.account.find(base.ACCESS_ENTRY, f"{name}:{principal}", region=call.region)
        if there is not None or (principal == call.account.deployer_role_arn and creator_is_admin(cluster)):
            raise refused("CreateAccessEntry", "ResourceInUseException", call.taken(eks.ENTRY_ONCE(), there), 409)
        arn = call.arn("eks", f"access-entry/{name}/{call.account.hex('', call.urn, length=8)}")
        return Made(f"{name}:{principal}", {"accessEntryArn": arn, "createdAt": "2026-01-01T00:00:00Z", "userName": principal})


def creator_is_admin(cluster: Resource) -> bool:
    """Whether EKS gave the cluster's creator an admin entry of its own; it does unless told not to."""
    return cluster.get("accessConfig.bootstrapClusterCreatorAdminPermissions", True) is not False


class AccessPolicyAssociation(ResourceType):
    """What a principal may do; its access entry must exist."""

    token = base.ACCESS_POLICY_ASSOCIATION

    def create(self, call: Call) -> Made:
        name, principal = call.text("clusterName"), call.text("principalArn")
        existing_cluster(call, name, "AssociateAccessPolicy")
        if call.account.find(base.ACCESS_ENTRY, f"{name}:{principal}", region=call.region) is None:
            raise refused("AssociateAccessPolicy", "ResourceNotFoundException", eks.ENTRY_IS_THERE(), 404)
        policy = call.text("policyArn")
        if not policy.startswith("arn:aws:eks::aws:cluster-access-policy/"):
            raise refused("AssociateAccessPolicy", "InvalidParameterException", eks.ACCESS_POLICY())
        return Made(f"{name}#{principal}#{policy}", {"associatedAt": "2026-01-01T00:00:00Z", "modifiedAt": "2026-01-01T00:00:00Z"})


class PodIdentityAssociation(ResourceType):
    """A role for a service account."""

    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"  # noqa: S105 - a type token

    def create(self, call: Call) -> Made:
        cluster = call.text("clusterName")
        existing_cluster(call, cluster, "CreatePodIdentityAssociation")
        id = call.account.hex("a", call.urn)
        return Made(id, {"associationArn": call.arn("eks", f"podidentityassociation/{cluster}/{id}"), "associationId": id})


TYPES: tuple[ResourceType, ...] = (Cluster(), AccessEntry(), AccessPolicyAssociation(), PodIdentityAssociation())
