"""Simulated S3: bucket names that are taken worldwide, settings that need their bucket, and buckets that must be empty to go."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.base import name_problem
from dpd_infra.rehearsal.errors import AwsError
from dpd_infra.rehearsal.simulation import Call, Made, ResourceType
from dpd_infra.rehearsal.wire import Asset
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import account as rules
from dpd_infra.rehearsal.world.rules import names

WRITTEN_BY_AWS = "s3:object"
"""Type of the objects that a service wrote into a bucket, such as the operator's certificates."""


class Bucket(ResourceType):
    """A bucket: its name is unique, and it goes only when it is empty or may be emptied."""

    token = base.BUCKET
    autoname = "bucket"
    regional = False

    def check(self, call: Call) -> Mapping[str, Said]:
        return name_problem(call, "bucket", r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", names.BUCKET_NAME)

    def create(self, call: Call) -> Made:
        name = call.text("bucket")
        if (there := call.account.find(base.BUCKET, name)) is not None:
            raise AwsError("S3", "CreateBucket", "BucketAlreadyOwnedByYou", call.taken(names.BUCKET_IS_FREE(), there), status=409)
        return Made(
            name,
            {
                "arn": f"arn:aws:s3:::{name}",
                "bucketDomainName": f"{name}.s3.amazonaws.com",
                "bucketRegionalDomainName": f"{name}.s3.{call.region}.amazonaws.com",
                "bucketRegion": call.region,
                "forceDestroy": call.inputs.get("forceDestroy", False),
                "region": call.region,
            },
        )

    def delete(self, call: Call) -> None:
        contents = call.account.all(base.BUCKET_OBJECT, WRITTEN_BY_AWS, bucket=call.id)
        if contents and not call.inputs.get("forceDestroy"):
            raise AwsError("S3", "DeleteBucket", "BucketNotEmpty", rules.BUCKET_EMPTY(), status=409)
        for item in contents:
            call.account.remove(item)


def _existing_bucket(call: Call, operation: str) -> str:
    name = call.text("bucket")
    if call.account.find(base.BUCKET, name) is None:
        raise AwsError("S3", operation, "NoSuchBucket", names.BUCKET_IS_THERE(), status=404)
    return name


class _BucketSetting(ResourceType):
    """A setting of a bucket that is a resource of its own."""

    regional = False

    def __init__(self, token: str, operation: str) -> None:
        self.token = token
        self.operation = operation

    def create(self, call: Call) -> Made:
        return Made(_existing_bucket(call, self.operation))


class BucketObject(ResourceType):
    """An object; its entity tag follows its content."""

    token = base.BUCKET_OBJECT
    volatile = ("etag", "versionId", "checksumCrc32", "checksumSha256")
    regional = False

    def create(self, call: Call) -> Made:
        bucket = _existing_bucket(call, "PutObject")
        key = call.text("key") or call.name
        return Made(f"{bucket}/{key}", {"key": key, "arn": f"arn:aws:s3:::{bucket}/{key}", **self._content(call)})

    def update(self, call: Call) -> Mapping[str, Any]:
        return self._content(call)

    def _content(self, call: Call) -> dict[str, Any]:
        source = call.inputs.get("source")
        text = source.hash if isinstance(source, Asset) else call.text("content") + call.text("contentBase64") + call.text("sourceHash")
        return {"etag": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}


_SETTINGS = (
    _BucketSetting("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "PutPublicAccessBlock"),
    _BucketSetting("aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration", "PutBucketEncryption"),
    _BucketSetting("aws:s3/bucketVersioning:BucketVersioning", "PutBucketVersioning"),
    _BucketSetting("aws:s3/bucketPolicy:BucketPolicy", "PutBucketPolicy"),
    _BucketSetting("aws:s3/bucketOwnershipControls:BucketOwnershipControls", "PutBucketOwnershipControls"),
    _BucketSetting("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", "PutBucketLifecycleConfiguration"),
    _BucketSetting("aws:s3/bucketLogging:BucketLogging", "PutBucketLogging"),
)

TYPES: tuple[ResourceType, ...] = (Bucket(), BucketObject(), *_SETTINGS)
