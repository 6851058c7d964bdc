"""The HyperPod cluster's resources: what the cluster waits for, what the nodes may do, and what reaches aws-native."""

from __future__ import annotations

import json
import re
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_aws_native.sagemaker._inputs as native_inputs
import pulumi_kubernetes as kubernetes
import pytest
from pulumi_aws_native.sagemaker import Cluster

from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.components.hyperpod_cluster import HyperPodCluster
from dpd_infra.render.hyperpod_cluster import native_arguments, render_cluster
from dpd_infra.render.lifecycle import lifecycle_scripts
from dpd_infra.spec.cluster import ClusterSpec, InstanceGroupSpec, Taint, TieredStorageSpec
from dpd_infra.spec.vocabulary import Capacity, TaintEffect
from tests.graph.kit import ACCOUNT_FACTS, TAGS, assert_tagged, network_handle
from tests.graph.mock_outputs import ACCOUNT
from tests.graph.recorder import Recording, run_program

KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
EKS_ARN = f"arn:aws:eks:us-east-2:{ACCOUNT}:cluster/eks-given"
SPEC = ClusterSpec(
    instance_groups={
        "prefill": InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=2),
        "decode": InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=1),
    }
)
EVERYTHING = ClusterSpec(
    name="own-name",
    instance_groups={
        "gpu": InstanceGroupSpec(
            instance_type="ml.p5.48xlarge",
            count=4,
            min_count=2,
            volume_key_arn=KEY,
            training_plan_arn=f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:training-plan/reserved",
            threads_per_core=1,
            labels={"Team": "Inference"},
            image_release_version="1.2.3",
        ),
        "spot": InstanceGroupSpec(
            instance_type="ml.c5.4xlarge",
            count=1,
            capacity=Capacity.SPOT,
            taints=(Taint(key="batch", value="yes", effect=TaintEffect.NO_SCHEDULE),),
        ),
    },
    tiered_storage=TieredStorageSpec(memory_percent=40),
)


def record(preview: bool, spec: ClusterSpec = SPEC, **options: Any) -> Recording:
    def program() -> dict[str, Any]:
        chart, access, route = (aws.ssm.Parameter(name, type="String", value="x") for name in ("chart", "access", "route"))
        control_plane = ControlPlaneHandle(
            name="eks-given",
            arn=EKS_ARN,
            version="1.33",
            oidc_provider_arn="unused",
            oidc_issuer="unused",
            cluster_security_group_id="sg-cluster",
            kubernetes_provider=kubernetes.Provider("kubernetes", kubeconfig="{}"),
            resources=(access,),
        )
        cluster = HyperPodCluster(
            "hp",
            spec,
            account=ACCOUNT_FACTS,
            network=network_handle(route),
            control_plane=control_plane,
            dependencies=[chart],
            default_name="inference",
        )
        handle = cluster.handle
        aws.ssm.Parameter("waits", type="String", value="x", opts=pulumi.ResourceOptions(depends_on=list(handle.resources)))
        return {"name": handle.name, "arn": handle.arn, "role": handle.execution_role_arn, "groups": dict(handle.instance_groups)}

    return run_program(program, preview=preview, **options)


def the_cluster(recording: Recording) -> dict[str, Any]:
    return recording.named("hp-cluster").inputs


def test_everything_below_the_component_is_its_child(preview: bool) -> None:
    recording = record(preview)
    component = recording.one("dpd:index:HyperPodCluster")
    mine = {r.urn for r in recording.children(component)}
    assert {r.urn for r in recording.custom} - mine == {recording.named(n).urn for n in ("chart", "access", "route", "kubernetes", "waits")}
    # Identity only: an edit of a group is an update of the cluster, and must not count as one of the component too.
    assert component.inputs == {"clusterName": "inference"}


def test_the_cluster_waits_for_all_that_its_nodes_need(preview: bool) -> None:
    recording = record(preview)
    cluster = recording.named("hp-cluster")
    before = {
        "chart",
        "access",
        "route",
        "hp-execution",
        "hp-execution-AmazonSageMakerClusterInstanceRolePolicy",
        "hp-execution-permissions",
        "hp-lifecycle",
        "hp-lifecycle-public-access",
        "hp-lifecycle-tls-only",
        "hp-lifecycle-encryption",
        "hp-lifecycle-versioning",
        *(f"hp-lifecycle-{script}" for script in lifecycle_scripts()),
    }
    assert {recording[urn].name for urn in cluster.dependencies} == before
    assert recording.depends_path(recording.named("waits"), cluster)


@pytest.mark.parametrize("protect", [True, False])
def test_the_cluster_is_protected_unless_the_spec_says_otherwise(preview: bool, protect: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"protect": protect}))
    assert recording.named("hp-cluster").protect is protect
    assert not any(r.protect for r in recording.custom if r.name != "hp-cluster")


def test_no_count_is_ignored(preview: bool) -> None:
    # Ignored changes of a list are positional: with groups sorted by name they would hit another group.
    assert not any(r.ignore_changes for r in record(preview).resources)


def test_the_request_arrives_as_it_was_rendered(preview: bool) -> None:
    recording = record(preview, EVERYTHING)
    inputs = the_cluster(recording)
    assert inputs["clusterName"] == "own-name"
    assert inputs["nodeProvisioningMode"] == "Continuous"
    assert inputs["nodeRecovery"] == "Automatic"
    assert inputs["orchestrator"] == {"eks": {"clusterArn": EKS_ARN}}
    assert inputs["vpcConfig"] == {"securityGroupIds": ["sg-efa", "sg-nodes"], "subnets": ["subnet-gpu"]}
    assert inputs["tieredStorageConfig"] == {"mode": "Enable", "instanceMemoryAllocationPercentage": 40}
    gpu, spot = inputs["instanceGroups"]
    assert (gpu["instanceGroupName"], gpu["instanceCount"], gpu["minInstanceCount"]) == ("gpu", 4, 2)
    assert gpu["kubernetesConfig"] == {"labels": {"Team": "Inference"}}
    assert gpu["instanceStorageConfigs"] == [
        {"ebsVolumeConfig": {"volumeSizeInGb": 500, "rootVolume": False, "volumeKmsKeyId": KEY}},
        {"ebsVolumeConfig": {"rootVolume": True, "volumeKmsKeyId": KEY}},
    ]
    assert spot["capacityRequirements"] == {"spot": {}}
    assert spot["kubernetesConfig"] == {"taints": [{"key": "batch", "value": "yes", "effect": "NoSchedule"}]}


def test_every_rendered_field_is_an_argument_of_aws_native() -> None:
    def resolve(annotation: Any) -> Any:
        name = re.search(r"Cluster\w+ArgsDict|TagArgsDict", str(annotation))
        return getattr(native_inputs, name.group(0), None) if name else None

    def unknown(value: Any, kind: Any, at: str) -> list[str]:
        if isinstance(value, list):
            return [found for item in value for found in unknown(item, kind, at)]
        if not isinstance(value, dict) or kind is None:
            return []
        known = kind.__annotations__
        return [f"{at}.{key}" for key in value if key not in known] + [
            found for key, item in value.items() if key in known for found in unknown(item, resolve(known[key]), f"{at}.{key}")
        ]

    request = render_cluster(
        EVERYTHING,
        name="n",
        eks_cluster_arn="a",
        execution_role_arn="r",
        lifecycle_uri="u",
        security_group_ids=["g"],
        subnet_ids=["s"],
        tags={"k": "v"},
    )
    arguments = native_arguments(request)
    top = Cluster._internal_init.__annotations__
    assert set(arguments) <= set(top)
    assert not [found for key, value in arguments.items() for found in unknown(value, resolve(top[key]), key)]
    # The walk really looks: one misspelt field is found.
    arguments["instance_groups"][0]["instance_storage_configs"][0]["ebs_volume_config"]["volume_size_in_gi_b"] = 1
    assert unknown(arguments["instance_groups"], resolve(top["instance_groups"]), "") == [
        ".instance_storage_configs.ebs_volume_config.volume_size_in_gi_b"
    ]


def test_the_scripts_are_where_the_cluster_looks_for_them(preview: bool) -> None:
    recording = record(preview)
    bucket = recording.one("Bucket").inputs["bucket"]
    assert bucket.startswith("sagemaker-")
    assert len(bucket) <= 63
    for name, content in lifecycle_scripts().items():
        script = recording.named(f"hp-lifecycle-{name}")
        assert script.inputs["key"] == f"lifecycle/{name}"
        assert script.inputs["content"] == content
    for group in the_cluster(recording)["instanceGroups"]:
        assert group["lifeCycleConfig"] == {"sourceS3Uri": f"s3://{bucket}/lifecycle", "onCreate": "on_create.sh"}


def test_a_changed_script_changes_nothing_of_the_cluster(monkeypatch: pytest.MonkeyPatch, preview: bool) -> None:
    before = the_cluster(record(preview))
    changed = {name: content + "# changed\n" for name, content in lifecycle_scripts().items()}
    monkeypatch.setattr("dpd_infra.components.hyperpod_cluster.lifecycle_scripts", lambda: changed)
    recording = record(preview)
    assert recording.named("hp-lifecycle-on_create.sh").inputs["content"].endswith("# changed\n")
    assert the_cluster(recording) == before


def test_the_bucket_is_private_encrypted_versioned_and_deletable(preview: bool) -> None:
    recording = record(preview)
    assert recording.one("Bucket").inputs["forceDestroy"] is True
    access = recording.one("BucketPublicAccessBlock").inputs
    assert [access[key] for key in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")] == [True] * 4
    (rule,) = recording.one("BucketServerSideEncryptionConfiguration").inputs["rules"]
    assert rule == {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}
    assert recording.one("BucketVersioning").inputs["versioningConfiguration"] == {"status": "Enabled"}
    policy = recording.one("BucketPolicy")
    assert recording.one("BucketPublicAccessBlock").urn in policy.dependencies
    if not preview:
        (statement,) = json.loads(policy.inputs["policy"])["Statement"]
        assert statement["Effect"] == "Deny"
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_nodes_role_is_sagemakers_and_reaches_this_platforms_network_alone() -> None:
    recording = record(False)
    role = recording.named("hp-execution")
    (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    assert statement == {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    attachment = recording.one("RolePolicyAttachment").inputs
    assert attachment["policyArn"] == "arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"
    statements = {s["Sid"]: s for s in json.loads(recording.one("RolePolicy").inputs["policy"])["Statement"]}
    managed = statements["ManageNetworkInterfaces"]["Resource"]
    assert {arn.rsplit(":", 1)[1] for arn in managed} == {
        "instance/*",
        "network-interface/*",
        "vpc/vpc-given",
        "subnet/subnet-gpu",
        "security-group/sg-efa",
        "security-group/sg-nodes",
    }
    bucket = recording.one("Bucket").inputs["bucket"]
    assert statements["ReadLifecycleScripts"]["Resource"] == [f"arn:aws:s3:::{bucket}/*"]
    assert statements["PodIdentity"]["Resource"] == [EKS_ARN]
    assert "UseVolumeKeys" not in statements
    assert all(group["executionRole"].endswith(role.inputs["name"]) for group in the_cluster(recording)["instanceGroups"])


def test_the_nodes_role_may_use_the_keys_of_its_volumes() -> None:
    policy = json.loads(record(False, EVERYTHING).one("RolePolicy").inputs["policy"])
    (keys,) = (s for s in policy["Statement"] if s["Sid"] == "UseVolumeKeys")
    assert (keys["Action"], keys["Resource"]) == (["kms:CreateGrant", "kms:DescribeKey"], [KEY])


def test_tags_are_on_all_but_the_objects_which_may_have_ten_at_most(preview: bool) -> None:
    recording = record(preview)
    objects = recording.of_type("BucketObjectv2")
    assert len(objects) == len(lifecycle_scripts()) + 1
    # Not even the provider's default tags: with over ten of them S3 refuses the object.
    assert all("tags" not in r.inputs and r.inputs["overrideProvider"] == {"defaultTags": {"tags": {}}} for r in objects)
    assert_tagged(Recording(preview, [r for r in recording.custom if r.parent and r not in objects]))
    tags = {tag["key"]: tag["value"] for tag in the_cluster(recording)["tags"]}
    assert tags == {**TAGS, "Name": "inference-prod-hyperpod"}


def test_the_handle_names_what_later_parts_need() -> None:
    assert record(False).returned == {
        "name": "inference",
        "arn": f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:cluster/inference",
        "role": f"arn:aws:iam::{ACCOUNT}:role/inference-prod-us-east-2-hyperpod-node",
        "groups": {"decode": "ml.p5.48xlarge", "prefill": "ml.p5.48xlarge"},
    }


def test_the_outputs_are_registered(preview: bool) -> None:
    recording = record(preview)
    outputs = recording.component_outputs[recording.one("dpd:index:HyperPodCluster").urn]
    assert set(outputs) == {"clusterName", "clusterArn", "executionRoleArn", "lifecycleUri"}
    assert outputs["clusterName"] == "inference"
