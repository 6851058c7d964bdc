"""A create that fails is no loss: the next up converges, with nothing made twice and nothing lost.

Here one resource of each type of the dev stack; `make faults` fails every resource of both stacks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.drill import scratch, unrest
from dpd_infra.rehearsal.engine import Step
from dpd_infra.rehearsal.fail_each import fail_each
from dpd_infra.rehearsal.faults import Trial, failures, matching
from dpd_infra.rehearsal.runner import failure_message
from dpd_infra.rehearsal.urn import type_of
from tests.engine.drills import copy_of_stacks, rehearsal_of
from tests.engine.harness import pulumi_cli


@pytest.fixture(autouse=True)
def _cli_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)


@pytest.mark.timeout(300)
def test_one_resource_of_each_type_fails_on_the_way_up_and_nothing_is_made_twice_or_lost(tmp_path: Path) -> None:
    project = copy_of_stacks(tmp_path)
    whole = rehearsal_of(project, "dev")
    # As the command does: a stack that was only previewed has an empty state.
    whole.preview()
    with whole.session() as session, scratch(session, empty=True) as one, scratch(session, empty=True) as other:
        assert one.run().error is None
        chosen = {type_of(item.urn): item.urn for item in one.account.journal}
        assert len(chosen) >= 28
        other.account.failures += [failure for failure in failures(chosen.values(), times=1) if failure.action == "create"]
        failed: set[str] = set()
        # Each up is the next one after the fault before it, until none is left.
        while (outcome := other.run()).error is not None:
            struck = {step.urn for step in outcome.failed} & set(chosen.values())
            assert struck - failed, failure_message(outcome)
            failed |= struck
        assert failed == set(chosen.values())
        assert unrest(other, one.made(), one.known()) == ()
        creates = Counter(item.urn for item in other.account.journal)
        assert set(creates.values()) == {1}
        assert other.run().counts == Counter({"same": len(one.known())})


@pytest.mark.timeout(300)
def test_a_cluster_that_was_made_without_an_answer_is_imported_by_the_printed_command(tmp_path: Path) -> None:
    def chosen(urns: Iterable[str]) -> list[str]:
        return [urn for urn in urns if type_of(urn) == base.HYPERPOD_CLUSTER]

    trials = fail_each(rehearsal_of(copy_of_stacks(tmp_path), "dev"), choose=chosen)
    assert [(trial.type, trial.fault) for trial in trials] == [
        (base.HYPERPOD_CLUSTER, "refused"),
        (base.HYPERPOD_CLUSTER, "went on"),
    ]
    assert [f"{trial.name} {trial.fault}: {trial.problems}" for trial in trials if not trial.ok] == []
    assert all(trial.created > 0 for trial in trials)
    assert all(trial.name in trial.message for trial in trials)
    check_the_exception(trials)


def check_the_exception(trials: list[Trial]) -> None:
    # pulumi-aws-native, provider.go: without an identifier nothing is in the state, and AWS may still be creating.
    helped = [trial for trial in trials if trial.explanation is not None]
    assert [(trial.type, trial.fault) for trial in helped] == [(base.HYPERPOD_CLUSTER, "went on")]
    assert helped[0].explanation is not None
    commands = [step for step in helped[0].explanation.way_out if step.startswith("$ ")]
    assert commands[0].startswith(
        f"$ pulumi import aws-native:sagemaker:Cluster {helped[0].name} arn:aws:sagemaker:us-east-2:123456789012:cluster/"
    )
    assert "--parent" in commands[0]
    assert "--provider" in commands[0]
    assert commands[1] == "$ pulumi up"


STEPS = [
    Step("aws:ec2/subnet:Subnet", "net-gpu", "urn:pulumi:dev::shop::aws:ec2/subnet:Subnet::net-gpu", "create"),
    Step("aws:ec2/subnet:Subnet", "net-eks", "urn:pulumi:dev::shop::aws:ec2/subnet:Subnet::net-eks", "create"),
    Step("aws:ec2/vpc:Vpc", "net", "urn:pulumi:dev::shop::aws:ec2/vpc:Vpc::net", "create"),
    Step("dpd:index:Network", "net", "urn:pulumi:dev::shop::dpd:index:Network::net", "create"),
    Step("pulumi:pulumi:Stack", "shop-dev", "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev", "create"),
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("net-gpu", ["net-gpu"]),
        ("net", ["net"]),
        ("aws:ec2/subnet:Subnet", ["net-gpu", "net-eks"]),
        ("Subnet", ["net-gpu", "net-eks"]),
        ("net-*", ["net-gpu", "net-eks"]),
        ("Network", []),
        ("shop-dev", []),
        ("nothing", []),
    ],
)
def test_a_name_a_type_and_a_pattern_mean_what_a_service_makes(wanted: str, found: list[str]) -> None:
    assert [step.name for step in matching(STEPS, wanted)] == found


def test_a_fault_strikes_its_own_resource_and_no_other() -> None:
    urn = "urn:pulumi:dev::shop::aws:ec2/subnet:Subnet::net-[a]"
    made = failures([urn], times=1)
    assert [failure.action for failure in made] == ["create", "update", "delete"]
    assert not made[0].strikes("create", "aws:ec2/subnet:Subnet", urn.replace("[a]", "a"))
    assert made[0].strikes("create", "aws:ec2/subnet:Subnet", urn)
    assert not made[0].strikes("create", "aws:ec2/subnet:Subnet", urn), "once means once"
