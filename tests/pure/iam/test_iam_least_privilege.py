"""What the roles may do: linted, scoped to resources, and no more than the documents list."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
import yaml

from dpd_infra.plan.iam import to_json
from tests.pure.iam.iam_reference import CONDITIONS_NEWER_THAN_REFERENCE, NEWER_THAN_REFERENCE, parliament, resource_types, takes
from tests.pure.iam.iam_samples import ACCOUNT, REGIONS, VPC, listed, roles, statements

NODE_ACTIONS = {
    *("ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:CreateTags"),
    *("ec2:DescribeInstances", "ec2:DescribeTags", "ec2:DescribeNetworkInterfaces", "ec2:DescribeInstanceTypes"),
    *("ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:DescribeDhcpOptions", "ec2:DescribeSecurityGroups"),
    *("ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:CreateNetworkInterfacePermission"),
    *("ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission", "ec2:ModifyNetworkInterfaceAttribute"),
    *("ec2:UnassignPrivateIpAddresses", "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage"),
    *("ecr:GetAuthorizationToken", "ecr:GetDownloadUrlForLayer", "cloudwatch:DescribeAlarms", "fsx:DescribeFileSystems"),
    *("eks-auth:AssumeRoleForPodIdentity", "s3:ListBucket", "s3:GetObject"),
}
"""The execution role of the HyperPod EKS Terraform modules (awslabs/awsome-distributed-ai, modules/sagemaker_iam_role/main.tf)."""

ACCEPTED_BY_AUDITORS = {
    ("node", "PERMISSIONS_MANAGEMENT_ACTIONS"): "permissions of network interfaces, which HyperPod needs to put nodes into the VPC",
    ("node", "CREDENTIALS_EXPOSURE"): "the registry token, which every node needs to pull images; the action takes no resource",
    ("load balancers", "PERMISSIONS_MANAGEMENT_ACTIONS"): "the service-linked role of Elastic Load Balancing, that one role only",
    ("fsx", "PERMISSIONS_MANAGEMENT_ACTIONS"): "the service-linked role of FSx, that one role only, and only with dynamic provisioning",
    (
        "load balancers",
        "CREDENTIALS_EXPOSURE",
    ): "cognito-idp:DescribeUserPoolClient, in the upstream policy, on user pools of the account and region only",
}
"""What parliament's community auditors report and why it stays, by role and finding."""

FOREIGN_ACCOUNTS = {"ecr": "images of EKS, the operator and the deep learning containers live in AWS accounts that differ by region"}

WITHOUT_ACTION = {
    ("node", f"vpc/{VPC}"): "the published module lists the VPC for the network interface actions; it grants nothing by itself",
}
"""Resources that none of their statement's actions takes by the reference, and why they are there."""


def _lint(document: dict[str, Any], *, auditors: bool = False) -> list[Any]:
    text = copy.deepcopy(document)
    for statement in text["Statement"]:
        statement["Action"] = [action for action in listed(statement["Action"]) if action not in NEWER_THAN_REFERENCE]
    analysed = parliament.analyze_policy_string(to_json(text), include_community_auditors=auditors)
    assert analysed.is_valid, [str(finding) for finding in analysed.findings]
    newer = CONDITIONS_NEWER_THAN_REFERENCE
    return [parliament.enhance_finding(finding) for finding in analysed.findings if str(finding.detail) not in newer]


@pytest.mark.parametrize("partition", REGIONS)
@pytest.mark.parametrize("role", roles())
def test_the_linter_finds_nothing_of_medium_severity_or_above(role: str, partition: str) -> None:
    for document in roles(partition)[role].inline.values():
        assert [str(finding) for finding in _lint(document) if finding.severity not in ("LOW", "INFO", "MUTE")] == []


def test_the_linter_reports_an_action_on_a_resource_that_it_does_not_take() -> None:
    bad = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::models"}]}
    assert [(finding.issue, finding.severity) for finding in _lint(bad)] == [("RESOURCE_MISMATCH", "MEDIUM")]


def test_what_the_community_auditors_report_is_accepted_for_a_stated_reason() -> None:
    auditors = resources.files("parliament") / "community_auditors" / "config_override.yaml"
    parliament.config.update(yaml.safe_load(auditors.read_text()))
    found = {
        (role.split(",")[0], finding.issue)
        for role, plan in roles().items()
        for document in plan.inline.values()
        for finding in _lint(document, auditors=True)
        if finding.severity != "LOW"
    }
    assert found == set(ACCEPTED_BY_AUDITORS)


@pytest.mark.parametrize("action", NEWER_THAN_REFERENCE)
def test_an_action_listed_as_newer_is_really_unknown_to_the_reference(action: str) -> None:
    with pytest.raises(LookupError):
        resource_types(action)


@pytest.mark.parametrize("role", roles())
def test_no_action_that_takes_a_resource_is_allowed_on_all_resources(role: str) -> None:
    on_all = [action for s in statements(roles()[role]) if "*" in listed(s["Resource"]) for action in listed(s["Action"])]
    assert [action for action in on_all if resource_types(action)] == []


@pytest.mark.parametrize("role", roles())
def test_each_action_is_allowed_on_a_resource_that_it_takes_and_each_resource_is_taken(role: str) -> None:
    for statement in statements(roles()[role]):
        arns, actions = listed(statement["Resource"]), [a for a in listed(statement["Action"]) if a not in NEWER_THAN_REFERENCE]
        if arns == ["*"]:
            continue
        assert [action for action in actions if not any(takes(action, arn) for arn in arns)] == []
        untaken = [arn for arn in arns if not any(takes(action, arn) for action in actions)]
        assert {(role.split(",", maxsplit=1)[0], arn.split(":", 5)[5]) for arn in untaken} <= set(WITHOUT_ACTION)


@pytest.mark.parametrize("partition", REGIONS)
@pytest.mark.parametrize("role", roles())
def test_each_resource_lies_in_the_platforms_own_partition_region_and_account(role: str, partition: str) -> None:
    region = {REGIONS[partition], ""} | ({"us-east-1"} if role == "node, all" else set())
    for statement in statements(roles(partition)[role]):
        for arn in listed(statement["Resource"]):
            if arn == "*":
                continue
            _, place, service, where, account, resource = arn.split(":", 5)
            assert place == partition
            assert where in region
            assert account in ({"*"} if service in FOREIGN_ACCOUNTS else {ACCOUNT, ""})
            assert resource.strip("*/:")


def test_a_node_may_do_exactly_what_the_published_execution_role_may() -> None:
    assert {action for s in statements(roles()["node"]) for action in listed(s["Action"])} == NODE_ACTIONS


def test_nodes_manage_interfaces_only_in_the_platforms_subnets_and_groups() -> None:
    text = json.dumps(statements(roles()["node"]))
    assert "subnet/*" not in text
    assert "security-group/*" not in text
    assert text.count("subnet/subnet-") == 2
    assert text.count("security-group/sg-") == 2


def test_writing_to_model_buckets_must_be_asked_for() -> None:
    writes = {"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
    granted = {name: {a for s in statements(plan) for a in listed(s["Action"])} for name, plan in roles().items()}
    assert granted["s3 v1"] == {"s3:ListBucket", "s3:GetObject"}
    assert writes < granted["s3 v2, all"]


def test_a_certificate_bucket_that_the_managed_policy_covers_gets_no_second_grant() -> None:
    assert "certificates-of-acme" in json.dumps(statements(roles()["inference, all"]))
    assert "s3" not in json.dumps(statements(roles()["inference"]))
