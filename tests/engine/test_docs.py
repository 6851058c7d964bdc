"""The programs in the documents run, and a rehearsal prints what the README shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import Snippet, snippets
from tests.engine.harness import REPOSITORY

_CHANGING = re.compile(r"\d+\.\d+ s|[0-9a-f]{12,}")
"""Times, and ids that the account gives."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the tree without what git ignores, in which a snippet may write."""
    ignored = shutil.ignore_patterns(".git", ".venv", ".tools", ".dpd", "__pycache__", "*.tgz")
    return Path(shutil.copytree(REPOSITORY, tmp_path / "copy", ignore=ignored))


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("python") if "Rehearsal(" in snippet.text], ids=str)
def test_a_program_in_the_documents_runs(snippet: Snippet, copy: Path) -> None:
    done = subprocess.run([sys.executable, "-c", snippet.text], cwd=copy, capture_output=True, text=True, check=False, env=_environment())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("snippet", [snippet for snippet in snippets("console") if "rehearse" in snippet.text], ids=str)
def test_a_rehearsal_prints_what_is_said(snippet: Snippet, copy: Path) -> None:
    for block in re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]:
        command, _, expected = block.partition("\n")
        words = shlex.split(command)
        arguments = ["rehearse", "dev"] if words[:2] == ["make", "rehearse"] else words[1:]
        done = subprocess.run(
            [sys.executable, "-m", "dpd_infra", *arguments], cwd=copy, capture_output=True, text=True, check=False, env=_environment()
        )
        assert done.returncode == 0, done.stdout + done.stderr
        printed = [_CHANGING.sub("#", line).rstrip() for line in done.stdout.splitlines()]
        for line in expected.splitlines():
            if line.strip() not in ("", "..."):
                assert _CHANGING.sub("#", line).rstrip() in printed, f"{command}: {line!r} is not in the output"


def _environment() -> dict[str, str]:
    import os

    tools = str(REPOSITORY / ".tools" / "bin")
    return {**os.environ, "PATH": os.pathsep.join([tools, os.environ.get("PATH", "")])}
