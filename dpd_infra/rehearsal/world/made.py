"""What services and controllers make on their own: load balancers, their security groups, SageMaker endpoints.

Each is a record of the account without a resource of a program behind it. They outlive the cluster that they were made for unless what made
them takes them away, and then stand in the way of the network's deletion.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base

LOAD_BALANCER = "elasticloadbalancing:loadBalancer"
"""A load balancer that the load balancer controller made for an endpoint."""

SAGEMAKER_ENDPOINT = "sagemaker:endpoint"
"""A SageMaker endpoint that the operator registered."""


def expose(account: SimulatedAccount, eks: Resource, key: str, subnets: Iterable[Resource]) -> None:
    """Let the controller make an endpoint's load balancer and the security group of it."""
    name = _name(eks.id, key)
    if account.find(LOAD_BALANCER, name, region=eks.region) is not None:
        return
    group = f"sg-{hashlib.sha256(name.encode()).hexdigest()[:17]}"
    vpc = str(eks.get("vpcConfig.vpcId"))
    account.add(Resource(base.SECURITY_GROUP, group, {}, {"vpcId": vpc, "name": name, "ownerCluster": eks.id}, region=eks.region))
    outputs = {
        "name": name,
        "vpcId": vpc,
        "subnetIds": [subnet.id for subnet in subnets],
        "securityGroupIds": [group],
        "cluster": eks.id,
        "madeFor": key,
    }
    account.add(Resource(LOAD_BALANCER, name, {}, outputs, region=eks.region))


def register_endpoint(account: SimulatedAccount, eks: Resource, key: str, name: str) -> None:
    """Let the operator register a SageMaker endpoint, in lower case as it does."""
    if account.find(SAGEMAKER_ENDPOINT, name, region=eks.region) is None:
        account.add(Resource(SAGEMAKER_ENDPOINT, name, {}, {"cluster": eks.id, "madeFor": key}, region=eks.region))


def take_away(account: SimulatedAccount, eks: Resource, key: str, *, keep_endpoint: str = "") -> None:
    """What a running operator does when an endpoint goes, or changes the name of its SageMaker endpoint (`keep_endpoint`)."""
    for item in account.all(SAGEMAKER_ENDPOINT, cluster=eks.id, madeFor=key):
        if item.id != keep_endpoint:
            account.remove(item)
    if keep_endpoint:
        return
    for item in account.all(LOAD_BALANCER, cluster=eks.id, madeFor=key):
        for group in item.outputs["securityGroupIds"]:
            found = account.find(base.SECURITY_GROUP, group, region=eks.region)
            if found is not None:
                account.remove(found)
        account.remove(item)


def _name(cluster: str, key: str) -> str:
    """A name in the controller's form, `k8s-<namespace>-<name>-<hash>`: each part cut to eight characters."""
    namespace, _, name = key.partition("/")
    digest = hashlib.sha256(f"{cluster}/{key}".encode()).hexdigest()[:10]
    return f"k8s-{namespace[:8]}-{name[:8]}-{digest}"
