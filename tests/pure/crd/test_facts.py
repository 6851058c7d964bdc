"""The facts hold everything of the CRD but its prose."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.catalog.crd import crd_facts, field_release
from dpd_infra.catalog.crd.releases import FIELDS, LATER_FIELDS, VALUES, field_brought, is_before
from tests.pure.crd.raw_crd import CRD_FILE, raw_schema

ROOT = Path(__file__).parents[3]
FACTS_FILE = ROOT / "dpd_infra" / "catalog" / "crd" / "inferenceendpointconfigs-3.2.json"


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_crd_facts", ROOT / "tools" / "make_crd_facts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _expanded(schema: Any, shared: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _expanded(shared[schema["$ref"].removeprefix("#/$defs/")], shared)
        return {key: _expanded(value, shared) for key, value in schema.items()}
    return [_expanded(item, shared) for item in schema] if isinstance(schema, list) else schema


def _without_descriptions(schema: Any, *, names: bool = False) -> Any:
    """Drop `description` as a keyword and keep it as a property's name."""
    if isinstance(schema, dict):
        return {
            key: _without_descriptions(value, names=key == "properties" and not names)
            for key, value in schema.items()
            if names or key != "description"
        }
    return [_without_descriptions(item) for item in schema] if isinstance(schema, list) else schema


def test_the_kept_script_makes_the_kept_facts_from_the_crd() -> None:
    tool = _tool()
    assert json.loads(FACTS_FILE.read_text()) == tool.make_facts(tool.read_crd(CRD_FILE), "3.2")


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_the_facts_are_the_crd_without_its_prose(version: str) -> None:
    facts = crd_facts("3.2", version)
    assert _expanded(facts.schema, facts.shared) == _without_descriptions(raw_schema(version))


def test_the_facts_hold_no_prose() -> None:
    longest = max(json.loads(FACTS_FILE.read_text())["$defs"].values(), key=lambda part: len(json.dumps(part)))
    assert "description" not in json.dumps(longest)
    assert FACTS_FILE.stat().st_size < 50_000


def test_a_field_is_found_by_name_and_by_its_place_in_a_document() -> None:
    facts = crd_facts()
    threshold = facts.field("spec.pdSpec.routingThreshold")
    assert threshold is not None
    assert (threshold.schema, threshold.required, threshold.release) == (
        {"type": "integer", "format": "int32", "minimum": 0, "default": 4096},
        False,
        "3.2",
    )
    assert facts.field(("spec", "worker", "environmentVariables", 3, "name")) == facts.field("spec.worker.environmentVariables[].name")
    assert facts.field("spec.decodeSpec") is None


def test_every_field_of_the_crd_is_listed_once() -> None:
    def count(schema: dict[str, Any]) -> int:
        below = list(schema.get("properties", {}).values())
        items = [schema["items"]] if "items" in schema else []
        return len(below) + sum(count(part) for part in below + items)

    paths = [fact.path for fact in crd_facts().fields()]
    assert len(paths) == len(set(paths)) == count(raw_schema())


@pytest.mark.parametrize(
    ("path", "release"),
    [
        ("spec.pdSpec", "3.2"),
        ("spec.pdSpec.prefillSpec.args[]", "3.2"),
        ("spec.kubernetes.serviceAccountName", "3.1.2"),
        ("spec.kubernetes.volumes", "3.1"),
        ("spec.modelCacheConfig", "3.3"),
        ("spec.loadBalancer.idleTimeoutSeconds", "3.3"),
        ("spec.loadBalancer.healthCheckPath", None),
        ("spec.worker.metricsSidecarResources", "3.4"),
        ("spec.kubernetes.tolerations", "3.7"),
    ],
)
def test_a_field_names_the_operator_release_that_brought_it(path: str, release: str | None) -> None:
    assert field_release(path) == release


def test_every_release_named_for_a_field_is_in_the_catalog_and_every_field_in_the_crd() -> None:
    held = crd_facts()
    assert [path for path in FIELDS if held.field(path) is None] == []
    assert [path for path, _ in VALUES if held.field(path) is None] == []
    assert [field.path for field in LATER_FIELDS if held.field(field.path) is not None] == []
    for brought in (*FIELDS.values(), *VALUES.values()):
        assert not is_before("3.2", brought.release)
    for field in LATER_FIELDS:
        assert is_before("3.2", field.brought.release)


@pytest.mark.parametrize("field", LATER_FIELDS, ids=lambda field: field.path)
def test_a_later_field_is_there_from_its_release_on_and_changes_nothing_else(field: Any) -> None:
    release = field.brought.release
    grown = {fact.path for fact in crd_facts(release).fields()}
    assert field.path in grown
    assert {fact.path for fact in crd_facts().fields()} <= grown
    assert field.path not in {fact.path for fact in crd_facts("3.2").fields()}
    brought = field_brought(field.path)
    assert brought is not None
    assert brought.release == release
