"""`dpd check`: what it reads, what it prints where, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.rules.registry import all_rules
from tests.pure.cli.conftest import MANIFEST, SERVICE, STACK, Dpd

BROKEN = MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "many"')


def write(**files: str) -> None:
    for name, text in files.items():
        path = Path(name.replace("__", "/").replace("_dot_", ".") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ids(run: Any) -> list[str]:
    return [finding["rule"] for finding in json.loads(run.out)["findings"]]


def test_a_good_stack_file_ends_with_0_and_the_report_on_standard_output(dpd: Dpd) -> None:
    write(Pulumi_dot_dev=STACK)
    run = dpd("check", "Pulumi.dev.yaml")
    assert run.code == 0
    assert run.out.endswith("checked 1 endpoint in 1 file\n")
    assert " error" not in run.out
    assert run.err == ""


def test_an_error_ends_with_1_and_is_shown_with_its_line(dpd: Dpd) -> None:
    write(endpoint=BROKEN)
    run = dpd("check", "endpoint.yaml")
    assert run.code == 1
    line = next(number for number, text in enumerate(BROKEN.splitlines(), 1) if "routingThreshold" in text)
    assert f'error DPD701  endpoint.yaml:{line}:5  spec.pdSpec.routingThreshold\n  {line:>5} |     routingThreshold: "many"\n' in run.out
    assert "what: spec.pdSpec.routingThreshold is text, must be an integer" in run.out
    assert "1 error" in run.out.splitlines()[-2]


def test_warnings_and_advice_do_not_fail(dpd: Dpd) -> None:
    write(endpoint=MANIFEST.replace("v1.1", "latest"))
    run = dpd("check", "endpoint.yaml", "--json")
    data = json.loads(run.out)
    assert (run.code, data["ok"]) == (0, True)
    assert data["findings"]


def test_many_documents_are_each_checked_and_other_kinds_are_named(dpd: Dpd) -> None:
    write(all=f"{MANIFEST}---\n{SERVICE}---\n{BROKEN.replace('dpd-test', 'second')}---\n- a list\n---\n")
    run = dpd("check", "all.yaml", "--json")
    data = json.loads(run.out)
    assert run.code == 1
    assert [entry["name"] for entry in data["endpoints"]] == ["dpd-test", "second"]
    assert [entry["what"] for entry in data["skipped"]] == ["Service web", "a list"]
    assert {finding["subject"] for finding in data["findings"] if finding["severity"] == "error"} == {"second"}
    text = dpd("check", "all.yaml").out
    lines = f"{MANIFEST}---\n".count("\n")
    assert f"not checked: all.yaml:{lines + 1} Service web" in text


def test_a_list_of_kubectl_is_looked_into(dpd: Dpd) -> None:
    items = "\n".join(f"  {line}" for line in BROKEN.splitlines())
    write(listed=f"apiVersion: v1\nkind: List\nitems:\n- {items.lstrip()}\n")
    data = json.loads(dpd("check", "listed.yaml", "--json").out)
    wrong = [finding for finding in data["findings"] if finding["severity"] == "error"]
    assert [finding["path"] for finding in wrong] == ["items[0].spec.pdSpec.routingThreshold"]
    assert wrong[0]["line"] == 4 - 1 + next(number for number, text in enumerate(BROKEN.splitlines(), 1) if "routingThreshold" in text)


def test_one_name_and_namespace_stands_in_a_file_once(dpd: Dpd) -> None:
    write(twice=f"{MANIFEST}---\n{MANIFEST}", apart=f"{MANIFEST}---\n{MANIFEST.replace('namespace: default', 'namespace: other')}")
    run = dpd("check", "twice.yaml", "--json")
    assert run.code == 1
    assert "DPD703" in ids(run)
    assert "DPD703" not in ids(dpd("check", "apart.yaml", "--json"))


def test_a_folder_is_searched_and_files_of_others_are_passed_over(dpd: Dpd) -> None:
    write(
        a__endpoint=BROKEN,
        a__b__deploy="kind: Deployment\nmetadata: {name: {{ .Values.name }}}\n",
        Pulumi_dot_dev=STACK,
        Pulumi_dot_other="config: {other:key: 1}\n",
        Pulumi="name: x\nruntime: python\n",
        _dot_hidden__endpoint=BROKEN,
    )
    Path("a/notes.txt").write_text(BROKEN)
    Path("a/endpoint2.yml").write_text(MANIFEST)
    run = dpd("check", ".", "--json")
    data = json.loads(run.out)
    assert sorted({entry["file"] for entry in data["endpoints"]}) == ["Pulumi.dev.yaml", "a/endpoint.yaml", "a/endpoint2.yml"]
    assert {entry["file"]: entry["what"] for entry in data["skipped"]} == {
        "Pulumi.yaml": "a Pulumi project file",
        "Pulumi.other.yaml": "a stack file without a dpd-infra key",
        "a/b/deploy.yaml": "Deployment",
    }
    assert run.code == 1


def test_a_file_named_twice_is_checked_once(dpd: Dpd) -> None:
    write(endpoint=MANIFEST)
    data = json.loads(dpd("check", "endpoint.yaml", ".", "./endpoint.yaml", "--json").out)
    assert len(data["endpoints"]) == 1


@pytest.mark.parametrize("text", [MANIFEST, STACK], ids=["manifest", "stack"])
def test_standard_input_is_read_as_what_it_holds(dpd: Dpd, text: str) -> None:
    run = dpd("check", "-", stdin=text)
    assert run.code == 0
    assert "checked 1 endpoint in 1 file" in run.out
    wrong = dpd("check", "-", "--json", stdin=text.replace("4096", "x"))
    assert wrong.code == 1
    assert {finding["file"] for finding in json.loads(wrong.out)["findings"]} == {"<stdin>"}


def test_kubernetes_reads_yes_as_a_boolean_and_pulumi_as_text(dpd: Dpd) -> None:
    write(endpoint=MANIFEST.replace("value: /tmp/hf_home", "value: on"))
    assert "DPD701" in ids(dpd("check", "endpoint.yaml", "--json"))
    write(Pulumi_dot_dev=STACK + "      worker: {environment: {A: on}}\n")
    assert "DPD000" not in ids(dpd("check", "Pulumi.dev.yaml", "--json"))


def test_another_operator_is_checked_against(dpd: Dpd) -> None:
    write(endpoint=MANIFEST, Pulumi_dot_dev=STACK)
    for file in ("endpoint.yaml", "Pulumi.dev.yaml"):
        assert "DPD002" not in ids(dpd("check", file, "--json"))
        assert "DPD002" in ids(dpd("check", file, "--operator", "3.1.2", "--json"))
        assert "DPD002" in ids(dpd("check", file, "--operator", "v1.2.0-eksbuild.1", "--json"))
        assert "DPD003" in ids(dpd("check", file, "--operator", "3.2", "--json"))


def test_an_unknown_field_is_an_error_where_the_crd_is_held_and_a_warning_after_it(dpd: Dpd) -> None:
    write(endpoint=MANIFEST.replace("  modelName:", "  modelNaem: x\n  modelName:"))
    held = json.loads(dpd("check", "endpoint.yaml", "--operator", "3.2", "--json").out)
    assert [(f["severity"], f["rule"]) for f in held["findings"] if f["path"] == "spec.modelNaem"] == [("error", "DPD701")]
    later = json.loads(dpd("check", "endpoint.yaml", "--operator", "3.3", "--json").out)
    found = [f for f in later["findings"] if f["path"] == "spec.modelNaem"]
    assert [(f["severity"], f["rule"]) for f in found] == [("warning", "DPD702")]
    assert "modelName" in found[0]["what"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name what is to be checked"),
        (["missing.yaml"], "no such file or folder: missing.yaml"),
        (["-", "--json", "--sarif"], "exclude each other"),
        (["-", "--operator", "9.9"], "no operator release '9.9' is known"),
        (["-", "--operator", "3.1"], "no document says which add-on holds operator 3.1"),
        (["-", "--operator", "v1"], "'v1' is not an add-on version"),
        (["-", "--fix"], "no file to write for standard input"),
        (["--explain", "DPD998"], "there is no rule 'DPD998'"),
        (["a", "b", "--from", "c"], "compared with one PATH"),
        (["a", "--from", "c", "--fix"], "neither --fix nor --diff"),
        (["3.2", "--from", "nothing"], "no operator release 'nothing'"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line_on_standard_error(dpd: Dpd, arguments: list[str], said: str) -> None:
    run = dpd("check", *arguments, stdin="")
    assert run.code == 2
    where = run.out if "--json" in arguments and "--sarif" not in arguments else run.err
    assert said in where
    assert run.err.count("\n") <= 1


def test_every_rule_can_be_explained_with_its_sources(dpd: Dpd) -> None:
    for rule in all_rules():
        data = json.loads(dpd("check", "--explain", rule.id.lower(), "--json").out)
        assert data["title"] == rule.title
        assert data["sources"]
        assert data["finds"]
    text = dpd("check", "--explain", "DPD001")
    assert text.code == 0
    assert text.out.startswith("DPD001  ")
    assert "DPD000" in dpd("check", "--explain", "DPD000").out


def test_a_report_of_several_files_says_why_once_a_rule(dpd: Dpd) -> None:
    write(one=BROKEN, two=BROKEN)
    out = dpd("check", "one.yaml", "two.yaml").out
    assert out.count("The API server refuses the object as a whole") == 1
    assert out.count("DPD701") == 2
    assert out.index("one.yaml: 1 error") < out.index("two.yaml: 1 error")


def test_signs_that_steer_a_terminal_are_written_out(dpd: Dpd) -> None:
    write(endpoint=MANIFEST.replace("instanceType: ml.p5.48xlarge", 'instanceType: "\\x1b[31mred\\u202e"'))
    out = dpd("check", "endpoint.yaml").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "red" in out


@pytest.mark.parametrize(
    "kind", ["inferenceendpointconfig", "InferenceEndPointConfig", "InferenceEndpointConfigs", "InferencEndpointConfig"]
)
@pytest.mark.parametrize("place", ["llm.yaml", "."])
def test_a_kind_that_is_misspelt_is_an_error_and_not_passed_over(dpd: Dpd, kind: str, place: str) -> None:
    Path("llm.yaml").write_text(MANIFEST.replace("kind: InferenceEndpointConfig", f"kind: {kind}"))
    run = dpd("check", place, "--json")
    assert run.code == 1
    assert [(found["rule"], found["value"]) for found in json.loads(run.out)["findings"] if found["severity"] == "error"] == [
        ("DPD701", kind)
    ]


@pytest.mark.parametrize("kind", ["InferenceGatewayConfig", "JumpStartModel", "SageMakerEndpointRegistration"])
def test_other_kinds_of_the_operator_are_named_and_passed_over(dpd: Dpd, kind: str) -> None:
    Path("other.yaml").write_text(f"apiVersion: inference.sagemaker.aws.amazon.com/v1\nkind: {kind}\nmetadata: {{name: a}}\n")
    run = dpd("check", "other.yaml")
    assert run.code == 0
    assert f"not checked: other.yaml:1 {kind} a" in run.out


def test_a_kind_of_another_api_with_nearly_the_name_is_passed_over(dpd: Dpd) -> None:
    Path("other.yaml").write_text("apiVersion: example.com/v1\nkind: InferenceEndpoint\nmetadata: {name: a}\nspec: {model: x}\n")
    run = dpd("check", "other.yaml")
    assert "DPD" not in run.out
    Path("other.yaml").write_text(Path("other.yaml").read_text() + f"---\n{MANIFEST}")
    run = dpd("check", "other.yaml")
    assert run.code == 0
    assert "not checked: other.yaml:1 InferenceEndpoint a" in run.out


@pytest.mark.parametrize(
    ("raw", "line", "column"),
    [(b"a: 1\nb: \0\n", 2, 4), (b"# caf\xe9\n", 1, 6), ("# \u00e9\u00e9 x\x01".encode(), 1, 7), (b"a:\n\xff", 2, 1)],
)
def test_a_character_that_may_not_be_there_has_its_line_and_column(dpd: Dpd, raw: bytes, line: int, column: int) -> None:
    Path("a.yaml").write_bytes(raw)
    (found,) = json.loads(dpd("check", "a.yaml", "--json").out)["findings"]
    assert (found["line"], found["column"]) == (line, column)


def test_two_manifests_are_not_compared_and_two_versions_without_a_difference_say_so(dpd: Dpd) -> None:
    Path("llm.yaml").write_text(MANIFEST)
    run = dpd("check", "--from", "llm.yaml", "llm.yaml")
    assert run.code == 2
    assert "llm.yaml is no stack file of dpd-infra" in run.err
    assert dpd("check", "--from", "3.2", "3.3").out.strip() == "no findings"
