"""Teams as plain data: quota, rights and the policy of who may invoke."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpd_infra.plan.iam import invoke_policy, to_json
from dpd_infra.render.team import endpoint_rules, hard_limits, needs_default_requests
from dpd_infra.spec.teams import QuotaSpec, TeamMember, TeamRight, TeamSpec
from tests.pure.iam.iam_reference import parliament, takes
from tests.pure.iam.iam_samples import ACCOUNT


def test_the_policy_of_who_may_invoke_is_clean_to_the_linter_and_names_its_endpoints() -> None:
    document = invoke_policy(region="us-east-2", account_id=ACCOUNT, endpoint_names=["llama-70b"])
    # parliament 1.6.4 does not know the streaming action, which is newer than its reference, and lints nothing of a statement with it.
    known = {**document, "Statement": [{**document["Statement"][0], "Action": ["sagemaker:InvokeEndpoint"]}]}
    assert parliament.analyze_policy_string(to_json(known)).findings == []
    [arn] = document["Statement"][0]["Resource"]
    assert takes("sagemaker:InvokeEndpoint", arn)


@pytest.mark.parametrize("names", [["llama*"], ["?"], []], ids=["star", "question mark", "none"])
def test_endpoints_are_named_one_by_one(names: list[str]) -> None:
    with pytest.raises(ValueError, match=r"named one by one|an action and a resource are needed"):
        invoke_policy(region="us-east-2", account_id=ACCOUNT, endpoint_names=names)


def test_a_quota_writes_what_is_named_and_nothing_else() -> None:
    assert hard_limits(QuotaSpec()) == {}
    assert hard_limits(QuotaSpec(gpus=0, pods=10)) == {"requests.nvidia.com/gpu": "0", "pods": "10"}
    assert hard_limits(QuotaSpec(cpu="96", hard={"requests.cpu": "4"})) == {"requests.cpu": "4"}


@pytest.mark.parametrize(
    ("quota", "needed"),
    [({"gpus": 8}, False), ({"cpu": "8"}, True), ({"memory": "1Ti"}, True), ({"hard": {"cpu": "8"}}, True)],
)
def test_containers_without_requests_need_one_under_a_quota_of_cpu_or_memory(quota: dict[str, Any], *, needed: bool) -> None:
    assert needs_default_requests(QuotaSpec.from_yaml_data(quota)) is needed


def test_nobody_but_view_only_reads() -> None:
    verbs = {right: set(endpoint_rules(right)[0]["verbs"]) for right in TeamRight}
    assert verbs[TeamRight.VIEW] == {"get", "list", "watch"}
    assert verbs[TeamRight.EDIT] == verbs[TeamRight.ADMIN] > verbs[TeamRight.VIEW]
    assert "*" not in json.dumps([endpoint_rules(right) for right in TeamRight])


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ({}, "exactly one"),
        ({"group": "a", "user": "b"}, "exactly one"),
        ({"group": "system:masters"}, "Kubernetes's own"),
        ({"user": "system:admin"}, "Kubernetes's own"),
    ],
)
def test_a_member_has_one_name_and_none_of_kubernetes_own(member: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TeamMember.from_yaml_data(member)


def test_a_namespace_that_is_there_keeps_its_labels() -> None:
    with pytest.raises(ValueError, match="labels are its maker's"):
        TeamSpec.from_yaml_data({"existingNamespace": True, "labels": {"a": "b"}})
