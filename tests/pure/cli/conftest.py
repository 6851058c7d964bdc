"""Running `dpd` in the test's own process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpd_infra.cli import app
from dpd_infra.spec.yaml_writing import write_yaml
from tests.pure.endpoint.test_published_example import PUBLISHED

STACK = """\
# A stack of one endpoint.
config:
  aws:region: us-east-2
  dpd-infra:platform:
    name: inference-dev
    network: {zone: us-east-2a}
    controlPlane:
      version: "1.33"
      publicAccessCidrs: [203.0.113.0/24]
    instanceGroups:
      gpu: {instanceType: ml.p5.48xlarge, count: 3}
      system: {instanceType: ml.c5.4xlarge, count: 2}
    modelBuckets: [my-models]
  dpd-infra:endpoints:
    llama-70b:
      model: {name: Llama-3.3-70B-Instruct, s3: {bucket: my-models, prefix: Llama-3.3-70B-Instruct}}
      instanceType: ml.p5.48xlarge
      prefill: {replicas: 1}
      decode: {replicas: 1}
      routing: {threshold: 4096, strategy: prefixaware}
      metrics: {port: 8000}
"""

# The published example with the one thing that a fix would add to it.
MANIFEST = write_yaml(PUBLISHED | {"spec": PUBLISHED["spec"] | {"metrics": {"enabled": True, "modelMetrics": {"port": 8000}}}})
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


@dataclass(frozen=True)
class Run:
    """What a call printed, and how it ended."""

    code: int
    out: str
    err: str


Dpd = Callable[..., Run]


@pytest.fixture
def dpd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Dpd:
    """`dpd("check", "file", stdin="…")`, run in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | bytes | None = None) -> Run:
        result = CliRunner().invoke(app, list(arguments), input=stdin)
        # An exception that the command does not turn into an exit is a traceback to its user.
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Run(result.exit_code, result.stdout, result.stderr)

    return run
