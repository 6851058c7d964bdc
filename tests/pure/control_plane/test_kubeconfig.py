"""The kubeconfig: the form that kubectl reads, and a token command that the AWS CLI takes."""

from __future__ import annotations

import pytest

from dpd_infra.render.kubeconfig import kubeconfig, token_command
from dpd_infra.spec.aws import AssumeRole, AwsSettings

ROLE = "arn:aws:iam::111122223333:role/infra"
SETTINGS = AwsSettings(region="us-east-2")


def test_the_current_context_leads_to_the_cluster_and_its_user() -> None:
    config = kubeconfig(cluster_name="prod", endpoint="https://x", certificate_authority="Q0E=", settings=SETTINGS)
    context = next(item["context"] for item in config["contexts"] if item["name"] == config["current-context"])
    cluster = next(item["cluster"] for item in config["clusters"] if item["name"] == context["cluster"])
    user = next(item["user"] for item in config["users"] if item["name"] == context["user"])
    assert cluster == {"server": "https://x", "certificate-authority-data": "Q0E="}
    assert user["exec"]["apiVersion"] == "client.authentication.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        (SETTINGS, []),
        (AwsSettings(region="us-east-2", profile="prod"), ["--profile", "prod"]),
        (AwsSettings(region="us-east-2", assume_role=AssumeRole(role_arn=ROLE)), ["--role-arn", ROLE]),
    ],
)
def test_the_token_comes_with_the_credentials_of_the_settings(settings: AwsSettings, more: list[str]) -> None:
    command = token_command("prod", settings)
    assert command["command"] == "aws"
    assert command["args"] == ["eks", "get-token", "--cluster-name", "prod", "--region", "us-east-2", "--output", "json", *more]


def test_an_external_id_cannot_be_sent_and_the_message_says_what_can() -> None:
    settings = AwsSettings(region="us-east-2", assume_role=AssumeRole(role_arn=ROLE, external_id="x"))
    with pytest.raises(ValueError, match="aws:profile"):
        token_command("prod", settings)
