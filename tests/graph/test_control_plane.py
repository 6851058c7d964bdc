"""The control plane's resources: who gets in, what stands before what, and what a preview must not replace."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from dpd_infra.components.control_plane import ControlPlane
from dpd_infra.spec.aws import AssumeRole, AwsSettings
from dpd_infra.spec.control_plane import AccessGrant, ControlPlaneLog, ControlPlaneSpec
from dpd_infra.spec.vocabulary import AccessPolicy
from tests.graph.kit import ACCOUNT_FACTS, assert_tagged, network_handle
from tests.graph.mock_outputs import ACCOUNT, DEPLOYER_ROLE, ISSUER
from tests.graph.recorder import Recorded, Recording, run_program

KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/0123"
SPEC = ControlPlaneSpec(version="1.34", public_access_cidrs=("203.0.113.0/24",))


def record(preview: bool, spec: ControlPlaneSpec = SPEC, **more: Any) -> Recording:
    def program() -> None:
        control_plane = ControlPlane(
            "eks", spec, account=ACCOUNT_FACTS, network=network_handle(), default_name="inference", aws_settings=more.get("settings")
        )
        handle = control_plane.handle
        kubernetes.core.v1.Namespace(
            "models", opts=pulumi.ResourceOptions(provider=handle.kubernetes_provider, depends_on=list(handle.resources))
        )
        pulumi.export("issuer", handle.oidc_issuer)
        pulumi.export("group", handle.cluster_security_group_id)

    return run_program(program, preview=preview, expect=more.get("expect"), outputs=more.get("outputs"))


def cluster(recording: Recording) -> Recorded:
    return recording.one("aws:eks/cluster:Cluster")


def test_everything_below_the_component_is_its_child_and_tagged(preview: bool) -> None:
    recording = record(preview)
    component = recording.one("dpd:index:ControlPlane")
    assert {r.name for r in recording.custom} - {"models"} == {r.name for r in recording.children(component)}
    assert_tagged(recording)


def test_no_two_resources_share_a_name(preview: bool) -> None:
    found = [r.name for r in record(preview).custom]
    assert len(found) == len(set(found))


def test_access_is_by_the_api_alone_and_the_creator_gets_none_that_is_not_written_down(preview: bool) -> None:
    inputs = cluster(record(preview)).inputs
    assert inputs["accessConfig"] == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
    assert inputs["bootstrapSelfManagedAddons"] is False
    assert (inputs["name"], inputs["version"], inputs["deletionProtection"]) == ("inference", "1.34", True)


def test_the_endpoint_is_private_and_public_only_for_the_given_blocks(preview: bool) -> None:
    network = cluster(record(preview)).inputs["vpcConfig"]
    assert (network["endpointPrivateAccess"], network["endpointPublicAccess"]) == (True, True)
    assert network["publicAccessCidrs"] == ["203.0.113.0/24"]
    closed = cluster(record(preview, ControlPlaneSpec(private=True))).inputs["vpcConfig"]
    assert (closed["endpointPrivateAccess"], closed["endpointPublicAccess"]) == (True, False)
    assert "publicAccessCidrs" not in closed


def test_the_control_plane_carries_the_nodes_groups_in_the_eks_subnets(preview: bool) -> None:
    network = cluster(record(preview)).inputs["vpcConfig"]
    assert network["securityGroupIds"] == ["sg-efa", "sg-nodes"]
    assert network["subnetIds"] == ["subnet-a", "subnet-b"]


def test_secrets_are_encrypted_with_a_rotating_key_of_our_own() -> None:
    recording = record(False)
    key = recording.one("aws:kms/key:Key")
    assert (key.inputs["enableKeyRotation"], key.inputs["deletionWindowInDays"], key.protect) == (True, 30, True)
    assert cluster(recording).inputs["encryptionConfig"] == {
        "provider": {"keyArn": f"arn:aws:kms:us-east-2:{ACCOUNT}:key/eks-secrets"},
        "resources": ["secrets"],
    }


def test_a_given_key_is_used_and_none_is_made(preview: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"secrets_key_arn": KEY}))
    assert cluster(recording).inputs["encryptionConfig"]["provider"]["keyArn"] == KEY
    assert not [r for r in recording.custom if r.type.startswith("aws:kms/")]


def test_the_roles_policy_covers_the_secrets_key_and_nothing_else() -> None:
    recording = record(False)
    statements = json.loads(recording.one("RolePolicy").inputs["policy"])["Statement"]
    assert [statement["Resource"] for statement in statements] == [[f"arn:aws:kms:us-east-2:{ACCOUNT}:key/eks-secrets"]]
    assert recording.one("aws:iam/role:Role").inputs["name"] == "inference-prod-us-east-2-eks-cluster"


def test_role_policies_and_the_log_group_stand_before_the_cluster(preview: bool) -> None:
    recording = record(preview)
    for before in (*recording.of_type("RolePolicyAttachment"), recording.one("RolePolicy"), recording.one("LogGroup")):
        assert recording.depends_path(cluster(recording), before), before


def test_logs_are_kept_for_as_long_as_the_spec_says(preview: bool) -> None:
    recording = record(preview)
    assert recording.one("LogGroup").inputs["name"] == "/aws/eks/inference/cluster"
    assert recording.one("LogGroup").inputs["retentionInDays"] == 90
    assert sorted(cluster(recording).inputs["enabledClusterLogTypes"]) == [
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    ]


def test_without_logs_there_is_no_group(preview: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"logs": ()}))
    assert not recording.of_type("LogGroup")
    assert cluster(recording).inputs["enabledClusterLogTypes"] == []


def test_one_log_turned_on_is_one_log(preview: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"logs": (ControlPlaneLog.AUDIT,)}))
    assert cluster(recording).inputs["enabledClusterLogTypes"] == ["audit"]


def test_the_cluster_is_protected_and_waited_for_longer_than_the_provider_would(preview: bool) -> None:
    made = cluster(record(preview))
    assert (made.protect, made.timeouts) == (True, {"create": "45m", "delete": "30m"})


def test_protection_is_the_specs_to_lift(preview: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"protect": False, "deletion_protection": False}))
    assert (cluster(recording).protect, cluster(recording).inputs["deletionProtection"]) == (False, False)
    assert recording.one("aws:kms/key:Key").protect is False


def test_only_addons_that_need_no_nodes_are_made_and_pinned_only_when_asked(preview: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"addon_versions": {"kube-proxy": "v1.34.1-eksbuild.2"}}))
    addons = {a.inputs["addonName"]: a.inputs.get("addonVersion") for a in recording.of_type("aws:eks/addon:Addon")}
    assert addons == {"vpc-cni": None, "kube-proxy": "v1.34.1-eksbuild.2", "eks-pod-identity-agent": None}
    assert {(a.inputs["resolveConflictsOnCreate"], a.inputs["resolveConflictsOnUpdate"]) for a in recording.of_type("Addon")} == {
        ("OVERWRITE", "OVERWRITE")
    }


def test_a_vpc_cni_below_the_minimum_stops_every_kubernetes_resource() -> None:
    def old(type_: str, _: str, inputs: Any) -> dict[str, Any]:
        return {"addonVersion": "v1.18.2-eksbuild.9"} if type_.endswith(":Addon") and inputs["addonName"] == "vpc-cni" else {}

    recording = record(False, outputs=old, expect=pulumi.RunError)
    assert "vpc-cni" in str(recording.error)
    assert "v1.18.3" in str(recording.error)
    assert not recording.of_type("Namespace")
    assert not recording.of_type("pulumi:providers:kubernetes")


def test_the_minimum_vpc_cni_itself_is_taken() -> None:
    def minimum(type_: str, _: str, __: Any) -> dict[str, Any]:
        return {"addonVersion": "v1.18.3-eksbuild.1"} if type_.endswith(":Addon") else {}

    assert record(False, outputs=minimum).of_type("Namespace")


def test_the_oidc_provider_trusts_the_issuer_for_sts() -> None:
    recording = record(False)
    assert recording.one("OpenIdConnectProvider").inputs["url"] == ISSUER
    assert recording.one("OpenIdConnectProvider").inputs["clientIdLists"] == ["sts.amazonaws.com"]
    assert recording.exports == {"issuer": ISSUER.removeprefix("https://"), "group": "sg-inference"}


def test_the_deployer_is_the_role_behind_the_session_and_becomes_cluster_admin(preview: bool) -> None:
    recording = record(preview)
    assert [e.inputs["principalArn"] for e in recording.of_type("AccessEntry")] == [DEPLOYER_ROLE]
    association = recording.one("AccessPolicyAssociation").inputs
    assert association["principalArn"] == DEPLOYER_ROLE
    assert association["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert association["accessScope"] == {"type": "cluster"}


def test_a_grant_that_names_the_deployer_makes_no_second_entry(preview: bool) -> None:
    grants = {"ci": AccessGrant(principal_arn=DEPLOYER_ROLE, policy=AccessPolicy.CLUSTER_ADMIN)}
    recording = record(preview, SPEC.model_copy(update={"access": grants}))
    assert len(recording.of_type("AccessEntry")) == len(recording.of_type("AccessPolicyAssociation")) == 1


def test_without_deployer_access_nobody_is_looked_up_and_the_grants_alone_hold(preview: bool) -> None:
    grants = {
        "runner": AccessGrant(principal_arn=f"arn:aws:iam::{ACCOUNT}:role/runner", policy=AccessPolicy.CLUSTER_ADMIN),
        "team": AccessGrant(principal_arn=f"arn:aws:iam::{ACCOUNT}:role/team", policy=AccessPolicy.EDIT, namespaces=("models",)),
    }
    recording = record(preview, SPEC.model_copy(update={"access": grants, "deployer_access": False}))
    assert recording.invokes == []
    associations = {found.inputs["policyArn"].rsplit("/", 1)[-1]: found.inputs for found in recording.of_type("AccessPolicyAssociation")}
    assert set(associations) == {"AmazonEKSClusterAdminPolicy", "AmazonEKSEditPolicy"}
    assert associations["AmazonEKSEditPolicy"]["accessScope"] == {"type": "namespace", "namespaces": ["models"]}


def test_every_access_policy_stands_before_any_kubernetes_resource(preview: bool) -> None:
    grants = {"team": AccessGrant(principal_arn=f"arn:aws:iam::{ACCOUNT}:role/team")}
    recording = record(preview, SPEC.model_copy(update={"access": grants}))
    provider = recording.one("pulumi:providers:kubernetes")
    namespace = recording.one("Namespace")
    assert namespace.provider == provider.urn
    assert len(recording.of_type("AccessPolicyAssociation")) == 2
    for association in recording.of_type("AccessPolicyAssociation"):
        assert recording.depends_path(provider, association)
        assert recording.depends_path(namespace, association)
        assert recording.depends_path(association, cluster(recording))


def test_addons_stand_before_what_the_handle_makes_wait(preview: bool) -> None:
    recording = record(preview)
    for addon in recording.of_type("aws:eks/addon:Addon"):
        assert recording.depends_path(recording.one("Namespace"), addon)


@pytest.mark.parametrize(("generation", "identifier"), [(0, "inference-0"), (3, "inference-3")])
def test_the_provider_is_told_apart_by_a_plain_string_in_the_preview_too(preview: bool, generation: int, identifier: str) -> None:
    provider = record(preview, SPEC.model_copy(update={"generation": generation})).one("pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == identifier
    assert provider.property_dependencies["clusterIdentifier"] == ()


def test_tokens_are_fetched_with_the_same_credentials_as_everything_else() -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/infra"
    settings = AwsSettings(region="us-east-2", profile="prod", assume_role=AssumeRole(role_arn=role))
    config = json.loads(record(False, settings=settings).one("pulumi:providers:kubernetes").inputs["kubeconfig"])
    arguments = config["users"][0]["user"]["exec"]["args"]
    assert arguments[arguments.index("--profile") + 1] == "prod"
    assert arguments[arguments.index("--role-arn") + 1] == role
    assert config["clusters"][0]["cluster"] == {
        "server": "https://inference.sk1.us-east-2.eks.amazonaws.com",
        "certificate-authority-data": "Q0VSVElGSUNBVEU=",
    }


def test_settings_that_no_token_can_be_fetched_with_register_nothing(preview: bool) -> None:
    role = AssumeRole(role_arn=f"arn:aws:iam::{ACCOUNT}:role/infra", external_id="x")
    recording = record(preview, settings=AwsSettings(region="us-east-2", assume_role=role), expect=pulumi.RunError)
    assert recording.resources == []
    assert "profile" in str(recording.error)


def test_the_specs_name_comes_before_the_default_one(preview: bool) -> None:
    recording = record(preview, SPEC.model_copy(update={"name": "shared"}))
    assert cluster(recording).inputs["name"] == "shared"
    assert recording.one("LogGroup").inputs["name"] == "/aws/eks/shared/cluster"
