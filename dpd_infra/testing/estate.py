"""What data sources say of an estate that a stack file names under `existing`: just what the file expects, so that a program can go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpd_infra.catalog.addons import NODE_ADDONS
from dpd_infra.catalog.operator_releases import ADDON_NAME, DEFAULT_ADDON_VERSION
from dpd_infra.spec.existing import ExistingNetwork, ExistingSpec
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.spec.shape import build
from dpd_infra.testing.answers import Answers
from dpd_infra.testing.monitor import InvokeResult

_PLATFORM = "dpd-infra:platform"
_ZONE_LETTERS = "abcdef"


def existing_invokes(config: Mapping[str, Any], answers: Answers) -> dict[str, InvokeResult]:
    """The results of data sources for the `existing` section of a stack file's configuration; none where there is no such section."""
    platform = config.get(_PLATFORM)
    section = platform.get("existing") if isinstance(platform, Mapping) else None
    if not section:
        return {}
    # A section that is wrong is the program's to refuse.
    existing, _ = build(ExistingSpec, section, ("config", _PLATFORM, "existing"), "platform")
    if existing is None:
        return {}
    name = str(platform.get("name", "")) if isinstance(platform, Mapping) else ""
    return estate_invokes(existing, answers, name)


def estate_invokes(existing: ExistingSpec, answers: Answers, platform_name: str) -> dict[str, InvokeResult]:
    """The same for a spec; `platform_name` is the EKS cluster's name where that is the platform's own."""
    found: dict[str, InvokeResult] = {}
    network = existing.network
    if network is not None:
        found["aws:ec2/getSubnet:getSubnet"] = lambda arguments: _subnet(network, answers, str(arguments["id"]))
        found["aws:eks/getCluster:getCluster"] = lambda arguments: answers.eks_cluster(str(arguments["name"]), vpc_id=network.vpc_id)
    versions = {addon.name: addon.minimum for addon in NODE_ADDONS if addon.minimum is not None}
    if existing.operator is not None:
        versions[ADDON_NAME] = existing.operator.addon_version
    found["aws:eks/getAddon:getAddon"] = lambda arguments: answers.eks_addon(
        str(arguments["clusterName"]), str(arguments["addonName"]), versions.get(str(arguments["addonName"]))
    )
    cluster = existing.cluster
    if cluster is not None:
        eks = existing.control_plane.name if existing.control_plane is not None else platform_name
        groups = {group: spec.instance_type for group, spec in cluster.instance_groups.items()}
        found["aws-native:sagemaker:getCluster"] = lambda arguments: answers.hyperpod_cluster(str(arguments["clusterArn"]), eks, groups)
    return found


def platform_exports(
    name: str = "inference", *, operator: OperatorFacts | None = None, answers: Answers | None = None
) -> dict[str, str | bool]:
    """What a stack with a platform exports, for tests of a stack with endpoints alone.

    It is given as `stacks` to `run_program` or `run_project`, under the other stack's full name, `organization/platform/prod`.
    """
    answers, facts = answers or Answers(), operator or OperatorFacts(addon_version=DEFAULT_ADDON_VERSION)
    cluster = answers.eks_cluster(name)
    return {
        "region": answers.region,
        "zone": f"{answers.region}a",
        "vpcId": str(cluster["vpcConfig"]["vpcId"]),
        "eksClusterName": name,
        "eksEndpoint": str(cluster["endpoint"]),
        "eksCertificateAuthority": str(cluster["certificateAuthorities"][0]["data"]),
        "kubernetesIdentifier": f"{name}-0",
        "hyperPodClusterName": name,
        "hyperPodClusterArn": answers.arn("sagemaker", f"cluster/{name}"),
        "operatorAddonVersion": facts.addon_version,
        "closedNetwork": facts.closed_network,
    }


def _subnet(network: ExistingNetwork, answers: Answers, subnet: str) -> dict[str, Any]:
    """GPU subnets are in the GPU zone; those of the control plane are spread over the zones, beginning there."""
    zones = [network.zone, *(zone for letter in _ZONE_LETTERS if (zone := f"{answers.region}{letter}") != network.zone)]
    index = 0
    if subnet not in network.gpu_subnet_ids and subnet in network.control_plane_subnet_ids:
        others = [each for each in network.control_plane_subnet_ids if each not in network.gpu_subnet_ids]
        shared = len(others) < len(network.control_plane_subnet_ids)
        index = (others.index(subnet) + (1 if shared else 0)) % len(zones)
    return {"id": subnet, "vpcId": network.vpc_id, "availabilityZone": zones[index], "arn": answers.arn("ec2", f"subnet/{subnet}")}
