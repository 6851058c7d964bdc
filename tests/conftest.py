"""What every test stands on: marks by folder, the tools that tests drive, and in CI no test that is left out unseen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("pure", "graph", "engine", "kubernetes")
SLOW_FOLDERS = ("engine", "kubernetes")
SLOW_TIMEOUT_SECONDS = 900

# An Output that is turned into text is an error, in this process and in every engine that a test starts.
os.environ["PULUMI_ERROR_OUTPUT_STRING"] = "1"

# The time of one example says nothing on a machine that other tests share; in CI every run tries the same examples.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by what it needs, which is the folder it is in, and leave those of `make faults` to it."""
    if os.environ.get("FAULTS") != "all":
        left_out = [item for item in items if item.get_closest_marker("faults")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in FOLDERS:
            item.add_marker(folder)
        if folder in SLOW_FOLDERS and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_SECONDS))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: it proves nothing there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("CI: a skipped test counts as a failure", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def find_tool(name: str) -> Path:
    """A command from `.tools/bin` or PATH; without it the test fails in CI and is skipped elsewhere."""
    found = shutil.which(name, path=os.pathsep.join([str(ROOT / ".tools" / "bin"), os.environ.get("PATH", "")]))
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not installed: `make tools`")
    return Path(found)


@pytest.fixture(scope="session")
def pulumi_cli() -> Path:
    """The Pulumi CLI."""
    return find_tool("pulumi")


@pytest.fixture(scope="session")
def helm_cli() -> Path:
    """The Helm CLI."""
    return find_tool("helm")
