"""The example of a user's own tests: they pass as shipped, and fail where the stack breaks what they say must hold."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "own_tests"


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    """As a user does, in a copy of the project that has nothing of this repository around it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "own_tests", ignore=shutil.ignore_patterns("__pycache__")))


def test_they_pass_in_both_modes(project: Path) -> None:
    done = run_tests(project)
    assert done.returncode == 0, done.stdout
    assert "20 passed" in done.stdout


@pytest.mark.parametrize(
    ("file", "old", "new", "failed"),
    [
        ("Pulumi.dev.yaml", "prefill: {replicas: 2,", "prefill: {replicas: 1,", "test_prefill_has_more_replicas_than_decode"),
        ("Pulumi.dev.yaml", "    tags: {team: chat}\n", "    cluster: {protect: false}\n", "test_the_gpu_nodes_are_protected"),
        ("__main__.py", 'platform.outputs["vpcId"]', '"vpc-1"', "test_the_applications_vpc_is_peered_with_the_platforms"),
        (
            "__main__.py",
            "opts=pulumi.ResourceOptions(parent=platform)",
            "opts=None",
            "test_what_we_add_goes_through_the_platforms_provider",
        ),
    ],
)
def test_they_fail_where_the_stack_breaks_them(project: Path, file: str, old: str, new: str, failed: str) -> None:
    text = (project / file).read_text(encoding="utf-8")
    assert old in text
    (project / file).write_text(text.replace(old, new), encoding="utf-8")
    done = run_tests(project)
    assert done.returncode == 1
    assert f"FAILED tests/test_stack.py::{failed}[preview]" in done.stdout
    assert f"FAILED tests/test_stack.py::{failed}[update]" in done.stdout
