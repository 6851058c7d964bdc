"""A closed network, a shared platform and a model store on the engine: they come up, stay, and go; and what closed networks cannot do."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpd_infra.rehearsal import RehearsalFailed
from tests.engine.conftest import MakeProject
from tests.engine.harness import EngineProject
from tests.engine.test_existing import ENDPOINTS, program

ECR = "111122223333.dkr.ecr.us-east-2.amazonaws.com"
GROUPS = {
    "decode": {"instanceType": "ml.p5.48xlarge", "count": 1},
    "prefill": {"instanceType": "ml.p5.48xlarge", "count": 1},
    "system": {"instanceType": "ml.c5.4xlarge", "count": 2},
}
PLATFORM: dict[str, Any] = {
    "name": "inference",
    "network": {"zone": "us-east-2a"},
    "controlPlane": {"private": True, "protect": False, "deletionProtection": False},
    "cluster": {"protect": False},
    "instanceGroups": GROUPS,
    "modelBuckets": ["my-models"],
}
CLOSED: dict[str, Any] = {
    "network": {"zone": "us-east-2a", "egress": "endpoints", "interfaceEndpoints": ["acm"], "flowLogs": {"retentionDays": 30}},
    "imageMirrors": {
        "public.ecr.aws": f"{ECR}/public",
        "nvcr.io": f"{ECR}/nvcr",
        "602401143452.dkr.ecr.us-west-2.amazonaws.com": f"{ECR}/eks",
    },
}
SHARED: dict[str, Any] = {
    "teams": {
        "search": {
            "quota": {"gpus": 16, "endpoints": 1},
            "members": {"lead": {"principalArn": "arn:aws:iam::123456789012:role/researcher"}},
            "invoke": {"endpoints": ["llama-70b"]},
        }
    },
    "modelStore": {
        "bucket": "models-of-acme",
        "protect": False,
        "models": {
            "llama": {
                "modelId": "meta-llama/Llama-3.3-70B-Instruct",
                "revision": "6f6073b423013f6a7d4d9f39144961bfbfbc386b",
                "token": {"configKey": "dpd-infra:huggingFaceToken"},
            }
        },
    },
}
SHARED_ENDPOINT = {
    "namespace": "search",
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "models-of-acme", "prefix": "Llama-3.3-70B-Instruct"}},
}


def project_of(engine: MakeProject, change: dict[str, Any], endpoint: dict[str, Any] | None = None, **options: Any) -> EngineProject:
    endpoints = copy.deepcopy(ENDPOINTS)
    endpoints["llama-70b"] |= endpoint or {}
    platform = copy.deepcopy({**PLATFORM, **change})
    return engine(program, config={"aws:region": "us-east-2", "dpd-infra:platform": platform, "dpd-infra:endpoints": endpoints}, **options)


def test_a_closed_network_comes_up_on_mirrors_and_goes(engine: MakeProject) -> None:
    project = project_of(engine, CLOSED)
    up = project.up()
    assert up.outputs["closedNetwork"] is True
    assert not [item.type for item in project.account if item.type.rsplit(":", 1)[-1] in ("NatGateway", "InternetGateway", "Eip", "Route")]
    [endpoint] = project.account.all("kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig")
    assert endpoint.outputs["spec"]["worker"]["image"].startswith(f"{ECR}/public/deep-learning-containers/vllm:")
    assert project.up().changes == 0
    project.destroy()
    assert len(project.account) == 0


def test_without_mirrors_a_closed_network_is_refused_by_rule(engine: MakeProject) -> None:
    with pytest.raises(RehearsalFailed) as failed:
        project_of(engine, {"network": CLOSED["network"]}).up()
    assert {"DPD550", "DPD552"} <= set(failed.value.message.split())


def test_a_shared_platform_with_a_model_store_comes_up_and_goes(engine: MakeProject) -> None:
    project = project_of(engine, SHARED, SHARED_ENDPOINT, secrets={"dpd-infra:huggingFaceToken": "hf_not_to_be_seen"})
    project.up()
    made = [operation.name for operation in project.account.journal if operation.action == "create"]
    order = [made.index(name) for name in ("inference-teams-search-namespace", "inference-store-llama", "llama-70b")]
    assert order == sorted(order)
    assert made.index("inference-addons-metrics-server") < made.index("inference-store-llama")
    assert "hf_not_to_be_seen" not in project.state_file.read_text(encoding="utf-8")
    assert project.up().changes == 0
    project.destroy()
    assert len(project.account) == 0


def test_another_revision_is_one_more_copy_and_nothing_else(engine: MakeProject) -> None:
    project = project_of(engine, SHARED, SHARED_ENDPOINT, secrets={"dpd-infra:huggingFaceToken": "hf_xxx"})
    project.up()
    project.config["dpd-infra:platform"]["modelStore"]["models"]["llama"]["revision"] = "0" * 40
    assert project.up().changed == {"inference-store-llama": "replace"}
