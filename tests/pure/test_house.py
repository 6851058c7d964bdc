"""The house keeps its shape: imports go one way, the pure rooms leave Pulumi alone, and no file leaks where it was made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PURE_ROOMS = ("catalog", "spec", "plan", "render", "rules")
MOST_LINES = 400


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def repository_files() -> list[Path]:
    """Every text file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:4096]]


def test_imports_go_one_way() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^Contracts: [1-9]\d* kept, 0 broken\.$", done.stdout, re.MULTILINE)


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh Python has loaded after running `code`."""
    report = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def heavy(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if re.match(r"(pulumi(_\w+)?|boto3|botocore|grpc)$", name))


def test_importing_the_package_loads_neither_pulumi_nor_aws() -> None:
    loaded = loaded_after("import dpd_infra")
    assert "dpd_infra" in loaded
    assert heavy(loaded) == []


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_every_module_before_the_components_loads_neither_pulumi_nor_aws(room: str) -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((ROOT / "dpd_infra" / room).rglob("*.py"))
    ]
    loaded = loaded_after("\n".join(f"import {module}" for module in modules))
    assert set(modules) <= loaded
    assert heavy(loaded) == []


def test_no_module_is_too_long_to_read_in_one_go() -> None:
    modules = sorted((ROOT / "dpd_infra").rglob("*.py"))
    assert {str(path.relative_to(ROOT)): lines_of(path) for path in modules if lines_of(path) > MOST_LINES} == {}


def test_only_the_lock_file_names_a_package_registry_and_no_file_names_a_folder_of_one_machine() -> None:
    # In pieces, or this file would be the first to fail.
    registries = [r"pypi\.", r"pythonhosted\.", r"registry\.npmjs\.", r"proxy\.golang\.", r"sum\.golang\.", r"deb\.debian\.", r"crates\."]
    folders = [r"/work/(?:main|shared)", r"/root/", r"/home/[a-z]+/", r"/tmp/brief"]
    leak = re.compile("|".join([rf"(?:{'|'.join(registries)})(?:org|io)\b", *folders]))
    found = {
        str(path.relative_to(ROOT)): match.group()
        for path in repository_files()
        if path not in (ROOT / "uv.lock", Path(__file__)) and (match := leak.search(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}
