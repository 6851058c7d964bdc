"""The add-ons that need nodes: what waits for what, for how long, and which roles they take."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
import pytest

from dpd_infra.catalog.addons import NODE_ADDONS
from dpd_infra.components.handles import ClusterHandle, ControlPlaneHandle
from dpd_infra.components.node_addons import NodeAddons
from dpd_infra.spec.addons import NodeAddonsSpec
from tests.graph.kit import ACCOUNT_FACTS, assert_tagged
from tests.graph.mock_outputs import ACCOUNT, ISSUER
from tests.graph.recorder import UNKNOWN, Recorded, Recording, run_program

OIDC = ISSUER.removeprefix("https://")
OIDC_ARN = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{OIDC}"
BUCKETS = ("models-b", "models-a", "models-b")


def record(
    preview: bool, spec: NodeAddonsSpec | None = None, buckets: tuple[str, ...] = BUCKETS, expect: type[BaseException] | None = None
) -> Recording:
    def program() -> dict[str, Any]:
        access, nodes = (aws.ssm.Parameter(name, type="String", value="x") for name in ("access", "nodes"))
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
        addons = NodeAddons(
            "addons",
            spec or NodeAddonsSpec(),
            account=ACCOUNT_FACTS,
            control_plane=control_plane,
            cluster=ClusterHandle("hp", "arn", resources=(nodes,)),
            model_buckets=buckets,
        )
        aws.ssm.Parameter("waits", type="String", value="x", opts=pulumi.ResourceOptions(depends_on=list(addons.handle.resources)))
        return {"versions": addons.addon_versions}

    return run_program(program, preview=preview, expect=expect)


def addon(recording: Recording, name: str) -> Recorded:
    return next(r for r in recording.of_type("aws:eks/addon:Addon") if r.inputs["addonName"] == name)


def statements(recording: Recording, name: str, key: str) -> list[dict[str, Any]]:
    return json.loads(recording.named(name).inputs[key])["Statement"]


def test_all_five_are_made_below_the_component_with_the_accounts_tags(preview: bool) -> None:
    recording = record(preview)
    component = recording.one("dpd:index:NodeAddons")
    made = recording.of_type("aws:eks/addon:Addon")
    assert sorted(r.inputs["addonName"] for r in made) == sorted(known.name for known in NODE_ADDONS)
    assert all(r.parent == component.urn and r.inputs["clusterName"] == "eks-given" for r in made)
    assert_tagged(Recording(preview, recording.children(component)))


def test_coredns_waits_for_the_cluster_and_everything_else_for_coredns(preview: bool) -> None:
    recording = record(preview)
    coredns = addon(recording, "coredns")
    assert {recording[urn].name for urn in coredns.dependencies} == {"access", "nodes"}
    for name in ("cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server"):
        assert coredns.urn in addon(recording, name).dependencies


@pytest.mark.parametrize("later", ["aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server"])
def test_cert_manager_comes_before_the_rest(preview: bool, later: str) -> None:
    recording = record(preview)
    assert addon(recording, "cert-manager").urn in addon(recording, later).dependencies


def test_who_takes_the_handle_waits_for_all_five(preview: bool) -> None:
    recording = record(preview)
    assert set(recording.named("waits").dependencies) == {r.urn for r in recording.of_type("aws:eks/addon:Addon")}


def test_coredns_may_take_as_long_as_nodes_take_and_the_others_less(preview: bool) -> None:
    recording = record(preview, NodeAddonsSpec(nodes_timeout_minutes=90, addon_timeout_minutes=7))
    for r in recording.of_type("aws:eks/addon:Addon"):
        limit = "90m" if r.inputs["addonName"] == "coredns" else "7m"
        assert (r.timeouts["create"], r.timeouts["update"]) == (limit, limit)


def test_versions_are_the_specs_and_coredns_has_the_one_that_eks_prefers(preview: bool) -> None:
    recording = record(preview)
    versions = {r.inputs["addonName"]: r.inputs.get("addonVersion") for r in recording.of_type("aws:eks/addon:Addon")}
    # The minimum versions of the setup guide.
    assert versions == {
        "coredns": None,
        "cert-manager": "v1.18.2-eksbuild.2",
        "aws-mountpoint-s3-csi-driver": "v1.14.1-eksbuild.1",
        "aws-fsx-csi-driver": "v1.6.0-eksbuild.1",
        "metrics-server": "v0.7.2-eksbuild.4",
    }
    expected = UNKNOWN if preview else {**versions, "coredns": "v9.9.9-eksbuild.1"}
    assert recording.returned["versions"] == expected


def test_conflicts_are_overwritten_and_nothing_is_left_behind(preview: bool) -> None:
    for r in record(preview).of_type("aws:eks/addon:Addon"):
        assert (r.inputs["resolveConflictsOnCreate"], r.inputs["resolveConflictsOnUpdate"]) == ("OVERWRITE", "OVERWRITE")
        assert r.inputs["preserve"] is False


def test_the_s3_driver_reads_the_model_buckets_and_no_other() -> None:
    recording = record(False)
    allowed = {s["Sid"]: (s["Action"], s["Resource"]) for s in statements(recording, "addons-s3-csi-permissions", "policy")}
    assert allowed == {
        "ListBuckets": (["s3:ListBucket"], ["arn:aws:s3:::models-a", "arn:aws:s3:::models-b"]),
        "UseObjects": (["s3:GetObject"], ["arn:aws:s3:::models-a/*", "arn:aws:s3:::models-b/*"]),
    }


def test_writing_is_asked_for() -> None:
    objects = statements(record(False, NodeAddonsSpec(s3_write=True)), "addons-s3-csi-permissions", "policy")[1]
    assert "s3:PutObject" in objects["Action"]


@pytest.mark.parametrize(
    ("version", "subjects"),
    [
        ("v1.14.1-eksbuild.1", "system:serviceaccount:kube-system:s3-csi-driver-sa"),
        (
            "v2.8.0-eksbuild.1",
            [
                "system:serviceaccount:kube-system:s3-csi-driver-sa",
                "system:serviceaccount:kube-system:s3-csi-driver-controller-sa",
                "system:serviceaccount:mount-s3:default",
            ],
        ),
    ],
)
def test_only_the_s3_drivers_own_accounts_take_its_role(version: str, subjects: Any) -> None:
    recording = record(False, NodeAddonsSpec(s3_csi_version=version))
    (trust,) = statements(recording, "addons-s3-csi", "assumeRolePolicy")
    assert trust["Principal"] == {"Federated": OIDC_ARN}
    assert trust["Condition"] == {"StringEquals": {f"{OIDC}:aud": "sts.amazonaws.com", f"{OIDC}:sub": subjects}}


def test_only_the_fsx_drivers_controller_takes_its_role() -> None:
    (trust,) = statements(record(False), "addons-fsx-csi", "assumeRolePolicy")
    assert trust["Condition"]["StringEquals"][f"{OIDC}:sub"] == "system:serviceaccount:kube-system:fsx-csi-controller-sa"


@pytest.mark.parametrize(("name", "role"), [("aws-mountpoint-s3-csi-driver", "s3-csi"), ("aws-fsx-csi-driver", "fsx-csi")])
def test_a_driver_has_its_role_and_waits_for_what_the_role_may_do(name: str, role: str) -> None:
    recording = record(False)
    driver = addon(recording, name)
    assert driver.inputs["serviceAccountRoleArn"] == f"arn:aws:iam::{ACCOUNT}:role/inference-prod-us-east-2-{role}"
    assert recording.named(f"addons-{role}-permissions").urn in driver.dependencies


def test_without_model_buckets_the_s3_driver_has_no_role(preview: bool) -> None:
    recording = record(preview, buckets=())
    assert "serviceAccountRoleArn" not in addon(recording, "aws-mountpoint-s3-csi-driver").inputs
    assert [r.name for r in recording.of_type("Role")] == ["addons-fsx-csi"]


def test_a_malformed_driver_version_registers_nothing(preview: bool) -> None:
    recording = record(preview, NodeAddonsSpec(s3_csi_version="latest"), expect=ValueError)
    assert "is not an add-on version" in str(recording.error)
    assert not recording.of_type("dpd:index:NodeAddons")
    assert not recording.of_type("Role")


def test_the_outputs_are_registered(preview: bool) -> None:
    recording = record(preview)
    outputs = recording.component_outputs[recording.one("dpd:index:NodeAddons").urn]
    assert set(outputs) == {"addonVersions", "s3CsiRoleArn", "fsxCsiRoleArn"}
