"""What docs/changes.md says of each field is what two stacks that differ in it alone come to, by the providers' own facts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.catalog.changes import FACTS, Outcome, change_of, field_changes

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PARTS = 6


def _load() -> Any:
    sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location("make_change_docs", TOOLS / "make_change_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_change_docs"] = module
    spec.loader.exec_module(module)
    return module


TOOL = _load()
DERIVER = TOOL.Deriver()
FIELDS: dict[str, Any] = TOOL.fields()


def test_every_field_of_a_stack_file_has_an_entry() -> None:
    assert list(field_changes()) == list(FIELDS)
    assert [name for name in FIELDS if TOOL.sample_of(name, FIELDS[name]).new is None] == []


def test_the_page_is_what_the_script_makes_of_the_facts() -> None:
    assert TOOL.PAGE.read_text(encoding="utf-8") == TOOL.page(field_changes())
    assert FACTS.read_text(encoding="utf-8") == TOOL.facts_text(field_changes())


@pytest.mark.parametrize("part", range(PARTS))
def test_every_entry_is_what_the_field_s_sample_comes_to(part: int) -> None:
    # Neighbours share their stacks, and a stack that was run is not run again.
    size = -(-len(FIELDS) // PARTS)
    for name in list(FIELDS)[part * size : (part + 1) * size]:
        assert DERIVER.change(name, FIELDS[name]) == field_changes()[name]


def test_no_change_of_an_endpoint_or_of_a_groups_size_replaces_a_cluster() -> None:
    clusters = {"sagemaker Cluster", "eks Cluster"}
    sizes = ("platform.instanceGroups.*.count", "platform.instanceGroups.*.minCount", "platform.instanceGroups.*.storageGib")
    names = [name for name in FIELDS if name.startswith("endpoints.") or name in sizes]
    assert len(names) > 100
    for name in names:
        assert {kind for kind, op in field_changes()[name].resources.items() if op in {"replace", "delete"}} & clusters == set(), name


def test_whatever_replaces_or_deletes_a_cluster_is_refused() -> None:
    for change in field_changes().values():
        if {change.resources.get("sagemaker Cluster"), change.resources.get("eks Cluster")} & {"replace", "delete"}:
            assert change.outcome is Outcome.REFUSED, change.field


def test_a_place_of_a_file_is_found_by_its_field_or_by_the_one_it_lies_in() -> None:
    def field(*path: str | int) -> str | None:
        found = change_of(path)
        return found.field if found else None

    assert field("platform", "instanceGroups", "gpu", "count") == "platform.instanceGroups.*.count"
    assert field("platform", "instanceGroups", "gpu", "taints", 0, "key") == "platform.instanceGroups.*.taints[].key"
    assert field("endpoints", "llama", "prefill", "autoscaling", "maxReplicaCount") == "endpoints.*.prefill.autoscaling"
    assert field("platform", "tags", "team") == "platform.tags"
    assert field("platform") is None
