"""Every role of the IAM plan with realistic arguments, for the tests beside it."""

from __future__ import annotations

from typing import Any

from dpd_infra.plan import iam
from dpd_infra.plan.iam.trust import ServiceAccount

ACCOUNT = "111122223333"
REGIONS = {"aws": "us-west-2", "aws-us-gov": "us-gov-west-1", "aws-cn": "cn-north-1"}
VPC = "vpc-0a1b2c3d4e5f60718"


def issuer(partition: str) -> str:
    return f"oidc.eks.{REGIONS[partition]}.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"


def provider(partition: str) -> str:
    return f"arn:{partition}:iam::{ACCOUNT}:oidc-provider/{issuer(partition)}"


def key(partition: str, number: int = 0) -> str:
    return f"arn:{partition}:kms:{REGIONS[partition]}:{ACCOUNT}:key/{number:08d}-1234-1234-1234-123456789012"


def roles(partition: str = "aws") -> dict[str, iam.RolePlan]:
    """Each role, the ones with options with none and with all of them."""
    region = REGIONS[partition]
    web: dict[str, Any] = {"provider_arn": provider(partition), "issuer": issuer(partition), "partition": partition}
    place = {"region": region, "account_id": ACCOUNT}
    bucket = f"arn:{partition}:s3:::"
    node = {
        "vpc_id": VPC,
        "subnet_ids": ["subnet-0a1b2c3d4e5f60718", "subnet-1a1b2c3d4e5f60718"],
        "security_group_ids": ["sg-0a1b2c3d4e5f60718", "sg-1a1b2c3d4e5f60718"],
        "cluster_arn": f"arn:{partition}:eks:{region}:{ACCOUNT}:cluster/dpd-prod",
        "lifecycle_bucket_arn": f"{bucket}sagemaker-dpd-prod-{ACCOUNT}",
        "partition": partition,
    }
    return {
        "node": iam.node_role(**place, **node),
        "node, all": iam.node_role(
            **place, **node, lifecycle_key_arn=key(partition), volume_key_arns=[key(partition)], image_regions=["us-east-1"]
        ),
        "inference": iam.inference_execution_role(**place, **web, tls_bucket_name="hyperpod-tls-dpd-prod"),
        "inference, all": iam.inference_execution_role(
            **place,
            **web,
            tls_bucket_name="certificates-of-acme",
            certificate_arns=[f"arn:{partition}:acm:{region}:{ACCOUNT}:certificate/12345678-1234-1234-1234-123456789012"],
            hosted_zone_arns=[iam.hosted_zone_arn("Z0123456789ABCDEFGHIJ", partition)],
            data_capture_bucket_arns=[f"{bucket}capture-of-acme"],
            key_arns=[key(partition)],
        ),
        "keda": iam.keda_role(**place, **web),
        "keda, named workspace": iam.keda_role(
            **place, **web, workspace_arns=[f"arn:{partition}:aps:{region}:{ACCOUNT}:workspace/ws-12345678-1234-1234-1234-123456789012"]
        ),
        "gated": iam.gated_model_role(**web, namespaces=["default", "team-a"]),
        "gateway": iam.gateway_certificate_role(**web),
        "load balancers": iam.load_balancer_controller_role(**place, **web, vpc_id=VPC),
        "s3 v1": iam.s3_csi_role(region=region, **web, bucket_arns=[f"{bucket}models-of-acme"], driver_version="v1.14.1-eksbuild.1"),
        "s3 v2, all": iam.s3_csi_role(
            region=region,
            **web,
            bucket_arns=[f"{bucket}models-of-acme", f"{bucket}more-models-of-acme"],
            driver_version="v2.8.0-eksbuild.1",
            write=True,
            key_arns=[key(partition)],
        ),
        "fsx": iam.fsx_csi_role(**place, **web),
        "fsx, dynamic": iam.fsx_csi_role(**place, **web, dynamic=True),
        "cluster": iam.cluster_role(**place, cluster_name="dpd-prod", partition=partition),
        "cluster, key": iam.cluster_role(**place, cluster_name="dpd-prod", secrets_key_arn=key(partition), partition=partition),
        "flow logs": iam.flow_logs_role(
            **place, log_group_arn=f"arn:{partition}:logs:{region}:{ACCOUNT}:log-group:/dpd/prod/flow-logs:*", partition=partition
        ),
        "model staging": iam.staging_role(
            provider_arn=provider(partition),
            issuer=issuer(partition),
            account=ServiceAccount("default", "store-staging"),
            bucket_arn=f"{bucket}models-of-acme",
            folders=["Llama-3.3-70B-Instruct", "qwen"],
        ),
    }


def statements(plan: iam.RolePlan) -> list[dict[str, Any]]:
    """All permission statements of a role."""
    return [statement for document in plan.inline.values() for statement in document["Statement"]]


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
