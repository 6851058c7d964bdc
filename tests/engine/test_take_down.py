"""Every stack is taken down in the documented order; what can stand in the way ends in an explained failure with the way out.

The dev stack here, and prod's order; with `FAULTS=all` (`make faults`) every stack of the repository and of its examples. The order in
which the examples go is in test_examples.py too.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON
from dpd_infra.rehearsal.aws.storage import WRITTEN_BY_AWS
from dpd_infra.rehearsal.drill import Scratch, scratch
from dpd_infra.rehearsal.explanations import (
    BUCKET,
    DEAD_CLUSTER,
    EXPLANATIONS,
    FINALIZER,
    LEFTOVER,
    PROTECTED,
    Explanation,
    explain,
)
from dpd_infra.rehearsal.runner import Session, failure_message
from dpd_infra.rehearsal.world.made import LOAD_BALANCER
from tests.conftest import ROOT
from tests.engine.drills import copy_of_stacks, rehearsal_of
from tests.engine.harness import pulumi_cli
from tests.engine.test_examples import World, needs_platform, platform_alone


@dataclass(frozen=True)
class Target:
    """One stack of the repository: its program's folder, and its file."""

    project: Path
    file: Path

    @property
    def stack(self) -> str:
        """Its name."""
        return self.file.stem.removeprefix("Pulumi.")

    @property
    def name(self) -> str:
        """What the test calls it."""
        return self.stack if self.project == ROOT else f"{self.project.name}-{self.stack}"


def targets() -> list[Target]:
    """Every stack file beside a program, as Pulumi finds them: a new one is here without being named."""
    found = []
    for file in sorted([ROOT / "Pulumi.yaml", *(ROOT / "examples").rglob("Pulumi.yaml")]):
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        folder = file.parent / settings.get("stackConfigDir", "")
        found += [Target(file.parent, stack) for stack in sorted(folder.glob("Pulumi.*.yaml"))]
    return found


EVERY = targets()
RELEASE = "kubernetes:helm.sh/v3:Release"
PLATFORM_KEYS = {"controlPlane": {"protect": False, "deletionProtection": False}, "cluster": {"protect": False}}
"""Step 1 of the page: what it says to write into the stack file."""


def unprotect(project: Path, file: Path) -> None:
    """Step 1 of the page; where the program makes the pieces itself, in their specs."""
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    platform = settings["config"].get("dpd-infra:platform")
    if platform is not None:
        for section, keys in PLATFORM_KEYS.items():
            platform[section] = platform.get(section, {}) | keys
        if "modelStore" in platform:
            platform["modelStore"]["protect"] = False
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return
    program = project / "__main__.py"
    text = program.read_text(encoding="utf-8")
    program.write_text(text.replace("dpd.ClusterSpec(", "dpd.ClusterSpec(protect=False, "), encoding="utf-8")


@dataclass(frozen=True)
class Down:
    """A stack that is up and may be taken down."""

    session: Session
    refused: str
    """What a destroy was refused with while the stack was as its file has it; empty where nothing of it is protected."""
    explanation: Explanation | None
    untouched: bool
    """Whether that left everything as it was."""
    protected: bool
    """Whether something of it was protected."""


def marked(*names: str) -> list[object]:
    """Every stack; those that are not named only with FAULTS=all."""
    return [pytest.param(target, id=target.name, marks=() if target.name in names else pytest.mark.faults) for target in EVERY]


@pytest.fixture(scope="module")
def down(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Down]:
    target: Target = request.param
    into = tmp_path_factory.mktemp(target.name)
    patch = pytest.MonkeyPatch()
    patch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)
    world = World(into)
    if target.project == ROOT:
        project = copy_of_stacks(into)
    else:
        if needs_platform(target.project):
            world.rehearsal(platform_alone(into)).up()
        project = Path(shutil.copytree(target.project, into / target.project.name, ignore=shutil.ignore_patterns(".dpd", "__pycache__")))
    rehearsal = world.rehearsal(project, target.stack)
    rehearsal.up()
    with rehearsal.session() as session, scratch(session, empty=False) as one:
        protected = any(item.get("protect") for item in one.checkpoint.resources)
        before = one.made()
        outcome = one.run("preview-destroy")
        refused = failure_message(outcome) if outcome.error is not None else ""
        explanation, untouched = explain(refused, outcome, one.engine), one.made() == before
    if protected:
        unprotect(project, project / target.file.relative_to(target.project))
        rehearsal.up()
    with rehearsal.session() as session:
        yield Down(session, refused, explanation, untouched, protected)
    patch.undo()


@pytest.fixture
def stack(down: Down) -> Iterator[Scratch]:
    with scratch(down.session, empty=False) as stack:
        yield stack


def stage(kind: str, name: str) -> int | None:
    """Where a resource stands in the order of the add-on troubleshooting guide, and of the setup guide in reverse."""
    if kind.endswith("InferenceEndpointConfig"):
        return 0
    if kind == base.ADDON:
        return {OPERATOR_ADDON: 1, "cert-manager": 2}.get(name.rsplit(":", 1)[-1])
    return {base.HYPERPOD_CLUSTER: 3, base.CLUSTER: 4, base.VPC: 5}.get(kind)


def has_network(stack: Scratch) -> bool:
    """Whether the network is the stack's own, which goes with it."""
    return any(item["type"] == base.VPC for item in stack.checkpoint.resources)


def delete_what_is_left(stack: Scratch) -> None:
    """The way out of a leftover: what controllers made is deleted by hand."""
    for item in stack.account:
        if not item.urn and item.type not in {WRITTEN_BY_AWS, base.CLUSTER}:
            stack.account.remove(item)


def test_both_stacks_and_every_example_are_here() -> None:
    assert {target.name for target in EVERY} >= {"dev", "prod"}
    assert {target.project for target in EVERY} == {ROOT, *(file.parent for file in (ROOT / "examples").glob("*/__main__.py"))}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("down", marked("dev", "prod"), indirect=True)
def test_it_goes_in_the_documented_order_and_nothing_is_left(stack: Scratch) -> None:
    own = {item["urn"] for item in stack.checkpoint.resources}
    assert stack.run("destroy").error is None
    stages = [at for operation in stack.account.journal if (at := stage(operation.type, operation.id)) is not None]
    assert stages
    assert stages == sorted(stages)
    assert [item for item in stack.account if item.urn in own] == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("down", marked("dev", "prod"), indirect=True)
def test_protected_it_is_refused_before_anything_goes_and_the_two_steps_lead_out(down: Down) -> None:
    if not down.protected:
        assert down.refused == ""
        return
    assert down.explanation is not None
    assert down.explanation.anchor == PROTECTED.anchor
    assert down.untouched
    # Step 1 was taken by the fixture and changed nothing else; step 2 is the destroy of the other tests.
    assert [item["urn"] for item in down.session.engine.checkpoint.resources if item.get("protect")] == []


def test_the_two_steps_are_named() -> None:
    told = " ".join(PROTECTED.way_out)
    keys = ("`controlPlane: {protect: false, deletionProtection: false}`", "`cluster: {protect: false}`", "`modelStore: {protect: false}`")
    assert all(word in told for word in (*keys, "$ pulumi up", "$ pulumi destroy"))
    assert told.index("$ pulumi up") < told.index("$ pulumi destroy")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("down", marked("dev"), indirect=True)
def test_a_custom_resource_whose_operator_is_gone_does_not_hang_and_is_explained(stack: Scratch) -> None:
    [operator] = stack.account.all(base.ADDON, addonName=OPERATOR_ADDON)
    stack.account.remove(operator)
    outcome = stack.run("destroy")
    assert outcome.error is not None
    assert {step.type.rsplit(":", 1)[-1] for step in outcome.failed} == {"InferenceEndpointConfig"}
    assert explain(failure_message(outcome), outcome, stack.engine) == FINALIZER
    # The first way out: the operator comes back, and the destroy goes on.
    stack.account.add(operator)
    assert stack.run("destroy").error is None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("down", marked("dev"), indirect=True)
def test_what_a_controller_left_in_the_network_is_explained(stack: Scratch) -> None:
    balancer = stack.account.all(LOAD_BALANCER)[0]
    # Made for an endpoint that no program knows.
    balancer.outputs["madeFor"] = "default/by-hand"
    outcome = stack.run("destroy")
    if not has_network(stack):
        assert outcome.error is None, "another stack's network keeps it"
        return
    assert outcome.error is not None
    assert explain(failure_message(outcome), outcome, stack.engine) == LEFTOVER
    delete_what_is_left(stack)
    assert stack.run("destroy").error is None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("refreshes", [False, True])
@pytest.mark.parametrize("down", marked("dev"), indirect=True)
def test_a_dead_cluster_is_explained_and_the_commands_lead_out(stack: Scratch, monkeypatch: pytest.MonkeyPatch, *, refreshes: bool) -> None:
    [cluster] = stack.account.all(base.CLUSTER)
    stack.account.remove(cluster)
    outcome = stack.run("destroy")
    assert outcome.error is not None
    assert explain(failure_message(outcome), outcome, stack.engine) == DEAD_CLUSTER
    # The ways out, as the page has them: a destroy alone, and a refresh before it.
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    assert [step for step in DEAD_CLUSTER.way_out if step.startswith("$ ")] == [
        "$ PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy",
        "$ PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh",
    ]
    own = {item["urn"] for item in stack.checkpoint.resources}
    if refreshes:
        assert stack.run("refresh").error is None
    outcome = stack.run("destroy")
    if any(item["type"] == RELEASE and not item.get("deletedWith") for item in stack.checkpoint.resources):
        assert all(item["type"] != base.CLUSTER for item in stack.checkpoint.resources), "a cluster made here takes its releases along"
        assert explain(failure_message(outcome), outcome, stack.engine) == DEAD_CLUSTER
        return
    if has_network(stack):
        # Nobody was left to take the load balancer down.
        assert explain(failure_message(outcome), outcome, stack.engine) == LEFTOVER
        delete_what_is_left(stack)
        outcome = stack.run("destroy")
    assert outcome.error is None
    assert [item for item in stack.account if item.urn in own and not item.cluster] == []


@pytest.mark.timeout(300)
def test_a_model_store_is_protected_then_not_empty_and_both_are_explained_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)
    project = copy_of_stacks(tmp_path)
    file = project / "stacks" / "Pulumi.dev.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    model = {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "revision": "6f6073b423013f6a7d4d9f39144961bfbfbc386b"}
    settings["config"]["dpd-infra:platform"] |= {"modelStore": {"models": {"llama": model}}} | {
        section: settings["config"]["dpd-infra:platform"].get(section, {}) | keys for section, keys in PLATFORM_KEYS.items()
    }
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    rehearsal = rehearsal_of(project, "dev")
    rehearsal.up()
    [bucket] = [item for item in rehearsal.account or () if item.type == base.BUCKET and item.urn.endswith("-store-models")]
    with rehearsal.session() as session, scratch(session, empty=False) as stack:
        outcome = stack.run("preview-destroy")
        assert "inference-store-models (aws:s3/bucket:Bucket)" in failure_message(outcome)
        told = explain(failure_message(outcome), outcome, stack.engine)
        assert told is not None
        # The clusters are not protected any more: there is nothing to write for them.
        assert [word for word in ("controlPlane:", "cluster:", "modelStore:") if word in " ".join(told.way_out)] == ["modelStore:"]
    unprotect(project, file)
    rehearsal.up()
    with rehearsal.session() as session, scratch(session, empty=False) as stack:
        held = Resource(WRITTEN_BY_AWS, f"{bucket.id}/llama/config.json", {}, {"bucket": bucket.id})
        stack.account.add(held)
        outcome = stack.run("destroy")
        assert outcome.error is not None
        assert explain(failure_message(outcome), outcome, stack.engine) == BUCKET
        keeps = [shlex.split(step.removeprefix("$ pulumi ")) for step in BUCKET.way_out if step.startswith("$ pulumi state delete")]
        urn = next(item["urn"] for item in stack.checkpoint.resources if item.get("id") == bucket.id)
        for words in keeps:
            stack.engine.command(*(word.replace("URN-OF-THE-BUCKET", urn) for word in words), "--yes")
        assert stack.run("destroy").error is None
        assert [item.id for item in stack.account if item.urn] == [bucket.id]


@pytest.mark.parametrize("explanation", EXPLANATIONS, ids=lambda item: item.symptom)
def test_the_page_has_every_explanation_with_its_commands(explanation: Explanation) -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert f"## {explanation.symptom}\n" in page
    for step in explanation.way_out:
        if step.startswith("$ "):
            assert step[2:] in page
