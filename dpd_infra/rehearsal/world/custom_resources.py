"""What the API server says of a custom resource: whether it knows the kind, and what the CRD's schema refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpd_infra.catalog.crd import API_GROUP, API_VERSION
from dpd_infra.catalog.crd import KIND as ENDPOINT
from dpd_infra.catalog.crd.releases import fields_by_release, is_before
from dpd_infra.catalog.operator_releases import release_of
from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.world import operators
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import kubernetes as rules

CRD_TOKEN = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"  # noqa: S105 - a type token

GROUPS_OF_ADDONS: Mapping[str, tuple[str, ...]] = {
    "cert-manager": ("cert-manager.io", "acme.cert-manager.io"),
    "amazon-sagemaker-hyperpod-taskgovernance": ("kueue.x-k8s.io",),
    operators.ADDON_NAME: ("keda.sh", "elbv2.k8s.aws"),
}
"""API groups whose kinds an add-on brings, beside the operator's own (their own documents)."""


def knows_kind(account: SimulatedAccount, cluster: str, version: str, kind: str) -> bool:
    """Whether the API server of a cluster has a custom kind: from the operator, another add-on, or a CRD of the program."""
    group = version.rsplit("/", 1)[0] if "/" in version else ""
    if group == API_GROUP and operators.has_crds(account, cluster):
        return True
    for addon, groups in GROUPS_OF_ADDONS.items():
        if group in groups and any(
            not item.outputs.get("health") for item in account.all(base.ADDON, clusterName=cluster, addonName=addon)
        ):
            return True
    for item in account.in_cluster(cluster, CRD_TOKEN):
        spec = item.outputs.get("spec") or {}
        if spec.get("group") == group and (spec.get("names") or {}).get("kind") == kind:
            return True
    return False


def write_problem(account: SimulatedAccount, cluster: str, item: Mapping[str, Any]) -> Said | None:
    """Why a write of one of the operator's objects fails before its schema is looked at, or None."""
    version, kind = str(item.get("apiVersion")), str(item.get("kind"))
    if not version.startswith(f"{API_GROUP}/"):
        return None
    if operators.are_crds_terminating(account, cluster):
        return rules.TERMINATING()
    if operators.installed(account, cluster) is not None and operators.running(account, cluster) is None:
        return rules.WEBHOOK(version=version, kind=kind)
    return None


def schema_problem(account: SimulatedAccount, cluster: str, item: Mapping[str, Any], key: str) -> Said | None:
    """What the CRD of the installed operator refuses in an object, every problem at once; None where it takes it."""
    if (item.get("apiVersion"), item.get("kind")) != (API_VERSION, ENDPOINT):
        return None
    from dpd_infra.catalog.crd.validate import UNKNOWN_FIELD, validate_document  # noqa: PLC0415 - it compiles the schema

    addon = operators.installed(account, cluster)
    version = str(addon.outputs.get("addonVersion") or "") if addon else ""
    release = release_of(version) if version else None
    found = validate_document(dict(item), release.operator) if release else validate_document(dict(item))
    unknown = [problem.path for problem in found if problem.keyword == UNKNOWN_FIELD]
    if release is not None:
        unknown += [path for path, brought in fields_by_release(dict(item)) if is_before(release.operator, brought.release)]
    if unknown:
        fields = ", ".join(f"{_place(path)}: field not declared in schema" for path in dict.fromkeys(unknown))
        return rules.UNKNOWN_FIELD(key=key, version=API_VERSION, kind=ENDPOINT, problems=fields)
    if found:
        problems = ", ".join(f"{_place(problem.path).lstrip('.')}: {_word(problem.keyword)}: {problem.message}" for problem in found)
        name = str((item.get("metadata") or {}).get("name", ""))
        return rules.SCHEMA(kind=ENDPOINT, group=API_GROUP, name=name, problems=f"[{problems}]" if len(found) > 1 else problems)
    return None


def change_problem(old: Mapping[str, Any], new: Mapping[str, Any]) -> Said | None:
    """Which field of an endpoint cannot become what it is to be, or None."""
    before, after = _routing(old), _routing(new)
    if before is None:
        return rules.ROUTING_FIXED() if after is not None else None
    # A block that is taken out takes `enabled` with it.
    return rules.ROUTING_FIXED() if bool(before.get("enabled")) is not bool((after or {}).get("enabled")) else None


def _routing(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return (item.get("spec") or {}).get("intelligentRoutingSpec")


def _place(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _word(keyword: str) -> str:
    """The API server's word for a kind of problem (field.Error)."""
    words = {"required": "Required value", "enum": "Unsupported value", "maxItems": "Too many", "maxLength": "Too long"}
    return words.get(keyword, "Invalid value")
