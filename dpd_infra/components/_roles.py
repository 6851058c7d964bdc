"""One IAM role as resources: the role, its managed policies and its inline policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.plan.iam import POLICY_NAME, RolePlan, managed_policy_arns, to_json


@dataclass(frozen=True, slots=True)
class MadeRole:
    """A role with all it may do."""

    role: aws.iam.Role
    resources: tuple[pulumi.Resource, ...]
    """The role and its policies: what must stand before anything takes the role."""

    @property
    def arn(self) -> pulumi.Output[str]:
        """The role's ARN."""
        return self.role.arn


def make_role(
    parent: pulumi.Resource,
    name: str,
    plan: pulumi.Output[RolePlan],
    *,
    role_name: str,
    managed_policies: Sequence[str] = (),
    inline: bool = True,
    account: Account,
    suffix: str,
) -> MadeRole:
    """A role from its plan, as children of a component.

    The plan's policies hold ids that a preview does not know, so which of them there are is said beforehand: `managed_policies` by name,
    and `inline` for the inline policy. A plan that has others fails the role. `suffix` is the end of its Name tag.
    """
    checked = plan.apply(lambda made: _as_declared(made, managed_policies, account.partition, inline=inline))
    role = aws.iam.Role(
        name,
        name=role_name,
        description=checked.apply(lambda made: made.description),
        assume_role_policy=checked.apply(lambda made: to_json(made.trust)),
        tags=aws_tags(account, suffix),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    resources: list[pulumi.Resource] = [role]
    for policy, arn in zip(managed_policies, managed_policy_arns(managed_policies, account.partition), strict=True):
        resources.append(
            aws.iam.RolePolicyAttachment(f"{name}-{policy}", role=role.name, policy_arn=arn, opts=pulumi.ResourceOptions(parent=parent))
        )
    if inline:
        resources.append(
            aws.iam.RolePolicy(
                f"{name}-{POLICY_NAME}",
                name=POLICY_NAME,
                role=role.name,
                policy=checked.apply(lambda made: to_json(made.inline[POLICY_NAME])),
                opts=pulumi.ResourceOptions(parent=parent),
            )
        )
    return MadeRole(role, tuple(resources))


def _as_declared(plan: RolePlan, managed_policies: Sequence[str], partition: str, *, inline: bool) -> RolePlan:
    if plan.managed_policies != managed_policy_arns(managed_policies, partition) or bool(plan.inline) is not inline:
        message = f"the role {plan.name_hint} has other policies than its component makes: {plan.managed_policies}, {sorted(plan.inline)}"
        raise pulumi.RunError(message)
    return plan
