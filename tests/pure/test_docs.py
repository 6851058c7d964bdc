"""Every stack file in the documents is one that `dpd check` takes, every command there runs, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dpd_infra.rules.check import errors
from dpd_infra.stack import load_file
from tests.conftest import ROOT
from tests.docs import RUN, Snippet, pages, snippets

_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


@pytest.mark.parametrize("snippet", snippets("yaml"), ids=str)
def test_a_stack_file_in_the_documents_has_no_errors(snippet: Snippet, tmp_path: Path) -> None:
    if not snippet.text.startswith("config:"):
        assert yaml.safe_load(snippet.text) is not None
        return
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(snippet.text, encoding="utf-8")
    loaded = load_file(path)
    assert errors(loaded.findings) == []
    assert loaded.spec is not None


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("console") if "rehearse" not in snippet.text], ids=str)
def test_a_command_in_the_documents_prints_what_is_said(snippet: Snippet) -> None:
    for block in re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]:
        command, _, expected = block.partition("\n")
        words = shlex.split(command)
        assert words[0] == "dpd", command
        done = subprocess.run([sys.executable, "-m", "dpd_infra", *words[1:]], capture_output=True, text=True, check=False, cwd=ROOT)
        printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
        for line in expected.splitlines():
            if line.strip() not in ("", "..."):
                assert line.rstrip() in printed, f"{command}: {line!r} is not in the output"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, _ in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_there_are_snippets_of_each_kind() -> None:
    assert all(snippets(language) for language in RUN)


def test_the_readme_stays_under_two_screens() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110
