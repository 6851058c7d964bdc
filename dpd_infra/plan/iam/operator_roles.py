"""The roles of the inference operator: execution, autoscaling, gated JumpStart models, and the gateway's certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dpd_infra.catalog.sources import GATEWAY_GUIDE, SETUP_GUIDE
from dpd_infra.plan.iam.document import RolePlan, Scope, Statement, allow, inline, managed_policy_arns, same_account, through_s3
from dpd_infra.plan.iam.trust import (
    GATEWAY_CONTROLLER,
    INFERENCE_CONTROLLER,
    KEDA_OPERATOR,
    SAGEMAKER,
    gated_model_identity,
    service,
    trust,
    web_identity,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

INFERENCE_MANAGED_POLICIES: Final = ("AmazonSageMakerHyperPodInferenceAccess",)
GATED_MODEL_MANAGED_POLICIES: Final = ("AmazonSageMakerHyperPodGatedModelAccess",)
GATEWAY_MANAGED_POLICIES: Final = ("AmazonSageMakerHyperPodInferenceGatewayAccess",)

MANAGED_TLS_BUCKET_PREFIX: Final = "hyperpod-tls"
"""The certificate buckets that the managed policy covers: `hyperpod-tls*` (managed policy, version v4)."""


def inference_execution_role(
    *,
    region: str,
    account_id: str,
    provider_arn: str,
    issuer: str,
    tls_bucket_name: str,
    certificate_arns: Sequence[str] = (),
    hosted_zone_arns: Sequence[str] = (),
    data_capture_bucket_arns: Sequence[str] = (),
    key_arns: Sequence[str] = (),
    partition: str = "aws",
) -> RolePlan:
    """The operator's own role, which SageMaker takes as well for the endpoint: the managed policy and what that lacks.

    Its name must begin with `SageMakerHyperPodInference`. `certificate_arns` are custom ACM certificates, `hosted_zone_arns` the
    Route 53 zones of dnsConfig, `data_capture_bucket_arns` buckets other than the certificate bucket, `key_arns` the KMS keys of
    the certificate bucket (where it has a custom name) and of those buckets.

    SageMaker's statement carries aws:SourceAccount: its guide names inference among the features that send it.
    """
    scope = Scope(partition, region, account_id)
    statements = [
        # The endpoint's network interfaces: the managed policy has Create alone, and the permissions page asks for both.
        allow("ReleaseInterfaces", ["ec2:DeleteNetworkInterfacePermission"], [scope.arn("ec2", "network-interface/*")]),
    ]
    if not tls_bucket_name.startswith(MANAGED_TLS_BUCKET_PREFIX):
        statements += _certificate_bucket(f"arn:{partition}:s3:::{tls_bucket_name}")
    if certificate_arns:
        statements.append(allow("ReadCertificates", ["acm:DescribeCertificate", "acm:GetCertificate"], certificate_arns))
    if hosted_zone_arns:
        records = ("route53:ChangeResourceRecordSets", "route53:GetHostedZone", "route53:ListResourceRecordSets")
        statements.append(allow("ManageRecords", records, hosted_zone_arns))
    if data_capture_bucket_arns:
        objects = [f"{bucket}/*" for bucket in data_capture_bucket_arns]
        statements.append(allow("CaptureData", ["s3:AbortMultipartUpload", "s3:PutObject"], objects, same_account()))
    if key_arns:
        statements.append(allow("UseKeys", ["kms:Decrypt", "kms:GenerateDataKey"], key_arns, through_s3(region, partition)))
    return RolePlan(
        name_hint="inference-execution",
        description="Role of the HyperPod inference operator and of the endpoints it makes.",
        trust=trust(service(SAGEMAKER, source_account=account_id), web_identity(provider_arn, issuer, [INFERENCE_CONTROLLER])),
        managed_policies=managed_policy_arns(INFERENCE_MANAGED_POLICIES, partition),
        inline=inline(*statements),
        source=SETUP_GUIDE,
    )


def keda_role(
    *,
    region: str,
    account_id: str,
    provider_arn: str,
    issuer: str,
    workspace_arns: Sequence[str] = (),
    partition: str = "aws",
) -> RolePlan:
    """The role that KEDA reads its metrics with: CloudWatch, and Prometheus workspaces.

    Without `workspace_arns` it may query every workspace of the account and region. CloudWatch's reads take no resource.
    """
    workspaces = workspace_arns or [Scope(partition, region, account_id).arn("aps", "workspace/*")]
    metrics = ("cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics", "cloudwatch:ListMetrics")
    queries = ("aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics")
    return RolePlan(
        name_hint="keda",
        description="Role of KEDA: reads the metrics that replicas scale on.",
        trust=trust(web_identity(provider_arn, issuer, [KEDA_OPERATOR])),
        managed_policies=(),
        inline=inline(allow("ReadCloudWatch", metrics, "*"), allow("QueryPrometheus", queries, workspaces)),
        source=SETUP_GUIDE,
    )


def gated_model_role(*, provider_arn: str, issuer: str, namespaces: Sequence[str], partition: str = "aws") -> RolePlan:
    """The role that downloads gated JumpStart models, for models of these namespaces.

    SageMaker's statement has no aws:SourceAccount: its guide does not list JumpStart downloads among the features that send one.
    """
    return RolePlan(
        name_hint="jumpstart-gated",
        description="Role that downloads gated JumpStart models.",
        trust=trust(service(SAGEMAKER), gated_model_identity(provider_arn, issuer, namespaces)),
        managed_policies=managed_policy_arns(GATED_MODEL_MANAGED_POLICIES, partition),
        inline={},
        source=SETUP_GUIDE,
    )


def gateway_certificate_role(*, provider_arn: str, issuer: str, partition: str = "aws") -> RolePlan:
    """The role that the inference gateway issues its certificates with, from add-on v2.0.0-eksbuild.2 on.

    It must exist before the add-on: the gateway's controller reads it when it starts.
    """
    return RolePlan(
        name_hint="gateway-certificates",
        description="Role of the inference gateway: issues its TLS certificates.",
        trust=trust(web_identity(provider_arn, issuer, [GATEWAY_CONTROLLER])),
        managed_policies=managed_policy_arns(GATEWAY_MANAGED_POLICIES, partition),
        inline={},
        source=GATEWAY_GUIDE,
    )


def hosted_zone_arn(zone_id: str, partition: str = "aws") -> str:
    """The ARN of a Route 53 hosted zone."""
    return f"arn:{partition}:route53:::hostedzone/{zone_id}"


def _certificate_bucket(bucket_arn: str) -> list[Statement]:
    """What the managed policy grants on `hyperpod-tls*`, for a bucket of another name (setup guide; listing as in the managed policy)."""
    objects = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject", "s3:PutObjectTagging")
    return [
        allow("ListCertificateBucket", ["s3:ListBucket"], [bucket_arn], same_account()),
        allow("UseCertificateBucket", objects, [f"{bucket_arn}/*"], same_account()),
    ]
