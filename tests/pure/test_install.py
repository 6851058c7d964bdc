"""Set-up says in one line what is missing, takes what is there, and builds only when it must."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the set-up in a folder whose name has a space."""
    folder = tmp_path / "my work"
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "uv.lock", folder)
    return folder


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def install(checkout: Path, *steps: str, path: list[Path], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(checkout / "tools" / "install.py"), *steps],
        env={"PATH": os.pathsep.join(map(str, path)), "HOME": str(checkout), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("tool", ["pulumi", "helm", "kube-apiserver", "etcd", "pulumi-resource-kubernetes"])
def test_with_neither_the_tool_nor_go_one_line_says_how_to_get_it(checkout: Path, tool: str) -> None:
    done = install(checkout, tool, path=[checkout / "bin"])
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert re.search(rf"no {tool}[ ,]", line)
    assert "install" in line
    assert "Go 1.26" in line


def test_a_recent_pulumi_on_path_is_taken_and_nothing_is_said(checkout: Path) -> None:
    script(checkout / "bin" / "pulumi", "echo v3.201.0")
    done = install(checkout, "pulumi", path=[checkout / "bin"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (checkout / ".tools").exists()


@pytest.mark.parametrize("answer", ["echo v3.199.9", "echo v2.300.0", "exit 1", "echo nonsense"])
def test_a_pulumi_that_is_too_old_or_broken_is_as_good_as_none(checkout: Path, answer: str) -> None:
    script(checkout / "bin" / "pulumi", answer)
    done = install(checkout, "pulumi", path=[checkout / "bin"])
    assert done.returncode == 1
    assert "no pulumi 3.200.0 or later on PATH" in done.stderr


def fake_go(checkout: Path) -> None:
    """A `go` that writes, instead of a program, a script printing the version that the linker flags ask for."""
    body = """
while [ $# -gt 0 ]; do
    case "$1" in
        -ldflags) flags="$2"; shift ;;
        -o) output="$2"; shift ;;
    esac
    shift
done
printf '#!/bin/sh\\necho %s\\n' "${flags##*=}" > "$output"
chmod +x "$output"
"""
    script(checkout / "bin" / "go", body)


def test_a_build_has_the_pinned_version_and_is_done_once(checkout: Path) -> None:
    fake_go(checkout)
    path = [checkout / "bin", Path("/usr/bin"), Path("/bin")]
    first = install(checkout, "helm", path=path)
    assert first.returncode == 0, first.stderr
    assert "Building helm v4." in first.stdout
    built = checkout / ".tools" / "bin" / "helm"
    pinned = subprocess.run([built, "version"], capture_output=True, text=True, check=True).stdout.strip()
    assert f"helm.sh/helm/v4 {pinned} " in (ROOT / "tools" / "helm" / "go.mod").read_text() + " "
    assert install(checkout, "helm", path=path).stdout == ""


@pytest.mark.parametrize(("tool", "answer"), [("kube-apiserver", "Kubernetes v1.33.1"), ("etcd", "etcd Version: 3.4.23")])
def test_what_a_distribution_has_is_taken(checkout: Path, tool: str, answer: str) -> None:
    script(checkout / "bin" / tool, f'[ "$*" = --version ] && echo "{answer}"')
    done = install(checkout, tool, path=[checkout / "bin"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_of_a_module_without_versions_the_commit_decides_whether_to_build_again(checkout: Path) -> None:
    fake_go(checkout)
    path = [checkout / "bin", Path("/usr/bin"), Path("/bin")]
    tool = "pulumi-resource-kubernetes"
    assert install(checkout, tool, path=path).returncode == 0
    assert install(checkout, tool, path=path).stdout == ""
    script(checkout / ".tools" / "plugins" / tool, "echo v4.0.0-20250115033456-0123456789ab")
    assert "Building" in install(checkout, tool, path=path).stdout


def test_a_build_says_how_far_it_is_and_shows_what_went_wrong(checkout: Path) -> None:
    script(checkout / "bin" / "go", "echo k8s.io/api/core/v1 >&2; echo 'main.go:7: undefined: serve' >&2; exit 1")
    done = install(checkout, "etcd", path=[checkout / "bin"])
    assert "main.go:7: undefined: serve" in done.stdout
    assert "k8s.io/api/core/v1" not in done.stdout
    assert done.returncode == 1


def test_an_outdated_build_gives_way_to_a_good_one_on_path(checkout: Path) -> None:
    ours = checkout / ".tools" / "bin" / "pulumi"
    script(ours, "echo v3.100.0")
    script(checkout / "bin" / "pulumi", "echo v3.300.0")
    assert install(checkout, "pulumi", path=[ours.parent, checkout / "bin"]).returncode == 0
    assert not ours.exists()


def test_a_failed_build_leaves_no_tool_behind(checkout: Path) -> None:
    script(checkout / "bin" / "go", "exit 3")
    done = install(checkout, "pulumi", path=[checkout / "bin"])
    assert done.returncode == 1
    assert "building pulumi failed" in done.stderr
    assert not (checkout / ".tools" / "bin" / "pulumi").exists()


def test_without_a_network_uv_fails_with_one_line(checkout: Path) -> None:
    dead = "http://127.0.0.1:9"
    env = {"HTTPS_PROXY": dead, "https_proxy": dead, "PIP_INDEX_URL": dead, "PIP_RETRIES": "0"}
    done = install(checkout, "uv", path=[checkout / "bin"], **env)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "uv could not be fetched" in line
    assert not (checkout / ".tools" / "bin" / "uv").exists()


def test_a_uv_whose_hash_is_not_in_the_lock_is_refused(checkout: Path) -> None:
    lock = checkout / "uv.lock"
    names = [f"{system}_1_{machine}.whl" for system in ("manylinux", "musllinux", "macosx") for machine in ("x86_64", "aarch64", "arm64")]
    wheels = ", ".join(f'{{ url = "{(checkout / name).as_uri()}", hash = "sha256:00" }}' for name in names)
    lock.write_text(f'[[package]]\nname = "uv"\nversion = "0.13.0"\nwheels = [{wheels}]\n')
    for name in names:
        (checkout / name).write_bytes(b"not what was locked")
    done = install(checkout, "uv", path=[checkout / "bin"], PIP_INDEX_URL="http://127.0.0.1:9", PIP_RETRIES="0")
    assert done.returncode == 1
    assert "none of the hashes in uv.lock" in done.stderr
    assert not (checkout / ".tools" / "bin" / "uv").exists()
