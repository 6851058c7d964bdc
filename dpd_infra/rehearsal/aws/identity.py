"""Simulated IAM, KMS and log groups: names that are taken, policies that must be detached first, documents that must fit IAM's quotas."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.base import existing, name_problem
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.world.policies import account_principals, policy_problem
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import account as rules
from dpd_infra.rehearsal.world.rules import names

# IAM and STS quotas (IAM user guide, "IAM object quotas"); white space does not count.
MANAGED_POLICY_SIZE = 6144
ROLE_INLINE_POLICIES_SIZE = 10240
TRUST_POLICY_SIZE = 2048
POLICIES_PER_ROLE = 10


def _check_policy(text: str, operation: str, name: str = "", *, trust: bool = False) -> None:
    """Refuse, as IAM does, a document that breaks its grammar."""
    problem = policy_problem(text, trust=trust)
    if problem:
        raise AwsError("IAM", operation, "MalformedPolicyDocument", rules.POLICY_GRAMMAR(problem=f"{name}: {problem}" if name else problem))


def _inline(call: Call) -> list[tuple[str, str]]:
    """The inline policies that a role itself carries."""
    return [(str(item.get("name")), str(item.get("policy"))) for item in call.inputs.get("inlinePolicies") or [] if item.get("policy")]


def _size(text: str) -> int:
    return len("".join(text.split()))


def _limit(operation: str, message: Said) -> AwsError:
    return AwsError("IAM", operation, "LimitExceeded", message, status=409)


class Role(ResourceType):
    """An IAM role: its name is unique in the account, and it goes only after its policies."""

    token = base.ROLE
    autoname = "name"
    regional = False

    def check(self, call: Call) -> Mapping[str, Said]:
        return name_problem(call, "name", r"[\w+=,.@-]{1,64}", names.ROLE_NAME)

    def create(self, call: Call) -> Made:
        name = call.text("name")
        there = call.account.find(base.ROLE, name)
        if there is not None or name == call.account.deployer_role_arn.rsplit("/", 1)[-1]:
            raise AwsError("IAM", "CreateRole", "EntityAlreadyExists", call.taken(names.ROLE_IS_FREE(name=name), there), status=409)
        self._trust(call, "CreateRole")
        for name_of, document in _inline(call):
            _check_policy(document, "PutRolePolicy", name_of)
        path = call.text("path", "/")
        unique = call.account.hex("", call.urn).upper()
        arn = call.arn("iam", f"role{path}{name}", region=False)
        return Made(name, {"arn": arn, "uniqueId": f"AROA{unique}", "createDate": "2026-01-01T00:00:00Z", "path": path})

    def update(self, call: Call) -> Mapping[str, Any]:
        self._trust(call, "UpdateAssumeRolePolicy")
        return {}

    def _trust(self, call: Call, operation: str) -> None:
        text = call.text("assumeRolePolicy")
        _check_policy(text, operation, trust=True)
        for principal in account_principals(text, call.account.id):
            known = [call.account.deployer_role_arn, *(item.outputs.get("arn") for item in call.account.all(base.ROLE))]
            if ":role/" in principal and principal not in known:
                raise AwsError("IAM", operation, "MalformedPolicyDocument", rules.PRINCIPAL_EXISTS(principal=principal))
        if _size(text) > TRUST_POLICY_SIZE:
            raise _limit(operation, rules.TRUST_SIZE(limit=TRUST_POLICY_SIZE))

    def delete(self, call: Call) -> None:
        if call.account.all(base.ROLE_POLICY_ATTACHMENT, role=call.id) and not call.inputs.get("forceDetachPolicies"):
            raise AwsError("IAM", "DeleteRole", "DeleteConflict", rules.ROLE_DETACHED(), status=409)
        if call.account.all(base.ROLE_POLICY, role=call.id):
            raise AwsError("IAM", "DeleteRole", "DeleteConflict", rules.ROLE_WITHOUT_POLICIES(), status=409)


def _existing_role(call: Call, operation: str) -> str:
    name = call.text("role")
    if call.account.find(base.ROLE, name) is None:
        raise AwsError("IAM", operation, "NoSuchEntity", names.ROLE_IS_THERE(name=name), status=404)
    return name


class RolePolicy(ResourceType):
    """A role's inline policy; all of a role's share one size limit."""

    token = base.ROLE_POLICY
    autoname = "name"
    regional = False

    def create(self, call: Call) -> Made:
        role = _existing_role(call, "PutRolePolicy")
        self._fits(call, role)
        return Made(f"{role}:{call.text('name')}")

    def update(self, call: Call) -> Mapping[str, Any]:
        self._fits(call, call.text("role"))
        return {}

    def _fits(self, call: Call, role: str) -> None:
        _check_policy(call.text("policy"), "PutRolePolicy")
        others = [item for item in call.account.all(base.ROLE_POLICY, role=role) if item.id != call.id]
        if _size(call.text("policy")) + sum(_size(item.outputs["policy"]) for item in others) > ROLE_INLINE_POLICIES_SIZE:
            raise _limit("PutRolePolicy", rules.INLINE_SIZE(limit=ROLE_INLINE_POLICIES_SIZE, role=role))


class Policy(ResourceType):
    """A customer managed policy: it goes only when nothing has it attached."""

    token = base.POLICY
    autoname = "name"
    regional = False

    def create(self, call: Call) -> Made:
        arn = call.arn("iam", f"policy{call.text('path', '/')}{call.text('name')}", region=False)
        if (there := call.account.find(base.POLICY, arn)) is not None:
            message = call.taken(names.POLICY_IS_FREE(name=call.text("name")), there)
            raise AwsError("IAM", "CreatePolicy", "EntityAlreadyExists", message, status=409)
        self._fits(call)
        return Made(arn, {"arn": arn, "policyId": f"ANPA{call.account.hex('', call.urn).upper()}", "attachmentCount": 0})

    def update(self, call: Call) -> Mapping[str, Any]:
        self._fits(call)
        return {}

    def _fits(self, call: Call) -> None:
        _check_policy(call.text("policy"), "CreatePolicy")
        if _size(call.text("policy")) > MANAGED_POLICY_SIZE:
            raise _limit("CreatePolicy", rules.POLICY_SIZE(limit=MANAGED_POLICY_SIZE))

    def delete(self, call: Call) -> None:
        if call.account.all(base.ROLE_POLICY_ATTACHMENT, policyArn=call.id):
            raise AwsError("IAM", "DeletePolicy", "DeleteConflict", rules.POLICY_DETACHED(), status=409)


class RolePolicyAttachment(ResourceType):
    """A managed policy on a role; both must exist."""

    token = base.ROLE_POLICY_ATTACHMENT
    regional = False

    def create(self, call: Call) -> Made:
        role = _existing_role(call, "AttachRolePolicy")
        arn = call.text("policyArn")
        if not arn.startswith("arn:aws:iam::aws:policy/") and call.account.find(base.POLICY, arn) is None:
            raise AwsError("IAM", "AttachRolePolicy", "NoSuchEntity", names.POLICY_IS_THERE(arn=arn), status=404)
        others = [item for item in call.account.all(base.ROLE_POLICY_ATTACHMENT, role=role) if item.outputs.get("policyArn") != arn]
        if len(others) >= POLICIES_PER_ROLE:
            raise _limit("AttachRolePolicy", rules.POLICIES_PER_ROLE(limit=POLICIES_PER_ROLE))
        return Made(f"{role}/{arn}")


class OpenIdConnectProvider(ResourceType):
    """The IAM side of an issuer of web identities; one a URL."""

    token = base.OIDC_PROVIDER
    regional = False

    def create(self, call: Call) -> Made:
        host = call.text("url").removeprefix("https://")
        arn = call.arn("iam", f"oidc-provider/{host}", region=False)
        if (there := call.account.find(base.OIDC_PROVIDER, arn)) is not None:
            message = call.taken(names.OIDC_IS_FREE(host=host), there)
            raise AwsError("IAM", "CreateOpenIDConnectProvider", "EntityAlreadyExists", message, status=409)
        thumbprints = call.inputs.get("thumbprintLists") or [call.account.hex("", host, length=40)]
        return Made(arn, {"arn": arn, "thumbprintLists": thumbprints})


class Key(ResourceType):
    """A KMS key."""

    token = base.KEY

    def create(self, call: Call) -> Made:
        id = str(uuid.UUID(call.account.hex("", call.urn, length=32)))
        return Made(id, {"arn": call.arn("kms", f"key/{id}"), "keyId": id, "isEnabled": True})


class Alias(ResourceType):
    """A name for a KMS key."""

    token = base.ALIAS

    def create(self, call: Call) -> Made:
        name = call.text("name")
        arn = call.arn("kms", name)
        if (there := call.account.find(base.ALIAS, name, region=call.region)) is not None:
            raise AwsError("KMS", "CreateAlias", "AlreadyExistsException", call.taken(names.ALIAS_IS_FREE(arn=arn), there))
        target = call.text("targetKeyId").rsplit("/", 1)[-1]
        existing(
            call,
            base.KEY,
            target,
            service="KMS",
            operation="CreateAlias",
            code="NotFoundException",
            message=names.KEY_IS_THERE(arn=call.arn("kms", f"key/{target}")),
        )
        return Made(name, {"arn": arn, "targetKeyArn": call.arn("kms", f"key/{target}")})


class LogGroup(ResourceType):
    """A CloudWatch log group; EKS may have made it first."""

    token = base.LOG_GROUP
    autoname = "name"

    def create(self, call: Call) -> Made:
        name = call.text("name")
        if (there := call.account.find(base.LOG_GROUP, name, region=call.region)) is not None:
            message = call.taken(names.LOG_GROUP_IS_FREE(), there)
            raise AwsError("CloudWatch Logs", "CreateLogGroup", "ResourceAlreadyExistsException", message)
        return Made(name, {"arn": call.arn("logs", f"log-group:{name}")})


TYPES: tuple[ResourceType, ...] = (
    Role(),
    RolePolicy(),
    Policy(),
    RolePolicyAttachment(),
    OpenIdConnectProvider(),
    Key(),
    Alias(),
    LogGroup(),
)
