"""From what is there to a stack file that matches it and the file of `pulumi import`: what can be managed is taken over, the rest is read.

Network and EKS cluster stay their maker's: their resources have another shape than ours, and a change of an EKS cluster's role or
encryption would make it anew. The HyperPod cluster, the add-ons and the operator can be taken over in place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from typing import Any

from dpd_infra.catalog.addons import NODE_ADDONS, VPC_CNI
from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.ops.live_cluster import groups_of, reasons_to_keep, settings_of, unmatched
from dpd_infra.ops.live_estate import EstateUnreadable, LiveEstate
from dpd_infra.plan.names import slug

AWS_TYPES = {"addon": "aws:eks/addon:Addon", "bucket": "aws:s3/bucket:Bucket", "cluster": "aws-native:sagemaker:Cluster"}

PLATFORM, CLUSTER, ADDONS, OPERATOR = (f"dpd:index:{name}" for name in ("Platform", "HyperPodCluster", "NodeAddons", "InferenceOperator"))
"""Type tokens of the components below which resources are imported; `components/tokens.py` freezes them, and loads Pulumi."""

_OUR_KEYS = ("executionRoleArn", "tlsCertificateS3Bucket", "hyperpodClusterArn", "alb", "keda", "jumpstartGatedModelDownloadRoleArn")
"""Configuration values of the operator that this library writes itself."""

_VERSION_KEYS = {
    addon.name: key for addon, key in zip(NODE_ADDONS, ("coredns", "certManager", "s3Csi", "fsxCsi", "metricsServer"), strict=True)
}


class Step(StrEnum):
    """What can be taken over."""

    CLUSTER = "cluster"
    ADDONS = "addons"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What to write, and what to know beforehand."""

    stack_file: dict[str, Any]
    """The content of Pulumi.<stack>.yaml."""
    import_file: dict[str, Any]
    """The content of the file for `pulumi import --file`; it has no resources where all is kept."""
    notes: tuple[str, ...]
    """What the first `pulumi up` changes, and what could not be known."""


def plan_import(estate: LiveEstate, *, name: str = "inference", keep: Collection[Step] = ()) -> ImportPlan:
    """The stack file and the import file of an estate.

    `name` is the platform's resource name in the program, as in `dpd.Platform(name, …)`; `keep` names steps that stay their maker's.
    Raises `EstateUnreadable` for an estate that no stack file can say.
    """
    return _Plan(estate, name, set(keep)).made()


class _Plan:
    def __init__(self, estate: LiveEstate, name: str, keep: set[Step]) -> None:
        self.estate, self.name, self.keep = estate, name, keep
        self._platform = f"{name}-platform"
        self.notes: list[str] = []
        self.existing: dict[str, Any] = {}
        self.platform: dict[str, Any] = {"name": _platform_name(str(estate.cluster["ClusterName"])), "existing": self.existing}
        self.resources: list[dict[str, Any]] = []

    def made(self) -> ImportPlan:
        if reasons := reasons_to_keep(self.estate.cluster):
            self.keep.add(Step.CLUSTER)
            self.notes.append(f"the HyperPod cluster stays its maker's: a stack file cannot say {', '.join(reasons)}")
        self._control_plane()
        self._cluster()
        self._addons()
        self._operator()
        if self.resources:
            # Within the file the platform has a name of its own, because its provider has the same in the stack.
            platform = {"type": PLATFORM, "name": self._platform, "logicalName": self.name, "component": True}
            self.resources[:0] = [*self._providers(), platform]
        config = {"aws:region": self.estate.region, "dpd-infra:platform": self.platform}
        return ImportPlan({"config": config}, {"resources": self.resources}, tuple(self.notes))

    def _control_plane(self) -> None:
        section: dict[str, Any] = {"name": self.estate.eks_name}
        if not self.estate.has_oidc_provider:
            section["makeOidcProvider"] = True
            self.notes.append("the account has no OIDC provider of the EKS cluster's issuer: up makes one")
        if VPC_CNI.name not in self.estate.addons:
            section["selfManagedCni"] = True
            self.notes.append(f"{VPC_CNI.name} is no EKS add-on there: see that it is {VPC_CNI.minimum} or later")
        self.existing["controlPlane"] = section

    def _cluster(self) -> None:
        estate, cluster_name = self.estate, str(self.estate.cluster["ClusterName"])
        groups = groups_of(estate.cluster)
        if Step.CLUSTER in self.keep:
            known = {
                group: {key: spec[key] for key in ("instanceType", "count")} for group, spec in groups.items() if "instanceType" in spec
            }
            self.existing["cluster"] = {"arn": estate.cluster_arn, "name": cluster_name, "instanceGroups": known}
            return
        zones = set(estate.zones.values())
        if len(zones) != 1:
            raise EstateUnreadable(
                f"the HyperPod cluster's subnets are in {', '.join(sorted(zones)) or 'no zone'}, and a stack file has one GPU zone: "
                "keep the cluster"
            )
        config = estate.cluster["VpcConfig"]
        self.existing["network"] = {
            "vpcId": estate.vpc_id,
            "zone": zones.pop(),
            "gpuSubnetIds": list(config["Subnets"]),
            "nodeSecurityGroupIds": list(config["SecurityGroupIds"]),
        }
        self.platform["cluster"] = {"name": cluster_name, **settings_of(estate.cluster)}
        self.platform["dependencies"] = {"preinstalled": True}
        self.platform["instanceGroups"] = groups
        at = self._component(CLUSTER, "cluster")
        self._resource("cluster", f"{at}-cluster", estate.cluster_arn, at, native=True)
        self.notes.append("up gives every instance group the platform's own execution role and lifecycle scripts, for nodes to come")
        self.notes += unmatched(estate.cluster, groups)

    def _addons(self) -> None:
        live = {addon.name: self.estate.addons[addon.name] for addon in NODE_ADDONS if addon.name in self.estate.addons}
        # An operator that runs has all of them, whoever installed them; coredns is in every cluster.
        otherwise = [
            addon.name for addon in NODE_ADDONS if addon.name not in live and (ADDON_NAME in self.estate.addons or addon.name == "coredns")
        ]
        kept = set(live) if Step.ADDONS in self.keep else {name for name, addon in live.items() if addon.has_role}
        if roles := sorted(kept - (set(live) if Step.ADDONS in self.keep else set())):
            self.notes.append(f"{', '.join(roles)} stay their maker's: they have a role, and taking it away would cut pods off their data")
        there = [addon.name for addon in NODE_ADDONS if addon.name in kept or addon.name in otherwise]
        self.existing["addons"] = there
        if otherwise:
            self.existing["selfManagedAddons"] = otherwise
            self.notes.append(f"{', '.join(otherwise)} are no EKS add-ons there: they are taken to be installed otherwise")
        managed = [name for name in live if name not in there]
        if not managed:
            return
        self.platform["addons"] = {f"{_VERSION_KEYS[name]}Version": live[name].version for name in managed}
        at = self._component(ADDONS, "addons")
        for name in managed:
            self._resource("addon", f"{at}-{name}", f"{self.estate.eks_name}:{name}", at)

    def _operator(self) -> None:
        installed = self.estate.addons.get(ADDON_NAME)
        if installed is None:
            if Step.OPERATOR in self.keep:
                raise EstateUnreadable(f"the EKS cluster {self.estate.eks_name} has no {ADDON_NAME}: there is no operator to keep")
            self.notes.append("there is no inference operator: up installs it")
            return
        if Step.OPERATOR in self.keep:
            self.existing["operator"] = {"addonVersion": installed.version}
            return
        values = self.estate.operator_configuration
        section: dict[str, Any] = {"addonVersion": installed.version}
        at = self._component(OPERATOR, "operator")
        if bucket := values.get("tlsCertificateS3Bucket"):
            section["tlsBucket"] = bucket
            self._resource("bucket", f"{at}-tls", bucket, at)
        for key, ours in (("alb", "loadBalancerController"), ("keda", "keda")):
            if isinstance(values.get(key), Mapping) and values[key].get("enabled") is False:
                section[ours] = False
        if role := values.get("jumpstartGatedModelDownloadRoleArn"):
            section["gatedModelRoleArn"] = role
        if others := {key: value for key, value in values.items() if key not in _OUR_KEYS}:
            section["configuration"] = others
        self.platform["operator"] = section
        self._resource("addon", f"{at}-addon", f"{self.estate.eks_name}:{ADDON_NAME}", at)
        self.notes.append("up gives the operator, its load balancer controller and KEDA the platform's own roles")

    def _providers(self) -> list[dict[str, Any]]:
        """The program's own providers: a resource under the default one would be replaced when the program names another."""
        return [
            {
                "type": f"pulumi:providers:{package}",
                "name": provider,
                "inputs": {"region": self.estate.region, "version": metadata.version(f"pulumi-{package}")},
            }
            for package, provider in (("aws", self.name), ("aws-native", f"{self.name}-native"))
        ]

    def _component(self, token: str, suffix: str) -> str:
        name = f"{self.name}-{suffix}"
        self.resources.append({"type": token, "name": name, "parent": self._platform, "component": True})
        return name

    def _resource(self, kind: str, name: str, identity: str, parent: str, *, native: bool = False) -> None:
        provider = f"{self.name}-native" if native else self.name
        self.resources.append({"type": AWS_TYPES[kind], "name": name, "id": identity, "parent": parent, "provider": provider})


def _platform_name(cluster_name: str) -> str:
    """A platform's name from a cluster's: single hyphens, a letter first, 40 characters at most (PlatformSpec)."""
    name = re.sub(r"-+", "-", slug(cluster_name))
    return (name if name[:1].isalpha() else f"p-{name}")[:40].strip("-")
