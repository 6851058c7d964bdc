"""The simulated inference operator: what it makes of an InferenceEndpointConfig, given the nodes there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON
from dpd_infra.rehearsal.aws.storage import WRITTEN_BY_AWS
from dpd_infra.rehearsal.aws_native import gpus_of

API_GROUP = "inference.sagemaker.aws.amazon.com"
GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
TYPE_LABEL = "node.kubernetes.io/instance-type"
GPU = "nvidia.com/gpu"
READY = "DPD prefill and decode deployments are ready"
"""The message of a ready DPD endpoint (DPD guide)."""


def running_operator(account: SimulatedAccount, cluster: str) -> Resource | None:
    """The operator's add-on of an EKS cluster, if it is ACTIVE."""
    addons = account.all(base.ADDON, clusterName=cluster, addonName=OPERATOR_ADDON)
    return next((addon for addon in addons if not addon.outputs.get("health")), None)


def _nodes(account: SimulatedAccount, cluster: str) -> list[dict[str, Any]]:
    eks = next((item for item in account.all(base.CLUSTER) if item.id == cluster), None)
    arn = eks.outputs.get("arn") if eks else None
    found: list[dict[str, Any]] = []
    for hyperpod in account.all(base.HYPERPOD_CLUSTER):
        if hyperpod.get("orchestrator.eks.clusterArn") != arn:
            continue
        for group in hyperpod.outputs.get("instanceGroups") or []:
            kind = str(group.get("instanceType", ""))
            labels = {
                GROUP_LABEL: group["instanceGroupName"],
                TYPE_LABEL: kind,
                **((group.get("kubernetesConfig") or {}).get("labels") or {}),
            }
            found += [{"labels": labels, "gpus": gpus_of(kind)} for _ in range(int(group.get("instanceCount", 0)))]
    return found


def _pods(spec: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, str], int]]:
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


def _unschedulable(account: SimulatedAccount, cluster: str, endpoints: Iterable[Mapping[str, Any]]) -> str:
    """Place the pods of every endpoint, oldest first; the answer is why the last one's do not fit, or nothing."""
    nodes = _nodes(account, cluster)
    problem = ""
    for spec in endpoints:
        problem = ""
        for name, selector, gpus in _pods(spec):
            fitting = [node for node in nodes if all(node["labels"].get(key) == value for key, value in selector.items())]
            free = next((node for node in fitting if node["gpus"] >= gpus), None)
            if free is None:
                cause = f"Insufficient {GPU}" if fitting else "didn't match Pod's node affinity/selector"
                wanted = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
                problem = f"{name} pod is Pending: 0/{len(nodes)} nodes are available: {cause} ({gpus} GPUs on {wanted})"
                break
            free["gpus"] -= gpus
    return problem


def reconcile(account: SimulatedAccount, cluster: str, item: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """The status of an endpoint after `timeout` seconds of simulated time."""
    metadata = item["metadata"]
    key = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
    kind = f":{item['kind']}"
    others = [other.outputs["spec"] for other in account.in_cluster(cluster) if other.type.endswith(kind) and other.id != key]
    problem = _unschedulable(account, cluster, [*others, item["spec"]])
    behaviour = account.operator
    if behaviour.failure:
        return _status("DeploymentFailed", behaviour.failure)
    if problem:
        return _status("DeploymentInProgress", problem)
    if behaviour.seconds > timeout:
        return _status("DeploymentInProgress", f"pods are loading the model ({timeout:.0f} of {behaviour.seconds:.0f} s)")
    certificate = _write_certificate(account, cluster, key)
    message = READY if item["spec"].get("pdSpec") else "Deployment is ready"
    status = _status("DeploymentComplete", message)
    if certificate:
        status["tlsCertificate"] = certificate
    name = item["spec"].get("endpointName")
    addon = running_operator(account, cluster)
    if name and addon is not None:
        arn = f"arn:aws:sagemaker:{addon.region}:{account.id}:endpoint/{str(name).lower()}"
        status["endpoints"] = {"sagemaker": {"state": "CreationCompleted", "endpointArn": arn}}
    return status


def _status(state: str, message: str) -> dict[str, Any]:
    ready = "True" if state == "DeploymentComplete" else "False"
    condition = {"type": state, "status": ready, "message": message, "reason": state, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"state": state, "conditions": [condition], "observedGeneration": 1}


def _write_certificate(account: SimulatedAccount, cluster: str, key: str) -> dict[str, Any]:
    """What the status says of the certificate (CRD: status.tlsCertificate); nothing where the add-on's bucket is not known."""
    # The operator puts the load balancer's CA certificate into the TLS bucket: the bucket is not empty from then on.
    addon = running_operator(account, cluster)
    text = str((addon.inputs if addon else {}).get("configurationValues") or "")
    bucket = _bucket_of(text)
    name = f"{bucket}/{key.replace('/', '-')}-ca.pem"
    if not bucket:
        return {}
    if account.find(WRITTEN_BY_AWS, name) is None:
        account.add(Resource(WRITTEN_BY_AWS, name, {}, {"bucket": bucket}))
    return {"tlsCertificateOutputS3Bucket": bucket, "tlsCertificateS3Keys": [name.removeprefix(f"{bucket}/")], "certificateHealth": "Valid"}


def _bucket_of(configuration: str) -> str:
    try:
        return str(json.loads(configuration).get("tlsCertificateS3Bucket", ""))
    except ValueError:
        return ""
