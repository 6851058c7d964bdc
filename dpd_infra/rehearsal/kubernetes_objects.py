"""The simulated Kubernetes objects: built-in kinds, the kinds that an add-on brought, and Helm releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import nodes
from dpd_infra.rehearsal.errors import InitError, KubernetesError
from dpd_infra.rehearsal.known_types import is_type_of
from dpd_infra.rehearsal.operator import API_GROUP, reconcile
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.waiting import SKIP_AWAIT, WAIT_FOR, annotations_of, parse, timeout_of
from dpd_infra.rehearsal.world import custom_resources, made, operators
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import api_server
from dpd_infra.rehearsal.world.rules import kubernetes as rules

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
_SELECTOR = ("spec.selector",)
_POD = (
    "affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork hostPID "
    "hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName readinessGates "
    "restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName shareProcessNamespace "
    "subdomain terminationGracePeriodSeconds volumes"
)
_CONTAINER = (
    "args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources securityContext stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_VOLUME = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs hostPath iscsi local nfs "
    "photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)
IMMUTABLE: Mapping[str, tuple[str, ...]] = {
    "ConfigMap": ("binaryData", "data"),
    "Secret": ("data", "stringData", "type"),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "StorageClass": ("parameters", "provisioner"),
    "Deployment": _SELECTOR,
    "StatefulSet": (
        *_SELECTOR,
        *(f"spec.{field}" for field in ("podManagementPolicy", "revisionHistoryLimit", "serviceName", "volumeClaimTemplates")),
    ),
    "Job": (*_SELECTOR, "spec.completions", "spec.parallelism", "spec.template"),
    "PodDisruptionBudget": ("spec",),
    "PersistentVolume": tuple(f"spec.{field}" for field in _VOLUME.split()),
    "PersistentVolumeClaim": ("spec",),
    "Pod": (
        *(f"spec.{field}" for field in _POD.split()),
        *(f"spec.{kind}.{field}" for kind in ("containers", "initContainers") for field in _CONTAINER.split()),
    ),
    "ResourceQuota": ("spec.scopes",),
    "Service": ("spec.clusterIP",),
}
"""Inputs whose change replaces an object of that kind: pulumi-kubernetes, provider/pkg/provider/diff.go, `forceNew` (commit 00302be)."""

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
        self._may_write(call)
        _namespace_exists(call)
        if (there := call.account.find(self.token, key, cluster=self.scope(call))) is not None:
            message = api_server.NAME_IS_FREE(key=key, kind=f"{call.text('kind').lower()}s", name=call.text("metadata.name"))
            raise KubernetesError(call.taken(message, there))
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
        self._may_write(call)
        if self.is_endpoint(call) and (fixed := custom_resources.change_problem(call.now(), call.inputs)):
            raise KubernetesError(fixed)
        outputs = {"metadata": (call.record.outputs if call.record else {}).get("metadata", {}), **self._status(call)}
        outputs["metadata"] = {**outputs["metadata"], **(call.inputs.get("metadata") or {})}
        problems = self._unready(call, outputs)
        if problems:
            raise InitError(problems, id=call.id, outputs=outputs)
        return outputs

    def read(self, call: Call) -> Mapping[str, Any]:
        # The operator goes on trying where an endpoint is not ready, and what stood in its way may be gone.
        found = call.record.outputs if call.record else {}
        if not self.is_endpoint(call) or (found.get("status") or {}).get("state") == "DeploymentComplete":
            return {}
        return self._status(call)

    def delete(self, call: Call) -> None:
        eks = call.account.first(base.CLUSTER, name=self.scope(call))
        if not call.text("apiVersion").startswith(f"{API_GROUP}/") or eks is None:
            return
        if operators.running(call.account, eks.id) is None:
            call.warn("finalizers might be preventing deletion")
            raise KubernetesError(rules.DELETION_HANGS())
        made.take_away(call.account, eks, call.id)

    def _may_write(self, call: Call) -> None:
        problem = custom_resources.write_problem(call.account, self.scope(call), call.inputs)
        problem = problem or custom_resources.schema_problem(call.account, self.scope(call), call.inputs, _key(call))
        if problem:
            raise KubernetesError(problem)

    def _status(self, call: Call) -> dict[str, Any]:
        if self.is_endpoint(call):
            status = reconcile(call.account, self.scope(call), call.inputs, timeout_of(call.inputs, call.timeout), call.urn)
            return {"status": status} if status else {}
        return {}

    @staticmethod
    def is_endpoint(call: Call) -> bool:
        """Whether this is an InferenceEndpointConfig."""
        return call.text("apiVersion").startswith(f"{API_GROUP}/") and call.text("kind") == "InferenceEndpointConfig"

    def _unready(self, call: Call, outputs: Mapping[str, Any]) -> list[Said]:
        notes = annotations_of(call.inputs)
        if WAIT_FOR not in notes or str(notes.get(SKIP_AWAIT)).lower() == "true":
            return []
        item = {**call.inputs, **outputs}
        missing = [wait.text for wait in parse(notes[WAIT_FOR]) if not wait.holds(item)]
        if not missing:
            return []
        seconds = timeout_of(call.inputs, call.timeout)
        timed_out = api_server.READY(key=_key(call), seconds=f"{seconds:.0f}", missing=" and ".join(missing))
        status = outputs.get("status") or {}
        messages = [entry["message"] for entry in status.get("conditions") or [] if entry.get("message")]
        # The rule is the one that the operator met; the timeout is what comes of it.
        because = next((message for message in messages if isinstance(message, Said)), timed_out)
        state = because.within(f"status.state is {status.get('state', 'unknown')}: {'; '.join(messages)}")
        return [because.within(timed_out), state]

    def _kind_exists(self, call: Call) -> None:
        version, kind = call.text("apiVersion"), call.text("kind")
        package_group = self.token.split(":")[1]
        if is_type_of("pulumi_kubernetes", self.token):
            return
        if not custom_resources.knows_kind(call.account, self.scope(call), version, kind):
            raise KubernetesError(rules.KIND(key=_key(call), kind=kind, version=version or package_group))


def _key(call: Call) -> str:
    name = call.text("metadata.name")
    return name if call.text("kind") in CLUSTER_SCOPED else f"{call.text('metadata.namespace', 'default')}/{name}"


def _namespace_exists(call: Call) -> None:
    if call.text("kind") in CLUSTER_SCOPED:
        return
    namespace = call.text("metadata.namespace", "default")
    if namespace not in namespaces(call.account, str(call.settings.get("cluster"))):
        raise KubernetesError(api_server.NAMESPACE(key=_key(call), namespace=namespace))


def namespaces(account: SimulatedAccount, cluster: str) -> set[str]:
    """The namespaces of a cluster: built in, made by the program, and brought by add-ons and charts."""
    found = set(BUILT_IN_NAMESPACES)
    found |= {item.id for item in account.in_cluster(cluster, NAMESPACE)}
    releases = account.in_cluster(cluster, RELEASE)
    found |= {item.outputs["namespace"] for item in releases if item.outputs.get("createNamespace")}
    if releases or account.dependencies_preinstalled:
        found.add("aws-hyperpod")
    if operators.installed(account, cluster) is not None:
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
            raise KubernetesError(api_server.RELEASE_NAMESPACE(namespace=namespace))
        key = f"{namespace}/{name}"
        if (there := call.account.find(RELEASE, key, cluster=cluster)) is not None:
            raise KubernetesError(call.taken(api_server.RELEASE_NAME(), there))
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
        raise InitError(
            [api_server.RELEASE_READY(key=key)], id=key, outputs={**outputs, "status": {**outputs["status"], "status": "failed"}}
        )

    def _status(self, call: Call, namespace: str, revision: int) -> dict[str, Any]:
        chart = call.text("chart").rsplit("/", 1)[-1].removesuffix(".tgz")
        version = call.text("version", "0.1.0")
        fields = {"appVersion": version, "chart": chart, "name": call.text("name"), "namespace": namespace}
        return {**fields, "revision": revision, "status": "deployed", "version": version}
