"""A team's namespace as Kubernetes sees it: quota, default requests, and who may do what with endpoints."""

from __future__ import annotations

from typing import Any

from dpd_infra.catalog.crd import API_VERSION
from dpd_infra.spec.teams import QuotaSpec, TeamMember, TeamRight

API_GROUP = API_VERSION.split("/", 1)[0]

ENDPOINTS = "inferenceendpointconfigs"
"""The plural of InferenceEndpointConfig (CRD)."""

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")

DEFAULT_REQUEST = {"cpu": "100m", "memory": "128Mi"}
"""What a container without requests counts as under a quota of CPU or memory: Kubernetes refuses pods that say nothing there, and which
requests the operator's own sidecars have is not published. A choice of this library."""


def hard_limits(quota: QuotaSpec) -> dict[str, str]:
    """The `hard` part of a ResourceQuota; extended resources are limited by their requests alone (Kubernetes, resource quotas)."""
    limits: dict[str, str] = {}
    if quota.gpus is not None:
        limits["requests.nvidia.com/gpu"] = str(quota.gpus)
    if quota.cpu is not None:
        limits["requests.cpu"] = quota.cpu
    if quota.memory is not None:
        limits["requests.memory"] = quota.memory
    if quota.pods is not None:
        limits["pods"] = str(quota.pods)
    if quota.endpoints is not None:
        limits[f"count/{ENDPOINTS}.{API_GROUP}"] = str(quota.endpoints)
    return {**limits, **quota.hard}


def needs_default_requests(quota: QuotaSpec) -> bool:
    """Whether pods without requests would be refused."""
    return not hard_limits(quota).keys().isdisjoint({"requests.cpu", "requests.memory", "cpu", "memory"})


def endpoint_rules(right: TeamRight) -> list[dict[str, Any]]:
    """The rules of a Role over endpoints: Kubernetes's own roles say nothing of a custom resource that no one has added to them."""
    verbs = _READ if right is TeamRight.VIEW else (*_READ, *_WRITE)
    return [
        {"api_groups": [API_GROUP], "resources": [ENDPOINTS], "verbs": sorted(verbs)},
        {"api_groups": [API_GROUP], "resources": [f"{ENDPOINTS}/status"], "verbs": list(_READ)},
    ]


def subject(member: TeamMember, group: str | None) -> dict[str, str]:
    """A member as a RoleBinding names it; `group` is the group of a member's access entry, for one that is an IAM principal."""
    if member.user is not None:
        return {"kind": "User", "name": member.user}
    return {"kind": "Group", "name": group or member.group or ""}


def access_group(team: str, right: TeamRight) -> str:
    """The Kubernetes group of a team's IAM principals with one right."""
    return f"dpd-infra:{team}:{right}"
