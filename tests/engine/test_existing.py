"""What is ours and what is somebody else's, in every mixture, on the engine: it comes up, nothing dangles, nothing of theirs changes."""

from __future__ import annotations

import itertools
import runpy
from typing import Any

import pytest

from dpd_infra.rehearsal import RehearsalFailed
from tests.engine.conftest import MakeProject
from tests.engine.estate import HYPERPOD_ARN, REGION, THEIR_EKS, Estate
from tests.engine.harness import REPOSITORY, EngineProject

ENDPOINTS: dict[str, Any] = {
    "llama-70b": {
        "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
        "instanceType": "ml.p5.48xlarge",
        "prefill": {"replicas": 1, "instanceGroup": "prefill"},
        "decode": {"replicas": 1, "instanceGroup": "decode"},
    }
}
STEPS = ("network", "control_plane", "cluster", "operator")
MIXTURES: list[dict[str, Any]] = [dict(zip(STEPS, theirs, strict=True)) for theirs in itertools.product((False, True), repeat=len(STEPS))]

MADE = {
    "control_plane": "aws:eks/cluster:Cluster",
    "cluster": "aws-native:sagemaker:Cluster",
}
"""The resource by which one sees that a step is ours."""


def program() -> None:
    """The program that users run, unchanged."""
    runpy.run_path(str(REPOSITORY / "stacks" / "__main__.py"), run_name="__main__")


def project_of(engine: MakeProject, estate: Estate, **change: Any) -> EngineProject:
    config = {"aws:region": REGION, "dpd-infra:platform": {**estate.platform, **change}, "dpd-infra:endpoints": ENDPOINTS}
    return engine(program, estate.account, config=config)


def mixture_id(mixture: dict[str, bool]) -> str:
    theirs = [step for step, is_theirs in mixture.items() if is_theirs]
    return "theirs: " + (", ".join(theirs) or "nothing")


@pytest.mark.parametrize("mixture", MIXTURES, ids=mixture_id)
def test_every_mixture_of_ours_and_theirs_comes_up_and_changes_nothing_of_theirs(engine: MakeProject, mixture: dict[str, Any]) -> None:
    estate = Estate(**mixture)
    project = project_of(engine, estate)
    project.preview()
    assert len(estate.account) == len(estate.before), "a preview made something"
    project.up()
    assert estate.changed() == []

    state = project.state
    urns = {resource["urn"] for resource in state}
    for resource in state:
        for other in [*resource.get("dependencies", []), *itertools.chain(*resource.get("propertyDependencies", {}).values())]:
            assert other in urns, (resource["urn"], other)
    theirs = {identity for _, identity in estate.before}
    assert not [resource["urn"] for resource in state if resource.get("id") in theirs], "something of theirs is in our state"
    for step, token in MADE.items():
        assert any(resource["type"] == token for resource in state) is not mixture[step]

    assert project.up().changes == 0


def test_destroying_ours_leaves_theirs(engine: MakeProject) -> None:
    estate = Estate(control_plane=True)
    project = project_of(engine, estate, cluster={"protect": False})
    project.up()
    project.destroy()
    assert estate.changed() == []
    # What the operator wrote went with its bucket.
    assert len(estate.account) == len(estate.before)


@pytest.mark.parametrize(
    ("estate", "message"),
    [
        (
            Estate(control_plane=True, kubernetes_version="1.31"),
            "runs Kubernetes 1.31; what is to be made in it takes 1.32, 1.33, 1.34, 1.35",
        ),
        (
            Estate(control_plane=True, authentication_mode="CONFIG_MAP"),
            "has authentication mode CONFIG_MAP, in which HyperPod cannot join it",
        ),
        (Estate(control_plane=True, vpc_cni_version="v1.17.1-eksbuild.1"), "vpc-cni of the EKS cluster their-eks"),
        (Estate(control_plane=True, oidc_provider=False), "the IAM OIDC provider of the EKS cluster their-eks"),
        (
            Estate(cluster=True, control_plane=True, addon_versions={**Estate().addon_versions, "cert-manager": "v1.17.0-eksbuild.1"}),
            "cert-manager",
        ),
    ],
    ids=["kubernetes version", "authentication mode", "vpc-cni", "oidc provider", "add-on"],
)
def test_what_is_there_and_does_not_fit_stops_the_deployment_by_name(engine: MakeProject, estate: Estate, message: str) -> None:
    with pytest.raises(RehearsalFailed) as failed:
        project_of(engine, estate).up()
    assert message in failed.value.message
    assert "Traceback" not in failed.value.message
    assert estate.changed() == []


def test_an_oidc_provider_is_made_on_request(engine: MakeProject) -> None:
    estate = Estate(control_plane=True, oidc_provider=False)
    existing = {**estate.existing, "controlPlane": {"name": THEIR_EKS, "makeOidcProvider": True}}
    project_of(engine, estate, existing=existing).up()
    assert estate.account.all("aws:iam/openIdConnectProvider:OpenIdConnectProvider")


def test_what_is_not_there_is_named(engine: MakeProject) -> None:
    estate = Estate(control_plane=True)
    with pytest.raises(RehearsalFailed, match="the EKS cluster another in us-east-2 was not found"):
        project_of(engine, estate, existing={**estate.existing, "controlPlane": {"name": "another"}}).preview()


def test_a_hyperpod_cluster_of_another_eks_cluster_is_refused(engine: MakeProject) -> None:
    estate = Estate(control_plane=True, cluster=True)
    [cluster] = estate.account.all("aws-native:sagemaker:Cluster")
    cluster.outputs["orchestrator"] = {"eks": {"clusterArn": f"arn:aws:eks:{REGION}:123456789012:cluster/another"}}
    with pytest.raises(RehearsalFailed, match=r"is orchestrated by .*/another, not by .*/their-eks"):
        project_of(engine, estate).up()


def test_an_existing_operator_that_is_older_than_promised_stops_the_endpoint(engine: MakeProject) -> None:
    estate = Estate(control_plane=True, cluster=True, operator=True, operator_version="v1.3.0-eksbuild.1")
    existing = {**estate.existing, "operator": {"addonVersion": "v1.4.0-eksbuild.1"}}
    with pytest.raises(RehearsalFailed, match=r"is at v1\.3\.0-eksbuild\.1, older than v1\.4\.0-eksbuild\.1"):
        project_of(engine, estate, existing=existing).up()
    assert estate.account.all("kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig") == []


def test_an_eks_cluster_by_plain_values_is_not_looked_up(engine: MakeProject) -> None:
    estate = Estate(control_plane=True, cluster=True, operator=True)
    [eks] = estate.account.all("aws:eks/cluster:Cluster")
    values = {
        "version": "1.33",
        "endpoint": eks.outputs["endpoint"],
        "certificateAuthority": eks.outputs["certificateAuthority"]["data"],
        "oidcIssuer": eks.outputs["identities"][0]["oidcs"][0]["issuer"],
        "clusterSecurityGroupId": eks.outputs["vpcConfig"]["clusterSecurityGroupId"],
        "vpcId": eks.outputs["vpcConfig"]["vpcId"],
    }
    existing = {**estate.existing, "controlPlane": {"name": THEIR_EKS, "values": values}}
    run = project_of(engine, estate, existing=existing).up()
    assert run.outputs["hyperPodClusterArn"] == HYPERPOD_ARN
