"""Files made to hurt: `dpd check` says one clear thing about each, goes on with the others, and never shows a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpd_infra.checking import check_bytes
from tests.pure.cli.conftest import MANIFEST, STACK, Dpd
from tests.pure.crd.documents import broken_documents
from tests.pure.yaml.test_hostile_yaml import PROBLEMS

HEAD = "apiVersion: inference.sagemaker.aws.amazon.com/v1\nkind: InferenceEndpointConfig\n"


# Half a surrogate pair is text that no file can hold.
@pytest.mark.parametrize("name", sorted(set(PROBLEMS) - {"half a surrogate pair"}))
@pytest.mark.parametrize("file", ["endpoint.yaml", "Pulumi.dev.yaml"])
def test_a_file_that_cannot_be_read_is_one_error_with_its_place(dpd: Dpd, name: str, file: str) -> None:
    text, what, line, _ = PROBLEMS[name]
    if file == "Pulumi.dev.yaml" and name == "too many documents":
        what, line = "more than one document", 0
    Path(file).write_bytes(text if isinstance(text, bytes) else text.encode())
    run = dpd("check", file, "--json")
    errors = [finding for finding in json.loads(run.out)["findings"] if finding["severity"] == "error"]
    assert run.code == 1
    assert [what in finding["what"] for finding in errors] == [True]
    assert errors[0]["rule"] == "DPD000"
    assert errors[0]["file"] == file
    assert line in {0, errors[0]["line"]}


@pytest.mark.parametrize("text", ["", "\n\n", " \t\n", "\ufeff"])
@pytest.mark.parametrize("name", ["-", "empty.yaml", "Pulumi.dev.yaml"])
def test_nothing_where_something_was_named_does_not_look_good(dpd: Dpd, name: str, text: str) -> None:
    if name != "-":
        Path(name).write_text(text, encoding="utf-8")
    run = dpd("check", name, "--json", stdin=text.encode())
    (found,) = json.loads(run.out)["findings"]
    assert (run.code, found["rule"], found["severity"]) == (1, "DPD000", "error")
    assert found["file"] == ("<stdin>" if name == "-" else name)
    plain = dpd("check", name, stdin=text.encode())
    assert plain.code == 1
    assert ("nothing came through standard input" if name == "-" else "the file is empty") in plain.out


def test_a_file_of_nothing_in_a_folder_is_passed_over(dpd: Dpd) -> None:
    Path("empty.yaml").write_text("")
    assert dpd("check", ".").code == 0


@pytest.mark.parametrize("text", ["# nothing\n", "---\n", "---\n---\n", "null\n", "~"])
def test_a_file_of_nothing_is_said_to_hold_nothing(dpd: Dpd, text: str) -> None:
    Path("empty.yaml").write_text(text)
    run = dpd("check", "empty.yaml")
    assert run.code == 0
    assert "not checked: empty.yaml:1 an empty file" in run.out


@pytest.mark.parametrize("text", ["just text\n", "5\n", "[1, 2]\n", "a: 1\n", "kind: 5\n", "kind: [x]\n", "kind: List\nitems: 5\n"])
def test_yaml_that_is_no_endpoint_is_named_and_passed_over(dpd: Dpd, text: str) -> None:
    Path("other.yaml").write_text(text)
    run = dpd("check", "other.yaml", "--json")
    assert run.code == 0
    assert len(json.loads(run.out)["skipped"]) == 1


@pytest.mark.parametrize(
    "text", ["[]", "5", "config: 5", "config: [a]", "a: 1\n---\nb: 2\n", "config:\n  dpd-infra:endpoints: 5\n  aws:region: 5\n"]
)
def test_a_stack_file_of_another_shape_is_an_error(dpd: Dpd, text: str) -> None:
    Path("Pulumi.dev.yaml").write_text(text)
    run = dpd("check", "Pulumi.dev.yaml", "--json")
    assert run.code == 1
    assert {finding["rule"] for finding in json.loads(run.out)["findings"]} == {"DPD000"}


def test_a_project_file_that_cannot_be_read_is_named_as_the_culprit(dpd: Dpd) -> None:
    Path("Pulumi.yaml").write_text("name: x\n\tbad: 1\n")
    Path("Pulumi.dev.yaml").write_text(STACK)
    found = json.loads(dpd("check", "Pulumi.dev.yaml", "--json").out)["findings"]
    assert [(Path(finding["file"]).name, finding["line"]) for finding in found] == [("Pulumi.yaml", 2)]


def test_links_that_go_round_folders_named_as_files_and_files_named_as_folders(dpd: Dpd) -> None:
    Path("round.yaml").symlink_to("round.yaml")
    Path("folder.yaml").mkdir()
    Path("loop").mkdir()
    Path("loop/back").symlink_to("..")
    Path("loop/good.yaml").write_text(MANIFEST)
    Path("dangling.yaml").symlink_to("nowhere.yaml")
    run = dpd("check", "round.yaml", "dangling.yaml", "folder.yaml", "loop", ".", "--json")
    data = json.loads(run.out)
    assert run.code == 1
    assert {(finding["file"], finding["what"]) for finding in data["findings"] if finding["rule"] == "DPD000"} == {
        ("round.yaml", "cannot be opened: too many levels of symbolic links"),
        ("dangling.yaml", "cannot be opened: no such file or directory"),
    }
    assert [entry["file"] for entry in data["endpoints"]] == ["loop/good.yaml"]


def test_a_file_that_may_not_be_read_is_an_error_and_the_others_are_checked(dpd: Dpd, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.yaml").write_text(MANIFEST)
    Path("b.yaml").write_text(MANIFEST)
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "a.yaml":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    run = dpd("check", "a.yaml", "b.yaml", "--json")
    data = json.loads(run.out)
    assert run.code == 1
    assert [finding["what"] for finding in data["findings"] if finding["severity"] == "error"] == ["cannot be opened: permission denied"]
    assert [entry["file"] for entry in data["endpoints"]] == ["b.yaml"]


def test_a_folder_that_may_not_be_looked_into_is_an_error(dpd: Dpd, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("closed").mkdir()
    Path("good.yaml").write_text(MANIFEST)
    listed = os.scandir

    def refuse(folder: Any) -> Any:
        if str(folder).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    data = json.loads(dpd("check", ".", "--json").out)
    assert [(finding["file"], finding["what"]) for finding in data["findings"] if finding["severity"] == "error"] == [
        ("./closed", "cannot be opened: permission denied")
    ]
    assert [entry["file"] for entry in data["endpoints"]] == ["good.yaml"]


@pytest.mark.parametrize(
    ("raw", "is_error"),
    [
        (bytes(range(128, 256)), False),
        (b"#" * (17 * 1024 * 1024), False),
        ("kind: Deployment # \xe9".encode("latin-1"), False),
        ("kind: InferenceEndpointConfig # \xe9".encode("latin-1"), True),
        (b"kind: InferenceEndpointConfig\n#" + b"#" * (17 * 1024 * 1024), True),
        (b"\xff\xfe" + "kind: InferenceEndpointConfig\n".encode("utf-16-le") + b"\x00\xd8", True),
    ],
    ids=["binary", "large", "Latin-1", "Latin-1 of ours", "large of ours", "broken UTF-16 of ours"],
)
def test_what_cannot_be_read_in_a_folder_is_an_error_only_where_it_could_be_ours(dpd: Dpd, raw: bytes, is_error: bool) -> None:
    Path("folder").mkdir()
    Path("folder/other.yaml").write_bytes(raw)
    data = json.loads(dpd("check", "folder", "--json").out)
    assert bool(data["findings"]) == is_error
    assert bool(data["skipped"]) != is_error
    # Named by itself it is an error either way.
    assert dpd("check", "folder/other.yaml").code == 1


def test_a_device_without_an_end_is_read_up_to_the_limit(dpd: Dpd) -> None:
    before = time.process_time()
    run = dpd("check", "/dev/zero")
    assert run.code == 1
    assert "larger than 16 MiB" in run.out
    assert time.process_time() - before < 5


def test_a_pipe_in_a_folder_is_not_waited_for(dpd: Dpd) -> None:
    os.mkfifo("pipe.yaml")
    assert dpd("check", ".").code == 0


def test_what_comes_before_a_broken_document_is_still_checked(dpd: Dpd) -> None:
    Path("all.yaml").write_text(MANIFEST.replace("routingThreshold: 4096", "routingThreshold: x") + "---\na: [\n")
    run = dpd("check", "all.yaml", "--json")
    assert [finding["rule"] for finding in json.loads(run.out)["findings"] if finding["severity"] == "error"] == ["DPD701", "DPD000"]


@pytest.mark.parametrize("more", ["---\na: [\n", "...\na: [\n", "...\n%YAML 1.1\n---\na: 1\n", "%YAML 1.1\n---\na: 1\n", "\tb\n"])
@pytest.mark.parametrize("before", ["", "%YAML 1.1\n---\n", "# c\n---\n...\n"])
def test_fixes_of_one_document_are_written_whatever_stands_around_it(dpd: Dpd, before: str, more: str) -> None:
    broken = MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "4096"')
    Path("all.yaml").write_text(f"{before}{broken}{more}")
    run = dpd("check", "all.yaml", "--fix")
    assert run.code in {0, 1}
    assert Path("all.yaml").read_text() in {f"{before}{MANIFEST}{more}", f"{before}{broken}{more}"}


@pytest.mark.parametrize("digits", [18, 19, 4301, 50_000])
def test_a_number_in_quotes_may_be_of_any_length(dpd: Dpd, digits: int) -> None:
    Path("made.yaml").write_text(MANIFEST.replace("routingThreshold: 4096", f'routingThreshold: "{"9" * digits}"'))
    run = dpd("check", "made.yaml", "--json")
    assert [finding["rule"] for finding in json.loads(run.out)["findings"] if finding["severity"] == "error"] == ["DPD701"]


def test_ten_megabytes_of_manifests_are_checked_in_bounded_time_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    count = 10 * 1024 * 1024 // len(MANIFEST)
    path.write_text("---\n".join(MANIFEST.replace("dpd-test", f"e{number}") for number in range(count)))
    code = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "from dpd_infra.cli import main\nsys.argv = ['dpd', 'check', '--sarif', sys.argv[1]]\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout)["runs"][0]["results"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
SOME = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


@SOME
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), VALUES))
def test_no_endpoint_whatever_its_values_makes_a_rule_raise(parts: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "inference.sagemaker.aws.amazon.com/v1", "kind": "InferenceEndpointConfig", **parts})
    checked = check_bytes(text.encode(), "made.yaml", Path("made.yaml"))
    assert checked.findings


@SOME
@given(broken_documents())
def test_a_manifest_broken_in_one_field_makes_no_rule_raise(broken: tuple[dict[str, Any], str]) -> None:
    document, _ = broken
    try:
        text = json.dumps(document, allow_nan=False).encode()
    except ValueError:
        return
    for finding in check_bytes(text, "made.yaml", Path("made.yaml")).findings:
        assert finding.file == "made.yaml"
        assert finding.what


@pytest.mark.parametrize(
    "part",
    [
        "spec: 5",
        "spec: [1]",
        "spec: {pdSpec: 5}",
        "spec: {pdSpec: {prefillSpec: [], decodingSpec: x}}",
        "spec: {worker: {args: 5, environmentVariables: {a: 1}, resources: [1]}}",
        "spec: {worker: {args: [1, [2], {}], environmentVariables: [1, null, {name: 5}], resources: {limits: 5}}}",
        "spec: {instanceTypes: 5, instanceType: [x], nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: 5}}",
        "spec: {autoScalingSpec: {maxReplicaCount: x, cloudWatchTrigger: 5, prometheusTriggerList: [5]}}",
        "metadata: 5",
        "metadata: {name: 5, namespace: [], labels: 5, annotations: [1]}",
        "spec: {tags: 5, kubernetes: {volumes: {}, tolerations: 5}, tlsConfig: 5, dnsConfig: [], metrics: {modelMetrics: 5}}",
    ],
)
def test_values_of_the_wrong_kind_are_errors_and_no_traceback(dpd: Dpd, part: str) -> None:
    Path("made.yaml").write_text(f"{HEAD}{part}\n")
    run = dpd("check", "made.yaml", "--json")
    assert run.code == 1
    assert "DPD701" in {finding["rule"] for finding in json.loads(run.out)["findings"]}
    Path("Pulumi.dev.yaml").write_text(f"{STACK}      overrides: {{{part}}}\n")
    assert dpd("check", "Pulumi.dev.yaml").code == 1
