"""What a world file says exists, put into the simulated account as resources that no program owns."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.world.addon_versions import lowest_version
from dpd_infra.rehearsal.world.file import Existing, ExistingCluster, ExistingHyperPod, ExistingVpc

if TYPE_CHECKING:
    from dpd_infra.rehearsal.account import Resource, SimulatedAccount

ORIGIN = "world"
"""The owner that marks what came from a world file."""

CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def put_existing(account: SimulatedAccount, existing: Existing) -> None:
    """Let the world's own resources be what the file says now: new ones appear, those that it no longer names go."""
    wanted = list(_resources(account, existing))
    for resource in [resource for resource in account if resource.urn == ORIGIN]:
        # What a file says of a thing may have changed with its name unchanged, and so may the account's number in its ARN.
        account.remove(resource)
    for resource in wanted:
        if account.find(resource.type, resource.id, region=resource.region, cluster=resource.cluster) is None:
            account.add(resource)


def _resources(account: SimulatedAccount, existing: Existing) -> list[Resource]:
    from dpd_infra.rehearsal.account import Resource  # noqa: PLC0415 - the account makes its world

    region = existing.region
    found: list[Resource] = []

    def put(token: str, id: str, outputs: dict[str, Any], *, regional: bool = True, cluster: str = "") -> None:
        found.append(Resource(token, id, {}, outputs, region=region if regional else "", cluster=cluster, urn=ORIGIN))

    for name in existing.buckets:
        put(base.BUCKET, name, {"bucket": name, "arn": f"arn:aws:s3:::{name}"}, regional=False)
    for name in existing.roles:
        put(base.ROLE, name, {"name": name, "arn": f"arn:aws:iam::{account.id}:role/{name}"}, regional=False)
    for name in existing.log_groups:
        put(base.LOG_GROUP, name, {"name": name})
    for vpc in existing.vpcs:
        _network(vpc, put)
    for cluster in existing.eks_clusters:
        vpc = next(vpc for vpc in existing.vpcs if vpc.id == cluster.vpc)
        _cluster(account, region, cluster, vpc, put)
    for hyperpod in existing.hyper_pod_clusters:
        _hyperpod(account, region, hyperpod, put)
    return found


def _network(vpc: ExistingVpc, put: Any) -> None:
    suffix = vpc.id.removeprefix("vpc-")
    put(base.VPC, vpc.id, {"cidrBlock": vpc.cidr, "mainRouteTableId": f"rtb-{suffix}", "defaultSecurityGroupId": f"sg-default-{suffix}"})
    if any(subnet.way_out != "none" for subnet in vpc.subnets):
        put(base.INTERNET_GATEWAY, f"igw-{suffix}", {"vpcId": vpc.id})
    for subnet in vpc.subnets:
        place = {"vpcId": vpc.id, "availabilityZone": subnet.zone, "cidrBlock": subnet.cidr}
        put(base.SUBNET, subnet.id, {**place, "addressesInUse": subnet.addresses_in_use})
        table = f"rtb-{subnet.id}"
        _table(table, subnet.way_out, vpc.id, put)
        put(base.ROUTE_TABLE_ASSOCIATION, f"rtbassoc-{subnet.id}", {"subnetId": subnet.id, "routeTableId": table})
    for free in vpc.route_tables:
        _table(free.id, free.way_out, vpc.id, put)
    for group in vpc.security_groups:
        put(base.SECURITY_GROUP, group.id, {"vpcId": vpc.id, "name": group.id})
        if group.open_to_itself:
            itself = {"securityGroupId": group.id, "referencedSecurityGroupId": group.id, "ipProtocol": "-1"}
            put(base.INGRESS_RULE, f"sgr-in-{group.id}", itself)
            put(base.EGRESS_RULE, f"sgr-out-{group.id}", itself)
        anywhere = {"securityGroupId": group.id, "cidrIpv4": "0.0.0.0/0", "ipProtocol": "-1"}
        put(base.EGRESS_RULE, f"sgr-anywhere-{group.id}", anywhere)


def _table(table: str, way_out: str, vpc: str, put: Any) -> None:
    suffix = vpc.removeprefix("vpc-")
    put(base.ROUTE_TABLE, table, {"vpcId": vpc})
    if way_out != "none":
        target = {"natGatewayId": f"nat-{suffix}"} if way_out == "nat" else {"gatewayId": f"igw-{suffix}"}
        put(base.ROUTE, f"r-{table}-0.0.0.0/0", {"routeTableId": table, "destinationCidrBlock": "0.0.0.0/0", **target})


def _cluster(account: SimulatedAccount, region: str, cluster: ExistingCluster, vpc: ExistingVpc, put: Any) -> None:
    key = hashlib.sha256(cluster.name.encode()).hexdigest()[:32].upper()
    issuer = cluster.oidc_issuer or f"oidc.eks.{region}.amazonaws.com/id/{key}"
    network = {
        "vpcId": vpc.id,
        "subnetIds": cluster.subnets or [subnet.id for subnet in vpc.subnets],
        "securityGroupIds": [],
        "clusterSecurityGroupId": cluster.cluster_security_group or f"sg-{key[:17].lower()}",
    }
    put(
        base.CLUSTER,
        cluster.name,
        {
            "name": cluster.name,
            "arn": f"arn:aws:eks:{region}:{account.id}:cluster/{cluster.name}",
            "version": cluster.version,
            "accessConfig": {"authenticationMode": cluster.authentication_mode, "bootstrapClusterCreatorAdminPermissions": False},
            "certificateAuthority": {"data": cluster.certificate_authority or "LS0tLS1CRUdJTg=="},
            "endpoint": cluster.endpoint or f"https://{key}.gr7.{region}.eks.amazonaws.com",
            "identities": [{"oidcs": [{"issuer": f"https://{issuer}"}]}],
            "vpcConfig": network,
            "status": "ACTIVE",
        },
    )
    arn = f"arn:aws:iam::{account.id}:oidc-provider/{issuer}"
    if cluster.oidc_provider:
        put(base.OIDC_PROVIDER, arn, {"arn": arn, "url": issuer, "clientIdLists": ["sts.amazonaws.com"]}, regional=False)
    who = {"clusterName": cluster.name, "principalArn": account.deployer_role_arn}
    put(base.ACCESS_ENTRY, f"{cluster.name}:{account.deployer_role_arn}", who)
    granted = {**who, "policyArn": CLUSTER_ADMIN, "accessScope": {"type": "cluster"}}
    put(base.ACCESS_POLICY_ASSOCIATION, f"{cluster.name}#{account.deployer_role_arn}#{CLUSTER_ADMIN}", granted)
    for name in cluster.addons:
        version = cluster.addon_versions.get(name) or lowest_version(name)
        put(base.ADDON, f"{cluster.name}:{name}", {"clusterName": cluster.name, "addonName": name, "addonVersion": version, "health": ""})
    if cluster.dependencies_chart:
        chart = {"namespace": "kube-system", "chart": "HyperPodHelmChart"}
        put("kubernetes:helm.sh/v3:Release", "kube-system/hyperpod-dependencies", chart, regional=False, cluster=cluster.name)


def _hyperpod(account: SimulatedAccount, region: str, cluster: ExistingHyperPod, put: Any) -> None:
    groups = [
        {"instanceGroupName": name, "instanceType": group.instance_type, "instanceCount": group.count}
        for name, group in cluster.instance_groups.items()
    ]
    eks = f"arn:aws:eks:{region}:{account.id}:cluster/{cluster.eks_cluster}"
    put(
        base.HYPERPOD_CLUSTER,
        cluster.arn,
        {
            "clusterArn": cluster.arn,
            "clusterName": cluster.name or cluster.arn.rsplit("/", 1)[-1],
            "clusterStatus": "InService",
            "orchestrator": {"eks": {"clusterArn": eks}},
            "vpcConfig": {"subnets": cluster.subnets, "securityGroupIds": cluster.security_groups},
            "instanceGroups": groups,
        },
    )
