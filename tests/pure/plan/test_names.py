"""Names: within every limit, made of what AWS takes, the same each time, and different for different stacks."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from dpd_infra.plan.names import Naming, shorten

# The documents' own limits: IAM role names, S3 bucket names.
ROLE = re.compile(r"[\w+=,.@-]{1,64}")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

platforms = st.from_regex(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", fullmatch=True).filter(lambda name: len(name) <= 40)
stacks = st.from_regex(r"[A-Za-z0-9_.-]{1,60}", fullmatch=True)
regions = st.sampled_from(["us-east-2", "ap-southeast-3", "us-gov-west-1", "ap-northeast-1", "eu-central-1"])
namings = st.builds(Naming, platform=platforms, stack=stacks, region=regions)
purposes = st.sampled_from(
    ["execution", "load-balancer-controller", "keda", "s3-csi", "fsx-csi", "eks-cluster", "hyperpod-node", "flow-logs"]
)


@given(namings, purposes)
def test_role_names_are_ones_that_iam_takes_and_carry_region_and_purpose(naming: Naming, purpose: str) -> None:
    for name in (naming.role(purpose), naming.inference_role("execution")):
        assert ROLE.fullmatch(name)
        assert naming.region in name
    assert naming.role(purpose).endswith(purpose)


@given(namings)
def test_the_operators_role_begins_as_the_managed_policy_asks(naming: Naming) -> None:
    # iam:PassRole in AmazonSageMakerHyperPodInferenceAccess: role/SageMakerHyperPodInference*
    assert naming.inference_role("execution").startswith("SageMakerHyperPodInference")


@given(namings)
def test_bucket_names_are_ones_that_s3_takes(naming: Naming) -> None:
    tls, lifecycle = naming.tls_bucket("123456789012"), naming.lifecycle_bucket("123456789012")
    assert BUCKET.fullmatch(tls)
    assert BUCKET.fullmatch(lifecycle)
    assert tls.startswith("hyperpod-tls-")
    assert lifecycle.startswith("sagemaker-")
    assert "123456789012" in tls
    assert "123456789012" in lifecycle


@given(namings, namings, purposes)
def test_two_stacks_live_in_one_account(one: Naming, other: Naming, purpose: str) -> None:
    assume((one.scope, one.region) != (other.scope, other.region))
    assert one.role(purpose) != other.role(purpose)
    assert one.inference_role(purpose[:9]) != other.inference_role(purpose[:9])
    assert one.tls_bucket("1" * 12) != other.tls_bucket("1" * 12)


@given(st.text(min_size=1, max_size=200), st.integers(10, 100))
def test_shortening_keeps_what_fits_and_never_exceeds_the_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
    if len(text) <= limit:
        assert shorten(text, limit) == text


def test_a_stack_named_in_the_platform_is_not_said_twice() -> None:
    assert Naming("inference-prod", "prod", "us-east-2").role("keda") == "inference-prod-us-east-2-keda"
    assert Naming("inference", "acme/platform/prod", "us-east-2").role("keda") == "inference-prod-us-east-2-keda"
