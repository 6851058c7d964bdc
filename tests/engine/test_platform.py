"""The whole platform on the real engine: up, no-op, one edit = one update, protection, destroy in order, a failed create and its resume."""

from __future__ import annotations

import copy
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpd_infra.rehearsal import Failure, RehearsalFailed, SimulatedAccount
from tests.engine.conftest import MakeProject
from tests.engine.harness import REPOSITORY, EngineProject

CLUSTER = "aws-native:sagemaker:Cluster"
ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"

PLATFORM: dict[str, Any] = {
    "name": "inference",
    "network": {"zone": "us-east-2a"},
    "controlPlane": {"publicAccessCidrs": ["203.0.113.0/24"]},
    "instanceGroups": {
        "decode": {"instanceType": "ml.p5.48xlarge", "count": 1},
        "prefill": {"instanceType": "ml.p5.48xlarge", "count": 3},
        "system": {"instanceType": "ml.c5.4xlarge", "count": 2},
    },
    "modelBuckets": ["my-models"],
}
ENDPOINTS: dict[str, Any] = {
    "llama-70b": {
        "model": {"name": "Llama-3.3-70B-Instruct", "s3": {"bucket": "my-models", "prefix": "Llama-3.3-70B-Instruct"}},
        "instanceType": "ml.p5.48xlarge",
        "prefill": {"replicas": 1, "instanceGroup": "prefill"},
        "decode": {"replicas": 1, "instanceGroup": "decode"},
        "routing": {"threshold": 4096, "strategy": "prefixaware"},
    }
}


GROUPS_CHANGED = {"inference-cluster-cluster": "update", "inference-cluster-lifecycle-groups": "update"}
"""The groups, and the record of what was sent of them."""


def program() -> None:
    """The program that users run, unchanged."""
    runpy.run_path(str(REPOSITORY / "stacks" / "__main__.py"), run_name="__main__")


def config(change: dict[str, Any] | None = None, endpoints: dict[str, Any] | None = None) -> dict[str, Any]:
    platform = copy.deepcopy(PLATFORM)
    for path, value in (change or {}).items():
        *parents, last = path.split(".")
        part = platform
        for step in parents:
            part = part.setdefault(step, {})
        part[last] = value
    return {
        "aws:region": "us-east-2",
        "dpd-infra:platform": platform,
        "dpd-infra:endpoints": copy.deepcopy(ENDPOINTS if endpoints is None else endpoints),
    }


@pytest.fixture
def stack(engine: MakeProject) -> EngineProject:
    """A stack that is up."""
    project = engine(program, config=config())
    project.up()
    return project


def groups(project: EngineProject) -> list[tuple[str, int]]:
    """Name and count of the groups as the account has them, in order."""
    [cluster] = project.account.all(CLUSTER)
    return [(group["instanceGroupName"], int(group["instanceCount"])) for group in cluster.outputs["instanceGroups"]]


def test_a_second_up_changes_nothing(stack: EngineProject) -> None:
    again = stack.up()
    assert again.changes == 0, again.changed


def test_a_refresh_finds_no_drift(stack: EngineProject) -> None:
    stack.refresh()
    assert stack.up().changes == 0


def test_one_prefill_replica_more_is_exactly_one_update(stack: EngineProject) -> None:
    endpoints = copy.deepcopy(ENDPOINTS)
    endpoints["llama-70b"]["prefill"]["replicas"] = 2
    stack.config = config(endpoints=endpoints)
    run = stack.up()
    assert run.changed == {"llama-70b": "update"}
    assert run.diff("llama-70b") == {"spec.pdSpec.prefillSpec.replicas"}


def test_another_threshold_and_strategy_are_one_update(stack: EngineProject) -> None:
    endpoints = copy.deepcopy(ENDPOINTS)
    endpoints["llama-70b"]["routing"] = {"threshold": 8192, "strategy": "roundrobin"}
    stack.config = config(endpoints=endpoints)
    assert stack.up().changed == {"llama-70b": "update"}


@pytest.mark.parametrize("name", ["another", "middle", "zulu"], ids=["sorts first", "in between", "sorts last"])
def test_a_new_instance_group_is_one_update_and_touches_no_other_groups_count(stack: EngineProject, name: str) -> None:
    before = dict(groups(stack))
    stack.config = config({f"instanceGroups.{name}": {"instanceType": "ml.p5.48xlarge", "count": 4}})
    run = stack.up()
    assert run.changed == GROUPS_CHANGED
    assert dict(groups(stack)) == {**before, name: 4}
    assert [group for group, _ in groups(stack)] == sorted([*before, name])


def test_a_removed_instance_group_is_one_update(stack: EngineProject) -> None:
    stack.config = config({"instanceGroups.another": {"instanceType": "ml.p5.48xlarge", "count": 4}})
    stack.up()
    stack.config = config()
    assert stack.up().changed == GROUPS_CHANGED
    assert dict(groups(stack)) == {"decode": 1, "prefill": 3, "system": 2}


def test_the_order_of_groups_in_the_file_means_nothing(stack: EngineProject) -> None:
    stack.config = config({"instanceGroups": dict(reversed(list(PLATFORM["instanceGroups"].items())))})
    assert stack.up().changes == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cluster.name": "renamed"}, "inference-cluster-cluster"),
        ({"network.zone": "us-east-2b"}, "inference-cluster-cluster"),
        ({"controlPlane.name": "renamed"}, "inference-control-plane-cluster"),
    ],
    ids=["another cluster name", "another GPU zone", "another EKS name"],
)
def test_an_edit_that_would_replace_a_protected_cluster_is_refused_by_name(
    stack: EngineProject, change: dict[str, Any], named: str
) -> None:
    before = groups(stack)
    stack.config = config(change)
    with pytest.raises(RehearsalFailed) as failed:
        stack.up()
    assert named in failed.value.message
    assert "protect" in failed.value.message
    assert groups(stack) == before


def test_a_protected_stack_is_not_destroyed(stack: EngineProject) -> None:
    with pytest.raises(RehearsalFailed, match="protect"):
        stack.destroy()
    assert groups(stack)


def test_destroy_goes_in_the_documented_order(stack: EngineProject) -> None:
    stack.config = config({"cluster.protect": False, "controlPlane.protect": False, "controlPlane.deletionProtection": False})
    stack.up()
    begun = len(stack.account.journal)
    stack.destroy()
    deleted = [entry.name for entry in stack.account.journal[begun:] if entry.action == "delete"]
    # Add-on troubleshooting: endpoints, then the operator's add-on; hyperpod.md 2.3 the other way round for the rest.
    order = [
        "llama-70b",
        "inference-operator-addon",
        "inference-addons-cert-manager",
        "inference-addons-coredns",
        "inference-cluster-cluster",
        "inference-control-plane-cluster",
        "inference-network-gpu",
        "inference-network-vpc",
    ]
    assert [name for name in deleted if name in order] == order
    assert not list(stack.account.all(CLUSTER))
    assert not list(stack.account.all(ENDPOINT))


FAILING = (
    "inference-network-nat",
    "inference-control-plane-cluster",
    "inference-control-plane-access-*clusterAdmin",
    "inference-dependencies-release",
    "inference-cluster-execution-permissions",
    "inference-cluster-cluster",
    "inference-addons-coredns",
    "inference-operator-tls",
    "inference-operator-addon",
    "llama-70b",
)


def test_creates_that_fail_on_the_way_are_taken_up_again_and_nothing_is_made_twice(engine: MakeProject) -> None:
    account = SimulatedAccount(fail_on=[Failure(match=name) for name in FAILING])
    project = engine(program, account=account, config=config())
    failures = []
    for _ in range(len(FAILING) * 2):
        try:
            project.up()
            break
        except RehearsalFailed as failed:
            failures.append(failed.message)
    assert len(failures) >= len(FAILING) // 2, failures
    assert project.up().changes == 0

    clean = engine(program, config=config())
    clean.up()
    assert made(project.account) == made(clean.account)
    assert urns(project) == urns(clean)


def test_an_endpoint_that_does_not_become_ready_stays_in_the_state_and_is_tried_again(engine: MakeProject) -> None:
    account = SimulatedAccount()
    account.operator.failure = "DPD prefill deployment failed: model not found"
    project = engine(program, account=account, config=config())
    with pytest.raises(RehearsalFailed, match="endpoint llama-70b: the operator says DeploymentFailed: DPD prefill deployment failed"):
        project.up()
    assert any(resource["type"] == ENDPOINT for resource in project.state)
    account.operator.failure = None
    project.refresh()
    project.up()
    assert project.up().changes == 0


def test_a_bad_stack_registers_nothing_and_says_everything(engine: MakeProject) -> None:
    bad = config({"controlPlane": {}, "instanceGroups.prefill.zone": "us-east-2c", "operator.addonVersion": "v1.2.0-eksbuild.1"})
    bad["dpd-infra:endpoints"]["llama-70b"]["routing"]["threshold"] = -1
    project = engine(program, config=bad)
    with pytest.raises(RehearsalFailed) as failed:
        project.up()
    for part in ("publicAccessCidrs", "us-east-2c", "v1.3.0-eksbuild.1", "threshold", "fix:"):
        assert part in failed.value.message
    assert "Traceback" not in failed.value.message
    assert not made(project.account)


def test_an_adopted_operator_is_read_and_not_made(engine: MakeProject) -> None:
    account = SimulatedAccount(operator_preinstalled=True)
    project = engine(program, account=account, config=config({"operator.adopt": True}))
    project.up()
    made_here = [resource["urn"].rsplit("::", 1)[-1] for resource in project.state]
    assert "inference-operator-addon" not in made_here
    assert "llama-70b" in made_here
    assert project.up().changes == 0


def made(account: SimulatedAccount) -> Counter[str]:
    """How many things of each type the account holds."""
    return Counter(resource.type for resource in account)


def urns(project: EngineProject) -> list[str]:
    """Everything in the engine's state."""
    return sorted(resource["urn"] for resource in project.state)


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_the_shipped_stacks_come_up_and_a_second_up_changes_nothing(engine: MakeProject, name: str) -> None:
    text = Path(REPOSITORY / "stacks" / f"Pulumi.{name}.yaml").read_text(encoding="utf-8")
    project = engine(program, config=yaml.safe_load(text)["config"])
    endpoints = project.up().outputs["endpoints"]
    assert set(endpoints) == set(project.config["dpd-infra:endpoints"])
    assert project.up().changes == 0
