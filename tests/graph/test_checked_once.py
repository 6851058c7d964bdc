"""What the check of a whole stack accepted is not rendered and checked again by its components; anything else is."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpd_infra as dpd
from dpd_infra.components import endpoint as endpoint_component
from dpd_infra.plan.project import Project, use_project
from dpd_infra.rules import accepted as accepted_module
from dpd_infra.rules import parts
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.testing import Recording, run_program
from tests.conftest import ROOT

DEV = ROOT / "stacks" / "Pulumi.dev.yaml"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The endpoints that a component checked by itself."""
    seen: list[str] = []
    check = endpoint_component.check_endpoint

    def watched(subject: Any) -> Any:
        seen.append(subject.name)
        return check(subject)

    monkeypatch.setattr(endpoint_component, "check_endpoint", watched)
    return seen


def make(stack: dpd.StackSpec, endpoints: dict[str, Any], **operator: Any) -> Recording:
    def program() -> None:
        assert stack.platform is not None
        with use_project(Project(root=ROOT, chart_required=False)):
            platform = dpd.Platform("inference", stack.platform, aws_settings=stack.aws)
        handle = platform.operator
        if operator:
            handle = type(handle)(
                OperatorFacts(**operator),
                handle.addon_version,
                handle.kubernetes_provider,
                handle.cluster_name,
                handle.region,
                handle.resources,
            )
        for name, spec in endpoints.items():
            dpd.Endpoint(name, spec, operator=handle)

    return run_program(program)


def manifest(recording: Recording) -> dict[str, Any]:
    return recording.one("InferenceEndpointConfig").inputs["spec"]


def test_an_endpoint_of_a_checked_stack_is_not_checked_again(checks: list[str]) -> None:
    stack = dpd.StackSpec.from_file(DEV)
    recording = make(stack, dict(stack.endpoints))
    assert checks == []
    assert manifest(recording) == stack.manifest("llama-70b").document["spec"]


def test_the_same_endpoint_written_anew_is_checked_and_comes_out_the_same(checks: list[str]) -> None:
    stack = dpd.StackSpec.from_file(DEV)
    twin = stack.endpoints["llama-70b"].model_copy()
    assert manifest(make(stack, {"llama-70b": twin})) == stack.manifest("llama-70b").document["spec"]
    assert checks == ["llama-70b"]


def test_another_name_or_another_operator_is_checked(checks: list[str]) -> None:
    stack = dpd.StackSpec.from_file(DEV)
    spec = stack.endpoints["llama-70b"]
    assert make(stack, {"other": spec}).one("InferenceEndpointConfig").inputs["metadata"]["name"] == "other"
    make(stack, {"llama-70b": spec}, addon_version="v1.3.0-eksbuild.1")
    assert checks == ["other", "llama-70b"]


def test_warnings_of_a_file_are_still_told_by_the_component(tmp_path: Path, checks: list[str]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    text = DEV.read_text(encoding="utf-8").replace("prefill: {replicas: 1}", "prefill: {replicas: 2}")
    file.write_text(text.replace("{instanceType: ml.p5.48xlarge, count: 2}", "{instanceType: ml.p5.48xlarge, count: 4}"), encoding="utf-8")
    stack = dpd.StackSpec.from_file(file)
    recording = make(stack, dict(stack.endpoints))
    # The DPD guide: several prefillers want roundrobin.
    assert [warning for warning in recording.warnings() if "DPD302" in warning]
    assert checks == []


def test_a_spec_that_is_gone_is_forgotten() -> None:
    stack = dpd.StackSpec.from_file(DEV)
    key = id(stack.endpoints["llama-70b"])
    assert key in accepted_module._ACCEPTED
    del stack
    gc.collect()
    assert key not in accepted_module._ACCEPTED


def test_the_parts_of_a_checked_platform_are_not_checked_again_and_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    check = parts.check

    def watched(subject: Any) -> Any:
        runs.append(subject)
        return check(subject)

    monkeypatch.setattr(parts, "check", watched)
    stack = dpd.StackSpec.from_file(DEV)
    make(stack, {})
    assert runs == []
    assert parts.check_part(region="us-east-2", network=dpd.NetworkSpec(zone="us-west-2a"))
    assert len(runs) == 1


def test_a_component_may_have_attributes_whose_types_are_known_to_type_checkers_alone() -> None:
    """In a process of its own: other tests look at every component there is."""
    program = """
from __future__ import annotations
from dpd_infra.components._base import Component
from dpd_infra.testing import run_program

class Odd(Component):
    token = "dpd:index:Odd"
    made: OnlyForTypeCheckers

    def __init__(self, name):
        super().__init__(name, {"made": "yes"}, None)
        self.register_outputs({})

for preview in (True, False):
    print(run_program(lambda: Odd("odd"), preview=preview).one("Odd").inputs)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "{'made': 'yes'}\n" * 2, done.stderr
