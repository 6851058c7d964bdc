"""The simulated inference operator: what it makes of an InferenceEndpointConfig, given the nodes, roles and subnets there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpd_infra.catalog.crd import API_GROUP
from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.storage import WRITTEN_BY_AWS
from dpd_infra.rehearsal.world import exposure, made
from dpd_infra.rehearsal.world.nodes import GROUP_LABEL, TYPE_LABEL, Node, groups_on, nodes_on
from dpd_infra.rehearsal.world.operators import running, value, values_of
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import api_server as rules

GPU = "nvidia.com/gpu"
READY = "DPD prefill and decode deployments are ready"
"""The message of a ready DPD endpoint (DPD guide)."""


def pods(spec: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, str], int]]:
    """Every model pod: a name for messages, its node selector and its GPUs."""
    types = spec.get("instanceTypes") or ([spec["instanceType"]] if spec.get("instanceType") else [])
    base_selector = {TYPE_LABEL: types[0]} if types else {}
    roles = spec.get("pdSpec")
    if not roles:
        for _ in range(int(spec.get("replicas", 1))):
            yield "worker", base_selector, _gpus(spec["worker"].get("resources"))
        return
    for key, name in (("prefillSpec", "prefill"), ("decodingSpec", "decode")):
        role = roles[key]
        for _ in range(int(role.get("replicas", 1))):
            yield name, {**base_selector, **(role.get("nodeSelector") or {})}, _gpus(role.get("resources"))


def _gpus(resources: Mapping[str, Any] | None) -> int:
    resources = resources or {}
    wanted = (resources.get("limits") or {}).get(GPU) or (resources.get("requests") or {}).get(GPU) or 0
    return int(wanted)


def _place(account: SimulatedAccount, cluster: str, endpoints: Iterable[Mapping[str, Any]]) -> tuple[Said | None, list[Node]]:
    """Place the pods of every endpoint, oldest first: why the last one's do not fit, or None, and the nodes of its pods."""
    there = list(nodes_on(account, cluster))
    problem, used = None, []
    for spec in endpoints:
        problem, used = None, []
        for name, selector, gpus in pods(spec):
            fitting = [node for node in there if all(node.labels.get(key) == wanted for key, wanted in selector.items())]
            free = next((node for node in fitting if node.gpus >= gpus), None)
            if free is None:
                cause = f"Insufficient {GPU}" if fitting else "didn't match Pod's node affinity/selector"
                wanted = ", ".join(f"{key}={text}" for key, text in sorted(selector.items()))
                missing = _missing_nodes(account, cluster, selector)
                problem = rules.POD_FITS(pod=name, nodes=len(there), cause=cause, gpus=gpus, wanted=wanted, missing=missing)
                break
            free.gpus -= gpus
            used.append(free)
    return problem, used


def _missing_nodes(account: SimulatedAccount, cluster: str, selector: Mapping[str, str]) -> str:
    """Which groups that the pod could use have fewer nodes than they ask for."""
    short = [
        f"{group.name} has {group.count} of {group.wanted} nodes"
        for group in groups_on(account, cluster)
        if group.count < group.wanted
        and selector.get(GROUP_LABEL, group.name) == group.name
        and selector.get(TYPE_LABEL, group.type) == group.type
    ]
    return f"; instance group {', '.join(short)}: no capacity" if short else ""


def reconcile(account: SimulatedAccount, cluster: str, item: Mapping[str, Any], timeout: float, urn: str) -> dict[str, Any]:
    """The status of an endpoint after `timeout` seconds of simulated time; empty where no operator runs, which then nobody sets.

    `urn` is the program's resource.
    """
    addon = running(account, cluster)
    if addon is None:
        return {}
    metadata, spec = item["metadata"], item["spec"]
    key = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
    kind = f":{item['kind']}"
    others = [other.outputs["spec"] for other in account.in_cluster(cluster) if other.type.endswith(kind) and other.id != key]
    problem, used = _place(account, cluster, [*others, spec])
    behaviour = account.operator
    if behaviour.failure:
        return _status("DeploymentFailed", rules.DEPLOYMENT_FAILED(reason=behaviour.failure))
    if problem:
        return _status("DeploymentInProgress", problem)
    if behaviour.seconds > timeout:
        return _status("DeploymentInProgress", rules.MODEL_LOADED(timeout=f"{timeout:.0f}", seconds=f"{behaviour.seconds:.0f}"))
    eks = next((found for found in account.all(base.CLUSTER) if found.id == cluster), None)
    name = str(spec.get("endpointName") or "").lower()
    if eks is not None:
        subnets = exposure.load_balancer_subnets(account, eks)
        problem = exposure.problem(account, eks, addon, (key, urn), spec, used, subnets)
        if problem:
            return _status("DeploymentInProgress", problem)
        made.take_away(account, eks, key, keep_endpoint=name or "-")
        made.expose(account, eks, key, subnets)
        if name:
            made.register_endpoint(account, eks, key, name)
    certificate = _certificate(account, str(value(values_of(addon), "tlsCertificateS3Bucket", "")), key, spec)
    status = _status("DeploymentComplete", READY if spec.get("pdSpec") else "Deployment is ready")
    if certificate:
        status["tlsCertificate"] = certificate
    if name:
        arn = f"arn:aws:sagemaker:{addon.region}:{account.id}:endpoint/{name}"
        status["endpoints"] = {"sagemaker": {"state": "CreationCompleted", "endpointArn": arn}}
    return status


def _status(state: str, message: str) -> dict[str, Any]:
    ready = "True" if state == "DeploymentComplete" else "False"
    condition = {"type": state, "status": ready, "message": message, "reason": state, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"state": state, "conditions": [condition], "observedGeneration": 1}


def _certificate(account: SimulatedAccount, bucket: str, key: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the status says of the certificate (CRD: status.tlsCertificate).

    One of the user's own in ACM is attached as it is (custom certificates guide). Without one, the load balancer's is self-signed, and its
    CA certificate lies in the TLS bucket; nothing is known of it where the add-on's bucket is not.
    """
    own = ((spec.get("tlsConfig") or {}).get("customCertificateConfig") or {}).get("acmArn")
    if own:
        # The guide: the operator writes an object without content, to see whether it may. Its name is in no document.
        _write(account, bucket, "operator-test-object")
        return {"certificateARN": own, "certificateHealth": "Valid"}
    if not bucket:
        return {}
    name = f"{key.replace('/', '-')}-ca.pem"
    _write(account, bucket, name)
    return {"tlsCertificateOutputS3Bucket": bucket, "tlsCertificateS3Keys": [name], "certificateHealth": "Valid"}


def _write(account: SimulatedAccount, bucket: str, name: str) -> None:
    """Put an object into the TLS bucket: it is not empty from then on."""
    identity = f"{bucket}/{name}"
    if bucket and account.find(WRITTEN_BY_AWS, identity) is None:
        account.add(Resource(WRITTEN_BY_AWS, identity, {}, {"bucket": bucket}))


__all__ = ["API_GROUP", "READY", "pods", "reconcile"]
