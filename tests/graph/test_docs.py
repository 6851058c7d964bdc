"""The programs in the README and in docs/ build what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpd_infra.cli import app
from dpd_infra.plan.project import Project, use_project
from dpd_infra.spec.stack_file import read_stack_file
from tests.conftest import ROOT
from tests.docs import Snippet, snippets
from tests.graph.recorder import run_program
from tests.graph.test_from_stack import EXPORTED

PROGRAMS = [snippet for snippet in snippets("python") if "Rehearsal(" not in snippet.text and "def test_" not in snippet.text]
TESTS = [snippet for snippet in snippets("python") if "def test_" in snippet.text]


@pytest.mark.parametrize("snippet", PROGRAMS, ids=str)
def test_a_program_in_the_documents_runs(snippet: Snippet, preview: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def program() -> Any:
        with use_project(Project(root=Path(ROOT), chart_required=False)):
            exec(compile(snippet.text, str(snippet), "exec"), {"__name__": "__main__"})

    # What the documents' platform exports, where a program of theirs refers to it as another stack.
    stacks = {"acme/platform/prod": EXPORTED}
    file = read_stack_file(ROOT / "stacks" / "Pulumi.dev.yaml")
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in file.config.items()}
    assert run_program(program, preview=preview, config=config, stacks=stacks).resources


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("yaml") if "dpd-infra:platform:" in snippet.text], ids=str)
def test_a_platform_in_the_documents_has_a_plan_without_an_open_order(snippet: Snippet, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(snippet.text, encoding="utf-8")
    done = CliRunner().invoke(app, ["plan", str(file), "--json"])
    assert done.exit_code == 0, done.stdout + done.stderr
    plan = json.loads(done.stdout)
    assert plan["resources"]
    assert plan["openOrders"] == []
    assert "[unknown]" not in json.dumps(plan["resources"])


def test_tests_in_the_documents_pass_in_the_example(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("tests", "__pycache__", ".venv")
    project = Path(shutil.copytree(ROOT / "examples" / "own_tests", tmp_path / "project", ignore=ignored))
    for snippet in TESTS:
        place = project / f"test_{Path(snippet.page).stem.replace('-', '_')}_{snippet.line}.py"
        place.write_text(snippet.text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(project), str(project)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    # A test with a fixture of the kit's runs in both modes.
    assert int(passed.group(1)) > sum(snippet.text.count("def test_") for snippet in TESTS)
