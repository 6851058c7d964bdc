"""IAM of a platform: each role as a pure function that returns its trust and its policies as plain dicts."""

from __future__ import annotations

from dpd_infra.plan.iam.cluster_role import CLUSTER_MANAGED_POLICIES, cluster_role, flow_logs_role
from dpd_infra.plan.iam.document import POLICY_NAME, RolePlan, managed_policy_arns, to_json
from dpd_infra.plan.iam.load_balancer_controller import load_balancer_controller_role
from dpd_infra.plan.iam.node_role import NODE_MANAGED_POLICIES, node_role
from dpd_infra.plan.iam.operator_roles import (
    GATED_MODEL_MANAGED_POLICIES,
    GATEWAY_MANAGED_POLICIES,
    INFERENCE_MANAGED_POLICIES,
    gated_model_role,
    gateway_certificate_role,
    hosted_zone_arn,
    inference_execution_role,
    keda_role,
)
from dpd_infra.plan.iam.storage_roles import fsx_csi_role, s3_csi_role
from dpd_infra.plan.iam.team_roles import invoke_policy, staging_role

__all__ = [
    "CLUSTER_MANAGED_POLICIES",
    "GATED_MODEL_MANAGED_POLICIES",
    "GATEWAY_MANAGED_POLICIES",
    "INFERENCE_MANAGED_POLICIES",
    "NODE_MANAGED_POLICIES",
    "POLICY_NAME",
    "RolePlan",
    "cluster_role",
    "flow_logs_role",
    "fsx_csi_role",
    "gated_model_role",
    "gateway_certificate_role",
    "hosted_zone_arn",
    "inference_execution_role",
    "invoke_policy",
    "keda_role",
    "load_balancer_controller_role",
    "managed_policy_arns",
    "node_role",
    "s3_csi_role",
    "staging_role",
    "to_json",
]
