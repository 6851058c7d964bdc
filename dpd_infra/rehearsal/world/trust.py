"""Who may take a role, and what its policies allow: as much of IAM's evaluation as the services of this world ask for."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base


@dataclass(frozen=True)
class Request:
    """One attempt to take a role."""

    action: str
    principal: tuple[str, str]
    """Kind and name as a policy has them: `("Service", "sagemaker.amazonaws.com")`."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Condition keys that are known. A condition on another key is taken to hold."""


def service(name: str, account: SimulatedAccount) -> Request:
    """A service that takes a role."""
    return Request("sts:AssumeRole", ("Service", name), {"aws:sourceaccount": account.id})


def web_identity(account: SimulatedAccount, issuer: str, service_account: str) -> Request:
    """A pod's service account (`namespace:name`) that takes a role through its cluster's OIDC provider."""
    host = issuer.removeprefix("https://")
    context = {f"{host}:sub".lower(): f"system:serviceaccount:{service_account}", f"{host}:aud".lower(): "sts.amazonaws.com"}
    return Request("sts:AssumeRoleWithWebIdentity", ("Federated", f"arn:aws:iam::{account.id}:oidc-provider/{host}"), context)


def may_take(role: Resource, request: Request) -> bool:
    """Whether a role's trust policy lets the request through. A role that the world merely names trusts everybody."""
    text = role.outputs.get("assumeRolePolicy")
    if text is None:
        return True
    effects = {statement.get("Effect") for statement in statements(text) if _trusts(statement, request)}
    return "Allow" in effects and "Deny" not in effects


def statements(text: str | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The statements of a policy; none where it cannot be read."""
    try:
        document = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return []
    found = document.get("Statement") if isinstance(document, Mapping) else None
    return [item for item in _listed(found) if isinstance(item, Mapping)]


def allows(account: SimulatedAccount, role: Resource, action: str) -> bool:
    """Whether a policy of a role allows an action on anything. AWS's own policies are taken to allow what they are known for."""
    attached = account.all(base.ROLE_POLICY_ATTACHMENT, role=role.id)
    if any(action in MANAGED.get(str(item.outputs.get("policyArn", "")).rsplit("/", 1)[-1], ()) for item in attached):
        return True
    documents = [item.outputs.get("policy") or "{}" for item in account.all(base.ROLE_POLICY, role=role.id)]
    for item in attached:
        managed = account.find(base.POLICY, str(item.outputs.get("policyArn")))
        documents += [managed.outputs.get("policy") or "{}"] if managed else []
    documents += [inline.get("policy") or "{}" for inline in role.outputs.get("inlinePolicies") or []]
    for document in documents:
        for statement in statements(document):
            patterns = _listed(statement.get("Action"))
            if statement.get("Effect") == "Allow" and any(_like(action.lower(), str(item).lower()) for item in patterns):
                return True
    return False


_NETWORK = ("ec2:CreateNetworkInterfacePermission", "ec2:CreateSecurityGroup")
MANAGED: Mapping[str, tuple[str, ...]] = {
    "AmazonSageMakerHyperPodInferenceAccess": ("ec2:CreateNetworkInterfacePermission",),
    "AdministratorAccess": (*_NETWORK, "s3:GetObject"),
    "PowerUserAccess": (*_NETWORK, "s3:GetObject"),
    "AmazonEC2FullAccess": _NETWORK,
    "AmazonVPCFullAccess": ("ec2:CreateSecurityGroup",),
    "AmazonS3FullAccess": ("s3:GetObject",),
    "AmazonS3ReadOnlyAccess": ("s3:GetObject",),
}
"""Of AWS's own policies, which of the actions that this world asks for they allow (managed policy reference)."""


def _trusts(statement: Mapping[str, Any], request: Request) -> bool:
    if not any(_like(request.action.lower(), str(item).lower()) for item in _listed(statement.get("Action"))):
        return False
    return _names(statement.get("Principal"), request.principal) and all(_conditions(statement.get("Condition") or {}, request.context))


def _names(principal: Any, wanted: tuple[str, str]) -> bool:
    kind, name = wanted
    if isinstance(principal, Mapping):
        return any(str(item) in (name, "*") for item in _listed(principal.get(kind)))
    return principal == "*"


def _conditions(condition: Mapping[str, Any], context: Mapping[str, str]) -> Iterator[bool]:
    for operator, tests in condition.items():
        bare = operator.rsplit(":", 1)[-1].removesuffix("IfExists")
        for key, values in tests.items():
            have = context.get(key.lower())
            if have is not None and bare in _OPERATORS:
                wanted = [str(value) for value in _listed(values)]
                positive, match = _OPERATORS[bare]
                yield any(match(have, value) for value in wanted) is positive


def _like(have: str, pattern: str) -> bool:
    # IAM knows `*` and `?` alone: brackets are text.
    return fnmatch.fnmatchcase(have, pattern.replace("[", "[[]"))


def _same(have: str, wanted: str) -> bool:
    return have == wanted


def _same_letters(have: str, wanted: str) -> bool:
    return have.lower() == wanted.lower()


_OPERATORS = {
    "StringEquals": (True, _same),
    "StringNotEquals": (False, _same),
    "StringEqualsIgnoreCase": (True, _same_letters),
    "StringLike": (True, _like),
    "StringNotLike": (False, _like),
    "ArnEquals": (True, _like),
    "ArnLike": (True, _like),
}


def _listed(value: Any) -> Iterable[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
