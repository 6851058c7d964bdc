"""A HyperPod cluster as a Terraform state file (version 4) holds it: what AWS's modules for HyperPod on EKS made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.ops.live_estate import EstateUnreadable, LiveAddon, LiveEstate, as_request, read_configuration

STATE_VERSION = 4
"""The version of state files since Terraform 0.12."""

_CLUSTER = "awscc_sagemaker_cluster"
"""The resource of AWS's modules: the AWS provider itself has none."""

_SPELLINGS = {"in_gb": "InGB", "s3_uri": "S3Uri"}
_FREE_KEYS = frozenset({"labels"})


def from_terraform(state: Mapping[str, Any], cluster: str | None = None) -> LiveEstate:
    """The estate of one HyperPod cluster in a state file; `cluster` is its name or ARN, None: the only one.

    Only what the state holds is known: a subnet or an add-on that another state made is missing here. Raises `EstateUnreadable`.
    """
    if state.get("version") != STATE_VERSION:
        raise EstateUnreadable(f"this is no Terraform state of version {STATE_VERSION}: version {state.get('version')!r}")
    found = _cluster(state, cluster)
    eks_arn = str(((found.get("orchestrator") or {}).get("eks") or {}).get("cluster_arn") or "")
    eks = next((item for item in _attributes(state, "aws_eks_cluster") if item.get("arn") == eks_arn), None)
    if eks is None:
        raise EstateUnreadable(
            f"the state has no aws_eks_cluster with the ARN {eks_arn or 'of an orchestrator'}: name a state that holds it"
        )
    name = str(eks["name"])
    config = _first(eks.get("vpc_config"))
    issuer = str(_first(_first(eks.get("identity")).get("oidc")).get("issuer") or "").removeprefix("https://")
    request = as_request(_pascal(found))
    subnets = (request.get("VpcConfig") or {}).get("Subnets") or []
    zones = {str(item["id"]): str(item["availability_zone"]) for item in _attributes(state, "aws_subnet")}
    if missing := [subnet for subnet in subnets if subnet not in zones]:
        raise EstateUnreadable(f"the state does not say which zone {', '.join(missing)} is in: it has no such aws_subnet")
    addons = [item for item in _attributes(state, "aws_eks_addon") if item.get("cluster_name") == name]
    operator = next((item for item in addons if item.get("addon_name") == ADDON_NAME), None)
    return LiveEstate(
        region=eks_arn.split(":")[3],
        cluster_arn=str(found["cluster_arn"]),
        cluster=request,
        eks_name=name,
        vpc_id=str(config["vpc_id"]),
        zones={subnet: zones[subnet] for subnet in subnets},
        has_oidc_provider=any(_is_issuer(item, issuer) for item in _attributes(state, "aws_iam_openid_connect_provider")),
        addons={
            str(item["addon_name"]): LiveAddon(
                str(item["addon_version"]), bool(item.get("service_account_role_arn") or item.get("pod_identity_association"))
            )
            for item in addons
        },
        operator_configuration=read_configuration(operator.get("configuration_values")) if operator else {},
    )


def _cluster(state: Mapping[str, Any], wanted: str | None) -> Mapping[str, Any]:
    clusters = [item for item in _attributes(state, _CLUSTER) if wanted in (None, item.get("cluster_name"), item.get("cluster_arn"))]
    if len(clusters) != 1:
        names = ", ".join(str(item.get("cluster_name")) for item in _attributes(state, _CLUSTER))
        if not names:
            raise EstateUnreadable(f"the state holds no {_CLUSTER}: it is not the one of a HyperPod cluster's makers")
        asked = f"{wanted} is not one of them" if wanted else "name one"
        raise EstateUnreadable(f"the state has these {_CLUSTER}: {names}; {asked}")
    return clusters[0]


def _attributes(state: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    """The attributes of every managed resource of a type, whatever module it is in."""
    for resource in state.get("resources") or []:
        if resource.get("type") == kind and resource.get("mode") == "managed":
            for instance in resource.get("instances") or []:
                yield instance.get("attributes") or {}


def _first(value: Any) -> Mapping[str, Any]:
    """A nested block: the AWS provider keeps it as a list of one."""
    if isinstance(value, list):
        return value[0] if value else {}
    return value or {}


def _is_issuer(provider: Mapping[str, Any], issuer: str) -> bool:
    return bool(issuer) and str(provider.get("url") or "").removeprefix("https://") == issuer


def _pascal(value: Any) -> Any:
    """The AWSCC provider's names as SageMaker's API has them; keys of the user's own stay."""
    if isinstance(value, list):
        return [_pascal(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        _pascal_name(key): dict(item) if key in _FREE_KEYS and item else _pascal(item) for key, item in value.items() if item is not None
    }


def _pascal_name(name: str) -> str:
    for ending, spelling in _SPELLINGS.items():
        if name.endswith(f"_{ending}"):
            return _pascal_name(name.removesuffix(f"_{ending}")) + spelling
    return re.sub(r"(^|_)([a-z0-9])", lambda match: match.group(2).upper(), name)
