"""The counts of a HyperPod cluster's groups that others changed: read when the stack file's groups are edited, and sent as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as aws_native

from dpd_infra.plan.group_counts import SentGroups, kept_counts

RECORD = "instance-groups.json"
"""The object's name beside the lifecycle scripts. It is written when the cluster has taken the groups, and not before: an update that
failed is tried again."""

_NOT_THERE = re.compile(r"StatusCode: 404\b|NotFound|Not Found|NoSuchKey|NoSuchBucket|couldn't find resource|empty result")
"""How S3, Cloud Control and the AWS provider say that there is none."""


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """What to send of the groups."""

    kept: Mapping[str, int] = field(default_factory=dict)
    """Counts that stay as AWS has them, by group."""
    is_unchanged: bool = False
    """Whether the file says of the groups what it said last: then nothing of them is to be sent."""


def group_counts(
    sent: SentGroups, *, bucket: str, region: str, parent: pulumi.Resource, native: pulumi.ProviderResource | None
) -> GroupCounts:
    """What the groups' last record and, where they were edited, the live cluster say.

    `native` is the provider that reads the cluster; None: the parent's. Without a record, and where it cannot be read, the file's counts
    hold; the latter is warned of. Raises `pulumi.RunError` where there is a record and its cluster cannot be read.
    """
    last = _last(bucket, region, parent)
    if last is None:
        return GroupCounts()
    if last.fingerprint == sent.fingerprint:
        return GroupCounts(is_unchanged=True)
    kept = kept_counts(sent, last, _live(last.cluster_arn, pulumi.InvokeOptions(parent=parent, provider=native)))
    for name, count in kept.items():
        pulumi.log.warn(
            f"instance group {name} has {count} nodes, which were set outside of this stack: they stay. The stack file says "
            f"{sent.counts[name]}: write {count} there, or another count to have that one.",
            parent,
        )
    return GroupCounts(kept=kept)


def _last(bucket: str, region: str, parent: pulumi.Resource) -> SentGroups | None:
    try:
        found = aws.s3.get_object(bucket=bucket, key=RECORD, region=region, opts=pulumi.InvokeOptions(parent=parent))
    except Exception as error:  # noqa: BLE001 - the SDK raises no narrower one
        if not _NOT_THERE.search(str(error)):
            pulumi.log.warn(
                f"s3://{bucket}/{RECORD} could not be read, so an edit of an instance group sets the counts of all groups to those of the "
                f"stack file: {error}",
                parent,
            )
        return None
    return SentGroups.read(found.body or "")


def _live(cluster_arn: str, options: pulumi.InvokeOptions) -> dict[str, int]:
    try:
        found = aws_native.sagemaker.get_cluster(cluster_arn=cluster_arn, opts=options)
    except Exception as error:
        if _NOT_THERE.search(str(error)):
            return {}
        raise pulumi.RunError(
            f"the instance groups were edited, and how many nodes they have now could not be read from {cluster_arn}: {error}; to send the "
            "stack file's counts without looking, set cluster.keepOutsideCounts to false"
        ) from error
    return {group.instance_group_name: group.instance_count for group in found.instance_groups or ()}
