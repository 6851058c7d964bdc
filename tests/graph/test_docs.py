"""The programs in the README and in docs/ build what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.plan.project import Project, use_project
from dpd_infra.spec.stack_file import read_stack_file
from tests.conftest import ROOT
from tests.docs import Snippet, snippets
from tests.graph.recorder import run_program
from tests.graph.test_from_stack import EXPORTED


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("python") if "Rehearsal(" not in snippet.text], ids=str)
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
