"""A private bucket as resources: nobody outside, encrypted, over TLS only, and deleted with what it holds."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.render.addon_values import canonical_json
from dpd_infra.render.bucket_policy import tls_only_policy


@dataclass(frozen=True, slots=True)
class MadeBucket:
    """A bucket with its settings."""

    bucket: aws.s3.Bucket
    resources: tuple[pulumi.Resource, ...]
    """The bucket and its settings: what must stand before anything is put in."""


def make_bucket(
    parent: pulumi.Resource,
    name: str,
    *,
    bucket_name: str,
    versioned: bool,
    account: Account,
    suffix: str,
    emptied: bool = True,
    protect: bool | None = None,
) -> MadeBucket:
    """A private bucket; `suffix` is the end of its Name tag.

    `emptied` says that it holds only what can be made again: it is then deleted with its contents.
    """
    inside = pulumi.ResourceOptions(parent=parent)
    bucket = aws.s3.Bucket(
        name,
        bucket=bucket_name,
        force_destroy=emptied,
        tags=aws_tags(account, suffix),
        opts=pulumi.ResourceOptions(parent=parent, protect=protect),
    )
    access = aws.s3.BucketPublicAccessBlock(
        f"{name}-public-access",
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=inside,
    )
    encryption = aws.s3.BucketServerSideEncryptionConfiguration(
        f"{name}-encryption",
        bucket=bucket.bucket,
        rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
        opts=inside,
    )
    policy = aws.s3.BucketPolicy(
        f"{name}-tls-only",
        bucket=bucket.bucket,
        policy=bucket.arn.apply(lambda arn: canonical_json(tls_only_policy(arn))),
        # S3 refuses a policy and a public access block that are set at one time (OperationAborted).
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[access]),
    )
    resources: list[pulumi.Resource] = [bucket, access, encryption, policy]
    if versioned:
        versioning = aws.s3.BucketVersioning(
            f"{name}-versioning", bucket=bucket.bucket, versioning_configuration={"status": "Enabled"}, opts=inside
        )
        resources.append(versioning)
    return MadeBucket(bucket, tuple(resources))
