"""The pages of the rules are those that the register makes, one a rule."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from dpd_infra.rules.registry import all_rules
from tests.pure.rules.kit import ROOT


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_rule_docs", ROOT / "tools" / "make_rule_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_current(tool: ModuleType) -> None:
    assert tool.stale() == [], "python tools/make_rule_docs.py"


def test_every_rule_has_a_page_and_a_row_in_the_table() -> None:
    folder = ROOT / "docs" / "rules"
    table = (folder / "README.md").read_text(encoding="utf-8")
    for rule in all_rules():
        text = (folder / f"{rule.id}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {rule.id}: ")
        assert all(str(source) in text for source in rule.sources)
        assert f"[{rule.id}]({rule.id}.md)" in table
    assert len(list(folder.glob("DPD*.md"))) == len(all_rules()) + 1
