"""The test kit's recording of a project is what the real engine gets of it: each URN with its parent, options, wiring and plain inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.rehearsal import Rehearsal
from dpd_infra.rehearsal.account import ACCOUNT_ID
from dpd_infra.testing import Answers, Recorded, run_project
from tests.conftest import ROOT

STACK = "pulumi:pulumi:Stack"


@dataclass(frozen=True)
class Rehearsed(Answers):
    """The kit's answers for whom the rehearsal says deploys: names of access entries follow from it."""

    @property
    def deployer_role_arn(self) -> str:
        return self.arn("iam", "role/rehearsal-deployer", region="")


def seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def provider(reference: str) -> str:
    return reference.rsplit("::", 1)[0] if reference else ""


def parent(urn: str) -> str:
    return "" if f"::{STACK}::" in urn else urn


def wiring(found: Any) -> dict[str, set[str]]:
    return {key: set(urns) for key, urns in (found or {}).items() if urns}


def of_the_kit(resource: Recorded) -> dict[str, Any]:
    return {
        "parent": resource.parent,
        "custom": resource.custom,
        "protect": bool(resource.protect),
        "provider": resource.provider,
        "dependencies": set(resource.dependencies),
        "propertyDependencies": wiring(resource.property_dependencies),
        "customTimeouts": {key: seconds(text) for key, text in resource.timeouts.items()},
        "deletedWith": resource.deleted_with,
        "additionalSecretOutputs": set(resource.additional_secret_outputs),
        "ignoreChanges": set(resource.ignore_changes),
        "replaceOnChanges": set(resource.replace_on_changes),
    }


def of_the_engine(state: dict[str, Any]) -> dict[str, Any]:
    """The same of a state, which keeps everything but aliases."""
    return {
        "parent": parent(state.get("parent", "")),
        "custom": state["custom"],
        "protect": state.get("protect", False),
        "provider": provider(state.get("provider", "")),
        "dependencies": set(state.get("dependencies") or ()),
        "propertyDependencies": wiring(state.get("propertyDependencies")),
        "customTimeouts": {key: value for key, value in (state.get("customTimeouts") or {}).items() if value},
        "deletedWith": state.get("deletedWith", ""),
        "additionalSecretOutputs": set(state.get("additionalSecretOutputs") or ()),
        "ignoreChanges": set(state.get("ignoreChanges") or ()),
        "replaceOnChanges": set(state.get("replaceOnChanges") or ()),
    }


def plain_inputs(resource: Recorded) -> dict[str, Any]:
    """Inputs that come from no other resource: no id of the account is in them."""
    secret = {path.partition(".")[0].partition("[")[0] for path in resource.secrets}
    return {key: value for key, value in resource.inputs.items() if key not in secret and not resource.property_dependencies.get(key)}


@pytest.mark.parametrize(
    ("project", "stack"),
    [(ROOT, "dev"), (ROOT, "prod"), (ROOT / "examples" / "llama_70b_two_p5", "dev"), (ROOT / "examples" / "own_tests", "dev")],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_what_is_recorded_is_what_the_engine_gets(project: Path, stack: str, tmp_path: Path) -> None:
    Rehearsal(project, stack, state_dir=tmp_path).up()
    (file,) = (path for path in tmp_path.rglob(f"{stack}.json") if path.parent.parent.name == "stacks")
    states = json.loads(file.read_text(encoding="utf-8"))["checkpoint"]["latest"]["resources"]
    region = next(state["inputs"]["region"] for state in states if state["type"] == "pulumi:providers:aws")
    engine = {state["urn"]: state for state in states if state["type"] != STACK}

    recording = run_project(stack, project, answers=Rehearsed(account_id=ACCOUNT_ID, region=region))

    assert {resource.urn for resource in recording} == set(engine)
    for resource in recording:
        state = engine[resource.urn]
        assert of_the_kit(resource) == of_the_engine(state), resource
        if not resource.type.startswith("pulumi:providers:"):
            given = state.get("inputs", {})
            assert {key: given.get(key) for key in plain_inputs(resource)} == plain_inputs(resource), resource
