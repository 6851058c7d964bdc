"""A project with one of our endpoints, driven by the plain `pulumi` commands through the real Kubernetes provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpd_infra.rehearsal.environment import hermetic, without_foreign
from tests.engine.harness import _language_host
from tests.kubernetes.api_server import Connection

PROGRAM = '''
import json
from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes

import dpd_infra as dpd

here = Path(__file__).parent
settings = json.loads((here / "settings.json").read_text())
cluster = kubernetes.Provider("cluster", kubeconfig=(here / "kubeconfig").read_text(), cluster_identifier="tests")
version = "v1.3.0-eksbuild.1"
operator = dpd.OperatorHandle(
    facts=dpd.OperatorFacts(addon_version=version),
    addon_version=version,
    kubernetes_provider=cluster,
    cluster_name="hp",
    region="us-east-2",
)


def within_seconds(arguments):
    """The waits of the component are for models: minutes."""
    seconds = f"{settings['seconds']}s"
    arguments.opts.custom_timeouts = pulumi.CustomTimeouts(create=seconds, update=seconds, delete=seconds)
    return pulumi.ResourceTransformationResult(arguments.props, arguments.opts)


endpoint = dpd.Endpoint(
    settings["name"],
    dpd.EndpointSpec.from_yaml_data(settings["spec"]),
    operator=operator,
    opts=pulumi.ResourceOptions(transformations=[within_seconds]),
)
pulumi.export("url", endpoint.url)
'''

SPEC: dict[str, Any] = {
    "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "llama", "region": "us-east-2"}},
    "instanceType": "ml.p5.48xlarge",
}


@dataclass(frozen=True)
class Done:
    """One finished command."""

    status: int
    output: str
    seconds: float


@dataclass
class EndpointProject:
    """One stack with one endpoint. Change `spec` or `seconds`, how long the engine waits, between commands."""

    folder: Path
    name: str
    environment: dict[str, str]
    spec: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(SPEC)))
    seconds: int = 60

    def pulumi(self, *arguments: str) -> Done:
        """Run a command without a terminal."""
        settings = {"name": self.name, "spec": self.spec, "seconds": self.seconds}
        (self.folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        begun = time.monotonic()
        command = ["pulumi", "--non-interactive", "--color", "never", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return Done(done.returncode, done.stdout, time.monotonic() - begun)

    def up(self, *arguments: str) -> Done:
        """`pulumi up`."""
        return self.pulumi("up", "--yes", "--skip-preview", *arguments)

    def destroy(self) -> Done:
        """`pulumi destroy`."""
        return self.pulumi("destroy", "--yes", "--skip-preview")

    @property
    def in_state(self) -> list[dict[str, Any]]:
        """The endpoint's custom resource in the engine's state."""
        exported = json.loads(self.pulumi("stack", "export").output)["deployment"].get("resources") or []
        return [resource for resource in exported if resource["type"].endswith(":InferenceEndpointConfig")]


def make_project(folder: Path, name: str, connection: Connection, commands: list[Path]) -> EndpointProject:
    """A new stack; `commands` are the Pulumi CLI and the provider."""
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: test\nruntime: python\n", encoding="utf-8")
    (project / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    (project / "kubeconfig").write_text(connection.kubeconfig, encoding="utf-8")
    paths = [str(_language_host(folder)), *(str(command.parent) for command in commands), str(Path(sys.executable).parent)]
    environment = {**without_foreign(dict(os.environ)), **hermetic(folder / "state", "")}
    # The engine starts the provider itself, which it finds on PATH.
    del environment["PULUMI_DEBUG_PROVIDERS"]
    environment["PATH"] = os.pathsep.join([*paths, os.environ.get("PATH", "")])
    made = EndpointProject(project, name, environment)
    done = made.pulumi("stack", "init", "dev")
    assert done.status == 0, done.output
    return made
