"""DPD540 to DPD599: what is there already, closed networks, teams, the model store."""

from __future__ import annotations

from typing import Any

from tests.pure.rules.kit import Case, Edit, drop, endpoint, env, platform, put, raw, stack

CLUSTER = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghij12"
EKS = {"name": "my-eks"}
IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/vllm:server-hyperpod-cuda-v1.1"
MIRRORS = {
    "public.ecr.aws": "111122223333.dkr.ecr.us-east-2.amazonaws.com/public",
    "nvcr.io": "111122223333.dkr.ecr.us-east-2.amazonaws.com/nvidia",
    "602401143452.dkr.ecr.us-west-2.amazonaws.com": "111122223333.dkr.ecr.us-east-2.amazonaws.com/eks",
}
NETWORK: dict[str, Any] = {
    "vpcId": "vpc-0123456789abcdef0",
    "zone": "us-east-2a",
    "gpuSubnetIds": ["subnet-1"],
    "controlPlaneSubnetIds": ["subnet-2", "subnet-3"],
    "nodeSecurityGroupIds": ["sg-1"],
}
STORED = {"modelId": "Qwen/Qwen3-32B", "revision": "0" * 40}
HUB = {"name": "Qwen3-32B", "huggingFace": {"modelId": "Qwen/Qwen3-32B", "revision": "0" * 40}}
OWN_GROUP = {"gpu": {"instanceType": "ml.p5.48xlarge", "count": 3}}


def without(*sections: str) -> tuple[Edit, ...]:
    """The dev stack's platform without some of its sections."""
    return tuple(drop(f"dpd-infra:platform|{section}") for section in sections)


def existing_eks(*edits: Edit) -> tuple[Edit, ...]:
    """A GPU subnet in the VPC of an EKS cluster of somebody else's."""
    network = {"zone": "us-east-2a", "routeTableId": "rtb-1", "cidr": "10.0.0.0/16", "gpuCidr": "10.1.0.0/16"}
    return (
        *without("controlPlane"),
        platform("existing", {"controlPlane": EKS, "addons": ["coredns"]}),
        platform("network", network),
        *edits,
    )


def everything_exists(*edits: Edit) -> tuple[Edit, ...]:
    """Both clusters, the add-ons and the operator are there."""
    there = {"controlPlane": EKS, "cluster": {"arn": CLUSTER}, "addons": True, "operator": {"addonVersion": "v1.4.0-eksbuild.1"}}
    return (*without("controlPlane", "network", "instanceGroups", "modelBuckets"), platform("existing", there), *edits)


CLOSED = platform("network|egress", "endpoints")
REACHED = (CLOSED, platform("imageMirrors", MIRRORS), platform("network|interfaceEndpoints", ["acm"]))

CASES = (
    Case("DPD540", stack(*everything_exists(platform("instanceGroups", OWN_GROUP))), stack(*everything_exists())),
    Case("DPD541", stack(*without("network")), stack(*without("network"), platform("existing|network", NETWORK))),
    Case(
        "DPD542",
        stack(*without("network"), platform("existing|network", {**NETWORK, "controlPlaneSubnetIds": ["subnet-2"]})),
        stack(*without("network"), platform("existing|network", NETWORK)),
    ),
    Case("DPD543", stack(*existing_eks(platform("network", {"zone": "us-east-2a"}))), stack(*existing_eks())),
    Case("DPD544", stack(*everything_exists(platform("modelBuckets", ["my-models"]))), stack(*everything_exists())),
    Case("DPD545", stack(*everything_exists(platform("existing|addons", ["coredns"]))), stack(*everything_exists())),
    Case("DPD546", stack(*existing_eks(drop("dpd-infra:platform|existing|addons"))), stack(*existing_eks(platform("existing|addons", [])))),
    Case(
        "DPD547",
        stack(*everything_exists(platform("existing|cluster|arn", CLUSTER.replace("us-east-2", "us-west-2")))),
        stack(*everything_exists()),
    ),
    Case("DPD550", stack(CLOSED, endpoint("worker|image", "lmcache/vllm-openai:v0.4.3")), stack(CLOSED, endpoint("worker|image", IMAGE))),
    Case("DPD551", stack(CLOSED, endpoint("model", HUB)), stack(endpoint("model", HUB))),
    Case("DPD552", stack(CLOSED), stack(*REACHED)),
    Case("DPD553", stack(CLOSED, endpoint("model|s3|region", "us-west-2")), stack(CLOSED, endpoint("model|s3|region", "us-east-2"))),
    Case("DPD554", stack(CLOSED, platform("modelStore", {"models": {"qwen": STORED}})), stack(CLOSED, platform("modelStore", {}))),
    Case("DPD555", stack(CLOSED), stack(*REACHED)),
    Case(
        "DPD556",
        stack(platform("network|flowLogs", {"retentionDays": 91})),
        stack(platform("network|flowLogs", {"retentionDays": 90})),
    ),
    Case(
        "DPD570",
        stack(platform("teams", {"a": {"namespace": "shared"}, "b": {"namespace": "shared"}})),
        stack(platform("teams", {"a": {"namespace": "shared"}, "b": {}})),
    ),
    Case(
        "DPD571",
        stack(endpoint("namespace", "team-a")),
        stack(endpoint("namespace", "team-a"), platform("teams", {"team-a": {}})),
    ),
    Case(
        "DPD572",
        stack(endpoint("namespace", "team-a"), platform("teams", {"team-a": {"quota": {"gpus": 15}}})),
        stack(endpoint("namespace", "team-a"), platform("teams", {"team-a": {"quota": {"gpus": 16}}})),
    ),
    Case(
        "DPD573",
        stack(
            platform("controlPlane|access", {"ci": {"principalArn": "arn:aws:iam::111122223333:role/ci"}}),
            platform("teams", {"a": {"members": {"ci": {"principalArn": "arn:aws:iam::111122223333:role/ci"}}}}),
        ),
        stack(
            platform("controlPlane|access", {"ci": {"principalArn": "arn:aws:iam::111122223333:role/ci"}}),
            platform("teams", {"a": {"members": {"me": {"principalArn": "arn:aws:iam::111122223333:role/me"}}}}),
        ),
    ),
    Case(
        "DPD574",
        stack(platform("teams", {"a": {"invoke": {"endpoints": ["llama-80b"]}}})),
        stack(platform("teams", {"a": {"invoke": {"endpoints": ["llama-70b"]}}})),
    ),
    Case(
        "DPD580",
        stack(platform("modelStore", {"bucket": "my-models", "models": {"qwen": STORED}})),
        stack(platform("modelStore", {"bucket": "my-models", "models": {"llama": {**STORED, "prefix": "Llama-3.3-70B-Instruct"}}})),
    ),
    Case("DPD704", raw(drop("spec")), raw(put("spec|tags", []))),
    Case("DPD701", raw(put("spec|pdSpec|routingThreshold", -1), valid=False), raw(put("spec|pdSpec|routingThreshold", 4097))),
    Case(
        "DPD702",
        raw(put("spec|pdSpec|prefilSpec", {}), operator="v1.5.0-eksbuild.1", valid=False),
        raw(env("ANY", "thing"), operator="v1.5.0-eksbuild.1"),
    ),
)
