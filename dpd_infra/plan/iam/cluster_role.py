"""The roles of the network and the control plane: the EKS cluster's, and the one that writes VPC flow logs."""

from __future__ import annotations

from typing import Final

from dpd_infra.catalog.sources import EKS_CONFUSED_DEPUTY, FLOW_LOGS_GUIDE
from dpd_infra.plan.iam.document import RolePlan, Scope, allow, inline, managed_policy_arns
from dpd_infra.plan.iam.trust import EKS, FLOW_LOGS, service, trust

CLUSTER_MANAGED_POLICIES: Final = ("AmazonEKSClusterPolicy",)


def cluster_role(
    *, region: str, account_id: str, cluster_name: str, secrets_key_arn: str | None = None, partition: str = "aws"
) -> RolePlan:
    """The role of the EKS control plane, for this cluster alone; `secrets_key_arn` is the KMS key that encrypts its Secrets.

    The trust has no sts:TagSession: only EKS Auto Mode needs it. The key's actions are those that the EKS Terraform module grants.
    """
    scope = Scope(partition, region, account_id)
    statements = []
    if secrets_key_arn is not None:
        statements.append(allow("EncryptSecrets", ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ListGrants"], [secrets_key_arn]))
    source_arn = scope.arn("eks", f"cluster/{cluster_name}")
    return RolePlan(
        name_hint="eks-cluster",
        description="Role of the EKS control plane.",
        trust=trust(service(EKS, source_account=account_id, source_arn=source_arn)),
        managed_policies=managed_policy_arns(CLUSTER_MANAGED_POLICIES, partition),
        inline=inline(*statements),
        source=EKS_CONFUSED_DEPUTY,
    )


def flow_logs_role(*, region: str, account_id: str, log_group_arn: str, partition: str = "aws") -> RolePlan:
    """The role that writes the VPC's flow logs into one log group (its ARN with or without the closing `:*`).

    The guide's logs:CreateLogGroup is left out: the stack makes the group, with its retention. The flow log's own id is open in the
    trust, as the guide allows: the flow log is made after the role.
    """
    group = log_group_arn.removesuffix(":*")
    scope = Scope(partition, region, account_id)
    return RolePlan(
        name_hint="flow-logs",
        description="Role that writes VPC flow logs to their log group.",
        trust=trust(service(FLOW_LOGS, source_account=account_id, source_arn=scope.arn("ec2", "vpc-flow-log/*"))),
        managed_policies=(),
        inline=inline(
            allow("WriteStreams", ["logs:CreateLogStream", "logs:PutLogEvents"], [f"{group}:log-stream:*"]),
            allow("ReadGroup", ["logs:DescribeLogStreams"], [group, f"{group}:*"]),
            allow("ReadGroups", ["logs:DescribeLogGroups"], "*"),
        ),
        source=FLOW_LOGS_GUIDE,
    )
