"""What every graph test stands on: no credentials, no cluster of the machine, and an Output in a string is an error."""

from __future__ import annotations

import os

import pytest

# The SDK reads it when an Output is turned into text.
os.environ["PULUMI_ERROR_OUTPUT_STRING"] = "1"


@pytest.fixture(autouse=True)
def _hermetic(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "KUBE", "PULUMI_K8S_")):
            monkeypatch.delenv(name)


@pytest.fixture(params=[True, False], ids=["preview", "update"])
def preview(request: pytest.FixtureRequest) -> bool:
    """Run the test once as a preview and once as an update."""
    return request.param
