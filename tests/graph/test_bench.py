"""What bench/ measures still runs and still compares like with like; how long it takes is asked by nobody here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (["endpoints.py", "--rounds", "1", "--counts", "1", "3"], "preview"),
        (["registration.py", "--rounds", "1", "--stack", "dev"], "by hand"),
        (["simulate.py"], "bare simpy"),
        (["size_stack.py"], "import pydantic"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_measurement_ends_with_its_ratio(script: list[str], said: str) -> None:
    # One that finds other registrations on one side than on the other, or a side that fails, ends before it has a ratio to tell.
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / script[0]), *script[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "ratio " in done.stdout, done.stdout + done.stderr
    assert said in done.stdout
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("name", ["kit", "bare"])
def test_both_suites_of_the_test_kits_measurement_pass(name: str, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("bench_test_kit", ROOT / "bench" / "test_kit.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    # It raises where not all ten tests pass.
    bench.pytest_seconds(bench.written(tmp_path)[name])
