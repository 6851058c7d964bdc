"""`dpd fetch-chart` makes one archive, the same everywhere, that Helm takes and that holds every subchart once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpd_infra.ops.chart import fetch_chart
from dpd_infra.ops.chart_archive import ChartError, Subchart
from dpd_infra.spec.dependencies import DEFAULT_CHART_REVISION, DependenciesSpec
from tests.pure.ops.chart_repository import CHART, commit, config_map, git, parent, served, subchart, tgz, under

LOCAL = {"name": "training-operators", "version": "0.1.0", "repository": "file://charts/training-operators"}
"""As in the real chart: a subchart that is a folder of `charts/` and named with `file://` too."""
OTHER_FOLDER = {"name": "hyperpod-inference-operator", "version": "1.0.0", "repository": "file://charts/inference-operator"}
IN_PLACE = {"name": "storage", "version": "0.1.0"}


def local_parts() -> dict[str, str]:
    return {
        **under(f"{CHART}/charts/training-operators", subchart("training-operators", "0.1.0")),
        **under(f"{CHART}/charts/inference-operator", subchart("hyperpod-inference-operator", "1.0.0")),
        **under(f"{CHART}/charts/storage", subchart("storage", "0.1.0")),
    }


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str]:
    """A repository whose chart has subcharts in folders only, and its revision."""
    folder = tmp_path / "hyperpod-cli"
    return folder, commit(folder, {**parent(LOCAL, OTHER_FOLDER, IN_PLACE), **local_parts()})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A chart repository with two versions of one subchart."""
    with served(tmp_path / "served", subchart("nvidia-device-plugin", "0.16.1"), subchart("nvidia-device-plugin", "0.17.0")) as address:
        yield address


def rendered(helm: Path, archive: Path) -> list[str]:
    """The names of the ConfigMaps that Helm makes of an archive: one a chart in it."""
    done = subprocess.run([helm, "template", "release", archive], capture_output=True, text=True, check=True)
    return sorted(line.split()[-1] for line in done.stdout.splitlines() if line.startswith("  name: "))


def test_helm_renders_every_subchart_once(repository: tuple[Path, str], tmp_path: Path, helm_cli: Path) -> None:
    folder, revision = repository
    chart = fetch_chart(revision, tmp_path / "chart.tgz", repository=str(folder))
    assert (chart.name, chart.version, chart.changed) == ("hyperpod-helm-chart", "0.1.0", True)
    assert [subchart.name for subchart in chart.subcharts] == ["training-operators", "hyperpod-inference-operator", "storage"]
    assert rendered(helm_cli, chart.path) == ["hyperpod-inference-operator-1.0.0", "own", "storage-0.1.0", "training-operators-0.1.0"]


def test_a_subchart_of_a_chart_repository_comes_through_helm_at_its_version(
    index: str, tmp_path: Path, helm_cli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(helm_cli.parent), os.environ["PATH"]]))
    remote = {"name": "nvidia-device-plugin", "version": "0.16.1", "repository": index}
    revision = commit(
        tmp_path / "hyperpod-cli",
        {**parent(LOCAL, remote), **under(f"{CHART}/charts/training-operators", subchart("training-operators", "0.1.0"))},
    )
    lines: list[str] = []
    chart = fetch_chart(revision, tmp_path / "chart.tgz", repository=str(tmp_path / "hyperpod-cli"), progress=lines.append)
    assert chart.subcharts[1] == Subchart("nvidia-device-plugin", "0.16.1", index)
    assert rendered(helm_cli, chart.path) == ["nvidia-device-plugin-0.16.1", "own", "training-operators-0.1.0"]
    assert f"Fetching nvidia-device-plugin 0.16.1 from {index}" in lines


def test_what_was_vendored_in_the_revision_gives_way_to_what_chart_yaml_names(
    index: str, tmp_path: Path, helm_cli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real repository once held an archive of a subchart beside its folder: Helm takes one of the two at random."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(helm_cli.parent), os.environ["PATH"]]))
    remote = {"name": "nvidia-device-plugin", "version": "0.16.1", "repository": index}
    revision = commit(
        tmp_path / "hyperpod-cli",
        {
            **parent(LOCAL, remote),
            **under(f"{CHART}/charts/training-operators", subchart("training-operators", "0.1.0")),
            f"{CHART}/charts/training-operators-0.1.0.tgz": tgz(subchart("training-operators", "0.1.0", "stale"), "training-operators"),
            **under(f"{CHART}/charts/nvidia-device-plugin", subchart("nvidia-device-plugin", "0.16.1", "stale")),
            f"{CHART}/charts/extra-1.0.0.tgz": tgz(subchart("extra", "1.0.0"), "extra"),
        },
    )
    chart = fetch_chart(revision, tmp_path / "chart.tgz", repository=str(tmp_path / "hyperpod-cli"))
    assert rendered(helm_cli, chart.path) == ["extra-1.0.0", "nvidia-device-plugin-0.16.1", "own", "training-operators-0.1.0"]


def test_two_versions_of_one_subchart_under_aliases_are_both_there(
    index: str, tmp_path: Path, helm_cli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(helm_cli.parent), os.environ["PATH"]]))
    both = [
        {"name": "nvidia-device-plugin", "version": version, "repository": index, "alias": alias}
        for version, alias in (("0.16.1", "old"), ("0.17.0", "new"))
    ]
    revision = commit(tmp_path / "hyperpod-cli", parent(*both))
    chart = fetch_chart(revision, tmp_path / "chart.tgz", repository=str(tmp_path / "hyperpod-cli"))
    assert rendered(helm_cli, chart.path) == ["nvidia-device-plugin-0.16.1", "nvidia-device-plugin-0.17.0", "own"]


def test_a_subchart_outside_of_charts_is_taken_in(tmp_path: Path, helm_cli: Path) -> None:
    outside = {"name": "shared", "version": "0.2.0", "repository": "file://../shared"}
    revision = commit(tmp_path / "hyperpod-cli", {**parent(outside), **under("helm_chart/shared", subchart("shared", "0.2.0"))})
    chart = fetch_chart(revision, tmp_path / "chart.tgz", repository=str(tmp_path / "hyperpod-cli"))
    assert rendered(helm_cli, chart.path) == ["own", "shared-0.2.0"]


def test_the_bytes_are_the_same_whatever_machine_packs_them(
    repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, revision = repository
    first = fetch_chart(revision, tmp_path / "first.tgz", repository=str(folder))
    settings = tmp_path / "gitconfig"
    settings.write_text("[core]\n\tautocrlf = true\n\teol = crlf\n[tar]\n\tumask = 0077\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    old = os.umask(0o077)
    try:
        git(tmp_path, "clone", "--quiet", "--mirror", str(folder), "elsewhere.git")
        second = fetch_chart(revision, tmp_path / "second.tgz", repository=(tmp_path / "elsewhere.git").as_uri())
    finally:
        os.umask(old)
    assert second.path.read_bytes() == first.path.read_bytes()
    assert second.sha256 == first.sha256


def test_a_git_hook_can_pack_too(repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, revision = repository
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "of-the-hook"))
    assert fetch_chart(revision, tmp_path / "chart.tgz", repository=str(folder)).revision == revision


def test_any_revision_can_be_packed_not_only_the_newest(repository: tuple[Path, str], tmp_path: Path, helm_cli: Path) -> None:
    folder, revision = repository
    newest = commit(folder, {**parent(), f"{CHART}/templates/own.yaml": config_map("newer")})
    old = fetch_chart(revision, tmp_path / "old.tgz", repository=str(folder))
    new = fetch_chart(newest, tmp_path / "new.tgz", repository=str(folder))
    assert "storage-0.1.0" in rendered(helm_cli, old.path)
    assert rendered(helm_cli, new.path) == ["newer"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"README.md": "nothing else"}, "has no chart in helm_chart/HyperPodHelmChart"),
        ({"helm_chart/README.md": "nothing else"}, "has no chart in helm_chart/HyperPodHelmChart"),
        (parent(LOCAL), "no chart in helm_chart/HyperPodHelmChart/charts/training-operators"),
        (parent(IN_PLACE), "depends on storage 0.1.0 and holds none of that name"),
        ({f"{CHART}/Chart.yaml": "name: ["}, "Chart.yaml is not YAML"),
    ],
    ids=["no chart folder", "no chart", "missing folder", "missing subchart", "broken Chart.yaml"],
)
def test_an_incomplete_chart_is_one_line_and_no_archive(files: dict[str, str], told: str, tmp_path: Path) -> None:
    revision = commit(tmp_path / "hyperpod-cli", files)
    with pytest.raises(ChartError, match=told):
        fetch_chart(revision, tmp_path / "charts" / "chart.tgz", repository=str(tmp_path / "hyperpod-cli"))
    assert not (tmp_path / "charts").exists()


# --- the command


def dpd(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dpd_infra", "fetch-chart", *arguments],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "stacks").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: dpd-infra\nruntime: python\nmain: stacks/\nstackConfigDir: stacks\n")
    return folder


def stack_file(project: Path, dependencies: str) -> Path:
    path = project / "stacks" / "Pulumi.dev.yaml"
    path.write_text(
        f"""
config:
  aws:region: us-east-2
  dpd-infra:platform:
    name: inference
    network: {{zone: us-east-2a}}
    controlPlane: {{version: "1.33", private: true}}
    instanceGroups:
      gpu: {{instanceType: ml.p5.48xlarge, count: 2}}
      system: {{instanceType: ml.c5.4xlarge, count: 2}}
    dependencies: {dependencies}
"""
    )
    return path


def test_a_stack_file_says_which_revision_and_its_project_gets_the_archive(
    repository: tuple[Path, str], project: Path, tmp_path: Path
) -> None:
    folder, revision = repository
    file = stack_file(project, f"{{revision: {revision}}}")
    done = dpd(tmp_path, str(file), "--repository", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    archive = project / DependenciesSpec(revision=revision).archive
    report = json.loads(done.stdout)
    assert (report["ok"], report["revision"], report["changed"]) == (True, revision, True)
    assert Path(report["path"]) == archive.resolve()
    assert report["subcharts"][2] == {"name": "storage", "version": "0.1.0", "repository": ""}
    assert [path.name for path in archive.parent.iterdir()] == [f"hyperpod-dependencies-{revision}.tgz"]
    again = dpd(tmp_path, str(file), "--repository", str(folder), "--json")
    assert json.loads(again.stdout)["changed"] is False


def test_another_archive_of_that_revision_stays_unless_forced(repository: tuple[Path, str], project: Path) -> None:
    folder, revision = repository
    file = stack_file(project, f"{{revision: {revision}}}")
    archive = project / DependenciesSpec(revision=revision).archive
    archive.parent.mkdir()
    archive.write_bytes(b"mine")
    refused = dpd(project, str(file), "--repository", str(folder))
    assert refused.returncode == 1
    assert "--force" in refused.stderr.splitlines()[-1]
    assert archive.read_bytes() == b"mine"
    assert dpd(project, str(file), "--repository", str(folder), "--force").returncode == 0
    assert archive.read_bytes() != b"mine"


def test_without_a_stack_file_it_is_the_pinned_revision(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hyperpod-cli"
    commit(folder, parent())
    done = dpd(project, "--repository", str(folder))
    assert done.returncode == 1
    assert DEFAULT_CHART_REVISION in done.stderr.splitlines()[-1]


def test_without_a_network_there_is_one_line_and_no_archive(project: Path) -> None:
    done = dpd(project, "--repository", "http://127.0.0.1:9/hyperpod-cli", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert "cannot fetch" in report["error"]
    assert "check the network" in report["error"]
    assert "\n" not in report["error"]
    assert "Traceback" not in done.stderr
    assert not (project / "charts").exists()


def test_a_chart_repository_that_does_not_answer_is_one_line_and_no_archive(project: Path, tmp_path: Path, helm_cli: Path) -> None:
    remote = {"name": "nvidia-device-plugin", "version": "0.16.1", "repository": "http://127.0.0.1:9"}
    revision = commit(tmp_path / "hyperpod-cli", parent(remote))
    file = stack_file(project, f"{{revision: {revision}}}")
    path = os.pathsep.join([str(helm_cli.parent), os.environ["PATH"]])
    done = dpd(project, str(file), "--repository", str(tmp_path / "hyperpod-cli"), PATH=path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("dpd: cannot fetch nvidia-device-plugin 0.16.1 from http://127.0.0.1:9: Error: ")
    assert "Traceback" not in done.stderr
    assert not (project / "charts").exists()


def test_without_helm_one_line_says_how_to_get_it(project: Path, tmp_path: Path) -> None:
    remote = {"name": "nvidia-device-plugin", "version": "0.16.1", "repository": "oci://registry.example.com/charts"}
    revision = commit(tmp_path / "hyperpod-cli", parent(remote))
    file = stack_file(project, f"{{revision: {revision}}}")
    only_git = tmp_path / "bin"
    only_git.mkdir()
    (only_git / "git").symlink_to(subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip())
    done = dpd(project, str(file), "--repository", str(tmp_path / "hyperpod-cli"), PATH=str(only_git))
    assert done.returncode == 1
    assert "Helm is not installed" in done.stderr.splitlines()[-1]
    assert "make helm" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("dependencies", ["{preinstalled: true}", '{oci: "oci://registry.example.com/chart", ociVersion: "1.0.0"}'])
def test_a_stack_that_installs_no_packed_chart_is_told_so(project: Path, dependencies: str) -> None:
    done = dpd(project, str(stack_file(project, dependencies)))
    assert done.returncode == 2
    assert "nothing to pack" in done.stderr


def test_a_bad_stack_file_is_reported_as_everywhere(project: Path) -> None:
    done = dpd(project, str(stack_file(project, "{revision: main}")))
    assert done.returncode == 1
    assert "revision" in done.stderr
    assert "Traceback" not in done.stderr
