"""The counts of a HyperPod cluster's groups that others changed: read in every program, and kept while something else is edited."""

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
    """What the groups' last record and the live cluster say.

    `native` is the provider that reads the cluster; None: the parent's. Without a record, and where it cannot be read, the file's counts
    hold; the latter is warned of. Raises `pulumi.RunError` where the groups were edited and the live cluster cannot be read.
    """
    last = _last(bucket, region, parent)
    if last is None:
        return GroupCounts()
    is_edited = last.fingerprint != sent.fingerprint
    live = _live(last.cluster_arn, pulumi.InvokeOptions(parent=parent, provider=native), needed=is_edited)
    # Groups that came or went without a record of it: an update that ended halfway, or a person. The file has the last word there.
    if not is_edited and (live is None or live.keys() == sent.counts.keys()):
        for name, count in (live or {}).items():
            if count != sent.counts[name]:
                pulumi.log.info(_said(name, count, sent.counts[name]), parent)
        return GroupCounts(is_unchanged=True)
    kept = kept_counts(sent, last, live or {})
    for name, count in kept.items():
        pulumi.log.warn(_said(name, count, sent.counts[name]), parent)
    return GroupCounts(kept=kept)


def _said(name: str, live: int, written: int) -> str:
    return (
        f"instance group {name} has {live} nodes, which were set outside of this stack: they stay. The stack file says {written}: write "
        f"{live} there, or another count to have that one."
    )


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


def _live(cluster_arn: str, options: pulumi.InvokeOptions, *, needed: bool) -> dict[str, int] | None:
    """How many nodes each group is to have at AWS; empty where there is no such cluster, None where it cannot be read and need not be."""
    try:
        found = aws_native.sagemaker.get_cluster(cluster_arn=cluster_arn, opts=options)
    except Exception as error:
        if _NOT_THERE.search(str(error)):
            return {}
        if not needed:
            return None
        raise pulumi.RunError(
            f"the instance groups were edited, and how many nodes they have now could not be read from {cluster_arn}: {error}; to send the "
            "stack file's counts without looking, set cluster.keepOutsideCounts to false"
        ) from error
    return {group.instance_group_name: group.instance_count for group in found.instance_groups or ()}
