"""A stack is taken down in the documented order; what can stand in the way ends in an explained failure with the way out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON
from dpd_infra.rehearsal.drill import Scratch, scratch
from dpd_infra.rehearsal.explanations import DEAD_CLUSTER, EXPLANATIONS, FINALIZER, LEFTOVER, PROTECTED, Explanation, explain
from dpd_infra.rehearsal.runner import Session, failure_message
from dpd_infra.rehearsal.world.made import LOAD_BALANCER
from tests.conftest import ROOT
from tests.engine.drills import copy_of_stacks, rehearsal_of
from tests.engine.harness import pulumi_cli


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The dev stack, up and without protection."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)
    rehearsal = rehearsal_of(copy_of_stacks(tmp_path_factory.mktemp("down"), protect=False), "dev")
    rehearsal.up()
    with rehearsal.session() as session:
        yield session
    patch.undo()


@pytest.fixture
def stack(session: Session) -> Iterator[Scratch]:
    with scratch(session, empty=False) as stack:
        yield stack


def test_everything_goes_in_the_documented_order_and_nothing_is_left(stack: Scratch) -> None:
    assert stack.run("destroy").error is None
    gone = [operation.type for operation in stack.account.journal]
    names = [operation.id for operation in stack.account.journal]
    # The deletion order of the add-on troubleshooting guide, and the reverse of the setup guide.
    order = [
        next(index for index, kind in enumerate(gone) if kind.endswith("InferenceEndpointConfig")),
        next(index for index, name in enumerate(names) if name.endswith(OPERATOR_ADDON)),
        next(index for index, name in enumerate(names) if name.endswith(":cert-manager")),
        gone.index(base.HYPERPOD_CLUSTER),
        gone.index(base.CLUSTER),
        gone.index(base.VPC),
    ]
    assert order == sorted(order)
    assert [item for item in stack.account if item.urn] == []


def test_a_custom_resource_whose_operator_is_gone_does_not_hang_and_is_explained(stack: Scratch) -> None:
    [operator] = stack.account.all(base.ADDON, addonName=OPERATOR_ADDON)
    stack.account.remove(operator)
    outcome = stack.run("destroy")
    assert outcome.error is not None
    assert {step.type.rsplit(":", 1)[-1] for step in outcome.failed} == {"InferenceEndpointConfig"}
    assert explain(failure_message(outcome), outcome, stack.engine) == FINALIZER


def test_what_a_controller_left_in_the_network_is_explained(stack: Scratch) -> None:
    [balancer] = stack.account.all(LOAD_BALANCER)
    # Made for an endpoint that no program knows.
    balancer.outputs["madeFor"] = "default/by-hand"
    outcome = stack.run("destroy")
    assert outcome.error is not None
    assert explain(failure_message(outcome), outcome, stack.engine) == LEFTOVER


def test_a_dead_cluster_is_explained(stack: Scratch) -> None:
    [cluster] = stack.account.all(base.CLUSTER)
    stack.account.remove(cluster)
    outcome = stack.run("destroy")
    assert outcome.error is not None
    assert explain(failure_message(outcome), outcome, stack.engine) == DEAD_CLUSTER


def test_a_protected_stack_is_refused_before_anything_goes_and_both_steps_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)
    rehearsal = rehearsal_of(copy_of_stacks(tmp_path), "dev")
    rehearsal.up()
    with rehearsal.session() as session, scratch(session, empty=False) as stack:
        before = stack.made()
        outcome = stack.run("preview-destroy")
        assert outcome.error is not None
        found = explain(failure_message(outcome), outcome, stack.engine)
        assert found == PROTECTED
        assert stack.made() == before
    told = " ".join(PROTECTED.way_out)
    assert all(word in told for word in ("controlPlane: {protect: false", "cluster: {protect: false}", "$ pulumi up", "$ pulumi destroy"))


@pytest.mark.parametrize("explanation", EXPLANATIONS, ids=lambda item: item.symptom)
def test_the_page_has_every_explanation_with_its_commands(explanation: Explanation) -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert f"## {explanation.symptom}\n" in page
    for step in explanation.way_out:
        if step.startswith("$ "):
            assert step[2:] in page
