"""The kit's pytest fixtures, there without an import in every environment that holds this library; Pulumi is imported by what uses it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from dpd_infra.testing.recording import Recording

_CREDENTIALS = ("AWS_", "KUBE", "PULUMI_K8S_", "PULUMI_CONFIG")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--dpd-update-snapshots`."""
    parser.getgroup("dpd-infra").addoption(
        "--dpd-update-snapshots", action="store_true", help="Write the files of dpd_snapshot instead of comparing with them."
    )


@pytest.fixture
def dpd_hermetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials, no kubeconfig and no Pulumi configuration of the machine; an Output that is turned into text is an error."""
    for name in list(os.environ):
        if name.startswith(_CREDENTIALS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PULUMI_ERROR_OUTPUT_STRING", "1")


@pytest.fixture(params=[True, False], ids=["preview", "update"])
def dpd_preview(request: pytest.FixtureRequest) -> bool:
    """True in one run of the test and False in another: every test that takes it runs as a preview and as an update."""
    return request.param


@pytest.fixture
def dpd_run(dpd_preview: bool, dpd_hermetic: None) -> Callable[..., Recording]:  # noqa: FBT001 - pytest hands fixtures on
    """`run_program` in both modes: the test runs once as a preview and once as an update."""
    from dpd_infra.testing.program import run_program  # noqa: PLC0415

    del dpd_hermetic
    return partial(run_program, preview=dpd_preview)


@pytest.fixture
def dpd_project(request: pytest.FixtureRequest, dpd_preview: bool, dpd_hermetic: None) -> Callable[..., Recording]:  # noqa: FBT001
    """`run_project` in both modes, for the project at or above the test's folder: `dpd_project("dev")`."""
    from dpd_infra.testing.project import run_project  # noqa: PLC0415

    del dpd_hermetic
    return partial(run_project, root=request.path.parent, preview=dpd_preview)


@pytest.fixture
def dpd_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`dpd_snapshot(recording, "dev")` compares with `snapshots/dev.json` beside the test; `--dpd-update-snapshots` writes it."""
    folder: Path = request.path.parent / "snapshots"
    update: bool | None = True if request.config.getoption("--dpd-update-snapshots") else None

    def compare(recording: Recording, name: str) -> None:
        from dpd_infra.testing.snapshot import assert_snapshot  # noqa: PLC0415

        assert_snapshot(recording, folder / f"{name}.json", update=update)

    return compare


__all__: list[Any] = ["dpd_hermetic", "dpd_preview", "dpd_project", "dpd_run", "dpd_snapshot"]
