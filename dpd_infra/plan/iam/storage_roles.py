"""The roles of the CSI drivers: models in S3 buckets, and file systems of FSx for Lustre.

Both are taken through the OIDC provider (`service_account_role_arn` of the add-on) and not through EKS Pod Identity: the minimum S3
driver, v1, knows no Pod Identity; with v2 a report has the Mountpoint pods of another namespace miss an association made for the
driver's account, where the OIDC way works; and the operator needs the OIDC provider anyway, while Pod Identity would add an agent
that must run on a node first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dpd_infra.catalog.sources import FSX_CSI_INSTALL, S3_CSI_CONFIGURATION
from dpd_infra.plan.iam.document import RolePlan, Scope, allow, inline, through_s3
from dpd_infra.plan.iam.trust import (
    FSX_CSI_CONTROLLER,
    S3_CSI_CONTROLLER,
    S3_CSI_MOUNT_PODS,
    S3_CSI_NODE,
    ServiceAccount,
    trust,
    web_identity,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION = re.compile(r"v(\d+)\.\d+\.\d+(-eksbuild\.\d+)?")

_POD_MOUNTS_SINCE: Final = 2
"""The major version from which Mountpoint runs in pods of its own, in the namespace mount-s3 (upgrading guide to v2)."""


def s3_csi_accounts(driver_version: str) -> tuple[ServiceAccount, ...]:
    """The service accounts of the S3 driver: one before v2, three from v2 on. Raises `ValueError` on a malformed version."""
    match = _VERSION.fullmatch(driver_version)
    if match is None:
        message = f"{driver_version!r} is not an add-on version: expected the form v2.8.0-eksbuild.1"
        raise ValueError(message)
    if int(match.group(1)) < _POD_MOUNTS_SINCE:
        return (S3_CSI_NODE,)
    return (S3_CSI_NODE, S3_CSI_CONTROLLER, S3_CSI_MOUNT_PODS)


def s3_csi_role(
    *,
    region: str,
    provider_arn: str,
    issuer: str,
    bucket_arns: Sequence[str],
    driver_version: str,
    write: bool = False,
    key_arns: Sequence[str] = (),
    partition: str = "aws",
) -> RolePlan:
    """The role that mounts the buckets of models: listing and reading; with `write` also writing and deleting objects.

    Buckets may belong to other accounts. `key_arns` are the KMS keys of the buckets. With a role on the first account only, a v2
    driver fails with `NoSigningCredentials`. Raises `ValueError` for no bucket, a malformed version, or more buckets than one
    role's policies hold (over 50 of the longest names).
    """
    objects = ["s3:GetObject"]
    if write:
        objects += ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"]
    statements = [
        allow("ListBuckets", ["s3:ListBucket"], bucket_arns),
        allow("UseObjects", objects, [f"{bucket}/*" for bucket in bucket_arns]),
    ]
    if key_arns:
        keys = ["kms:Decrypt", "kms:GenerateDataKey"] if write else ["kms:Decrypt"]
        statements.append(allow("UseKeys", keys, key_arns, through_s3(region, partition)))
    return RolePlan(
        name_hint="s3-csi",
        description="Role of the Mountpoint for Amazon S3 CSI driver: the buckets that hold models.",
        trust=trust(web_identity(provider_arn, issuer, s3_csi_accounts(driver_version))),
        managed_policies=(),
        inline=inline(*statements),
        source=S3_CSI_CONFIGURATION,
    )


def fsx_csi_role(
    *, region: str, account_id: str, provider_arn: str, issuer: str, dynamic: bool = False, partition: str = "aws"
) -> RolePlan:
    """The role of the FSx for Lustre driver: reads file systems; with `dynamic` also makes and deletes them for storage classes.

    Endpoints name file systems that exist, and the driver's controller calls FSx only to make, grow and delete them: so the role has
    no AmazonFSxFullAccess. `dynamic` follows the driver's own public policy without the part that links file systems to S3 buckets
    (it would let the role write policies of service-linked roles).
    """
    scope = Scope(partition, region, account_id)
    statements = [allow("ReadFileSystems", ["fsx:DescribeFileSystems"], "*")]
    if dynamic:
        manage = ("fsx:CreateFileSystem", "fsx:DeleteFileSystem", "fsx:TagResource", "fsx:UpdateFileSystem")
        linked = scope.global_arn("iam", "role/aws-service-role/fsx.amazonaws.com/AWSServiceRoleForAmazonFSx")
        for_fsx = {"StringEquals": {"iam:AWSServiceName": "fsx.amazonaws.com"}}
        statements += [
            allow("ManageFileSystems", manage, [scope.arn("fsx", "file-system/*")]),
            allow("ServiceLinkedRole", ["iam:CreateServiceLinkedRole"], [linked], for_fsx),
        ]
    return RolePlan(
        name_hint="fsx-csi",
        description="Role of the FSx for Lustre CSI driver.",
        trust=trust(web_identity(provider_arn, issuer, [FSX_CSI_CONTROLLER])),
        managed_policies=(),
        inline=inline(*statements),
        source=FSX_CSI_INSTALL,
    )
