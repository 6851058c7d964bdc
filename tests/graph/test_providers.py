"""The AWS providers: one set of settings, spelled as each package wants it."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from dpd_infra.components.providers import aws_providers
from dpd_infra.spec.aws import AssumeRole, AwsSettings
from tests.graph.recorder import Recorded, run_program

ROLE = "arn:aws:iam::111122223333:role/infra"


def record(settings: AwsSettings, *, preview: bool) -> tuple[Recorded, Recorded]:
    recording = run_program(lambda: aws_providers("aws", settings), preview=preview)
    return recording.one("pulumi:providers:aws"), recording.one("pulumi:providers:aws-native")


def test_region_profile_and_tags_are_the_same_for_both(preview: bool) -> None:
    for provider in record(AwsSettings(region="us-east-2", profile="prod", default_tags={"team": "x"}), preview=preview):
        assert (provider.inputs["region"], provider.inputs["profile"]) == ("us-east-2", "prod")
        assert json.loads(provider.inputs["defaultTags"]) == {"tags": {"team": "x"}}


def test_both_assume_the_same_role(preview: bool) -> None:
    role = AssumeRole(role_arn=ROLE, session_name="deploy", external_id="x", duration="1h30m", tags={"a": "b"})
    aws, native = record(AwsSettings(region="us-east-2", assume_role=role), preview=preview)
    shared = {"roleArn": ROLE, "sessionName": "deploy", "externalId": "x", "tags": {"a": "b"}}
    assert json.loads(aws.inputs["assumeRoles"]) == [{**shared, "duration": "1h30m"}]
    assert json.loads(native.inputs["assumeRole"]) == {**shared, "durationSeconds": 5400}


def test_what_is_not_set_is_not_sent(preview: bool) -> None:
    for provider in record(AwsSettings(region="us-east-2"), preview=preview):
        assert not {"profile", "assumeRole", "assumeRoles", "defaultTags"} & provider.inputs.keys()


@pytest.mark.parametrize(
    ("key", "value", "native"),
    [
        ("maxRetries", 5, True),
        ("skipCredentialsValidation", True, True),
        ("ignoreTags", {"keyPrefixes": ["kubernetes.io/"]}, True),
        ("allowedAccountIds", ["111122223333"], True),
        ("endpoints", [{"s3": "https://s3.example"}], False),
        ("s3UsEast1RegionalEndpoint", "regional", False),
        ("ec2MetadataServiceEndpointMode", "IPv6", False),
    ],
)
def test_other_keys_reach_pulumi_aws_untouched_and_aws_native_where_it_knows_them(key: str, value: Any, native: bool) -> None:
    aws, other = record(AwsSettings(region="us-east-2", extra={key: value}), preview=False)
    assert aws.inputs[key] in (value, json.dumps(value))
    assert (other.inputs.get(key) in (value, json.dumps(value))) is native


def test_a_key_that_pulumi_aws_does_not_know_is_named(preview: bool) -> None:
    recording = run_program(
        lambda: aws_providers("aws", AwsSettings(region="us-east-2", extra={"regoin": "x"})), preview=preview, expect=pulumi.RunError
    )
    assert "aws:regoin" in str(recording.error)
    assert recording.resources == []
