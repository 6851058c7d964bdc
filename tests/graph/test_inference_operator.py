"""The inference operator's resources: the exact trust of its roles, what the add-on waits for, and an add-on that is adopted."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
import pytest

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.components._roles import _as_declared
from dpd_infra.components.handles import AddonsHandle, ClusterHandle, ControlPlaneHandle
from dpd_infra.components.inference_operator import InferenceOperator
from dpd_infra.plan.iam import keda_role
from dpd_infra.spec.operator import OperatorSpec
from tests.graph.kit import ACCOUNT_FACTS, assert_tagged, network_handle
from tests.graph.mock_outputs import ACCOUNT, ISSUER
from tests.graph.recorder import UNKNOWN, Recorded, Recording, run_program

OIDC = ISSUER.removeprefix("https://")
OIDC_ARN = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{OIDC}"
CLUSTER_ARN = f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:cluster/hp"
GET_ADDON = "aws:eks/getAddon:getAddon"
OURS = ("access", "nodes", "addons", "route")


def record(preview: bool, spec: OperatorSpec | None = None, *, found: str = "", expect: type[BaseException] | None = None) -> Recording:
    def program() -> dict[str, Any]:
        access, nodes, addons, route = (aws.ssm.Parameter(name, type="String", value="x") for name in OURS)
        control_plane = ControlPlaneHandle(
            name="eks-given",
            arn="unused",
            version="1.33",
            oidc_provider_arn=OIDC_ARN,
            oidc_issuer=OIDC,
            cluster_security_group_id="unused",
            kubernetes_provider=kubernetes.Provider("kubernetes", kubeconfig="{}"),
            resources=(access,),
        )
        operator = InferenceOperator(
            "op",
            spec or OperatorSpec(),
            account=ACCOUNT_FACTS,
            network=network_handle(route),
            control_plane=control_plane,
            cluster=ClusterHandle("hp", CLUSTER_ARN, resources=(nodes,)),
            addons=AddonsHandle((addons,)),
        )
        handle = operator.handle
        aws.ssm.Parameter("waits", type="String", value="x", opts=pulumi.ResourceOptions(depends_on=list(handle.resources)))
        return {
            "version": handle.addon_version,
            "expects": handle.facts.addon_version,
            "cluster": handle.cluster_name,
            "region": handle.region,
        }

    answer = {GET_ADDON: {"addonVersion": found, "addonName": ADDON_NAME, "clusterName": "eks-given", "id": "x"}} if found else {}
    return run_program(program, preview=preview, invokes=answer, expect=expect)


def test_the_operators_role_reaches_what_the_spec_names_and_no_more() -> None:
    certificate = f"arn:aws:acm:us-east-2:{ACCOUNT}:certificate/12345678-1234-1234-1234-123456789012"
    key = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/12345678-1234-1234-1234-123456789012"
    spec = OperatorSpec(
        certificate_arns=(certificate,),
        hosted_zone_ids=("Z0123456789ABC",),
        data_capture_buckets=("captures",),
        data_capture_key_arns=(key,),
    )

    def granted(spec: OperatorSpec | None) -> dict[str, Any]:
        policy = json.loads(record(False, spec).named("op-execution-permissions").inputs["policy"])
        return {statement["Sid"]: statement for statement in policy["Statement"]}

    more = {sid: statement for sid, statement in granted(spec).items() if sid not in granted(None)}
    assert {sid: statement["Resource"] for sid, statement in more.items()} == {
        "ReadCertificates": [certificate],
        "ManageRecords": ["arn:aws:route53:::hostedzone/Z0123456789ABC"],
        "CaptureData": ["arn:aws:s3:::captures/*"],
        "UseKeys": [key],
    }
    assert "s3.us-east-2.amazonaws.com" in json.dumps(more["UseKeys"]["Condition"])


def trust(recording: Recording, name: str) -> list[dict[str, Any]]:
    return json.loads(recording.named(name).inputs["assumeRolePolicy"])["Statement"]


def configuration(recording: Recording) -> dict[str, Any]:
    return json.loads(recording.named("op-addon").inputs["configurationValues"])


def mine(recording: Recording) -> list[Recorded]:
    return recording.children(recording.one("dpd:index:InferenceOperator"))


def test_everything_is_below_the_component_and_tagged(preview: bool) -> None:
    recording = record(preview)
    assert {r.name for r in recording.custom} - {r.name for r in mine(recording)} == {*OURS, "kubernetes", "waits"}
    assert_tagged(Recording(preview, mine(recording)))


def test_the_add_on_waits_for_all_else_and_endpoints_for_the_add_on(preview: bool) -> None:
    recording = record(preview)
    addon = recording.named("op-addon")
    assert {recording[urn].name for urn in addon.dependencies} == {*OURS, *(r.name for r in mine(recording) if r.name != "op-addon")}
    assert recording.named("waits").dependencies == (addon.urn,)


def test_the_add_on_is_pinned_replaced_cleanly_and_given_time(preview: bool) -> None:
    addon = record(preview, OperatorSpec(create_timeout_minutes=55)).named("op-addon")
    assert addon.inputs["addonName"] == "amazon-sagemaker-hyperpod-inference"
    assert addon.inputs["clusterName"] == "eks-given"
    assert addon.inputs["addonVersion"] == "v1.4.0-eksbuild.1"
    assert (addon.inputs["resolveConflictsOnCreate"], addon.inputs["resolveConflictsOnUpdate"]) == ("OVERWRITE", "OVERWRITE")
    assert addon.inputs["preserve"] is False
    assert (addon.timeouts["create"], addon.timeouts["update"]) == ("55m", "55m")
    # Roles are used through their annotations in the configuration: the add-on itself takes none.
    assert "serviceAccountRoleArn" not in addon.inputs


def test_the_configuration_has_the_keys_of_the_setup_guide() -> None:
    recording = record(False)
    role = f"arn:aws:iam::{ACCOUNT}:role"
    assert configuration(recording) == {
        "executionRoleArn": f"{role}/SageMakerHyperPodInference-inference-prod-us-east-2-execution",
        "tlsCertificateS3Bucket": f"hyperpod-tls-inference-prod-{ACCOUNT}-us-east-2",
        "hyperpodClusterArn": CLUSTER_ARN,
        "alb": {
            "enabled": True,
            "serviceAccount": {"create": True, "roleArn": f"{role}/inference-prod-us-east-2-load-balancer-controller"},
        },
        "keda": {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": f"{role}/inference-prod-us-east-2-keda"}}}},
    }
    text = recording.named("op-addon").inputs["configurationValues"]
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def test_a_preview_knows_that_the_configuration_is_not_known_yet() -> None:
    assert record(True).named("op-addon").inputs["configurationValues"] is UNKNOWN


@pytest.mark.parametrize(
    ("role", "account"),
    [
        ("op-execution", "hyperpod-inference-controller-manager"),
        ("op-load-balancer-controller", "aws-load-balancer-controller"),
        ("op-keda", "keda-operator"),
    ],
)
def test_a_role_is_taken_by_exactly_its_service_account(role: str, account: str) -> None:
    web = trust(record(False), role)[-1]
    assert web["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert web["Principal"] == {"Federated": OIDC_ARN}
    subject = f"system:serviceaccount:hyperpod-inference-system:{account}"
    assert web["Condition"] == {"StringEquals": {f"{OIDC}:aud": "sts.amazonaws.com", f"{OIDC}:sub": subject}}


def test_sagemaker_takes_the_execution_role_alone() -> None:
    recording = record(False)
    services = {
        role: [s["Principal"]["Service"] for s in trust(recording, role) if "Service" in s["Principal"]]
        for role in ("op-execution", "op-load-balancer-controller", "op-keda")
    }
    assert services == {"op-execution": ["sagemaker.amazonaws.com"], "op-load-balancer-controller": [], "op-keda": []}


def test_the_execution_role_has_the_managed_policy_and_the_name_that_it_asks_for(preview: bool) -> None:
    recording = record(preview)
    attachment = recording.one("RolePolicyAttachment")
    assert attachment.inputs["policyArn"] == "arn:aws:iam::aws:policy/AmazonSageMakerHyperPodInferenceAccess"
    role = recording.named("op-execution")
    assert role.inputs["name"].startswith("SageMakerHyperPodInference")
    assert recording.depends_path(attachment, role)


# The actions of these policies that take no resource (service authorization reference); everything else names its resources.
READS = ("Describe", "List", "Get", "Search")


def test_no_role_changes_anything_on_every_resource() -> None:
    recording = record(False)
    policies = [json.loads(r.inputs["policy"]) for r in recording.of_type("RolePolicy")]
    assert len(policies) == 3
    changing = {
        action
        for policy in policies
        for s in policy["Statement"]
        if s["Resource"] == "*"
        for action in s["Action"]
        if not action.split(":")[1].startswith(READS)
    }
    assert changing <= {"shield:CreateProtection", "elasticloadbalancing:SetWebAcl"}


def test_the_load_balancer_controller_makes_security_groups_in_this_vpc_only() -> None:
    policy = record(False).named("op-load-balancer-controller-permissions").inputs["policy"]
    assert "vpc/vpc-given" in policy


def test_the_certificate_bucket_is_private_and_deletable_with_its_contents(preview: bool) -> None:
    recording = record(preview)
    bucket = recording.one("Bucket")
    assert bucket.inputs["bucket"] == f"hyperpod-tls-inference-prod-{ACCOUNT}-us-east-2"
    assert bucket.inputs["forceDestroy"] is True
    # Old versions of private keys are not kept.
    assert not recording.of_type("BucketVersioning")
    assert recording.of_type("BucketPublicAccessBlock")
    assert recording.of_type("BucketServerSideEncryptionConfiguration")


def test_a_bucket_of_another_name_is_granted_to_the_execution_role() -> None:
    recording = record(False, OperatorSpec(tls_bucket="own-certificates"))
    assert recording.one("Bucket").inputs["bucket"] == "own-certificates"
    assert configuration(recording)["tlsCertificateS3Bucket"] == "own-certificates"
    policy = json.loads(recording.named("op-execution-permissions").inputs["policy"])
    (objects,) = (s for s in policy["Statement"] if s["Sid"] == "UseCertificateBucket")
    assert objects["Resource"] == ["arn:aws:s3:::own-certificates/*"]


def test_controllers_that_are_in_the_cluster_get_no_role(preview: bool) -> None:
    recording = record(preview, OperatorSpec(load_balancer_controller=False, keda=False))
    assert [r.name for r in recording.of_type("Role")] == ["op-execution"]
    if not preview:
        assert configuration(recording)["alb"] == {"enabled": False}
        assert configuration(recording)["keda"] == {"enabled": False}


def test_the_users_own_values_arrive() -> None:
    values = configuration(record(False, OperatorSpec(configuration={"nodeSelector": {"pool": "system"}, "alb": {"replicas": 2}})))
    assert values["nodeSelector"] == {"pool": "system"}
    assert values["alb"]["replicas"] == 2
    assert values["alb"]["enabled"] is True


def test_the_handle_carries_the_real_version() -> None:
    assert record(False).returned == {
        "version": "v1.4.0-eksbuild.1",
        "expects": "v1.4.0-eksbuild.1",
        "cluster": "hp",
        "region": "us-east-2",
    }


def test_the_outputs_are_registered(preview: bool) -> None:
    recording = record(preview)
    outputs = recording.component_outputs[recording.one("dpd:index:InferenceOperator").urn]
    assert set(outputs) == {"addonVersion", "executionRoleArn", "tlsBucket"}


ADOPTED = OperatorSpec(adopt=True, addon_version="v1.3.0-eksbuild.1")


def test_an_adopted_add_on_is_read_and_nothing_is_made(preview: bool) -> None:
    recording = record(preview, ADOPTED, found="v1.4.0-eksbuild.1")
    assert mine(recording) == []
    assert {recording[urn].name for urn in recording.named("waits").dependencies} == set(OURS)
    if not preview:
        assert recording.invokes == [(GET_ADDON, {"addonName": ADDON_NAME, "clusterName": "eks-given"})]
        assert recording.returned["version"] == "v1.4.0-eksbuild.1"


def test_an_adopted_add_on_is_not_read_before_its_cluster_is_there() -> None:
    recording = record(True, ADOPTED, found="v1.4.0-eksbuild.1")
    assert recording.invokes == []
    assert recording.returned["version"] is UNKNOWN


def test_an_adopted_add_on_that_is_older_than_endpoints_were_told_stops_them() -> None:
    recording = record(False, ADOPTED, found="v1.2.1-eksbuild.1", expect=pulumi.RunError)
    message = str(recording.error)
    assert "is at v1.2.1-eksbuild.1" in message
    assert "older than v1.3.0-eksbuild.1" in message


@pytest.mark.parametrize(("managed", "inline"), [(["Other"], True), ([], False)])
def test_a_plan_with_other_policies_than_its_component_makes_is_refused(managed: list[str], inline: bool) -> None:
    plan = keda_role(region="us-east-2", account_id=ACCOUNT, provider_arn=OIDC_ARN, issuer=OIDC)
    with pytest.raises(pulumi.RunError, match="has other policies than its component makes"):
        _as_declared(plan, managed, "aws", inline=inline)
