"""The CreateCluster request against the API's own shape, as botocore holds it."""

from __future__ import annotations

import re
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, StructureShape
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.catalog.instance_types import INSTANCE_TYPES
from dpd_infra.render.hyperpod_cluster import native_arguments, render_cluster
from dpd_infra.spec.cluster import ClusterSpec, InstanceGroupSpec, NodeRecovery, Taint, TieredStorageSpec
from dpd_infra.spec.vocabulary import Capacity, DeepHealthCheck, TaintEffect

KEY = "arn:aws:kms:us-east-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PLAN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/p5-reserved"
SHAPE: Any = botocore.session.Session().get_service_model("sagemaker").operation_model("CreateCluster").input_shape


def render(spec: ClusterSpec) -> dict[str, Any]:
    return render_cluster(
        spec,
        name="inference-prod",
        eks_cluster_arn="arn:aws:eks:us-east-2:111122223333:cluster/inference-prod",
        execution_role_arn="arn:aws:iam::111122223333:role/inference-prod-us-east-2-execution",
        lifecycle_uri="s3://sagemaker-inference-prod-lifecycle-111122223333-us-east-2/lifecycle",
        security_group_ids=["sg-0123456789abcdef0", "sg-0123456789abcdef1"],
        subnet_ids=["subnet-0123456789abcdef0"],
        tags={"team": "inference", "cost-center": "42"},
    )


def problems(value: Any, shape: Any, at: str = "") -> list[str]:
    """What botocore's validator leaves to the service: enumerations, patterns, and a string's length."""
    kind = type(shape)
    if kind is StructureShape:
        return [found for key, item in value.items() for found in problems(item, shape.members[key], f"{at}.{key}")]
    if kind is ListShape:
        return [found for index, item in enumerate(value) for found in problems(item, shape.member, f"{at}[{index}]")]
    if kind is MapShape:
        return [
            found for key, item in value.items() for found in [*problems(key, shape.key, at), *problems(item, shape.value, f"{at}.{key}")]
        ]
    found = []
    if not isinstance(value, str):
        return found
    if enum := shape.metadata.get("enum"):
        found += [] if value in enum else [f"{at}: {value} is none of the enumeration"]
    if pattern := shape.metadata.get("pattern"):
        # botocore's patterns are Java's: \p classes are the letters and digits used here.
        found += (
            []
            if re.fullmatch(re.sub(r"\\p\{L\}\\p\{Z\}\\p\{N\}", r"\\w ", pattern), value)
            else [f"{at}: {value} does not match {pattern}"]
        )
    if len(value) > shape.metadata.get("max", len(value)):
        found.append(f"{at}: {value} is too long")
    return found


def assert_accepted(request: dict[str, Any]) -> None:
    assert not ParamValidator().validate(request, SHAPE).generate_report()
    assert not problems(request, SHAPE)


GROUP = InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=2)
EVERYTHING = ClusterSpec(
    name="everything",
    instance_groups={
        "gpu": InstanceGroupSpec(
            instance_type="ml.p5.48xlarge",
            count=4,
            min_count=2,
            deep_health_checks=tuple(DeepHealthCheck),
            storage_gib=1000,
            volume_key_arn=KEY,
            training_plan_arn=PLAN,
            threads_per_core=1,
            labels={"team": "inference", "accelerator": "h100"},
            image_release_version="1.2.3",
        ),
        "spot": InstanceGroupSpec(
            instance_type="ml.c5.4xlarge",
            count=0,
            capacity=Capacity.SPOT,
            taints=(
                Taint(key="example.com/batch", effect=TaintEffect.NO_SCHEDULE),
                Taint(key="example.com/soft", value="yes", effect=TaintEffect.PREFER_NO_SCHEDULE),
            ),
        ),
    },
    node_recovery=NodeRecovery.NONE,
    tiered_storage=TieredStorageSpec(memory_percent=40),
)

_NAMES = st.from_regex(r"[a-zA-Z0-9](-?[a-zA-Z0-9]){0,8}", fullmatch=True)
_TAINTS = st.builds(
    lambda key, value, effect: Taint(key=key, value=value, effect=effect), _NAMES, st.just("") | _NAMES, st.sampled_from(TaintEffect)
)
GROUPS = st.fixed_dictionaries(
    {
        "instance_type": st.sampled_from(sorted(INSTANCE_TYPES)),
        "count": st.integers(0, 6758),
        "min_count": st.none() | st.integers(0, 6758),
        "deep_health_checks": st.none() | st.sampled_from([(), (DeepHealthCheck.INSTANCE_STRESS,), tuple(DeepHealthCheck)]),
        "storage_gib": st.integers(1, 16384),
        "volume_key_arn": st.sampled_from([None, KEY]),
        "capacity": st.sampled_from(Capacity),
        "training_plan_arn": st.sampled_from([None, PLAN]),
        "threads_per_core": st.sampled_from([None, 1, 2]),
        "labels": st.dictionaries(_NAMES, _NAMES, max_size=2),
        "taints": st.lists(_TAINTS, max_size=2).map(tuple),
        "image_release_version": st.sampled_from([None, "1.0.0"]),
    }
).map(InstanceGroupSpec.model_validate)
CLUSTERS = st.fixed_dictionaries(
    {
        "instance_groups": st.dictionaries(_NAMES, GROUPS, min_size=1, max_size=3),
        "node_recovery": st.sampled_from(NodeRecovery),
        "continuous_provisioning": st.booleans(),
        "tiered_storage": st.none() | st.integers(20, 100).map(lambda percent: TieredStorageSpec(memory_percent=percent)),
    }
).map(ClusterSpec.model_validate)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("InstanceType", "ml.p9.48xlarge"),
        ("InstanceGroupName", "no_underscore"),
        ("InstanceCount", "2"),
        ("ThreadsPerCore", 0),
        ("Extra", 1),
    ],
)
def test_the_check_of_the_shape_refuses_what_the_service_would(field: str, value: Any) -> None:
    request = render(EVERYTHING)
    assert_accepted(request)
    request["InstanceGroups"][0][field] = value
    with pytest.raises((AssertionError, KeyError)):
        assert_accepted(request)


@given(CLUSTERS)
def test_the_service_accepts_every_cluster_that_can_be_asked_for(spec: ClusterSpec) -> None:
    assert_accepted(render(spec))


@settings(max_examples=30)
@given(CLUSTERS)
def test_groups_come_by_name_each_once_with_its_own_count(spec: ClusterSpec) -> None:
    groups = render(spec)["InstanceGroups"]
    assert [group["InstanceGroupName"] for group in groups] == sorted(spec.instance_groups)
    assert {group["InstanceGroupName"]: group["InstanceCount"] for group in groups} == {
        name: group.count for name, group in spec.instance_groups.items()
    }


@settings(max_examples=30)
@given(CLUSTERS, _NAMES, GROUPS)
def test_a_group_more_changes_nothing_of_the_others(spec: ClusterSpec, name: str, group: InstanceGroupSpec) -> None:
    more = spec.model_copy(update={"instance_groups": {name: group} | spec.instance_groups})
    before, after = render(spec), render(more)
    kept = [entry for entry in after["InstanceGroups"] if entry["InstanceGroupName"] in spec.instance_groups]
    assert kept == before["InstanceGroups"]
    assert {k: v for k, v in after.items() if k != "InstanceGroups"} == {k: v for k, v in before.items() if k != "InstanceGroups"}


def test_every_setting_arrives_where_the_api_has_it() -> None:
    request = render(EVERYTHING)
    gpu, spot = request["InstanceGroups"]
    assert gpu == {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 4,
        "MinInstanceCount": 2,
        "ExecutionRole": "arn:aws:iam::111122223333:role/inference-prod-us-east-2-execution",
        "LifeCycleConfig": {
            "SourceS3Uri": "s3://sagemaker-inference-prod-lifecycle-111122223333-us-east-2/lifecycle",
            "OnCreate": "on_create.sh",
        },
        "InstanceStorageConfigs": [
            {"EbsVolumeConfig": {"VolumeSizeInGB": 1000, "RootVolume": False, "VolumeKmsKeyId": KEY}},
            {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": KEY}},
        ],
        "OnStartDeepHealthChecks": ["InstanceStress", "InstanceConnectivity"],
        "TrainingPlanArn": PLAN,
        "ThreadsPerCore": 1,
        "ImageReleaseVersion": "1.2.3",
        "KubernetesConfig": {"Labels": {"accelerator": "h100", "team": "inference"}},
    }
    assert spot["CapacityRequirements"] == {"Spot": {}}
    assert spot["InstanceCount"] == 0
    assert spot["KubernetesConfig"]["Taints"] == [
        {"Key": "example.com/batch", "Effect": "NoSchedule"},
        {"Key": "example.com/soft", "Effect": "PreferNoSchedule", "Value": "yes"},
    ]
    assert request["NodeRecovery"] == "None"
    assert request["NodeProvisioningMode"] == "Continuous"
    assert request["TieredStorageConfig"] == {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 40}
    assert request["Orchestrator"] == {"Eks": {"ClusterArn": "arn:aws:eks:us-east-2:111122223333:cluster/inference-prod"}}
    assert request["VpcConfig"] == {
        "SecurityGroupIds": ["sg-0123456789abcdef0", "sg-0123456789abcdef1"],
        "Subnets": ["subnet-0123456789abcdef0"],
    }
    assert request["Tags"] == [{"Key": "cost-center", "Value": "42"}, {"Key": "team", "Value": "inference"}]


@settings(max_examples=30)
@given(CLUSTERS)
def test_a_root_volume_has_a_key_and_no_size_and_an_additional_volume_has_a_size(spec: ClusterSpec) -> None:
    # The rule of the API's own documentation of ClusterEbsVolumeConfig, which its shape does not hold.
    for group in render(spec)["InstanceGroups"]:
        volumes = [storage["EbsVolumeConfig"] for storage in group["InstanceStorageConfigs"]]
        roots = [volume for volume in volumes if volume["RootVolume"]]
        assert all("VolumeSizeInGB" not in root and "VolumeKmsKeyId" in root for root in roots)
        assert [volume["VolumeSizeInGB"] for volume in volumes if not volume["RootVolume"]] == [
            spec.instance_groups[group["InstanceGroupName"]].storage_gib
        ]


@given(st.booleans(), st.none() | st.just(TieredStorageSpec()))
def test_tiered_storage_never_travels_without_node_recovery(continuous: bool, tiered: TieredStorageSpec | None) -> None:
    request = render(ClusterSpec(instance_groups={"gpu": GROUP}, continuous_provisioning=continuous, tiered_storage=tiered))
    assert "NodeRecovery" in request
    assert ("TieredStorageConfig" in request) is (tiered is not None)
    assert ("NodeProvisioningMode" in request) is continuous


def test_gpu_groups_are_checked_deeply_unless_told_otherwise_and_system_groups_are_not() -> None:
    groups = {
        "gpu": GROUP,
        "system": InstanceGroupSpec(instance_type="ml.c5.4xlarge", count=2),
        "unchecked": InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=1, deep_health_checks=()),
    }
    rendered = {group["InstanceGroupName"]: group for group in render(ClusterSpec(instance_groups=groups))["InstanceGroups"]}
    assert rendered["gpu"]["OnStartDeepHealthChecks"] == ["InstanceStress", "InstanceConnectivity"]
    assert "OnStartDeepHealthChecks" not in rendered["system"]
    assert "OnStartDeepHealthChecks" not in rendered["unchecked"]


class _Opaque:
    """Stands for an output: any look into it fails."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return type(self)
        raise AssertionError(f"an opaque value was asked for {name}")

    def __bool__(self) -> bool:
        raise AssertionError("an opaque value was taken for true or false")


def test_values_of_other_resources_are_passed_on_and_never_looked_into() -> None:
    eks, role, uri, groups, subnets = (_Opaque() for _ in range(5))
    request = render_cluster(
        EVERYTHING,
        name="opaque",
        eks_cluster_arn=eks,
        execution_role_arn=role,
        lifecycle_uri=uri,
        security_group_ids=groups,
        subnet_ids=subnets,
        tags={},
    )
    native = native_arguments(request)
    assert native["orchestrator"]["eks"]["cluster_arn"] is eks
    assert all(group["execution_role"] is role for group in native["instance_groups"])
    assert all(group["life_cycle_config"]["source_s3_uri"] is uri for group in native["instance_groups"])
    assert native["vpc_config"]["security_group_ids"] is groups
    assert native["vpc_config"]["subnets"] is subnets
    assert "tags" not in native


@pytest.mark.parametrize("key", ["Team", "example.com/Cost_Center", "TwoWords"])
def test_labels_keep_their_keys(key: str) -> None:
    group = InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=1, labels={key: "Value"})
    native = native_arguments(render(ClusterSpec(instance_groups={"gpu": group})))
    assert native["instance_groups"][0]["kubernetes_config"]["labels"] == {key: "Value"}
