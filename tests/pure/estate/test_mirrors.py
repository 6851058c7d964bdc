"""Image mirrors: which image is pulled, which it is a copy of, and what a closed network reaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.mirrors import is_reachable_closed, mirrored, original, registry

ECR = "111122223333.dkr.ecr.us-east-2.amazonaws.com"
MIRRORS = {"public.ecr.aws": f"{ECR}/public", "docker.io": f"{ECR}/hub", "docker.io/lmcache": f"{ECR}/lmcache"}


@pytest.mark.parametrize(
    ("reference", "host"),
    [
        ("lmcache/vllm-openai:v0.4.3", "docker.io"),
        ("ubuntu", "docker.io"),
        ("public.ecr.aws/x/y:1", "public.ecr.aws"),
        ("localhost:5000/x", "localhost:5000"),
        (f"{ECR}/x@sha256:0", ECR),
    ],
)
def test_the_registry_is_the_first_part_where_it_is_a_host(reference: str, host: str) -> None:
    assert registry(reference) == host


@pytest.mark.parametrize(
    ("reference", "pulled"),
    [
        ("public.ecr.aws/deep-learning-containers/vllm:server", f"{ECR}/public/deep-learning-containers/vllm:server"),
        ("lmcache/vllm-openai:v0.4.3", f"{ECR}/lmcache/vllm-openai:v0.4.3"),
        ("vllm/vllm-openai:v0.19.0", f"{ECR}/hub/vllm/vllm-openai:v0.19.0"),
        ("public.ecr.aws.example.com/x:1", "public.ecr.aws.example.com/x:1"),
        ("quay.io/x:1", "quay.io/x:1"),
    ],
    ids=["registry", "longest source", "docker hub without a host", "whole parts only", "no mirror"],
)
def test_a_mirror_replaces_the_longest_beginning(reference: str, pulled: str) -> None:
    assert mirrored(reference, MIRRORS) == pulled


path = st.from_regex(r"[a-z][a-z0-9]{0,8}(/[a-z][a-z0-9-]{0,8}){1,2}:[a-z0-9.]{1,6}", fullmatch=True)
source = st.sampled_from(["public.ecr.aws", "docker.io", "quay.io/team"])


@given(st.sampled_from(["public.ecr.aws/", "quay.io/team/", "quay.io/other/", ""]), path, st.sets(source, max_size=3))
def test_what_is_mirrored_is_known_for_what_it_is(host: str, rest: str, sources: set[str]) -> None:
    mirrors = {name: f"{ECR}/{index}" for index, name in enumerate(sorted(sources))}
    reference = host + rest
    assert original(mirrored(reference, mirrors), mirrors) == reference


@given(path, st.dictionaries(source, st.just(ECR), max_size=2))
def test_mirroring_twice_is_mirroring_once(rest: str, mirrors: dict[str, str]) -> None:
    once = mirrored(rest, mirrors)
    assert mirrored(once, mirrors) == once


@pytest.mark.parametrize(
    ("reference", "region", "reached"),
    [
        (f"{ECR}/x:1", "us-east-2", True),
        (f"{ECR}/x:1", "us-west-2", False),
        ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/x", "cn-north-1", True),
        ("public.ecr.aws/x:1", "us-east-1", False),
        ("lmcache/vllm-openai:v0.4.3", "us-east-2", False),
        ("evil.example/111122223333.dkr.ecr.us-east-2.amazonaws.com/x", "us-east-2", False),
    ],
)
def test_a_closed_network_reaches_private_registries_of_its_own_region(reference: str, region: str, *, reached: bool) -> None:
    assert is_reachable_closed(reference, region) is reached
