"""Every example on the engine: up, a second up that changes nothing, destroy, and a snapshot of its graph that is reviewed like code.

`UPDATE_SNAPSHOTS=1` writes the snapshots anew.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpd_infra.catalog.addons import NODE_ADDONS
from dpd_infra.rehearsal import Rehearsal, RehearsalFailed, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.addons import OPERATOR_ADDON
from dpd_infra.rehearsal.aws.storage import WRITTEN_BY_AWS
from dpd_infra.rehearsal.engine import STACK_TYPE
from tests.engine.harness import REPOSITORY, pulumi_cli

SNAPSHOTS = Path(__file__).with_name("snapshots")
EXAMPLES = sorted(path.parent for path in (REPOSITORY / "examples").glob("*/Pulumi.yaml"))
STACK = "dev"


def needs_platform(example: Path) -> bool:
    """Whether the platform is another stack's: that of the repository's own program."""
    return "platformStack" in (example / f"Pulumi.{STACK}.yaml").read_text(encoding="utf-8")


def platform_alone(into: Path) -> Path:
    """The repository's own program and its dev stack, whose GPUs are left to endpoints of other stacks."""
    folder = into / "platform"
    shutil.copytree(REPOSITORY / "stacks", folder / "stacks")
    shutil.copy(REPOSITORY / "Pulumi.yaml", folder)
    file = folder / "stacks" / f"Pulumi.{STACK}.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    del settings["config"]["dpd-infra:endpoints"]
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def _cli_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    # An example is run from a copy, from where `.tools` is not found.
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=os.pathsep)


class World:
    """One backend and one account, for an example and the platform it may stand on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.account = SimulatedAccount()

    def rehearsal(self, project: Path, stack: str = STACK) -> Rehearsal:
        return Rehearsal(project, stack, state_dir=self.folder / "state", account=self.account)

    def unprotect(self, project: Path) -> None:
        """What a user does before a destroy: take the protection off, in the stack file where it is said and in the state."""
        file = project / f"Pulumi.{STACK}.yaml"
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        platform = settings["config"].get("dpd-infra:platform")
        if platform is not None:
            platform.setdefault("cluster", {})["protect"] = False
            platform["controlPlane"] |= {"protect": False, "deletionProtection": False}
            file.write_text(yaml.safe_dump(settings), encoding="utf-8")
            self.rehearsal(project).up()
            return
        state = self.state_file(project)
        checkpoint = json.loads(state.read_text(encoding="utf-8"))
        for resource in checkpoint["checkpoint"]["latest"]["resources"]:
            resource.pop("protect", None)
        state.write_text(json.dumps(checkpoint), encoding="utf-8")

    def kept(self) -> set[tuple[str, str]]:
        """What exists in the account, but for what a service wrote into a bucket: an endpoint's certificate stays with the platform's."""
        return {(item.type, item.id) for item in self.account if item.type != WRITTEN_BY_AWS}

    def state(self, project: Path) -> list[dict[str, Any]]:
        return json.loads(self.state_file(project).read_text(encoding="utf-8"))["checkpoint"]["latest"].get("resources") or []

    def state_file(self, project: Path) -> Path:
        name = yaml.safe_load((project / "Pulumi.yaml").read_text(encoding="utf-8"))["name"]
        return self.folder / "state" / "backend" / ".pulumi" / "stacks" / name / f"{STACK}.json"


def graph(state: Iterable[Mapping[str, Any]]) -> str:
    """The graph as text: each resource below its parent, with what it waits for; ids and values left out."""
    resources = [
        item for item in state if not item["type"].startswith("pulumi:providers:") or item["urn"].rsplit("::", 1)[-1][:7] != "default"
    ]
    urns = {item["urn"] for item in resources}
    lines: list[str] = []

    def label(urn: str) -> str:
        return f"{urn.rsplit('::', 1)[-1]} ({urn.split('::')[2].rsplit('$', 1)[-1]})"

    def write(parent: str, depth: int) -> None:
        for item in sorted((one for one in resources if one.get("parent", "") == parent), key=lambda one: label(one["urn"])):
            if item["type"] == STACK_TYPE:
                write(item["urn"], depth)
                continue
            marks = [mark for mark in ("protect", "external", "retainOnDelete") if item.get(mark)]
            lines.append(f"{'  ' * depth}{label(item['urn'])}{''.join(f' [{mark}]' for mark in marks)}")
            waits = {*item.get("dependencies", []), *(urn for urns_ in item.get("propertyDependencies", {}).values() for urn in urns_)}
            lines.extend(f"{'  ' * depth}    after {label(urn)}" for urn in sorted(waits & urns, key=label))
            write(item["urn"], depth + 1)

    write("", 0)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_comes_up_stays_and_goes(example: Path, tmp_path: Path) -> None:
    world = World(tmp_path)
    if needs_platform(example):
        world.rehearsal(platform_alone(tmp_path)).up()
    before = world.kept()
    example = Path(shutil.copytree(example, tmp_path / example.name, ignore=shutil.ignore_patterns(".dpd", "__pycache__")))
    rehearsal = world.rehearsal(example)
    rehearsal.preview()
    assert rehearsal.up().created > 0
    assert rehearsal.up().changes == 0

    snapshot = SNAPSHOTS / f"{example.name}.txt"
    found = graph(world.state(example))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(found, encoding="utf-8")
    assert found == snapshot.read_text(encoding="utf-8"), (
        f"the graph of {example.name} changed: review it, and write it with UPDATE_SNAPSHOTS=1"
    )

    world.unprotect(example)
    begun = len(world.account.journal)
    rehearsal.destroy()
    assert world.kept() == before
    gone = [_stage(operation.type, operation.id) for operation in world.account.journal[begun:]]
    stages = [stage for stage in gone if stage is not None]
    assert stages == sorted(stages), "custom resources, operator, other add-ons with pods, nodes, control plane, network"


def _stage(kind: str, name: str) -> int | None:
    """Where a resource stands in the documented order of deletion (HyperPod add-on troubleshooting; the setup guide in reverse)."""
    if kind.endswith("InferenceEndpointConfig"):
        return 0
    if kind == base.ADDON and name.rsplit(":", 1)[-1] == OPERATOR_ADDON:
        return 1
    if kind == base.ADDON and name.rsplit(":", 1)[-1] in {addon.name for addon in NODE_ADDONS}:
        return 2
    return {base.HYPERPOD_CLUSTER: 3, base.CLUSTER: 4, base.VPC: 5}.get(kind)


def test_no_snapshot_is_left_of_an_example_that_is_gone() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == {example.name for example in EXAMPLES}


def test_endpoints_on_a_platform_that_is_not_up_say_which_stack_and_keys(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(RehearsalFailed) as failed:
        world.rehearsal(REPOSITORY / "examples" / "endpoints_only").up()
    assert "organization/dpd-infra/dev" in failed.value.message
