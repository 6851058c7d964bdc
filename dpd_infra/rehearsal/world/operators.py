"""The inference operator's presence in a cluster: installed, running, gone with its custom resources still there; and what it needs."""

from __future__ import annotations

import json
from typing import Any

from dpd_infra.catalog.crd import API_GROUP
from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.world import nodes, trust
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import kubernetes as rules

NAMESPACE = "hyperpod-inference-system"
CONTROLLER = f"{NAMESPACE}:hyperpod-inference-controller-manager"
LOAD_BALANCER_CONTROLLER = f"{NAMESPACE}:aws-load-balancer-controller"
S3_DRIVER = "kube-system:s3-csi-driver-sa"
"""Service accounts as trust policies name them (set-up guide)."""

UNMANAGED_ADDON = "eks:unmanagedAddon"
"""Type of what stays in a cluster when an add-on is deleted with `preserve`."""
TERMINATING_CRDS = "kubernetes:terminatingCrds"
"""Type of the mark that the operator's CRDs are being deleted and cannot go."""

ROLE_PREFIX = "SageMakerHyperPodInference"
PODS_NEEDED = 13
"""What the add-on installs needs room for that many pods (console troubleshooting guide)."""


def installed(account: SimulatedAccount, cluster: str) -> Resource | None:
    """The operator of an EKS cluster, whether it runs or not."""
    found = account.all(base.ADDON, UNMANAGED_ADDON, clusterName=cluster, addonName=ADDON_NAME)
    return found[0] if found else None


def running(account: SimulatedAccount, cluster: str) -> Resource | None:
    """The operator of an EKS cluster, if it runs: healthy, and with a node to run on.

    An operator that somebody else installed, in a cluster of which no nodes are known, has its own.
    """
    found = installed(account, cluster)
    if found is None or found.outputs.get("health"):
        return None
    groups = nodes.groups_on(account, cluster)
    if not groups and (not found.urn or found.urn == "world"):
        return found
    return found if any(group.count for group in groups) else None


def resources(account: SimulatedAccount, cluster: str) -> list[Resource]:
    """The operator's custom resources in a cluster."""
    return [item for item in account.in_cluster(cluster) if item.type.startswith(f"kubernetes:{API_GROUP}/")]


def are_crds_terminating(account: SimulatedAccount, cluster: str) -> bool:
    """Whether the operator went before its custom resources, so that its CRDs hang."""
    return account.find(TERMINATING_CRDS, API_GROUP, cluster=cluster) is not None


def has_crds(account: SimulatedAccount, cluster: str) -> bool:
    """Whether the API server knows the operator's kinds."""
    return installed(account, cluster) is not None or are_crds_terminating(account, cluster)


def uninstall(account: SimulatedAccount, cluster: str, addon: Resource, *, preserve: bool) -> None:
    """What deleting the add-on leaves behind: all of it where it is preserved, else CRDs that hang while objects of theirs exist."""
    if preserve:
        outputs = {**addon.outputs, "clusterName": cluster, "addonName": ADDON_NAME}
        account.add(Resource(UNMANAGED_ADDON, addon.id, addon.inputs, outputs, region=addon.region, urn=addon.urn))
    elif resources(account, cluster):
        account.add(Resource(TERMINATING_CRDS, API_GROUP, {}, {}, cluster=cluster))


def release_finalizers(account: SimulatedAccount, cluster: str) -> None:
    """Take the finalizers away by hand, as `kubectl patch` does: what hung is gone, and so are the CRDs that hung with it."""
    for item in resources(account, cluster):
        account.remove(item)
    mark = account.find(TERMINATING_CRDS, API_GROUP, cluster=cluster)
    if mark is not None:
        account.remove(mark)


def values_of(addon: Resource | None) -> dict[str, Any]:
    """An add-on's configuration; empty where it is not known."""
    text = str((addon.inputs if addon else {}).get("configurationValues") or "")
    try:
        values = json.loads(text) if text else {}
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def value(values: dict[str, Any], path: str, default: Any = None) -> Any:
    """One setting by dotted path."""
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return default if found is None else found


def takes_role(account: SimulatedAccount, eks: Resource, arn: str, service_account: str) -> bool:
    """Whether a service account of the cluster may take a role: provider and role exist, and the role trusts it."""
    issuer = str(eks.outputs["identities"][0]["oidcs"][0]["issuer"])
    host = issuer.removeprefix("https://")
    provider = account.find(base.OIDC_PROVIDER, f"arn:aws:iam::{account.id}:oidc-provider/{host}")
    role = account.first(base.ROLE, arn=arn)
    return provider is not None and role is not None and trust.may_take(role, trust.web_identity(account, issuer, service_account))


def install_problem(account: SimulatedAccount, eks: Resource, values: dict[str, Any], active: Any) -> Said | None:
    """Why the operator's add-on does not become ACTIVE, or None. `active` says whether an add-on of the cluster is."""
    for addon, rule in (
        ("aws-mountpoint-s3-csi-driver", rules.S3_DRIVER),
        ("aws-fsx-csi-driver", rules.FSX_DRIVER),
        ("cert-manager", rules.CERT_MANAGER),
    ):
        if not active(addon):
            return rule()
    if are_crds_terminating(account, eks.id):
        return rules.REINSTALL(group=API_GROUP, left=len(resources(account, eks.id)))
    for key, word, rule in (("alb", "load-balancer-controller", rules.LOAD_BALANCER_CONTROLLER), ("keda", "keda", rules.KEDA)):
        if value(values, f"{key}.enabled", default=True) is False and not _runs_already(account, eks.id, word):
            return rule()
    role = str(values["executionRoleArn"])
    if not role.rsplit("/", 1)[-1].startswith(ROLE_PREFIX):
        return rules.ROLE_PREFIX()
    if not takes_role(account, eks, role, CONTROLLER):
        return rules.ROLE_SUBJECT()
    bucket = str(values["tlsCertificateS3Bucket"])
    if account.find(base.BUCKET, bucket) is None:
        return rules.TLS_BUCKET(bucket=bucket)
    slots = nodes.pod_slots(nodes.groups_on(account, eks.id))
    return rules.POD_SLOTS(free=slots) if slots is not None and slots < PODS_NEEDED else None


def _runs_already(account: SimulatedAccount, cluster: str, word: str) -> bool:
    """Whether something of that name was installed by a chart or an object of the program."""
    for item in account.in_cluster(cluster):
        if word in str(item.outputs.get("chart", "")) or (item.type.endswith(":Deployment") and word in item.id):
            return True
    return False
