"""The HyperPod dependencies chart: where it comes from, when it is installed, and that a deletion of the cluster does not wait for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from dpd_infra.components.dependencies import HyperPodDependencies
from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.plan.project import Project, use_project
from dpd_infra.spec.dependencies import DependenciesSpec
from tests.graph.kit import ACCOUNT_FACTS
from tests.graph.recorder import Recording, run_program

REVISION = "0123456789abcdef0123456789abcdef01234567"
ARCHIVE = f"charts/hyperpod-dependencies-{REVISION}.tgz"
SPEC = DependenciesSpec(revision=REVISION)


def control_plane(*, ours: bool = True) -> ControlPlaneHandle:
    cluster = pulumi.CustomResource("aws:eks/cluster:Cluster", "eks", {"name": "inference"})
    access = pulumi.CustomResource("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "access", {})
    return ControlPlaneHandle(
        name="inference",
        arn="arn:aws:eks:us-east-2:111122223333:cluster/inference",
        version="1.33",
        oidc_provider_arn="arn:aws:iam::111122223333:oidc-provider/x",
        oidc_issuer="x",
        cluster_security_group_id="sg-1",
        kubernetes_provider=kubernetes.Provider("k8s", kubeconfig="{}", cluster_identifier="inference-0"),
        resources=(access,),
        cluster_resource=cluster if ours else None,
    )


def record(spec: DependenciesSpec, project: Project, *, preview: bool, ours: bool = True, expect: Any = None) -> Recording:
    def program() -> None:
        with use_project(project):
            dependencies = HyperPodDependencies("deps", spec, account=ACCOUNT_FACTS, control_plane=control_plane(ours=ours))
        pulumi.CustomResource("aws:test:Node", "node", {}, pulumi.ResourceOptions(depends_on=list(dependencies.resources)))

    return run_program(program, preview=preview, expect=expect)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a packed chart, whose program runs in `stacks/`."""
    (tmp_path / "charts").mkdir()
    (tmp_path / ARCHIVE).write_bytes(b"chart")
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path / "stacks")
    return Project(root=tmp_path)


def test_the_release_is_installed_from_a_path_that_is_the_same_on_every_machine(preview: bool, project: Project) -> None:
    release = record(SPEC, project, preview=preview).one("kubernetes:helm.sh/v3:Release")
    assert release.inputs["chart"] == f"../{ARCHIVE}"
    assert (release.inputs["name"], release.inputs["namespace"]) == ("hyperpod-dependencies", "kube-system")


def test_nothing_is_fetched_and_no_pod_is_waited_for(preview: bool, project: Project) -> None:
    release = record(SPEC, project, preview=preview).one("Release")
    assert (release.inputs["dependencyUpdate"], release.inputs["skipAwait"]) == (False, True)
    assert release.inputs["timeout"] == 15 * 60


def test_it_goes_through_the_clusters_provider_after_access_and_leaves_with_the_cluster(preview: bool, project: Project) -> None:
    recording = record(SPEC, project, preview=preview)
    release = recording.one("Release")
    assert release.provider == recording.named("k8s").urn
    assert recording.depends_path(release, recording.named("access"))
    assert release.deleted_with == recording.named("eks").urn
    assert recording.depends_path(recording.named("node"), release)


def test_a_release_in_somebody_elses_cluster_is_deleted_by_itself(preview: bool, project: Project) -> None:
    assert record(SPEC, project, preview=preview, ours=False).one("Release").deleted_with == ""


def test_the_users_values_are_merged_over_ours(preview: bool, project: Project) -> None:
    spec = SPEC.model_copy(update={"values": {"health-monitoring-agent": {"imageTag": "1.2"}, "storage": {"enabled": True}}})
    values = record(spec, project, preview=preview).one("Release").inputs["values"]
    assert values["health-monitoring-agent"] == {"enabled": True, "region": "us-east-2", "imageTag": "1.2"}
    assert values["storage"] == {"enabled": True}
    assert values["trainingOperators"] == {"enabled": False}


def test_a_missing_archive_says_how_to_get_it_before_anything_is_registered(preview: bool, project: Project) -> None:
    os.remove(project.root / ARCHIVE)  # noqa: PTH107 the fixture's own file
    recording = record(SPEC, project, preview=preview, expect=pulumi.RunError)
    assert "dpd fetch-chart" in str(recording.error)
    assert ARCHIVE in str(recording.error)
    assert not recording.of_type("dpd:index:HyperPodDependencies")


def test_a_rehearsal_does_without_the_archive_and_plans_the_same_path(preview: bool, project: Project) -> None:
    (project.root / ARCHIVE).unlink()
    release = record(SPEC, Project(root=project.root, chart_required=False), preview=preview).one("Release")
    assert release.inputs["chart"] == f"../{ARCHIVE}"


def test_a_registry_needs_no_archive(preview: bool, tmp_path: Path) -> None:
    spec = DependenciesSpec(oci="oci://registry.example/hyperpod", oci_version="0.1.0")
    release = record(spec, Project(root=tmp_path), preview=preview).one("Release")
    assert (release.inputs["chart"], release.inputs["version"]) == ("oci://registry.example/hyperpod", "0.1.0")


def test_an_installed_chart_is_left_alone_and_what_waits_for_it_waits_for_the_cluster(preview: bool, tmp_path: Path) -> None:
    recording = record(DependenciesSpec(preinstalled=True), Project(root=tmp_path), preview=preview)
    assert not recording.of_type("Release")
    assert recording.one("dpd:index:HyperPodDependencies")
    assert recording.depends_path(recording.named("node"), recording.named("access"))
