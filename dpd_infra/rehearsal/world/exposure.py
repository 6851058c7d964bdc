"""Between a loaded model and a ready endpoint: mounts, load balancer and SageMaker endpoint, which need roles, addresses and routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.holders import whose
from dpd_infra.rehearsal.world import operators, trust
from dpd_infra.rehearsal.world.hyperpod_network import reaches_s3
from dpd_infra.rehearsal.world.interfaces import free
from dpd_infra.rehearsal.world.made import LOAD_BALANCER, SAGEMAKER_ENDPOINT
from dpd_infra.rehearsal.world.nodes import ZONE_LABEL, Node, groups_on
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import kubernetes as rules

_ENDPOINT = ":InferenceEndpointConfig"
INTERNAL_TAG = "kubernetes.io/role/internal-elb"
ADDRESSES = 8
"""Free addresses that a load balancer wants in each subnet."""


def problem(
    account: SimulatedAccount,
    eks: Resource,
    addon: Resource,
    endpoint: tuple[str, str],
    spec: Mapping[str, Any],
    nodes: Sequence[Node],
    subnets: Sequence[Resource],
) -> Said | None:
    """Why an endpoint whose pods run does not become ready, or None; `endpoint` is its namespace and name, and the program's URN."""
    key, urn = endpoint
    name = str(spec.get("endpointName") or "").lower()
    checks = (
        _mount(account, eks, spec),
        _load_balancer(account, eks, addon, key, nodes, subnets),
        _sagemaker(account, eks, addon, key, urn, name) if name else None,
    )
    return next((text for text in checks if text), None)


def load_balancer_subnets(account: SimulatedAccount, eks: Resource) -> list[Resource]:
    """The subnets of an internal load balancer: the tagged ones, else the control plane's; one a zone, the emptiest."""
    vpc = eks.get("vpcConfig.vpcId")
    in_vpc = [item for item in account.all(base.SUBNET, vpcId=vpc) if item.region == eks.region]
    chosen = [item for item in in_vpc if _is_tagged(account, item)]
    if not chosen:
        named = set(eks.get("vpcConfig.subnetIds", []))
        chosen = [item for item in in_vpc if item.id in named]
    by_zone: dict[str, Resource] = {}
    for item in sorted(chosen, key=lambda subnet: free(account, subnet), reverse=True):
        by_zone.setdefault(str(item.outputs["availabilityZone"]), item)
    return [by_zone[zone] for zone in sorted(by_zone)]


def _is_tagged(account: SimulatedAccount, subnet: Resource) -> bool:
    tags = {**(subnet.outputs.get("tags") or {}), **(subnet.outputs.get("tagsAll") or {})}
    for tag in account.all("aws:ec2/tag:Tag", resourceId=subnet.id):
        tags[str(tag.outputs.get("key"))] = tag.outputs.get("value")
    return str(tags.get(INTERNAL_TAG)) == "1"


def _mount(account: SimulatedAccount, eks: Resource, spec: Mapping[str, Any]) -> Said | None:
    """The S3 driver's role, where the model is in a bucket and the driver is a program's own add-on."""
    if (spec.get("modelSourceConfig") or {}).get("modelSourceType") != "s3":
        return None
    driver = account.first(base.ADDON, clusterName=eks.id, addonName="aws-mountpoint-s3-csi-driver")
    if driver is None or driver.urn in ("", "world"):
        return None
    role = account.first(base.ROLE, arn=_pod_identity_role(account, eks, driver))
    if role is None:
        arn = str(driver.outputs.get("serviceAccountRoleArn") or "")
        role = account.first(base.ROLE, arn=arn) if operators.takes_role(account, eks, arn, operators.S3_DRIVER) else None
    if role is None:
        return rules.DRIVER_ROLE(account=operators.S3_DRIVER)
    return None if _allows(account, role, "s3:GetObject") else rules.DRIVER_PERMISSIONS(account=operators.S3_DRIVER)


def _pod_identity_role(account: SimulatedAccount, eks: Resource, driver: Resource) -> str:
    """The role that EKS Pod Identity gives the S3 driver; empty where it gives none."""
    namespace, _, name = operators.S3_DRIVER.partition(":")
    for item in account.all("aws:eks/podIdentityAssociation:PodIdentityAssociation", clusterName=eks.id, namespace=namespace):
        if item.outputs.get("serviceAccount") == name:
            return str(item.outputs.get("roleArn"))
    of_addon = driver.outputs.get("podIdentityAssociations") or []
    return next((str(item.get("roleArn")) for item in of_addon if item.get("serviceAccount") == name), "")


def _allows(account: SimulatedAccount, role: Resource, action: str) -> bool:
    """Whether a role may do something; one that a world file merely names may do everything."""
    return role.urn == "world" or trust.allows(account, role, action)


def _load_balancer(
    account: SimulatedAccount, eks: Resource, addon: Resource, key: str, nodes: Sequence[Node], subnets: Sequence[Resource]
) -> Said | None:
    values = operators.values_of(addon)
    if addon.urn and values and operators.value(values, "alb.enabled", default=True) is not False:
        arn = str(operators.value(values, "alb.serviceAccount.roleArn", ""))
        role = account.first(base.ROLE, arn=arn)
        taken = operators.takes_role(account, eks, arn, operators.LOAD_BALANCER_CONTROLLER)
        if role is None or not taken or not _allows(account, role, "ec2:CreateSecurityGroup"):
            return rules.LOAD_BALANCER_ROLE()
    zones = {node.labels.get(ZONE_LABEL, "") for node in nodes} - {""}
    tagged = {str(subnet.outputs["availabilityZone"]) for subnet in subnets if _is_tagged(account, subnet)}
    if tagged and zones and not zones & tagged:
        return rules.TARGET_ZONE(zone=", ".join(sorted(zones)))
    has_one = bool(account.all(LOAD_BALANCER, cluster=eks.id, madeFor=key))
    for subnet in subnets if not has_one else []:
        if free(account, subnet) < ADDRESSES:
            return rules.LOAD_BALANCER_ADDRESSES(subnet=subnet.id)
    return None


def _sagemaker(account: SimulatedAccount, eks: Resource, addon: Resource, key: str, urn: str, name: str) -> Said | None:
    taken = account.find(SAGEMAKER_ENDPOINT, name, region=eks.region)
    if taken is not None and (taken.outputs.get("cluster"), taken.outputs.get("madeFor")) != (eks.id, key):
        registered = account.in_cluster(str(taken.outputs.get("cluster")))
        holder = next((item for item in registered if item.type.endswith(_ENDPOINT) and item.id == taken.outputs.get("madeFor")), None)
        message = rules.ENDPOINT_NAME(arn=f"arn:aws:sagemaker:{eks.region}:{account.id}:endpoint/{name}")
        return whose(message, holder, urn, account)
    arn = str(operators.value(operators.values_of(addon), "executionRoleArn", ""))
    role = account.first(base.ROLE, arn=arn) if arn else None
    if addon.urn and role is not None and not _allows(account, role, "ec2:CreateNetworkInterfacePermission"):
        return rules.ENDPOINT_NETWORK()
    used = {subnet for group in groups_on(account, eks.id) for subnet in group.placed}
    known = [account.find(base.SUBNET, subnet, region=eks.region) for subnet in used]
    if any(subnet is not None and not reaches_s3(account, subnet) for subnet in known):
        return rules.CERTIFICATE_ROUTE()
    return None
