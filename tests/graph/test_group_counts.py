"""Counts that an autoscaler or the console set stay when something else is edited; what cannot be known is said."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from dpd_infra.spec.cluster import ClusterSpec, InstanceGroupSpec
from tests.graph.mock_outputs import ACCOUNT
from tests.graph.recorder import Recording
from tests.graph.test_hyperpod_cluster import SPEC, record

READ_RECORD = "aws:s3/getObject:getObject"
READ_CLUSTER = "aws-native:sagemaker:getCluster"
ARN = f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:cluster/inference"


def groups(**counts: int) -> ClusterSpec:
    return ClusterSpec(
        instance_groups={name: InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=count) for name, count in counts.items()}
    )


def written(spec: ClusterSpec) -> str:
    """The record that an update with these groups leaves."""
    return record(False, spec).named("hp-lifecycle-groups").inputs["content"]


def after(last: ClusterSpec, now: ClusterSpec, preview: bool, **live: int) -> Recording:
    """An update from one spec to another, with so many nodes in each group at AWS."""
    described = [{"instanceGroupName": name, "instanceCount": count} for name, count in live.items()]
    invokes = {READ_RECORD: {"body": written(last)}, READ_CLUSTER: {"clusterArn": ARN, "instanceGroups": described}}
    return record(preview, now, invokes=invokes)


def sent(recording: Recording) -> dict[str, int]:
    return {group["instanceGroupName"]: group["instanceCount"] for group in recording.named("hp-cluster").inputs["instanceGroups"]}


def warned(recording: Recording) -> list[str]:
    """Without what the rules say of the groups."""
    return [warning for warning in recording.warnings() if not warning.startswith("warning DPD")]


def asked(recording: Recording) -> set[str]:
    return {token for token, _ in recording.invokes}


def test_the_first_update_sends_the_files_counts_and_records_them_once_the_cluster_has_them() -> None:
    recording = record(False)
    assert sent(recording) == {"decode": 1, "prefill": 2}
    assert recording.named("hp-cluster").ignore_changes == ()
    made = recording.named("hp-lifecycle-groups")
    assert json.loads(made.inputs["content"]) | {"fingerprint": ""} == {
        "clusterArn": ARN,
        "counts": {"decode": 1, "prefill": 2},
        "fingerprint": "",
    }
    assert made.inputs["contentType"] == "application/json"
    assert recording.named("hp-cluster").urn in made.property_dependencies["content"]
    (arguments,) = (arguments for token, arguments in recording.invokes if token == READ_RECORD)
    assert (arguments["bucket"], arguments["key"]) == (recording.named("hp-lifecycle").inputs["bucket"], made.inputs["key"])


def test_groups_that_were_not_edited_are_not_sent_whatever_the_state_or_aws_holds(preview: bool) -> None:
    recording = after(SPEC, SPEC, preview, decode=4, prefill=2)
    assert recording.named("hp-cluster").ignore_changes == ("instanceGroups",)
    assert warned(recording) == []
    (told,) = (message for level, message in recording.logs if level == "info" and "instance group" in message)
    assert told.startswith("instance group decode has 4 nodes, which were set outside of this stack: they stay.")


def test_a_group_that_came_or_went_without_a_record_is_set_right(preview: bool) -> None:
    # An update that added one was taken by AWS and ended before its record, and the edit was taken back.
    recording = after(SPEC, SPEC, preview, another=7, decode=4, prefill=2)
    assert recording.named("hp-cluster").ignore_changes == ()
    assert sent(recording) == {"decode": 4, "prefill": 2}


def test_counts_that_need_not_be_read_stop_nothing(preview: bool) -> None:
    refused = refuse("AccessDeniedException: not authorized to perform sagemaker:DescribeCluster")
    recording = record(preview, SPEC, invokes={READ_RECORD: {"body": written(SPEC)}, READ_CLUSTER: refused})
    assert recording.named("hp-cluster").ignore_changes == ("instanceGroups",)


def test_an_edit_of_one_group_leaves_the_others_with_the_nodes_they_have(preview: bool) -> None:
    edited = groups(decode=1, prefill=3)
    recording = after(groups(decode=1, prefill=2), edited, preview, decode=4, prefill=5)
    assert sent(recording) == {"decode": 4, "prefill": 3}
    assert recording.named("hp-cluster").ignore_changes == ()
    (said,) = warned(recording)
    assert said.startswith("instance group decode has 4 nodes, which were set outside of this stack: they stay.")


def test_a_group_that_is_new_or_goes_moves_no_count(preview: bool) -> None:
    assert sent(after(groups(decode=1, prefill=2), groups(a=7, decode=1, prefill=2), preview, decode=4, prefill=2)) == {
        "a": 7,
        "decode": 4,
        "prefill": 2,
    }
    assert sent(after(groups(a=7, decode=1), groups(decode=1), preview, a=9, decode=0)) == {"decode": 0}


def test_an_edit_of_anything_of_a_group_but_its_count_keeps_the_count(preview: bool) -> None:
    labelled = InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=1, labels={"team": "x"})
    recording = after(groups(gpu=1), ClusterSpec(instance_groups={"gpu": labelled}), preview, gpu=6)
    assert sent(recording) == {"gpu": 6}


def test_the_record_holds_the_files_counts_and_not_those_that_were_kept() -> None:
    recording = after(groups(decode=1, prefill=2), groups(decode=1, prefill=3), False, decode=4, prefill=2)
    assert json.loads(recording.named("hp-lifecycle-groups").inputs["content"])["counts"] == {"decode": 1, "prefill": 3}


def test_by_choice_the_files_counts_hold_and_nothing_is_asked(preview: bool) -> None:
    spec = groups(decode=1).model_copy(update={"keep_outside_counts": False})
    recording = after(groups(decode=1), spec, preview, decode=4)
    assert sent(recording) == {"decode": 1}
    assert recording.named("hp-cluster").ignore_changes == ()
    assert not {READ_RECORD, READ_CLUSTER} & asked(recording)


def refuse(words: str) -> Any:
    def answer(_: Any) -> Any:
        raise RuntimeError(words)

    return answer


@pytest.mark.parametrize(
    "words",
    [
        "operation error S3: HeadObject, https response error StatusCode: 404, NotFound: Not Found",
        "reading S3 Bucket (b) Object (instance-groups.json): couldn't find resource",
        "api error NoSuchBucket: The specified bucket does not exist",
    ],
)
def test_no_record_is_no_news(words: str) -> None:
    recording = record(False, invokes={READ_RECORD: refuse(words)})
    assert sent(recording) == {"decode": 1, "prefill": 2}
    assert warned(recording) == []


def test_a_record_that_may_not_be_read_is_warned_of() -> None:
    recording = record(False, invokes={READ_RECORD: refuse("StatusCode: 403, api error Forbidden: Forbidden")})
    assert sent(recording) == {"decode": 1, "prefill": 2}
    (said,) = warned(recording)
    assert "instance-groups.json could not be read" in said
    assert "Forbidden" in said


def test_counts_that_cannot_be_read_stop_the_update_before_the_cluster() -> None:
    body = {"body": written(groups(gpu=1))}
    refused = "AccessDeniedException: not authorized to perform DescribeCluster on arn:aws:sagemaker:us-east-2:404404404404:cluster"
    invokes = {READ_RECORD: body, READ_CLUSTER: refuse(refused)}
    recording = record(False, groups(gpu=2), invokes=invokes, expect=pulumi.RunError)
    assert "keepOutsideCounts" in str(recording.error)
    assert [resource for resource in recording.custom if resource.name == "hp-cluster"] == []


def test_a_cluster_that_is_gone_has_no_counts_to_keep() -> None:
    invokes = {READ_RECORD: {"body": written(groups(gpu=1))}, READ_CLUSTER: refuse("ResourceNotFoundException: Cluster was not found")}
    assert sent(record(False, groups(gpu=2), invokes=invokes)) == {"gpu": 2}
