"""The configuration values of the inference operator's EKS add-on, key by key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpd_infra.spec.operator import OperatorSpec


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: EKS compares configuration values as text, so any other spelling would be a change."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """`theirs` over `ours`: maps are merged key by key at every depth, anything else (lists too) is replaced."""
    result = dict(ours)
    for key, value in theirs.items():
        mine = result.get(key)
        result[key] = merged(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return result


def render_operator_configuration(
    spec: OperatorSpec,
    *,
    execution_role_arn: str,
    tls_bucket: str,
    cluster_arn: str,
    load_balancer_role_arn: str | None,
    keda_role_arn: str | None,
) -> dict[str, Any]:
    """The values of `amazon-sagemaker-hyperpod-inference`, with the spec's own `configuration` over them.

    `tlsCertificateS3Bucket` is a bucket's name (the Helm chart wants a URI instead); KEDA's role stands under `auth` (the chart has
    `podIdentity`); `hyperpodClusterArn` is always sent: the add-on needs it from v1.2.0-eksbuild.1 on, and finding it by itself fails
    on nodes that are not HyperPod's (setup guide; release notes 3.1.2). A role is None where its controller is in the cluster already.
    """
    values: dict[str, Any] = {
        "executionRoleArn": execution_role_arn,
        "tlsCertificateS3Bucket": tls_bucket,
        "hyperpodClusterArn": cluster_arn,
        "alb": {"enabled": False},
        "keda": {"enabled": False},
    }
    if load_balancer_role_arn is not None:
        values["alb"] = {"enabled": True, "serviceAccount": {"create": True, "roleArn": load_balancer_role_arn}}
    if keda_role_arn is not None:
        values["keda"] = {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": keda_role_arn}}}}
    if spec.gated_model_role_arn is not None:
        values["jumpstartGatedModelDownloadRoleArn"] = spec.gated_model_role_arn
    return merged(values, spec.configuration)
