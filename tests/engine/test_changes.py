"""What docs/changes.md says is what the real engine does: samples of every outcome, endpoints made anew, counts that others changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpd_infra.catalog.changes import field_changes
from tests.engine.conftest import MakeProject
from tests.engine.harness import EngineProject, Run
from tests.engine.test_platform import CLUSTER, ENDPOINT, ENDPOINTS, config, groups, program

LLAMA = "llama-70b"
RESOURCE = "llama-70b-config"
ROOM = {"instanceGroups.decode": {"instanceType": "ml.p5.48xlarge", "count": 2}}
AUTOSCALED = {"prefill": {"replicas": 1, "instanceGroup": "prefill", "autoscaling": {"minReplicaCount": 1, "maxReplicaCount": 2}}}


def endpoints(**change: Any) -> dict[str, Any]:
    return {LLAMA: copy.deepcopy(ENDPOINTS[LLAMA]) | change}


def ends(project: EngineProject) -> set[tuple[str, str]]:
    """Resource and SageMaker names of the endpoints in the account."""
    return {(item.outputs["metadata"]["name"], item.outputs["spec"]["endpointName"]) for item in project.account.all(ENDPOINT)}


def order(project: EngineProject, since: int) -> list[str]:
    """What was done to endpoints since a point of the account's journal."""
    return [operation.action for operation in project.account.journal[since:] if operation.type == ENDPOINT]


def kinds(run: Run) -> dict[str, str]:
    """What happened, by the kinds' names as the table has them."""
    found: dict[str, str] = {}
    for step in run.outcome.steps:
        package, module, kind = step.type.split(":") if step.type.count(":") == 2 else ("", "", "")
        if package in {"aws", "aws-native", "kubernetes"} and step.op in {"create", "update", "delete", "replace"}:
            found[kind if package == "kubernetes" else f"{module.split('/')[0]} {kind}"] = step.op
    return found


@pytest.fixture
def stack(engine: MakeProject) -> EngineProject:
    project = engine(program, config=config(ROOM))
    project.up()
    return project


SAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "platform.instanceGroups.*.count": ({"instanceGroups.prefill": {"instanceType": "ml.p5.48xlarge", "count": 4}}, {}),
    "platform.instanceGroups.*.minCount": ({"instanceGroups.prefill": {"instanceType": "ml.p5.48xlarge", "count": 4, "minCount": 1}}, {}),
    "platform.cluster.protect": ({"cluster.protect": False}, {}),
    "platform.network.controlPlaneZones": ({"network.controlPlaneZones": ["us-east-2a", "us-east-2b", "us-east-2c"]}, {}),
    "platform.network.flowLogs.retentionDays": ({"network.flowLogs": {"retentionDays": 30}}, {}),
    "platform.network.flowLogs.traffic": ({"network.flowLogs": {"retentionDays": 30, "traffic": "REJECT"}}, {}),
    "platform.operator.tlsBucket": ({"operator.tlsBucket": "hyperpod-tls-other"}, {}),
    "endpoints.*.worker.maxModelLen": ({}, {"worker": {"maxModelLen": 8192}}),
    "endpoints.*.load.requestsPerSecond": (
        {},
        {
            "worker": {"maxModelLen": 8192},
            "load": {"requestsPerSecond": 1.0, "inputTokens": {"mean": 400.0}, "outputTokens": {"mean": 20.0}},
        },
    ),
}
"""One change after the other on one stack: by field, what is new of the platform and what there is of the endpoint."""


def test_a_sample_of_every_outcome_does_what_the_table_says(stack: EngineProject) -> None:
    platform = dict(ROOM)
    for field, (change, endpoint) in SAMPLES.items():
        platform |= change
        stack.config = config(platform, endpoints(**endpoint))
        done, said = kinds(stack.up()), field_changes()[field].resources
        if field == "platform.network.flowLogs.retentionDays":
            # The log comes first; how long it is kept is a change of its own.
            continue
        assert done == {kind: op for kind, op in said.items() if op != "options"}, field


def test_blue_green_makes_the_new_endpoint_before_the_old_one_is_deleted(stack: EngineProject) -> None:
    assert ends(stack) == {(LLAMA, LLAMA)}
    since = len(stack.account.journal)
    stack.config = config(ROOM, endpoints(routing={"enabled": False}, change={"mode": "blueGreen", "generation": 2}))
    run = stack.up()
    assert run.changed == {RESOURCE: "replace"}
    assert order(stack, since) == ["create", "delete"]
    assert ends(stack) == {("llama-70b-g2", "llama-70b-g2")}
    made = run.outputs["endpoints"][LLAMA]
    assert (made["endpointName"], made["prefillDeployment"]) == ("llama-70b-g2", "prefill-llama-70b-g2")
    # The choice is taken back and the number stays: nothing changes.
    stack.config = config(ROOM, endpoints(routing={"enabled": False}, change={"generation": 2}))
    assert stack.up().changed == {}


def test_recreated_goes_before_it_comes_and_keeps_its_names(stack: EngineProject) -> None:
    since = len(stack.account.journal)
    stack.config = config(ROOM, endpoints(disaggregated=False, change={"mode": "recreate", "recreations": 1}))
    assert stack.up().changed == {RESOURCE: "replace"}
    assert order(stack, since) == ["delete", "create"]
    assert ends(stack) == {(LLAMA, LLAMA)}
    assert stack.up().changed == {}


def test_an_endpoint_moves_to_another_namespace_under_its_name_only_when_it_is_deleted_first(stack: EngineProject) -> None:
    since = len(stack.account.journal)
    stack.config = config(ROOM, endpoints(namespace="kube-public", change={"mode": "recreate", "recreations": 1}))
    assert stack.up().changed[RESOURCE] == "replace"
    assert order(stack, since) == ["delete", "create"]


def test_a_count_changed_outside_is_not_undone_by_an_edit_elsewhere(stack: EngineProject) -> None:
    [cluster] = stack.account.all(CLUSTER)
    for group in cluster.outputs["instanceGroups"]:
        if group["instanceGroupName"] == "prefill":
            group["instanceCount"] = 5
    stack.config = config({**ROOM, "operator.configuration": {"nodeSelector": {"team": "x"}}}, endpoints(worker={"maxModelLen": 8192}))
    assert "inference-cluster" not in stack.up().changed
    assert dict(groups(stack))["prefill"] == 5


@pytest.mark.parametrize("refreshes", [False, True])
def test_an_autoscalers_replicas_are_not_set_back_by_an_edit(engine: MakeProject, *, refreshes: bool) -> None:
    project = engine(program, config=config(ROOM, endpoints(**AUTOSCALED)))
    project.up()
    [made] = project.account.all(ENDPOINT)
    for held in (made.outputs, made.inputs):
        held["spec"]["pdSpec"]["prefillSpec"]["replicas"] = 2
    if refreshes:
        project.refresh()
    project.config = config(ROOM, endpoints(**AUTOSCALED, worker={"maxModelLen": 8192}))
    assert project.up().changed == {RESOURCE: "update"}
    [after] = project.account.all(ENDPOINT)
    assert after.outputs["spec"]["pdSpec"]["prefillSpec"]["replicas"] == (2 if refreshes else 1)


def test_an_autoscaled_endpoint_can_be_turned_into_its_twin_and_back(engine: MakeProject) -> None:
    project = engine(program, config=config(ROOM, endpoints(**AUTOSCALED, change={"mode": "recreate"})))
    project.up()
    for number, disaggregated in ((1, False), (2, True)):
        change = {"mode": "recreate", "recreations": number}
        project.config = config(ROOM, endpoints(**AUTOSCALED, disaggregated=disaggregated, change=change))
        assert project.up().changed == {RESOURCE: "replace"}
