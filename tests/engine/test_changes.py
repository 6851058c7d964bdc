"""What docs/changes.md says is what the real engine does: samples of every outcome, endpoints made anew, counts that others changed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dpd_infra.catalog.changes import field_changes
from dpd_infra.cli import app
from dpd_infra.rehearsal import OperatorBehaviour, RehearsalFailed
from dpd_infra.rehearsal.world.made import LOAD_BALANCER
from tests.engine.conftest import MakeProject
from tests.engine.harness import EngineProject, Run
from tests.engine.test_platform import CLUSTER, ENDPOINT, ENDPOINTS, config, groups, program

LLAMA = "llama-70b"
RESOURCE = "llama-70b"
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


def told_before(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> tuple[int, str]:
    """What `dpd check --from` says of a change: exit code and report, on one line."""
    files = []
    for name, content in (("old", old), ("new", new)):
        file = folder / f"Pulumi.{name}.yaml"
        file.write_text(yaml.safe_dump({"config": content}), encoding="utf-8")
        files.append(str(file))
    run = CliRunner().invoke(app, ["check", "--from", *files])
    return run.exit_code, " ".join(run.output.split())


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


def balancers(project: EngineProject) -> set[str]:
    """Which endpoints have a load balancer."""
    return {str(item.outputs["madeFor"]) for item in project.account.all(LOAD_BALANCER)}


BLUE_GREEN = {"routing": {"enabled": False}, "change": {"mode": "blueGreen", "generation": 2}}


def test_blue_green_takes_all_of_the_old_endpoint_away_and_tells_of_the_new_names_before(stack: EngineProject, tmp_path: Path) -> None:
    assert balancers(stack) == {"default/llama-70b"}
    code, told = told_before(tmp_path, stack.config, config(ROOM, endpoints(**BLUE_GREEN)))
    assert code == 0
    assert "DPD613" in told
    assert "llama-70b becomes llama-70b-g2, its SageMaker endpoint llama-70b becomes llama-70b-g2" in told
    stack.config = config(ROOM, endpoints(**BLUE_GREEN))
    stack.up()
    assert balancers(stack) == {"default/llama-70b-g2"}
    # And once more: the number goes into the names again.
    stack.config = config(ROOM, endpoints(change={"mode": "blueGreen", "generation": 3}))
    since = len(stack.account.journal)
    assert stack.up().changed == {RESOURCE: "replace"}
    assert order(stack, since) == ["create", "delete"]
    assert ends(stack) == {("llama-70b-g3", "llama-70b-g3")}


def test_blue_green_without_free_nodes_for_both_is_refused_before_anything_is_touched(engine: MakeProject) -> None:
    project = engine(program, config=config())
    project.up()
    since, before = len(project.account.journal), project.state
    project.config = config(endpoints=endpoints(**BLUE_GREEN))
    with pytest.raises(RehearsalFailed) as refused:
        project.up()
    assert "DPD612" in refused.value.message
    assert "change.mode: recreate, with an outage" in refused.value.message
    assert project.account.journal[since:] == []
    assert project.state == before
    # One node more, as the report says, and it goes.
    project.config = config(ROOM, endpoints(**BLUE_GREEN))
    changed = project.up().changed
    assert (changed[RESOURCE], changed["inference-cluster-cluster"]) == ("replace", "update")
    assert ends(project) == {("llama-70b-g2", "llama-70b-g2")}


def test_while_the_new_endpoint_does_not_come_up_the_old_one_serves(stack: EngineProject) -> None:
    stack.account.operator = OperatorBehaviour(failure="the model could not be loaded")
    stack.config = config(ROOM, endpoints(**BLUE_GREEN))
    with pytest.raises(RehearsalFailed, match="the model could not be loaded"):
        stack.up()
    assert ("llama-70b", "llama-70b") in ends(stack)
    assert "default/llama-70b" in balancers(stack)


@pytest.mark.parametrize(
    ("edit", "rule", "ways", "why"),
    [
        (
            {"routing": {"enabled": False}},
            "DPD605",
            ("mode: blueGreen", "mode: recreate"),
            "intelligentRoutingSpec cannot be added to or switched on an existing deployment",
        ),
        ({"namespace": "kube-public"}, "DPD615", ("mode: recreate", "another endpointName"), "Cannot create already existing endpoint"),
    ],
    ids=["routing", "namespace"],
)
def test_a_field_that_is_fixed_on_a_live_endpoint_is_refused_with_the_reason_before_and_by_the_engine(
    stack: EngineProject, tmp_path: Path, edit: dict[str, Any], rule: str, ways: tuple[str, str], why: str
) -> None:
    changed = config(ROOM, endpoints(**edit))
    code, told = told_before(tmp_path, stack.config, changed)
    assert code == 1
    assert f"error {rule}" in told
    assert all(word in told for word in ("why:", *ways))
    stack.config = changed
    with pytest.raises(RehearsalFailed, match=why):
        stack.up()
    assert (LLAMA, LLAMA) in ends(stack)


def test_the_outage_of_a_recreation_is_told_before(stack: EngineProject, tmp_path: Path) -> None:
    code, told = told_before(
        tmp_path, stack.config, config(ROOM, endpoints(routing={"enabled": False}, change={"mode": "recreate", "recreations": 1}))
    )
    assert code == 0
    assert "DPD605" not in told
    assert "is deleted and made anew: an outage of as long as both take, at most" in told


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
    assert "inference-cluster-cluster" not in stack.up().changed
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
