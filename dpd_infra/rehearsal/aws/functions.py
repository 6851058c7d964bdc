"""The data sources that a program may ask the simulated account: who calls, which region and zones, which EKS cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON, install_operator
from dpd_infra.rehearsal.aws.network import zone_id, zones
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Invoke
from dpd_infra.rehearsal.world.interfaces import free
from dpd_infra.rehearsal.world.rules import ec2, eks, names

_SESSION = re.compile(r"^arn:(aws[\w-]*):sts::(\d{12}):assumed-role/([^/]+)/(.+)$")


def _assumed(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """The ARN of the role that the provider assumes, the last of a chain, and that of its session; None where it assumes none."""
    roles = settings.get("assumeRoles") or []
    chain = json.loads(roles) if isinstance(roles, str) else roles
    if not chain:
        return None
    role = str(chain[-1]["roleArn"])
    _, partition, _, _, number, path = role.split(":", 5)
    return role, f"arn:{partition}:sts::{number}:assumed-role/{path.rsplit('/', 1)[-1]}/{chain[-1].get('sessionName') or 'session'}"


def _caller_identity(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    assumed = _assumed(settings)
    arn = assumed[1] if assumed else account.caller_arn
    return {"accountId": account.id, "arn": arn, "userId": "AROAREHEARSAL:session", "id": account.id}


def _session_context(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    arn = str(arguments["arn"])
    session = _SESSION.match(arn)
    if session is None:
        return {"arn": arn, "id": arn, "issuerArn": arn, "issuerId": "", "issuerName": "", "sessionName": ""}
    partition, number, role, name = session.groups()
    # A session's ARN leaves out the role's path; IAM knows it.
    whole = {account.caller_arn: account.deployer_role_arn}
    if assumed := _assumed(settings):
        whole[assumed[1]] = assumed[0]
    issuer = whole.get(arn, f"arn:{partition}:iam::{number}:role/{role}")
    return {"arn": arn, "id": arn, "issuerArn": issuer, "issuerId": "AROAREHEARSAL", "issuerName": role, "sessionName": name}


def _partition(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws", "id": "aws"}


def _region(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    region = str(settings["region"])
    endpoint = f"ec2.{region}.amazonaws.com"
    return {"id": region, "region": region, "name": region, "endpoint": endpoint, "description": region}


def _zones(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    found = zones(str(settings["region"]))
    return {
        "id": settings["region"],
        "names": found,
        "zoneIds": [zone_id(zone) for zone in found],
        "groupNames": [settings["region"]],
        "region": settings["region"],
    }


def _addon_version(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    name, kubernetes = arguments["addonName"], arguments["kubernetesVersion"]
    return {
        "id": name,
        "addonName": name,
        "kubernetesVersion": kubernetes,
        "mostRecent": bool(arguments.get("mostRecent")),
        "version": _MOST_RECENT.get(name, "v9.0.0-eksbuild.1"),
        "region": settings["region"],
    }


# What a query for the version of an add-on answers: stand-ins above every minimum, no statement about what AWS serves today.
_MOST_RECENT = {"amazon-sagemaker-hyperpod-inference": "v1.4.0-eksbuild.1"}


def _cluster(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(arguments["name"])
    found = account.find(base.CLUSTER, name, region=str(settings["region"]))
    if found is None:
        raise AwsError("EKS", "DescribeCluster", "ResourceNotFoundException", eks.CLUSTER_IS_THERE(name=name), status=404)
    return {
        **{key: value for key, value in found.outputs.items() if key not in ("vpcConfig", "accessConfig", "certificateAuthority")},
        "id": name,
        "accessConfigs": [found.outputs["accessConfig"]],
        "certificateAuthorities": [found.outputs["certificateAuthority"]],
        "vpcConfig": found.outputs["vpcConfig"],
    }


def _addon(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    id = f"{arguments['clusterName']}:{arguments['addonName']}"
    region = str(settings["region"])
    found = account.find(base.ADDON, id, region=region)
    if found is None and _came_with_hyperpod(account, region, arguments):
        found = install_operator(account, str(arguments["clusterName"]), region)
    if found is None:
        message = eks.ADDON_IS_THERE(addon=arguments["addonName"], cluster=arguments["clusterName"])
        raise AwsError("EKS", "DescribeAddon", "ResourceNotFoundException", message, status=404)
    return {"configurationValues": "", "podIdentityAssociations": [], "serviceAccountRoleArn": "", "tags": {}, **found.outputs, "id": id}


def _came_with_hyperpod(account: SimulatedAccount, region: str, arguments: Mapping[str, Any]) -> bool:
    # A program that asks for an operator it has not made expects the one that its HyperPod cluster brought.
    if arguments["addonName"] != OPERATOR_ADDON or account.operator_preinstalled is False:
        return False
    eks = account.find(base.CLUSTER, str(arguments["clusterName"]), region=region)
    clusters = account.all(base.HYPERPOD_CLUSTER)
    return eks is not None and any(item.get("orchestrator.eks.clusterArn") == eks.outputs["arn"] for item in clusters)


def _subnet(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    id = str(arguments.get("id") or "")
    found = account.find(base.SUBNET, id, region=str(settings["region"]))
    if found is None:
        raise AwsError("EC2", "DescribeSubnets", "InvalidSubnetID.NotFound", ec2.SUBNET_EXISTS(id=id))
    return {**found.outputs, "id": id, "availableIpAddressCount": free(account, found), "state": "available", "filters": []}


def _oidc_provider(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(arguments.get("arn") or arguments.get("url") or "").rsplit("oidc-provider/", 1)[-1].removeprefix("https://")
    arn = f"arn:aws:iam::{account.id}:oidc-provider/{name}"
    found = account.find(base.OIDC_PROVIDER, arn)
    if found is None:
        raise AwsError("IAM", "GetOpenIDConnectProvider", "NoSuchEntity", names.OIDC_IS_THERE(arn=arn), status=404)
    return {
        "arn": arn,
        "id": arn,
        "url": name,
        "clientIdLists": found.outputs.get("clientIdLists") or [],
        "thumbprintLists": [],
        "tags": {},
    }


def _object(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    bucket, key = str(arguments["bucket"]), str(arguments["key"])
    found = account.find(base.BUCKET_OBJECT, f"{bucket}/{key}")
    if found is None:
        raise AwsError("S3", "HeadObject", "NotFound", names.OBJECT_IS_THERE(), status=404)
    # Of what is not text the provider gives no body (aws_s3_object).
    kind = str(found.outputs.get("contentType") or "binary/octet-stream")
    is_text = kind.startswith("text/") or kind == "application/json"
    return {
        "id": f"{bucket}/{key}",
        "bucket": bucket,
        "key": key,
        "body": str(found.outputs.get("content") or "") if is_text else "",
        "contentType": kind,
        "etag": found.outputs["etag"],
    }


FUNCTIONS: dict[str, Invoke] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:iam/getSessionContext:getSessionContext": _session_context,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:eks/getAddonVersion:getAddonVersion": _addon_version,
    "aws:eks/getAddon:getAddon": _addon,
    "aws:eks/getCluster:getCluster": _cluster,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:s3/getObject:getObject": _object,
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": _oidc_provider,
}
