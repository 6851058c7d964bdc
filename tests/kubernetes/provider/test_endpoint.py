"""Our endpoint through the real Kubernetes provider on a real API server, with a stand-in for the operator.

Needs the provider (`make provider`); `make test-full` runs it.
"""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.kubernetes.api_server import Connection
from tests.kubernetes.client import Client
from tests.kubernetes.provider.operator_stand_in import FINALIZER, PATH, StandIn, complete, failed, pending
from tests.kubernetes.provider.project import Done, EndpointProject, make_project

LONG = 120
"""Seconds that the engine may wait where the operator is to end it."""
SHORT = 8


@pytest.fixture(scope="session")
def provider() -> Path:
    """Pulumi's Kubernetes provider, our own build: another one on PATH would not be known to be the pinned one."""
    found = shutil.which("pulumi-resource-kubernetes", path=str(ROOT / ".tools" / "plugins"))
    assert found, "pulumi-resource-kubernetes is not built: `make provider`"
    return Path(found)


@pytest.fixture
def project(client: Client, connection: Connection, pulumi_cli: Path, provider: Path, tmp_path: Path) -> EndpointProject:
    """A stack with one endpoint of a name of its own; nothing of it is made yet."""
    made = make_project(tmp_path, f"llama-{secrets.token_hex(3)}", connection, [pulumi_cli, provider])
    assert not client.request("GET", where(made)).taken
    return made


def where(project: EndpointProject) -> str:
    return f"{PATH}/namespaces/default/inferenceendpointconfigs/{project.name}"


def replicas(endpoint: dict[str, Any]) -> int:
    return endpoint["spec"]["pdSpec"]["decodingSpec"]["replicas"]


def wait_for_state(client: Client, project: EndpointProject, state: str) -> None:
    deadline = time.monotonic() + LONG
    while client.must("GET", where(project))["status"]["state"] != state:
        assert time.monotonic() < deadline, f"the stand-in never says {state}"
        time.sleep(0.1)


def assert_well(done: Done) -> None:
    assert done.status == 0, done.output


def test_up_ends_when_the_operator_is_done_and_again_after_each_edit(client: Client, project: EndpointProject) -> None:
    project.seconds = LONG
    with StandIn(client):
        first = project.up()
        assert_well(first)
        assert "DeploymentComplete" in client.must("GET", where(project))["status"]["state"]
        assert "+ 3 created" in first.output, "the stack, the provider and the endpoint"
        same = project.up()
        assert_well(same)
        assert "3 unchanged" in same.output
        project.spec["decode"] = {"replicas": 2}
        edited = project.up()
        assert_well(edited)
        assert "~ 1 updated" in edited.output
        assert "2 unchanged" in edited.output
    kept = client.must("GET", where(project))
    assert kept["spec"]["pdSpec"]["decodingSpec"]["replicas"] == 2
    # It was not taken for done before the operator had seen the edit.
    assert kept["status"]["observedGeneration"] == kept["metadata"]["generation"] == 2
    with StandIn(client):
        assert_well(project.destroy())


def test_what_is_not_ready_in_time_is_kept_in_the_state_and_found_by_the_next_up(client: Client, project: EndpointProject) -> None:
    project.seconds = SHORT
    with StandIn(client, pending) as operator:
        late = project.up()
        assert late.status != 0
        assert late.seconds > SHORT
        assert "was successfully created, but" in late.output
        assert "timed out waiting for the condition" in late.output
        [resource] = project.in_state
        assert resource["initErrors"]
        made = client.must("GET", where(project))["metadata"]["uid"]
        operator.outcome = complete
        project.seconds = LONG
        again = project.up()
        assert_well(again)
        assert "~ 1 updated" in again.output
        assert client.must("GET", where(project))["metadata"]["uid"] == made
        [resource] = project.in_state
        assert not resource.get("initErrors")
        assert_well(project.destroy())


def test_a_failed_deployment_ends_up_at_once_in_the_operators_words(client: Client, project: EndpointProject) -> None:
    project.seconds = LONG
    with StandIn(client, failed("model not found in s3://my-models/llama")) as operator:
        ended = project.up()
        assert ended.status != 0
        assert ended.seconds < LONG / 4
        assert "the operator says DeploymentFailed: model not found in s3://my-models/llama" in ended.output
        assert "Traceback" not in ended.output
        [resource] = project.in_state
        assert resource["outputs"]["status"]["state"] == "DeploymentFailed"

        # Nobody has looked since, so nothing is said to be well.
        assert project.up().status != 0

        operator.outcome = complete
        wait_for_state(client, project, "DeploymentComplete")
        mended = project.up("--refresh")
        assert_well(mended)
        assert "+ 1 created" not in mended.output
        assert_well(project.destroy())


def test_an_edit_of_a_failed_endpoint_waits_for_what_becomes_of_the_edit(client: Client, project: EndpointProject) -> None:
    project.seconds = LONG
    with StandIn(client, lambda endpoint: (complete if replicas(endpoint) == 2 else failed("no node is free"))(endpoint)):
        ended = project.up()
        assert "DeploymentFailed: no node is free" in ended.output
        project.spec["decode"] = {"replicas": 2}
        # A preview is not kept from showing the way out.
        preview = project.pulumi("preview")
        assert_well(preview)
        assert "~ 1 to update" in preview.output
        edited = project.up()
        assert_well(edited)
        assert "~ 1 updated" in edited.output
        assert_well(project.destroy())


def test_an_endpoint_goes_when_the_operator_lets_it_and_hangs_explained_when_it_is_not_there(
    client: Client, project: EndpointProject
) -> None:
    project.seconds = SHORT
    with StandIn(client):
        assert_well(project.up())
        assert client.must("GET", where(project))["metadata"]["finalizers"] == [FINALIZER]
    stuck = project.destroy()
    assert stuck.status != 0
    assert stuck.seconds > SHORT
    assert f"finalizers might be preventing deletion ({FINALIZER}" in stuck.output
    assert "timed out waiting for the condition" in stuck.output
    assert len(project.in_state) == 1
    assert "deletionTimestamp" in client.must("GET", where(project))["metadata"]
    with StandIn(client):
        assert_well(project.destroy())
    assert client.request("GET", where(project)).status == 404


def test_a_recreated_endpoint_is_gone_before_the_new_one_is_made_under_its_name(client: Client, project: EndpointProject) -> None:
    project.seconds = LONG
    with StandIn(client):
        assert_well(project.up())
        before = client.must("GET", where(project))["metadata"]["uid"]
        project.spec["change"] = {"mode": "recreate", "recreations": 1}
        recreated = project.up()
        assert_well(recreated)
        assert "+-1 replaced" in recreated.output
        assert client.must("GET", where(project))["metadata"]["uid"] != before
        assert_well(project.destroy())


def test_an_endpoint_of_the_next_generation_serves_before_the_old_one_goes(client: Client, project: EndpointProject) -> None:
    project.seconds = LONG
    there_when_the_new_one_served: list[int] = []

    def outcome(endpoint: dict[str, Any]) -> dict[str, Any]:
        if endpoint["metadata"]["name"].endswith("-g2"):
            there_when_the_new_one_served.append(client.request("GET", where(project)).status)
        return complete(endpoint)

    with StandIn(client, outcome):
        assert_well(project.up())
        project.spec["change"] = {"mode": "blueGreen", "generation": 2}
        changed = project.up()
        assert_well(changed)
        assert there_when_the_new_one_served[0] == 200
        assert client.request("GET", where(project)).status == 404
        assert client.must("GET", f"{where(project)}-g2")["status"]["state"] == "DeploymentComplete"
        assert_well(project.destroy())
