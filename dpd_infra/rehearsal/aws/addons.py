"""Simulated EKS add-ons: those that wait for nodes, and the inference operator that waits for the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.eks import existing_cluster, refused
from dpd_infra.rehearsal.errors import InitError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.world import nodes as world_nodes
from dpd_infra.rehearsal.world import operators
from dpd_infra.rehearsal.world.addon_versions import lowest_version
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import eks as eks_rules
from dpd_infra.rehearsal.world.rules import kubernetes as rules

OPERATOR_ADDON = "amazon-sagemaker-hyperpod-inference"
NODE_ADDONS = frozenset({"coredns", "cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server", OPERATOR_ADDON})
"""Add-ons whose pods need a node before they turn ACTIVE."""


def nodes(call: Call, cluster: str) -> int:
    """Nodes that HyperPod clusters have put into an EKS cluster."""
    return world_nodes.count(call.account, cluster)


class Addon(ResourceType):
    """An EKS add-on. One that does not become ACTIVE stays in the state as failed and is tried again by the next update."""

    token = base.ADDON

    def create(self, call: Call) -> Made:
        cluster, name = call.text("clusterName"), call.text("addonName")
        existing_cluster(call, cluster, "CreateAddon")
        id = f"{cluster}:{name}"
        if (there := call.account.find(base.ADDON, id, region=call.region)) is not None:
            raise refused("CreateAddon", "ResourceInUseException", call.taken(eks_rules.ADDON_ONCE(), there), 409)
        _configuration(call, "CreateAddon")
        outputs = {
            "addonVersion": call.text("addonVersion", lowest_version(name)),
            "arn": call.arn("eks", f"addon/{cluster}/{name}/{call.account.hex('', call.urn, length=8)}"),
            "createdAt": "2026-01-01T00:00:00Z",
            "modifiedAt": "2026-01-01T00:00:00Z",
        }
        problem = addon_problem(call, cluster, name)
        if problem:
            raise InitError([_waiting(id, "create", problem)], id=id, outputs={**outputs, "health": problem})
        left_over = call.account.find(operators.UNMANAGED_ADDON, id, region=call.region)
        if left_over is not None:
            call.account.remove(left_over)
        return Made(id, {**outputs, "health": ""})

    def update(self, call: Call) -> Mapping[str, Any]:
        _configuration(call, "UpdateAddon")
        problem = addon_problem(call, call.text("clusterName"), call.text("addonName"))
        if problem:
            raise InitError([_waiting(call.id, "update", problem)], id=call.id, outputs={"health": problem})
        return {"modifiedAt": "2026-01-02T00:00:00Z", "health": ""}

    def delete(self, call: Call) -> None:
        cluster = call.text("clusterName")
        if call.text("addonName") != OPERATOR_ADDON or call.record is None:
            return
        left = operators.resources(call.account, cluster)
        preserve = call.inputs.get("preserve") is True
        if left and not preserve:
            listed = ", ".join(item.id for item in left)
            call.warn(f"the operator goes before its custom resources: their finalizers stay, and deleting them will hang ({listed})")
        operators.uninstall(call.account, cluster, call.record, preserve=preserve)


def active_addon(call: Call, cluster: str, name: str) -> bool:
    """Whether an add-on of the cluster is ACTIVE."""
    found = call.account.find(base.ADDON, f"{cluster}:{name}", region=call.region)
    return found is not None and not found.outputs.get("health")


_JSON_KINDS = {str: "string", list: "array", bool: "boolean", type(None): "null"}
"""What a JSON schema's validator calls the kinds of values that are no object."""


def _configuration(call: Call, operation: str) -> dict[str, Any]:
    text = call.text("configurationValues")
    try:
        values = json.loads(text) if text else {}
    except ValueError:
        values = text
    if not isinstance(values, dict):
        message = eks_rules.ADDON_VALUES(kind=_JSON_KINDS.get(type(values), "number"))
        raise refused(operation, "InvalidParameterException", message)
    if call.text("addonName") == OPERATOR_ADDON:
        missing = [key for key in ("executionRoleArn", "tlsCertificateS3Bucket") if not values.get(key)]
        if missing:
            fields = ", ".join(f"[$.{key}: is missing but it is required]" for key in missing)
            raise refused(operation, "InvalidParameterException", rules.REQUIRED_VALUES(fields=fields))
    return values


def install_operator(account: SimulatedAccount, cluster: str, region: str) -> Resource:
    """The operator's add-on as a new HyperPod cluster brings it: ACTIVE, and no resource of the program."""
    outputs = {
        "addonName": OPERATOR_ADDON,
        "addonVersion": account.world.existing.operator_version or lowest_version(OPERATOR_ADDON),
        "arn": f"arn:aws:eks:{region}:{account.id}:addon/{cluster}/{OPERATOR_ADDON}/{account.hex('', cluster, length=8)}",
        "clusterName": cluster,
        "health": "",
    }
    made = Resource(base.ADDON, f"{cluster}:{OPERATOR_ADDON}", {}, outputs, region=region)
    account.add(made)
    return made


def addon_problem(call: Call, cluster: str, name: str) -> Said | None:
    """Why an add-on does not become ACTIVE, or None."""
    if name in NODE_ADDONS and not nodes(call, cluster):
        last = rules.NODES_FOR_ADDON(addon=name)
        return last.within(
            f"timeout while waiting for state to become 'ACTIVE' (last state: 'DEGRADED', timeout: 20m0s). last error: {last}"
        )
    if name != OPERATOR_ADDON:
        return None
    eks = existing_cluster(call, cluster, "CreateAddon")
    values = _configuration(call, "CreateAddon")
    problem = operators.install_problem(call.account, eks, values, lambda addon: active_addon(call, cluster, addon))
    return problem and problem.within(f"unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: {name}: {problem}")


def _waiting(id: str, what: str, problem: Said) -> Said:
    return problem.within(f"waiting for EKS Add-On ({id}) {what}: {problem}")


TYPES: tuple[ResourceType, ...] = (Addon(),)
