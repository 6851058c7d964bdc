"""The simulated Kubernetes provider (pulumi-kubernetes): an API server per EKS cluster, which knows who may call and which kinds exist."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pulumi.runtime.proto import provider_pb2

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.eks import creator_is_admin, nodes
from dpd_infra.rehearsal.diff import Change, Difference
from dpd_infra.rehearsal.errors import InitError, KubernetesError, SimulatedError
from dpd_infra.rehearsal.known_types import is_type_of
from dpd_infra.rehearsal.operator import API_GROUP, reconcile, running_operator
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.waiting import SKIP_AWAIT, WAIT_FOR, annotations_of, parse, timeout_of
from dpd_infra.rehearsal.wire import Unknown, decode, reveal

CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACE = "kubernetes:core/v1:Namespace"

BUILT_IN_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
CLUSTER_SCOPED = frozenset(
    {
        "Namespace",
        "Node",
        "PersistentVolume",
        "StorageClass",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "PriorityClass",
        "CSIDriver",
        "IngressClass",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    }
)
IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "ConfigMap": ("binaryData", "data"),
    "Secret": ("data", "stringData", "type"),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "StorageClass": ("parameters", "provisioner"),
}
"""Inputs whose change replaces an object of that kind (pulumi-kubernetes forceNewPropertiesForGVK)."""

MUTABLE_SETTING = {"ConfigMap": "enableConfigMapMutable", "Secret": "enableSecretMutable"}
"""Provider settings that lift the rule above."""


class KubernetesObject(ResourceType):
    """Any object of the API: namespaced or not, of a built-in kind or of one that an add-on brought."""

    replace_on = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
    volatile = ("status",)
    regional = False

    def __init__(self, token: str) -> None:
        self.token = token

    def scope(self, call: Call) -> str:
        return str(call.settings.get("cluster") or "")

    def extra_replaces(self, call: Call, old: Mapping[str, Any]) -> tuple[str, ...]:
        kind = call.text("kind")
        setting = MUTABLE_SETTING.get(kind)
        lifted = setting is not None and str(call.settings.get(setting)).lower() == "true"
        return () if lifted else IMMUTABLE.get(kind, ())

    def delete_first(self, call: Call, old: Mapping[str, Any]) -> bool:
        # pulumi-kubernetes: an object whose own name stays cannot stand beside its replacement.
        before, after = old.get("metadata") or {}, call.inputs.get("metadata") or {}
        same = all(before.get(key) == after.get(key) for key in ("name", "namespace"))
        return same and annotations_of(call.inputs).get("pulumi.com/autonamed") != "true"

    def create(self, call: Call) -> Made:
        key = _key(call)
        self._kind_exists(call)
        _namespace_exists(call)
        if call.account.find(self.token, key, cluster=self.scope(call)) is not None:
            plural = f"{call.text('kind').lower()}s"
            message = f'{plural} "{call.text("metadata.name")}" already exists'
            raise KubernetesError(f"resource {key} was not successfully created by the Kubernetes API server: {message}")
        metadata = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
            "resourceVersion": call.account.hex("", call.urn, length=6),
            "uid": call.account.hex("", call.urn, length=32),
        }
        if call.text("kind") not in CLUSTER_SCOPED:
            metadata["namespace"] = call.text("metadata.namespace", "default")
        outputs = {"metadata": metadata, **self._status(call)}
        problems = self._unready(call, outputs)
        if problems:
            raise InitError(problems, id=key, outputs=outputs)
        return Made(key, outputs)

    def update(self, call: Call) -> Mapping[str, Any]:
        self._kind_exists(call)
        outputs = {"metadata": (call.record.outputs if call.record else {}).get("metadata", {}), **self._status(call)}
        outputs["metadata"] = {**outputs["metadata"], **(call.inputs.get("metadata") or {})}
        problems = self._unready(call, outputs)
        if problems:
            raise InitError(problems, id=call.id, outputs=outputs)
        return outputs

    def _status(self, call: Call) -> dict[str, Any]:
        if self.is_endpoint(call):
            return {"status": reconcile(call.account, self.scope(call), call.inputs, timeout_of(call.inputs, call.timeout))}
        return {}

    @staticmethod
    def is_endpoint(call: Call) -> bool:
        """Whether this is an InferenceEndpointConfig."""
        return call.text("apiVersion").startswith(f"{API_GROUP}/") and call.text("kind") == "InferenceEndpointConfig"

    def _unready(self, call: Call, outputs: Mapping[str, Any]) -> list[str]:
        notes = annotations_of(call.inputs)
        if WAIT_FOR not in notes or str(notes.get(SKIP_AWAIT)).lower() == "true":
            return []
        item = {**call.inputs, **outputs}
        missing = [wait.text for wait in parse(notes[WAIT_FOR]) if not wait.holds(item)]
        if not missing:
            return []
        seconds = timeout_of(call.inputs, call.timeout)
        status = outputs.get("status") or {}
        state = status.get("state", "unknown")
        messages = [entry["message"] for entry in status.get("conditions") or [] if entry.get("message")]
        head = f'the Kubernetes API server reported that "{_key(call)}" failed to fully initialize or become live'
        return [
            f"{head}: timed out after {seconds:.0f} s waiting for {' and '.join(missing)}",
            f"status.state is {state}: {'; '.join(messages)}",
        ]

    def _kind_exists(self, call: Call) -> None:
        version, kind = call.text("apiVersion"), call.text("kind")
        package_group = self.token.split(":")[1]
        if is_type_of("pulumi_kubernetes", self.token):
            return
        installed = version.startswith(f"{API_GROUP}/") and running_operator(call.account, self.scope(call)) is not None
        if not installed:
            raise KubernetesError(
                f"creation of resource {_key(call)} failed because the Kubernetes API server reported that the apiVersion for this "
                f'resource does not exist. Verify that any required CRDs have been created: no matches for kind "{kind}" in version '
                f'"{version or package_group}"'
            )


def _key(call: Call) -> str:
    name = call.text("metadata.name")
    return name if call.text("kind") in CLUSTER_SCOPED else f"{call.text('metadata.namespace', 'default')}/{name}"


def _namespace_exists(call: Call) -> None:
    if call.text("kind") in CLUSTER_SCOPED:
        return
    namespace = call.text("metadata.namespace", "default")
    if namespace not in namespaces(call.account, str(call.settings.get("cluster"))):
        raise KubernetesError(
            f'resource {_key(call)} was not successfully created by the Kubernetes API server: namespaces "{namespace}" not found'
        )


def namespaces(account: SimulatedAccount, cluster: str) -> set[str]:
    """The namespaces of a cluster: built in, made by the program, and brought by add-ons and charts."""
    found = set(BUILT_IN_NAMESPACES)
    found |= {item.id for item in account.in_cluster(cluster, NAMESPACE)}
    releases = account.in_cluster(cluster, RELEASE)
    found |= {item.outputs["namespace"] for item in releases if item.outputs.get("createNamespace")}
    if releases or account.dependencies_preinstalled:
        found.add("aws-hyperpod")
    if running_operator(account, cluster) is not None:
        found.add("hyperpod-inference-system")
    return found


class Release(ResourceType):
    """A Helm release. It waits for its pods unless told not to, and pods need nodes."""

    token = RELEASE
    replace_on = ("name", "namespace")
    autoname = "name"
    volatile = ("status", "resourceNames")
    regional = False

    def scope(self, call: Call) -> str:
        return str(call.settings.get("cluster") or "")

    def create(self, call: Call) -> Made:
        namespace, name = call.text("namespace", "default"), call.text("name")
        cluster = self.scope(call)
        if namespace not in namespaces(call.account, cluster) and not call.inputs.get("createNamespace"):
            raise KubernetesError(f'namespaces "{namespace}" not found')
        key = f"{namespace}/{name}"
        if call.account.find(RELEASE, key, cluster=cluster) is not None:
            raise KubernetesError("cannot re-use a name that is still in use")
        outputs = {"namespace": namespace, "status": self._status(call, namespace, 1), "resourceNames": {}}
        self._wait(call, key, outputs)
        return Made(key, outputs)

    def update(self, call: Call) -> Mapping[str, Any]:
        namespace = call.text("namespace", "default")
        revision = int((call.now().get("status") or {}).get("revision", 1)) + 1
        outputs = {"status": self._status(call, namespace, revision)}
        self._wait(call, call.id, outputs)
        return outputs

    def _wait(self, call: Call, key: str, outputs: Mapping[str, Any]) -> None:
        cluster = call.account.first(base.CLUSTER, name=self.scope(call))
        here = Call(call.account, {"region": cluster.region if cluster else ""}, call.token, call.urn, {})
        if call.inputs.get("skipAwait") or nodes(here, self.scope(call)):
            return
        message = (
            f'Helm release "{key}" was created, but failed to initialize completely. Use Helm CLI to investigate: context deadline exceeded'
        )
        raise InitError([message], id=key, outputs={**outputs, "status": {**outputs["status"], "status": "failed"}})

    def _status(self, call: Call, namespace: str, revision: int) -> dict[str, Any]:
        chart = call.text("chart").rsplit("/", 1)[-1].removesuffix(".tgz")
        version = call.text("version", "0.1.0")
        fields = {"appVersion": version, "chart": chart, "name": call.text("name"), "namespace": namespace}
        return {**fields, "revision": revision, "status": "deployed", "version": version}


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

    def authorize(self, call: Call) -> None:
        cluster = self._cluster(call)
        principal = str(call.settings.get("principal") or self.account.deployer_role_arn)
        if principal == self.account.deployer_role_arn and creator_is_admin(cluster):
            return
        if self.account.find(base.ACCESS_ENTRY, f"{cluster.id}:{principal}", region=cluster.region) is None:
            raise KubernetesError(
                "configured Kubernetes cluster is unreachable: unable to load schema information from the API server: Unauthorized: "
                f"the server has asked for the client to provide credentials ({principal} has no access entry on {cluster.id})"
            )
        granted = self.account.all(base.ACCESS_POLICY_ASSOCIATION, clusterName=cluster.id, principalArn=principal, policyArn=CLUSTER_ADMIN)
        namespace = call.text("metadata.namespace", call.text("namespace", "default"))
        for association in granted:
            access = association.outputs.get("accessScope") or {}
            if access.get("type") == "cluster" or namespace in (access.get("namespaces") or []):
                return
        kind = call.text("kind", call.token.rsplit(":", 1)[-1])
        raise KubernetesError(
            f'{kind.lower()}s is forbidden: User "{principal}" cannot change resource "{kind.lower()}s" in namespace "{namespace}"'
        )

    def _cluster(self, call: Call) -> Resource:
        name = str(call.settings.get("cluster") or "")
        found = self.account.first(base.CLUSTER, name=name) if name else None
        if found is None:
            server = call.settings.get("server") or "no kubeconfig"
            raise KubernetesError(f"configured Kubernetes cluster is unreachable: no EKS cluster answers at {server}")
        return found


def _kubeconfig(value: Any) -> Mapping[str, Any]:
    if not value or isinstance(value, Unknown):
        return {}
    if isinstance(value, Mapping):
        return value
    text = str(value)
    if "\n" not in text and not text.lstrip().startswith("{") and Path(text).is_file():
        text = Path(text).read_text(encoding="utf-8")
    parsed = yaml.safe_load(text)
    if not isinstance(parsed, Mapping):
        raise SimulatedError("failed to parse kubeconfig data in `kubernetes:config:kubeconfig`")
    return parsed


def _server(value: Any) -> str:
    clusters = _kubeconfig(value).get("clusters") or [{}]
    return str((clusters[0].get("cluster") or {}).get("server") or "")


def _target(account: SimulatedAccount, config: Mapping[str, Any]) -> dict[str, Any]:
    """The EKS cluster that a kubeconfig speaks to, and as whom."""
    server = str(((config.get("clusters") or [{}])[0].get("cluster") or {}).get("server") or "")
    found = account.first(base.CLUSTER, endpoint=server) if server else None
    user = ((config.get("users") or [{}])[0].get("user") or {}).get("exec") or {}
    arguments = [str(item) for item in user.get("args") or []]
    role = arguments[arguments.index("--role-arn") + 1] if "--role-arn" in arguments[:-1] else ""
    return {"cluster": found.id if found else "", "server": server, "principal": role}
