"""What an IAM policy is made of: statements, documents, ARNs, and the plan of one role."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dpd_infra.catalog.sources import Source

Statement = dict[str, Any]
"""One statement of a policy, as IAM's JSON has it."""

Document = dict[str, Any]
"""One policy: `Version` and `Statement`."""

POLICY_NAME: Final = "permissions"
"""The name of a role's one inline policy: a role of this package has one or none."""

INLINE_LIMIT: Final = 10_240
"""Characters that all inline policies of a role may have together, white space not counted (IAM quotas)."""

MANAGED_LIMIT: Final = 6_144
"""Characters that one managed policy may have, white space not counted (IAM quotas)."""

TRUST_LIMIT: Final = 2_048
"""Characters that a trust policy may have, white space not counted: the default quota (IAM quotas)."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a platform lives: the fixed fields of its ARNs."""

    partition: str
    region: str
    account_id: str

    def arn(self, service: str, resource: str) -> str:
        """The ARN of a resource of this region and account."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account_id}:{resource}"

    def global_arn(self, service: str, resource: str) -> str:
        """The ARN of a resource of this account that has no region, such as a role."""
        return f"arn:{self.partition}:{service}::{self.account_id}:{resource}"


@dataclass(frozen=True, slots=True)
class RolePlan:
    """One IAM role: who may take it and what it may do. Raises `ValueError` for policies longer than IAM accepts."""

    name_hint: str
    """What the role is for, in words that fit a role name."""
    description: str
    """One sentence, shown in IAM (at most 1,000 characters)."""
    trust: Document
    """Who may take the role."""
    managed_policies: tuple[str, ...]
    """ARNs of the AWS managed policies to attach."""
    inline: dict[str, Document]
    """Inline policies by name: `POLICY_NAME` or nothing."""
    source: Source
    """Where the role is described."""

    def __post_init__(self) -> None:
        """Hold the quotas of IAM, so that a policy that is too long is named here and not by an API error."""
        _within("trust policy", self.name_hint, length(self.trust), TRUST_LIMIT)
        _within("inline policies", self.name_hint, sum(length(document) for document in self.inline.values()), INLINE_LIMIT)


def allow(sid: str, actions: Iterable[str], resources: Iterable[str] | str, condition: Mapping[str, Any] | None = None) -> Statement:
    """An Allow statement; `resources` is `*` only for actions that take no resource. Raises `ValueError` for no action or no resource.

    Actions are sorted and both lists are free of repetition, so that the order of a caller's arguments is no change of the policy.
    """
    listed = sorted(set(actions))
    wanted: list[str] | str = resources if isinstance(resources, str) else sorted(set(resources))
    if not listed or not wanted:
        message = f"the statement {sid} allows {listed} on {wanted}: an action and a resource are needed"
        raise ValueError(message)
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": listed, "Resource": wanted}
    if condition:
        statement["Condition"] = dict(condition)
    return statement


def policy(*statements: Statement) -> Document:
    """A policy of these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def inline(*statements: Statement) -> dict[str, Document]:
    """The inline policies of a role: one of these statements, or none where there are none."""
    return {POLICY_NAME: policy(*statements)} if statements else {}


def to_json(document: Mapping[str, Any]) -> str:
    """The canonical text of a policy: sorted keys, no spaces, so that equal policies are equal strings."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def length(document: Mapping[str, Any]) -> int:
    """The characters of a policy as IAM counts them: without white space."""
    return len("".join(to_json(document).split()))


def managed_policy_arns(names: Iterable[str], partition: str = "aws") -> tuple[str, ...]:
    """The ARNs of AWS managed policies."""
    return tuple(f"arn:{partition}:iam::aws:policy/{name}" for name in names)


def same_account() -> dict[str, dict[str, str]]:
    """The condition that the resource is of the role's own account: a bucket's ARN names none, and another account can remake a bucket."""
    return {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}


def through_s3(region: str, partition: str) -> dict[str, dict[str, list[str]]]:
    """The condition that a KMS key is used only by S3 of this region on the role's behalf."""
    services = [f"s3.{region}.amazonaws.com"]
    if partition == "aws-cn":
        services.append(f"s3.{region}.amazonaws.com.cn")
    return {"StringEquals": {"kms:ViaService": services}}


def _within(what: str, role: str, characters: int, limit: int) -> None:
    if characters > limit:
        message = f"the {what} of the role {role} have {characters:,} characters; IAM accepts {limit:,}"
        raise ValueError(message)
