"""The documents themselves: valid, canonical, and within IAM's quotas for anything a stack file may hold."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.iam import RolePlan, managed_policy_arns, node_role, s3_csi_role, to_json
from dpd_infra.plan.iam.document import allow
from tests.pure.iam.iam_samples import ACCOUNT, REGIONS, issuer, key, provider, roles

# IAM user guide, quotas: characters without white space.
INLINE_QUOTA = 10_240
TRUST_QUOTA = 2_048

bucket_names = st.from_regex(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", fullmatch=True)


def _characters(document: object) -> int:
    return len(re.sub(r"\s", "", json.dumps(document)))


def _storage(buckets: list[str], keys: int, partition: str, *, write: bool) -> RolePlan:
    return s3_csi_role(
        region=REGIONS[partition],
        provider_arn=provider(partition),
        issuer=issuer(partition),
        bucket_arns=[f"arn:{partition}:s3:::{name}" for name in buckets],
        driver_version="v2.8.0-eksbuild.1",
        write=write,
        key_arns=[key(partition, number) for number in range(keys)],
        partition=partition,
    )


@pytest.mark.parametrize("partition", REGIONS)
@pytest.mark.parametrize("role", roles())
def test_each_role_is_within_the_quotas_and_names_its_source(role: str, partition: str) -> None:
    plan = roles(partition)[role]
    assert sum(_characters(document) for document in plan.inline.values()) <= INLINE_QUOTA
    assert _characters(plan.trust) <= TRUST_QUOTA
    assert len(plan.description) <= 1_000
    assert plan.source.reference
    assert all(arn.startswith(f"arn:{partition}:iam::aws:policy/") for arn in plan.managed_policies)
    for document in (plan.trust, *plan.inline.values()):
        assert document["Version"] == "2012-10-17"
        sids = [statement["Sid"] for statement in document["Statement"] if "Sid" in statement]
        assert len(sids) == len(set(sids))
        assert all(re.fullmatch(r"[0-9A-Za-z]+", sid) for sid in sids)


@given(
    buckets=st.lists(bucket_names, min_size=1, max_size=50, unique=True),
    keys=st.integers(0, 5),
    partition=st.sampled_from(sorted(REGIONS)),
    write=st.booleans(),
)
def test_up_to_fifty_buckets_fit_one_role(buckets: list[str], keys: int, partition: str, *, write: bool) -> None:
    plan = _storage(buckets, keys, partition, write=write)
    (document,) = plan.inline.values()
    assert _characters(document) <= INLINE_QUOTA
    assert json.loads(to_json(document)) == document
    text = to_json(document)
    assert all(f'"arn:{partition}:s3:::{name}"' in text and f'"arn:{partition}:s3:::{name}/*"' in text for name in buckets)


def test_fifty_buckets_of_the_longest_names_fit_and_a_hundred_are_refused_with_the_quota() -> None:
    longest = [f"{number:03d}" + "x" * 60 for number in range(100)]
    assert _storage(longest[:50], 5, "aws-us-gov", write=True).inline
    with pytest.raises(ValueError, match=r"s3-csi have [\d,]+ characters; IAM accepts 10,240"):
        _storage(longest, 0, "aws", write=False)


@given(data=st.data())
def test_the_order_of_arguments_is_no_change_of_a_policy(data: st.DataObject) -> None:
    ids = st.lists(st.from_regex(r"[0-9a-f]{17}", fullmatch=True), min_size=1, max_size=6, unique=True)
    subnets, groups = data.draw(ids), data.draw(ids)

    def text(subnet_ids: list[str], group_ids: list[str]) -> str:
        plan = node_role(
            region="us-west-2",
            account_id=ACCOUNT,
            vpc_id="vpc-0",
            subnet_ids=[f"subnet-{i}" for i in subnet_ids],
            security_group_ids=[f"sg-{i}" for i in group_ids],
            cluster_arn=f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/dpd",
            lifecycle_bucket_arn="arn:aws:s3:::sagemaker-dpd",
        )
        return to_json(plan.inline["permissions"])

    assert text(subnets, groups) == text(data.draw(st.permutations(subnets)), data.draw(st.permutations(groups)))


def test_canonical_text_has_sorted_keys_and_no_spaces() -> None:
    assert to_json({"b": [1, {"d": "x", "c": "y"}], "a": "z"}) == '{"a":"z","b":[1,{"c":"y","d":"x"}]}'


@pytest.mark.parametrize(("actions", "resources"), [([], ["arn:aws:s3:::b"]), (["s3:GetObject"], []), (["s3:GetObject"], "")])
def test_a_statement_without_an_action_or_a_resource_is_refused(actions: list[str], resources: list[str] | str) -> None:
    with pytest.raises(ValueError, match="an action and a resource are needed"):
        allow("Empty", actions, resources)


def test_managed_policies_are_named_in_their_partition() -> None:
    assert managed_policy_arns(["AmazonEKSClusterPolicy"], "aws-us-gov") == ("arn:aws-us-gov:iam::aws:policy/AmazonEKSClusterPolicy",)
