"""Manifests written after the public documents are taken: no rule calls an error what they show, and what is found is a list to review."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dpd_infra.catalog.crd.releases import HELD
from dpd_infra.catalog.crd.validate import validate_document
from dpd_infra.render.from_manifest import import_manifest
from dpd_infra.rules.check import check, errors
from tests.pure.crd.raw_crd import judge
from tests.pure.rules.kit import raw_stack

FOLDER = Path(__file__).parent / "documents"
EXPECTED: dict[str, list[str]] = yaml.safe_load((FOLDER / "expected.yaml").read_text(encoding="utf-8"))
NAMES = sorted(EXPECTED)
BEFORE_THE_GATEWAY = "v1.4.0-eksbuild.1"


def manifest(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def test_every_manifest_is_in_the_list_and_names_what_it_was_written_after() -> None:
    files = {path.stem: path for path in FOLDER.glob("*.yaml") if path.stem != "expected"}
    assert sorted(files) == NAMES
    assert len(files) >= 20
    assert [name for name, path in files.items() if not path.read_text(encoding="utf-8").startswith("# After: ")] == []


OPERATORS = (None, BEFORE_THE_GATEWAY, "v2.1.0-eksbuild.1")
# That operator has no gateway: the next test.
KNOWN = [(name, operator) for operator in OPERATORS for name in NAMES if (name, operator) != ("gateway", BEFORE_THE_GATEWAY)]


@pytest.mark.parametrize(("name", "operator"), KNOWN)
def test_what_is_found_is_what_is_true_of_the_document_and_no_error(name: str, operator: str | None) -> None:
    found = check(raw_stack(manifest(name), operator))
    assert [f"{finding.rule} {finding.what}" for finding in errors(found)] == []
    assert sorted(finding.rule for finding in found) == EXPECTED[name]


def test_an_operator_that_is_older_than_a_documents_field_is_told() -> None:
    (error,) = errors(check(raw_stack(manifest("gateway"), BEFORE_THE_GATEWAY)))
    assert error.rule == "DPD440"
    assert "v2.0.0-eksbuild.2" in error.what + error.fix


@pytest.mark.parametrize("name", NAMES)
def test_the_documents_are_ones_that_the_api_server_takes(name: str) -> None:
    document = manifest(name)
    held = {**document, "spec": {key: value for key, value in document["spec"].items() if key != "inferenceGateway"}}
    assert [problem.message for problem in validate_document(held, HELD)] == judge(held) == []


@pytest.mark.parametrize("name", NAMES)
def test_they_become_stack_entries_that_render_back_to_them(name: str) -> None:
    assert import_manifest(manifest(name)).differences == ()
