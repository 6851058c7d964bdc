"""The `aws:` config keys: read as pulumi-aws spells them, with what only one tool could follow refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from dpd_infra.spec.aws import AssumeRole, AwsSettings

ROLE = "arn:aws:iam::111122223333:role/infra"


@pytest.mark.parametrize("as_text", [False, True], ids=["stack file", "pulumi.Config"])
def test_the_keys_are_read_from_a_stack_file_and_from_pulumi_alike(as_text: bool) -> None:
    config: dict[str, Any] = {
        "aws:region": "eu-west-1",
        "aws:profile": "prod",
        "aws:assumeRoles": [{"roleArn": ROLE, "sessionName": "deploy"}],
        "aws:defaultTags": {"tags": {"team": "x"}},
        "aws:maxRetries": 7,
        "aws:skipCredentialsValidation": True,
        "dpd-infra:platform": {"name": "x"},
    }
    if as_text:
        config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    assert AwsSettings.from_config(config) == AwsSettings(
        region="eu-west-1",
        profile="prod",
        assume_role=AssumeRole(role_arn=ROLE, session_name="deploy"),
        default_tags={"team": "x"},
        extra={"maxRetries": 7, "skipCredentialsValidation": True},
    )


def test_one_role_may_be_written_alone() -> None:
    assert AwsSettings.from_config({"aws:region": "us-east-2", "aws:assumeRole": {"roleArn": ROLE}}).assume_role == AssumeRole(
        role_arn=ROLE
    )


def test_a_chain_of_roles_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="source_profile"):
        AwsSettings.from_config({"aws:region": "us-east-2", "aws:assumeRoles": [{"roleArn": ROLE}, {"roleArn": ROLE}]})


@pytest.mark.parametrize("key", ["accessKey", "secretKey", "token", "assumeRoleWithWebIdentity"])
def test_credentials_that_only_one_tool_would_see_are_refused(key: str) -> None:
    with pytest.raises(ValidationError, match=f"aws:{key}"):
        AwsSettings.from_config({"aws:region": "us-east-2", f"aws:{key}": "x"})


def test_the_value_of_a_refused_credential_is_not_in_the_message() -> None:
    with pytest.raises(ValidationError) as caught:
        AwsSettings.from_config({"aws:region": "us-east-2", "aws:secretKey": "wJalrXUtnFEMI"})
    assert "wJalrXUtnFEMI" not in "".join(error["msg"] for error in caught.value.errors())


def test_a_region_is_needed_and_may_come_from_elsewhere() -> None:
    with pytest.raises(ValidationError):
        AwsSettings.from_config({})
    assert AwsSettings.from_config({}, default_region="us-east-2").region == "us-east-2"
    assert AwsSettings.from_config({"aws:region": "us-west-2"}, default_region="us-east-2").region == "us-west-2"


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("90m", 5400), ("1h30m", 5400), ("900s", 900), ("12h", 43200)])
def test_a_duration_is_read_as_go_writes_it(text: str, seconds: int) -> None:
    assert AssumeRole(role_arn=ROLE, duration=text).duration_seconds == seconds


@pytest.mark.parametrize("text", ["", "1", "h", "1d", "1h 30m"])
def test_another_duration_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        AssumeRole(role_arn=ROLE, duration=text)
