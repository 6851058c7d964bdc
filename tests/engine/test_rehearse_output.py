"""What `dpd rehearse` prints of a result, and of a program that does not even begin; neither needs the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpd_infra.cli._rehearse_display import show
from dpd_infra.cli._rehearse_report import show_report
from dpd_infra.rehearsal.engine import Diagnostic, Step
from dpd_infra.rehearsal.program import project_program, summary_of
from dpd_infra.rehearsal.report import Report
from dpd_infra.rehearsal.report_html import page
from dpd_infra.rehearsal.runner import RehearsalResult
from dpd_infra.rules.report import block
from dpd_infra.spec.finding import Finding, Severity
from dpd_infra.stack import StackSpec

STACK = Path(__file__).resolve().parents[2] / "stacks" / "Pulumi.dev.yaml"
ADDRESS = f"http://{'a' * 40}.{'b' * 40}.svc.cluster.local:443/v1/chat/completions"
CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t" * 40


def step(kind: str, name: str, op: str) -> Step:
    urn = f"urn:pulumi:dev::shop::dpd:index:Platform$dpd:index:Network${kind}::{name}"
    return Step(kind, name, urn, op)


def shown(capsys: pytest.CaptureFixture[str], *steps: Step, outputs: dict[str, Any]) -> str:
    result = RehearsalResult("up", 1, 0, 0, 1, 1, outputs, frozenset(), steps, (), 1.0)
    show(result, StackSpec.from_file(STACK), "dev")
    return capsys.readouterr().out


def test_a_replaced_resource_is_one_resource(capsys: pytest.CaptureFixture[str]) -> None:
    subnet = "aws:ec2/subnet:Subnet"
    replaced = [step(subnet, "gpu", op) for op in ("create-replacement", "replace", "delete-replaced")]
    assert "Subnet\n" in shown(capsys, *replaced, outputs={})
    assert "Subnet x2\n" in shown(capsys, *replaced, step(subnet, "eks", "create"), outputs={})


def test_an_endpoint_is_known_by_its_kind_whatever_the_program_calls_it(capsys: pytest.CaptureFixture[str]) -> None:
    made = [
        ("kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig", "mine"),
        ("kubernetes:core/v1:Secret", "mine-hugging-face-token"),
        ("kubernetes:core/v1:Secret", "llama-70b"),
        ("aws:s3/bucket:Bucket", "llama-70b"),
        ("acme:index:Team", "search"),
        ("pulumi:providers:aws", "ohio"),
    ]
    steps = [Step(kind, name, f"urn:pulumi:dev::shop::{kind}::{name}", "create") for kind, name in made]
    lines = shown(capsys, *steps, outputs={}).splitlines()
    assert "Endpoint   Secret, InferenceEndpointConfig" in lines
    assert "others     Team, Bucket, Secret" in lines
    assert "providers  aws provider" in lines


def test_a_drill_that_finds_nothing_to_fail_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(Report(stack="dev", project="shop", action="fail-each", ok=True), timeline=False)
    assert capsys.readouterr().out == "dev makes nothing that can fail\n"


def test_values_are_written_on_one_line_as_a_file_would_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {
        "flag": True,
        "platform": {"closed": False, "kubeconfig": "apiVersion: v1\nkind: Config\n", "eksCertificateAuthority": CERTIFICATE},
        "nothing": None,
        "url": ADDRESS,
        "tls": {"ca": {"keys": ["a.pem"], "own": True}},
    }
    lines = shown(capsys, outputs=outputs).splitlines()
    assert "  flag: true" in lines
    assert "    closed: false" in lines
    assert "    kubeconfig: apiVersion: v1…" in lines
    assert "  nothing: -" in lines
    assert f"  url: {ADDRESS}" in lines
    assert "      keys: [a.pem]" in lines
    (cut,) = [line for line in lines if "eksCertificateAuthority" in line]
    assert cut.endswith("…")
    assert CERTIFICATE.startswith(cut.split(": ")[1].rstrip("…"))
    assert max(len(line) for line in lines if ADDRESS not in line) <= 140


def test_what_the_program_and_the_engine_warn_of_is_told_once_and_a_rules_warning_not_again(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Finding(
        "DPD999", Severity.WARNING, ("config", "a"), "it is <so>", "a document says", "do this", file="Pulumi.dev.yaml", line=3
    )
    group = "urn:pulumi:dev::shop::aws-native:sagemaker:Cluster::gpu-cluster"
    said = (
        Diagnostic("warning", "instance group gpu has 9 nodes", group),
        Diagnostic("warning", "instance group gpu has 9 nodes", group.replace("shop", "other")),
        Diagnostic("warning", block(finding)),
        Diagnostic("info", "only for those who look"),
    )
    report = Report("dev", "shop", "up", ok=True, result=RehearsalResult("up", 1, 0, 0, 0, 0, {}, frozenset(), (), (), 1.0, said))
    show_report(report, timeline=False, told=[finding])
    assert capsys.readouterr().out.splitlines() == ["warning: gpu-cluster: instance group gpu has 9 nodes"]
    show_report(report, timeline=False)
    assert "what: it is <so>" in capsys.readouterr().out
    assert [item["message"] for item in report.as_data()["warnings"]] == ["instance group gpu has 9 nodes", block(finding)]
    html = page(report)
    assert html.count("gpu-cluster: instance group gpu has 9 nodes") == html.count("it is &lt;so&gt;") == 1
    assert "only for those who look" not in html


@pytest.mark.parametrize("steps", [(), (step("aws:ec2/vpc:Vpc", "vpc", "same"),), (step("aws:ec2/vpc:Vpc", "vpc", "create"),)])
def test_no_line_ends_in_spaces_and_the_first_one_says_something(capsys: pytest.CaptureFixture[str], steps: tuple[Step, ...]) -> None:
    text = shown(capsys, *steps, outputs={"name": "x"})
    assert text.splitlines()[0]
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import pulumi\nx = (\n", "SyntaxError: '(' was never closed (__main__.py, line 2)"),
        ("def f():\nreturn 1\n", "IndentationError: expected an indented block after function definition on line 1 (__main__.py, line 2)"),
        ("import wrong\n", "SyntaxError: invalid syntax (wrong.py, line 1)"),
        ("\n\nraise ValueError('no')\n", "ValueError: no (__main__.py, line 3)"),
    ],
)
def test_an_error_of_the_program_names_its_own_place_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "wrong.py").write_text("a b\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text(text, encoding="utf-8")
    with pytest.raises((SyntaxError, ValueError)) as raised:
        project_program(tmp_path, None)()
    assert summary_of(raised.value) == said
