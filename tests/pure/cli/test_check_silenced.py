"""What is silenced is still told: in the report, in JSON and in SARIF; and the snippets of docs/check.md do what they say."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dpd_infra.spec.yaml_writing import write_yaml
from tests.docs import snippets
from tests.pure.cli.conftest import STACK, Dpd
from tests.pure.endpoint.test_published_example import PUBLISHED

REASONS = {"DPD106": "our prompts are short", "DPD404": "nobody scrapes this one"}


def documented(begin: str) -> str:
    (snippet,) = [found for found in snippets("yaml") if found.page == "docs/check.md" and found.text.startswith(begin)]
    return snippet.text


def files() -> None:
    annotated = PUBLISHED | {"metadata": yaml.safe_load(documented("metadata:"))["metadata"] | {"namespace": "default"}}
    Path("quiet.yaml").write_text(write_yaml(annotated), encoding="utf-8")
    entry = "".join(f"      {line}\n" for line in documented("silence:").splitlines())
    stack = STACK.replace("      metrics: {port: 8000}\n", entry)
    Path("Pulumi.dev.yaml").write_text(stack, encoding="utf-8")


def test_the_report_ends_with_what_was_silenced_and_why(dpd: Dpd) -> None:
    files()
    for file in ("quiet.yaml", "Pulumi.dev.yaml"):
        run = dpd("check", file)
        assert (run.code, run.out.splitlines()[0]) == (0, "no findings")
        told = [line for line in run.out.splitlines() if line.startswith("silenced: ")]
        assert [(line.split()[1], line.split()[2].split(":")[0]) for line in told] == [(rule, file) for rule in REASONS]
        assert all(line.endswith(reason) for line, reason in zip(told, REASONS.values(), strict=True))


def test_programs_read_it(dpd: Dpd) -> None:
    files()
    for file in ("quiet.yaml", "Pulumi.dev.yaml"):
        data = json.loads(dpd("check", "--json", file).out)
        assert data["findings"] == []
        assert {entry["rule"]: entry["reason"] for entry in data["silenced"]} == REASONS
        assert all(entry["line"] > 0 and entry["file"] == file for entry in data["silenced"])
        (run,) = json.loads(dpd("check", "--sarif", file).out)["runs"]
        # SARIF 2.1.0, section 3.35: a suppression's kind is inSource or external, and it may hold a justification.
        assert {result["ruleId"]: result["suppressions"] for result in run["results"]} == {
            rule: [{"kind": "inSource", "justification": reason}] for rule, reason in REASONS.items()
        }
        assert dpd("check", "--github", file).out == ""


def test_a_reason_cannot_move_the_terminals_cursor(dpd: Dpd) -> None:
    quiet = PUBLISHED | {"metadata": {"name": "a", "annotations": {"dpd-infra/silence": "DPD106: \x1b[2Jgone"}}}
    Path("quiet.yaml").write_text(write_yaml(quiet), encoding="utf-8")
    assert "\x1b" not in dpd("check", "quiet.yaml").out


def test_import_says_it_in_the_entrys_own_word(dpd: Dpd) -> None:
    files()
    run = dpd("import", "quiet.yaml")
    assert run.code == 0
    assert yaml.safe_load(run.out)["dpd-test"]["silence"] == [{"rule": rule, "reason": reason} for rule, reason in REASONS.items()]
