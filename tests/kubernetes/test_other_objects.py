"""Everything else that our components make in a cluster is taken by a real API server, with every field known to it, and kept."""

from __future__ import annotations

import ast
import base64
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import dpd_infra as dpd
from dpd_infra.testing import Recorded, Recording, run_program, run_project
from tests.conftest import ROOT
from tests.graph.test_teams import control_plane, store, teams
from tests.kubernetes.client import Client

COMPONENTS = ROOT / "dpd_infra" / "components"
NO_OBJECTS = {"Provider", "Release"}
"""Classes of pulumi-kubernetes that are no objects of their own."""


def endpoint_with_token() -> Recording:
    """An endpoint whose model needs a token: a Secret beside it."""

    def program() -> None:
        operator = dpd.OperatorHandle(
            facts=dpd.OperatorFacts(addon_version="v1.4.0-eksbuild.1"),
            addon_version="v1.4.0-eksbuild.1",
            kubernetes_provider=control_plane().kubernetes_provider,
            cluster_name="hp",
            region="us-east-2",
        )
        source = {"modelId": "meta-llama/Llama-3.3-70B-Instruct", "token": {"configKey": "dpd-infra:huggingFaceToken"}}
        data = {"model": {"name": "Llama", "huggingFace": source}, "instanceType": "ml.p5.48xlarge", "namespace": "search"}
        dpd.Endpoint("llama", dpd.EndpointSpec.from_yaml_data(data), operator=operator, hugging_face_token="hf_x")

    return run_program(program)


@cache
def recorded() -> tuple[Recorded, ...]:
    """Every Kubernetes object of our programs: both stacks, teams, a model store, and an endpoint with a token."""
    runs = [run_project("dev", ROOT), run_project("prod", ROOT), teams(False), store(False), endpoint_with_token()]
    found = [resource for run in runs for resource in run.custom if resource.type.startswith("kubernetes:")]
    return tuple(resource for resource in found if resource.kind not in NO_OBJECTS)


def classes_in_components() -> Iterator[str]:
    """Kinds of objects that the components' source makes, by the calls: `kubernetes.core.v1.Namespace(...)`."""
    for file in sorted(COMPONENTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("kubernetes."):
                yield ast.unparse(node.func).rpartition(".")[2]


def document(resource: Recorded) -> dict[str, Any]:
    """A registration as the object that the provider sends."""
    inputs = {key: value for key, value in resource.inputs.items() if value is not None}
    group_version = resource.type.removeprefix("kubernetes:").rpartition(":")[0]
    return {"apiVersion": group_version.removeprefix("core/"), "kind": resource.kind, **inputs}


def contains(kept: Any, sent: Any) -> bool:
    """Whether everything that was sent is kept as it was; a server adds what it knows."""
    if isinstance(sent, dict):
        return isinstance(kept, dict) and all(name in kept and contains(kept[name], part) for name, part in sent.items())
    if isinstance(sent, list):
        return isinstance(kept, list) and len(kept) == len(sent) and all(contains(*pair) for pair in zip(kept, sent, strict=True))
    return kept == sent


def test_no_kind_of_object_is_left_out() -> None:
    made = {kind for kind in classes_in_components() if not kind.endswith("Args")} - NO_OBJECTS
    assert made
    assert made - {resource.kind for resource in recorded()} == set()


@pytest.mark.parametrize("resource", recorded(), ids=lambda resource: f"{resource.kind} {resource.name}")
def test_an_object_is_taken_with_every_field_known_and_kept(client: Client, resource: Recorded) -> None:
    sent = document(resource)
    if (namespace := sent["metadata"].get("namespace")) is not None:
        client.make_namespace(namespace)
    answer = client.apply(sent)
    assert answer.taken, answer.message
    assert answer.warnings == ()
    if "stringData" in sent:
        sent["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in sent.pop("stringData").items()}
    assert contains(answer.body, sent)


def test_a_misspelt_field_is_seen_in_an_object_of_each_kind(client: Client) -> None:
    for resource in {resource.kind: resource for resource in recorded()}.values():
        sent = document(resource)
        if (namespace := sent["metadata"].get("namespace")) is not None:
            client.make_namespace(namespace)
        assert not client.apply({**sent, "misspelt": {}}).taken, resource
