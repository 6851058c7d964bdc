"""The simulated Kubernetes provider (pulumi-kubernetes): an API server per EKS cluster, which knows who may call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pulumi.runtime.proto import provider_pb2

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.eks import creator_is_admin
from dpd_infra.rehearsal.diff import Change, Difference
from dpd_infra.rehearsal.errors import KubernetesError, SimulatedError
from dpd_infra.rehearsal.kubernetes_objects import KubernetesObject, Release
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.simulation import Call, ResourceType
from dpd_infra.rehearsal.wire import Unknown, decode, reveal
from dpd_infra.rehearsal.world.rules import api_server
from dpd_infra.rehearsal.world.rules import kubernetes as rules

DELETE_UNREACHABLE = "PULUMI_K8S_DELETE_UNREACHABLE"
"""The provider's own switch: what a cluster that is gone held counts as gone with it."""

CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


class KubernetesProvider(SimulatedProvider):
    """The Kubernetes API of whichever EKS cluster the kubeconfig names."""

    package = "kubernetes"
    distribution = "pulumi-kubernetes"

    def __init__(self, account: SimulatedAccount) -> None:
        super().__init__(account, (Release(),))

    def type_for(self, token: str) -> ResourceType:
        if token not in self.types:
            self.types[token] = KubernetesObject(token)
        return self.types[token]

    def configure(self, settings: dict[str, Any]) -> dict[str, Any]:
        config = _kubeconfig(settings.get("kubeconfig"))
        return {**settings, **_target(self.account, config)}

    def diff_settings(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
        difference = super().diff_settings(old, new)
        if new.get("clusterIdentifier") or old.get("clusterIdentifier"):
            replaces = {"clusterIdentifier"} & set(difference.changes)
            return Difference(difference.changes, frozenset(replaces))
        before, after = old.get("kubeconfig"), new.get("kubeconfig")
        if isinstance(after, Unknown) or _server(before) != _server(after):
            return Difference({**difference.changes, "kubeconfig": Change.UPDATE}, frozenset({"kubeconfig"}))
        return difference

    def name_automatically(self, kind: ResourceType, request: provider_pb2.CheckRequest, inputs: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(kind, KubernetesObject):
            return super().name_automatically(kind, request, inputs)
        metadata = inputs.get("metadata") or {}
        if not isinstance(metadata, Mapping) or "name" in metadata or "generateName" in metadata:
            return inputs
        old = reveal(decode(request.olds)).get("metadata") or {}
        automatic = (old.get("annotations") or {}).get("pulumi.com/autonamed") == "true"
        name = old.get("name") if automatic else f"{request.urn.rsplit('::', 1)[-1]}-{request.randomSeed.hex()[:8]}"
        notes = {**(metadata.get("annotations") or {}), "pulumi.com/autonamed": "true"}
        return {**inputs, "metadata": {**metadata, "name": name, "annotations": notes}}

    def reach(self, call: Call, *, deletes: bool = False) -> bool:
        name = str(call.settings.get("cluster") or "")
        if name and self.account.first(base.CLUSTER, name=name) is not None:
            return True
        # A Helm release is dropped when it is read, not when it is deleted (pulumi-kubernetes #2675, #4593).
        asked = str(call.settings.get("deleteUnreachable")).lower() == "true" or os.environ.get(DELETE_UNREACHABLE, "").lower() == "true"
        if asked and not (deletes and call.token == Release.token):
            return False
        raise KubernetesError(rules.CLUSTER_GONE())

    def authorize(self, call: Call) -> None:
        cluster = self._cluster(call)
        principal = str(call.settings.get("principal") or self.account.deployer_role_arn)
        if principal == self.account.deployer_role_arn and creator_is_admin(cluster):
            return
        if self.account.find(base.ACCESS_ENTRY, f"{cluster.id}:{principal}", region=cluster.region) is None:
            raise KubernetesError(api_server.CREDENTIALS(principal=principal, cluster=cluster.id))
        granted = self.account.all(base.ACCESS_POLICY_ASSOCIATION, clusterName=cluster.id, principalArn=principal, policyArn=CLUSTER_ADMIN)
        namespace = call.text("metadata.namespace", call.text("namespace", "default"))
        for association in granted:
            access = association.outputs.get("accessScope") or {}
            if access.get("type") == "cluster" or namespace in (access.get("namespaces") or []):
                return
        kind = call.text("kind", call.token.rsplit(":", 1)[-1])
        group = call.text("apiVersion").rpartition("/")[0]
        verb = "patch" if call.record else "create"
        raise KubernetesError(
            api_server.PERMISSION(kind=f"{kind.lower()}s", principal=principal, verb=verb, group=group, namespace=namespace)
        )

    def _cluster(self, call: Call) -> Resource:
        name = str(call.settings.get("cluster") or "")
        found = self.account.first(base.CLUSTER, name=name) if name else None
        if found is None:
            server = call.settings.get("server") or "no kubeconfig"
            raise KubernetesError(api_server.NO_API_SERVER(server=server))
        return found


def _kubeconfig(value: Any) -> Mapping[str, Any]:
    """What a provider's kubeconfig says. Raises `SimulatedError` for what is none."""
    if not value or isinstance(value, Unknown):
        return {}
    if isinstance(value, Mapping):
        return value
    text = str(value)
    try:
        if "\n" not in text and not text.lstrip().startswith("{") and Path(text).is_file():
            text = Path(text).read_text(encoding="utf-8")
        parsed = yaml.safe_load(text)
    except (yaml.YAMLError, OSError, ValueError, RecursionError):
        raise SimulatedError(api_server.KUBECONFIG()) from None
    if not isinstance(parsed, Mapping):
        raise SimulatedError(api_server.KUBECONFIG())
    return parsed


def _first(config: Mapping[str, Any], entries: str, entry: str) -> Mapping[str, Any]:
    """The first of a kubeconfig's `clusters` or `users`, empty where there is none. Raises `SimulatedError` for another shape."""
    named = config.get(entries) or [{}]
    found = named[0].get(entry) or {} if isinstance(named, list) and isinstance(named[0], Mapping) else None
    if not isinstance(found, Mapping):
        raise SimulatedError(api_server.KUBECONFIG())
    return found


def _server(value: Any) -> str:
    return str(_first(_kubeconfig(value), "clusters", "cluster").get("server") or "")


def _target(account: SimulatedAccount, config: Mapping[str, Any]) -> dict[str, Any]:
    """The EKS cluster that a kubeconfig speaks to, and as whom."""
    server = str(_first(config, "clusters", "cluster").get("server") or "")
    found = account.first(base.CLUSTER, endpoint=server) if server else None
    command = _first(config, "users", "user").get("exec") or {}
    given = command.get("args") or [] if isinstance(command, Mapping) else None
    if not isinstance(given, list):
        raise SimulatedError(api_server.KUBECONFIG())
    arguments = [str(item) for item in given]
    role = arguments[arguments.index("--role-arn") + 1] if "--role-arn" in arguments[:-1] else ""
    return {"cluster": found.id if found else "", "server": server, "principal": role}
