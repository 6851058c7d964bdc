"""A whole component can be exported, as any resource of Pulumi: what is no output of it, its handle for one, is not in the way."""

from __future__ import annotations

from types import MemberDescriptorType
from typing import Any

import pulumi
import pytest

import dpd_infra as dpd
from dpd_infra.components._base import Component
from dpd_infra.components.gpu_subnet import GpuSubnet
from dpd_infra.plan.project import Project, use_project
from tests.graph.recorder import run_program
from tests.graph.test_frozen_names import all_components
from tests.graph.test_ordering import ROOT

MODEL = {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "revision": "6f6073b423013f6a7d4d9f39144961bfbfbc386b"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Component]:
    """Every component that a program makes, by its class."""
    found: dict[str, Component] = {}
    begin = Component.__init__

    def kept(self: Component, *arguments: Any, **more: Any) -> None:
        begin(self, *arguments, **more)
        found[type(self).__name__] = self

    monkeypatch.setattr(Component, "__init__", kept)
    return found


def test_components_are_exported_whole(made: dict[str, Component], preview: bool) -> None:
    stack = dpd.StackSpec.from_file(ROOT / "stacks" / "Pulumi.dev.yaml")
    assert stack.platform is not None
    more = {"teams": {"search": {}}, "modelStore": {"models": {"llama": MODEL}}}
    spec = dpd.PlatformSpec.from_yaml_data(stack.platform.to_yaml_data() | more)

    def program() -> None:
        with use_project(Project(root=ROOT, chart_required=False)):
            platform = dpd.Platform("inference", spec, aws_settings=stack.aws)
        assert isinstance(platform.operator, dpd.OperatorHandle)
        for name, component in made.items():
            pulumi.export(name, component)

    exported = run_program(program, preview=preview).exports
    # One is for a network that is somebody else's, the other has outputs alone.
    assert {kind.__name__ for kind in all_components()} - set(exported) == {"GpuSubnet", "EndpointClients"}
    assert all("handle" not in component for component in exported.values())
    assert {"cluster_name", "version", "oidc_issuer"} <= set(exported["ControlPlane"])


def test_the_handle_of_a_subnet_in_a_network_of_others_stands_in_a_slot_too() -> None:
    # pulumi 3.272, runtime/stack.py, massage: the public names of a resource's __dict__ are what is exported of it.
    assert isinstance(vars(GpuSubnet)["handle"], MemberDescriptorType)
