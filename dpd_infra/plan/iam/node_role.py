"""The execution role of HyperPod instance groups: what a node may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dpd_infra.catalog.sources import HYPERPOD_TERRAFORM
from dpd_infra.plan.iam.document import RolePlan, Scope, Statement, allow, inline, managed_policy_arns, same_account, through_s3
from dpd_infra.plan.iam.trust import SAGEMAKER, service, trust

if TYPE_CHECKING:
    from collections.abc import Sequence

NODE_MANAGED_POLICIES: Final = ("AmazonSageMakerClusterInstanceRolePolicy",)
"""Logs and metrics of the cluster, Session Manager, and reading buckets named `sagemaker-*` (HyperPod prerequisites)."""


def node_role(
    *,
    region: str,
    account_id: str,
    vpc_id: str,
    subnet_ids: Sequence[str],
    security_group_ids: Sequence[str],
    cluster_arn: str,
    lifecycle_bucket_arn: str,
    lifecycle_key_arn: str | None = None,
    volume_key_arns: Sequence[str] = (),
    image_regions: Sequence[str] = (),
    partition: str = "aws",
) -> RolePlan:
    """The role of the nodes: exactly the actions of the published Terraform modules, each on this platform's own resources.

    `cluster_arn` is the EKS cluster's. `lifecycle_key_arn` is the KMS key of the lifecycle bucket, where it has one, and
    `volume_key_arns` are those of the nodes' volumes: HyperPod needs grants on them to add nodes (guide to customer managed keys; its
    text gives no condition for the grants). Images are
    pulled from registries of `region` and of `image_regions`; their accounts stay open, because the images of EKS, of the operator
    and of the deep learning containers live in AWS accounts that differ by region. Raises `ValueError` for no subnet or no group.

    The trust has no aws:SourceAccount: SageMaker's guide to it lists the features that send one, and HyperPod is not among them;
    a condition on a key that is not sent would stop CreateCluster.
    """
    scope = Scope(partition, region, account_id)
    statements = [*_network(scope, vpc_id, subnet_ids, security_group_ids), *_images(scope, image_regions)]
    statements += [
        allow("ReadAlarms", ["cloudwatch:DescribeAlarms"], [scope.arn("cloudwatch", "alarm:*")]),
        allow("ReadFileSystems", ["fsx:DescribeFileSystems"], "*"),
        allow("PodIdentity", ["eks-auth:AssumeRoleForPodIdentity"], [cluster_arn]),
        allow("ListLifecycleScripts", ["s3:ListBucket"], [lifecycle_bucket_arn], same_account()),
        allow("ReadLifecycleScripts", ["s3:GetObject"], [f"{lifecycle_bucket_arn}/*"], same_account()),
    ]
    if lifecycle_key_arn is not None:
        statements.append(allow("DecryptLifecycleScripts", ["kms:Decrypt"], [lifecycle_key_arn], through_s3(region, partition)))
    if volume_key_arns:
        statements.append(allow("UseVolumeKeys", ["kms:CreateGrant", "kms:DescribeKey"], volume_key_arns))
    return RolePlan(
        name_hint="hyperpod-node",
        description="Execution role of the HyperPod instance groups.",
        trust=trust(service(SAGEMAKER)),
        managed_policies=managed_policy_arns(NODE_MANAGED_POLICIES, partition),
        inline=inline(*statements),
        source=HYPERPOD_TERRAFORM,
    )


def _network(scope: Scope, vpc_id: str, subnet_ids: Sequence[str], security_group_ids: Sequence[str]) -> list[Statement]:
    """What the VPC CNI and the service do with network interfaces."""
    if not subnet_ids or not security_group_ids:
        message = "the nodes' role needs the subnets and the security groups of the nodes"
        raise ValueError(message)
    instances, interfaces = scope.arn("ec2", "instance/*"), scope.arn("ec2", "network-interface/*")
    groups = [scope.arn("ec2", f"security-group/{group}") for group in security_group_ids]
    subnets = [scope.arn("ec2", f"subnet/{subnet}") for subnet in subnet_ids]
    manage = (
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:CreateNetworkInterfacePermission",
        "ec2:DeleteNetworkInterface",
        "ec2:DeleteNetworkInterfacePermission",
        "ec2:DetachNetworkInterface",
        "ec2:ModifyNetworkInterfaceAttribute",
        "ec2:UnassignPrivateIpAddresses",
    )
    read = ("DhcpOptions", "InstanceTypes", "Instances", "NetworkInterfaces", "SecurityGroups", "Subnets", "Tags", "Vpcs")
    return [
        allow("AttachNetworkInterfaces", ["ec2:AttachNetworkInterface"], [instances, interfaces]),
        allow("ReadNetwork", [f"ec2:Describe{what}" for what in read], "*"),
        allow("TagNetworkInterfaces", ["ec2:CreateTags"], [interfaces]),
        allow("ManageNetworkInterfaces", manage, [instances, interfaces, scope.arn("ec2", f"vpc/{vpc_id}"), *subnets, *groups]),
    ]


def _images(scope: Scope, image_regions: Sequence[str]) -> list[Statement]:
    repositories = [f"arn:{scope.partition}:ecr:{region}:*:repository/*" for region in (scope.region, *image_regions)]
    pull = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
    return [allow("RegistryToken", ["ecr:GetAuthorizationToken"], "*"), allow("PullImages", pull, repositories)]
