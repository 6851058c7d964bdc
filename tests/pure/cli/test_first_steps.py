"""What a newcomer types first is answered with what to type next."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from dpd_infra.catalog.operator_releases import RELEASES
from dpd_infra.cli import COMMANDS


def dpd(*arguments: str, columns: int = 80) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dpd_infra", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": str(columns), "PATH": ""},
    )
    return done.returncode, done.stdout + done.stderr


def test_no_summary_of_a_command_is_cut() -> None:
    code, text = dpd("--help")
    listed = re.findall(r"^  ([a-z-]+) {2,}(\S.*)$", text.partition("Commands:")[2], re.MULTILINE)
    assert code == 0
    assert [name for name, _ in listed] == list(COMMANDS)
    assert [summary for _, summary in listed if not summary.endswith(".") or summary.endswith("...")] == []


def test_the_version_is_that_of_the_distribution() -> None:
    assert dpd("--version") == (0, f"dpd-infra {version('dpd-infra')}\n")


def test_an_unknown_operator_is_answered_with_numbers_of_releases_alone() -> None:
    code, text = dpd("check", "--operator", "banana", "x.yaml")
    named = text.rpartition(" are ")[2].strip().split(", ")
    assert code == 2
    assert set(named) == {release.operator for release in RELEASES if release.addon_version and re.fullmatch(r"[\d.]+", release.operator)}


def test_an_unknown_rule_is_answered_with_where_they_all_are() -> None:
    code, text = dpd("check", "--explain", "DPD999")
    assert code == 2
    assert "docs/rules/README.md" in text
    assert (Path(__file__).resolve().parents[3] / "docs/rules/README.md").is_file()


@pytest.mark.parametrize("folder", ["", "stacks"])
def test_a_stack_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path, folder: str) -> None:
    setting = f"stackConfigDir: {folder}\n" if folder else ""
    (tmp_path / "Pulumi.yaml").write_text(f"name: shop\nruntime: python\n{setting}", encoding="utf-8")
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("Pulumi.prod.yaml", "Pulumi.dev.yaml", "Pulumi.test.yml", "notes.yaml"):
        (tmp_path / folder / name).write_text("config: {}\n", encoding="utf-8")
    code, text = dpd("rehearse", "nostack", "--project", str(tmp_path))
    assert code == 2
    assert text.endswith("has no stack 'nostack': its stacks are dev, prod, test\n")


def test_a_rehearsal_takes_the_stacks_file_for_its_name(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\nstackConfigDir: stacks\n", encoding="utf-8")
    (tmp_path / "stacks").mkdir()
    path = tmp_path / "stacks" / "Pulumi.dev.yaml"
    path.write_text("config:\n  aws:region: us-east-2\n  dpd-infra:platfrom: {name: x}\n", encoding="utf-8")
    code, text = dpd("rehearse", str(path))
    # It was found and read: what it is told is what is wrong in it.
    assert code == 1
    assert "did you mean dpd-infra:platform?" in text
