"""What AWS's APIs and a Terraform state say of a cluster, read by boto3's own stubs and shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.ops.live_estate import _STATE_KEYS, EstateUnreadable, LiveAddon, as_request, describe, read_configuration
from dpd_infra.ops.terraform_state import _pascal_name, from_terraform
from dpd_infra.render.hyperpod_cluster import _snake

REGION = "us-east-2"
ACCOUNT = "111122223333"
ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghij12"
EKS_ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/my-eks"
ISSUER = f"oidc.eks.{REGION}.amazonaws.com/id/0123456789ABCDEF"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
CONFIGURATION = {"executionRoleArn": ROLE, "tlsCertificateS3Bucket": "hyperpod-tls-x"}
DESCRIBED: dict[str, Any] = {
    "ClusterArn": ARN,
    "ClusterName": "hp",
    "ClusterStatus": "InService",
    "InstanceGroups": [
        {
            "InstanceGroupName": "gpu",
            "InstanceType": "ml.p5.48xlarge",
            "CurrentCount": 1,
            "TargetCount": 2,
            "ExecutionRole": ROLE,
            "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-x/", "OnCreate": "on_create.sh"},
            "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 700}}],
            "Status": "InService",
            "KubernetesConfig": {"CurrentLabels": {"pool": "old"}, "DesiredLabels": {"pool": "gpu"}},
        }
    ],
    "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
    "Orchestrator": {"Eks": {"ClusterArn": EKS_ARN}},
    "NodeRecovery": "Automatic",
    "NodeProvisioningMode": "Continuous",
}


@pytest.fixture
def stubs() -> Iterator[dict[str, Stubber]]:
    stubs = {}
    for service in ("sagemaker", "eks", "ec2", "iam"):
        client = boto3.client(service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        stubs[service] = Stubber(client)
        stubs[service].activate()
    yield stubs
    for stub in stubs.values():
        stub.assert_no_pending_responses()


def test_a_cluster_is_described_by_read_only_calls(stubs: dict[str, Stubber]) -> None:
    stubs["sagemaker"].add_response("describe_cluster", DESCRIBED, {"ClusterName": "hp"})
    eks = {"identity": {"oidc": {"issuer": f"https://{ISSUER}"}}, "resourcesVpcConfig": {"vpcId": "vpc-1"}}
    stubs["eks"].add_response("describe_cluster", {"cluster": eks}, {"name": "my-eks"})
    stubs["ec2"].add_response(
        "describe_subnets", {"Subnets": [{"SubnetId": "subnet-1", "AvailabilityZone": "us-east-2a"}]}, {"SubnetIds": ["subnet-1"]}
    )
    provider = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}"
    stubs["iam"].add_response("list_open_id_connect_providers", {"OpenIDConnectProviderList": [{"Arn": provider}]}, {})
    stubs["eks"].add_response("list_addons", {"addons": ["coredns", ADDON_NAME]}, {"clusterName": "my-eks"})
    for name, addon in (
        ("coredns", {"addonVersion": "v1.12.4-eksbuild.1", "serviceAccountRoleArn": ROLE}),
        (ADDON_NAME, {"addonVersion": "v1.4.0-eksbuild.1", "configurationValues": json.dumps(CONFIGURATION)}),
    ):
        stubs["eks"].add_response("describe_addon", {"addon": addon}, {"clusterName": "my-eks", "addonName": name})
    estate = describe("hp", {service: stub.client for service, stub in stubs.items()})
    assert (estate.region, estate.cluster_arn, estate.eks_name, estate.vpc_id) == (REGION, ARN, "my-eks", "vpc-1")
    assert estate.zones == {"subnet-1": "us-east-2a"}
    assert estate.has_oidc_provider is True
    assert estate.addons == {"coredns": LiveAddon("v1.12.4-eksbuild.1", has_role=True), ADDON_NAME: LiveAddon("v1.4.0-eksbuild.1")}
    assert estate.operator_configuration == CONFIGURATION


def test_what_a_cluster_is_becomes_what_was_asked_for() -> None:
    [group] = as_request(DESCRIBED)["InstanceGroups"]
    assert group["InstanceCount"] == 2
    assert group["KubernetesConfig"] == {"Labels": {"pool": "gpu"}}
    assert not {"CurrentCount", "TargetCount", "Status"} & set(group)


def shape(operation: str, *path: str) -> Any:
    """A part of a request or of an answer, as botocore's model has it."""
    client = boto3.client("sagemaker", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    model = client.meta.service_model.operation_model(operation)
    found: Any = model.output_shape if operation.startswith("Describe") else model.input_shape
    for step in path:
        found = found.members[step]
    return found.member if found.type_name == "list" else found


def test_every_member_of_a_described_group_is_asked_for_or_known_as_state() -> None:
    described, asked = shape("DescribeCluster", "InstanceGroups"), shape("CreateCluster", "InstanceGroups")
    renamed = {"TargetCount", "MinCount"}
    assert set(described.members) - set(asked.members) - renamed - _STATE_KEYS == set()
    assert set(described.members) >= _STATE_KEYS | renamed


def names(of: Any, seen: set[str]) -> set[str]:
    if of.name in seen:
        return set()
    seen = {*seen, of.name}
    if of.type_name == "list":
        return names(of.member, seen)
    if of.type_name != "structure":
        return set()
    return set(of.members) | {name for member in of.members.values() for name in names(member, seen)}


def test_terraforms_spelling_of_every_name_of_the_api_is_read_back() -> None:
    found = names(shape("CreateCluster"), set())
    assert len(found) > 50
    # The API has FSxLustreConfig beside FsxLustreConfig: the first stands in restricted groups, which are kept whatever is in them.
    assert {name for name in found if _pascal_name(_snake(name)) != name and not name.startswith("FSx")} == set()


def test_a_cluster_without_eks_and_a_configuration_that_is_no_object_are_refused(stubs: dict[str, Stubber]) -> None:
    slurm = {key: value for key, value in DESCRIBED.items() if key != "Orchestrator"}
    stubs["sagemaker"].add_response("describe_cluster", slurm, {"ClusterName": "hp"})
    with pytest.raises(EstateUnreadable, match="not orchestrated by EKS"):
        describe("hp", {service: stub.client for service, stub in stubs.items()})
    for text in ("[1]", "a: [", "just text"):
        with pytest.raises(EstateUnreadable):
            read_configuration(text)
    assert read_configuration("") == read_configuration(None) == {}
    assert read_configuration("executionRoleArn: x\n") == {"executionRoleArn": "x"}


def resource(kind: str, mode: str = "managed", module: str | None = None, **attributes: Any) -> dict[str, Any]:
    where = {"module": module} if module else {}
    return {**where, "mode": mode, "type": kind, "name": "x", "instances": [{"schema_version": 0, "attributes": attributes}]}


TERRAFORM: dict[str, Any] = {
    "version": 4,
    "terraform_version": "1.9.0",
    "resources": [
        resource(
            "awscc_sagemaker_cluster",
            module="module.hyperpod_cluster[0]",
            cluster_arn=ARN,
            cluster_name="hp",
            instance_groups=[
                {
                    "instance_group_name": "gpu",
                    "instance_type": "ml.p5.48xlarge",
                    "instance_count": 2,
                    "execution_role": ROLE,
                    "life_cycle_config": {"source_s3_uri": "s3://sagemaker-x/", "on_create": "on_create.sh"},
                    "instance_storage_configs": [{"ebs_volume_config": {"volume_size_in_gb": 700, "volume_kms_key_id": None}}],
                    "kubernetes_config": {"labels": {"my_pool": "gpu"}, "taints": None},
                    "training_plan_arn": None,
                }
            ],
            node_provisioning_mode="Continuous",
            node_recovery="Automatic",
            orchestrator={"eks": {"cluster_arn": EKS_ARN}},
            vpc_config={"security_group_ids": ["sg-1"], "subnets": ["subnet-1"]},
        ),
        resource(
            "aws_eks_cluster",
            module="module.eks_cluster[0]",
            arn=EKS_ARN,
            name="my-eks",
            vpc_config=[{"vpc_id": "vpc-1"}],
            identity=[{"oidc": [{"issuer": f"https://{ISSUER}"}]}],
        ),
        resource("aws_subnet", id="subnet-1", availability_zone="us-east-2a"),
        resource("aws_iam_openid_connect_provider", url=ISSUER),
        resource("aws_eks_addon", cluster_name="my-eks", addon_name="vpc-cni", addon_version="v1.20.4-eksbuild.1"),
        resource("aws_eks_addon", cluster_name="other", addon_name="coredns", addon_version="v1.0.0-eksbuild.1"),
        resource(
            "aws_eks_addon",
            cluster_name="my-eks",
            addon_name=ADDON_NAME,
            addon_version="v1.4.0-eksbuild.1",
            configuration_values=json.dumps(CONFIGURATION),
        ),
        resource("awscc_sagemaker_cluster", mode="data", cluster_name="read only"),
    ],
}


def without(kind: str) -> dict[str, Any]:
    return {**TERRAFORM, "resources": [item for item in TERRAFORM["resources"] if item["type"] != kind]}


def test_a_terraform_state_says_the_same_of_a_cluster_as_the_api() -> None:
    estate = from_terraform(TERRAFORM)
    expected = as_request(DESCRIBED)
    expected["InstanceGroups"][0]["KubernetesConfig"] = {"Labels": {"my_pool": "gpu"}}
    assert estate.cluster == expected
    assert (estate.region, estate.cluster_arn, estate.eks_name, estate.vpc_id) == (REGION, ARN, "my-eks", "vpc-1")
    assert estate.zones == {"subnet-1": "us-east-2a"}
    assert estate.has_oidc_provider is True
    assert set(estate.addons) == {"vpc-cni", ADDON_NAME}
    assert estate.operator_configuration == CONFIGURATION


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"version": 3}, "no Terraform state of version 4: version 3"),
        ({}, "version None"),
        (without("awscc_sagemaker_cluster"), "the state holds no awscc_sagemaker_cluster"),
        (without("aws_eks_cluster"), f"no aws_eks_cluster with the ARN {EKS_ARN}"),
        (without("aws_subnet"), "which zone subnet-1 is in"),
    ],
    ids=["old", "no state", "no cluster", "no eks", "no subnet"],
)
def test_a_state_that_lacks_something_says_what(state: dict[str, Any], said: str) -> None:
    with pytest.raises(EstateUnreadable, match=said):
        from_terraform(state)


def test_one_of_several_clusters_is_taken_by_name() -> None:
    second = json.loads(json.dumps(TERRAFORM["resources"][0]))
    second["instances"][0]["attributes"] |= {"cluster_name": "second", "cluster_arn": ARN.replace("abcdefghij12", "second")}
    state = {**TERRAFORM, "resources": [*TERRAFORM["resources"], second]}
    assert from_terraform(state, "second").cluster["ClusterName"] == "second"
    with pytest.raises(EstateUnreadable, match="hp, second; name one"):
        from_terraform(state)
    with pytest.raises(EstateUnreadable, match="third is not one of them"):
        from_terraform(state, "third")


def test_an_oidc_provider_of_another_issuer_is_not_this_clusters() -> None:
    state = without("aws_iam_openid_connect_provider")
    state["resources"].append(resource("aws_iam_openid_connect_provider", url="oidc.eks.us-east-2.amazonaws.com/id/OTHER"))
    assert from_terraform(state).has_oidc_provider is False
