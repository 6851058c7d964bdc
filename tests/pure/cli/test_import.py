"""`dpd import`: manifests in, entries of a stack file out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpd_infra.render.endpoint import endpoint_context, render_endpoint
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.yaml_source import load_document
from tests.pure.cli.conftest import MANIFEST, SERVICE, STACK, Dpd
from tests.pure.cli.test_check import write
from tests.pure.yaml.test_hostile_yaml import PROBLEMS


def test_the_printed_entry_is_a_stack_entry_that_renders_back(dpd: Dpd) -> None:
    write(endpoint=MANIFEST)
    run = dpd("import", "endpoint.yaml")
    assert (run.code, run.err) == (0, "")
    (name, entry), *others = load_document(run.out).data.items()
    assert not others
    context = endpoint_context(name, region="us-east-2", addon_version="")
    assert render_endpoint(name, EndpointSpec.from_yaml_data(entry), context).document == load_document(MANIFEST).data


def test_an_entry_goes_into_a_stack_file_as_it_is_printed(dpd: Dpd) -> None:
    printed = dpd("import", "-", stdin=MANIFEST).out
    entry = "".join(f"    {line}\n" for line in printed.splitlines())
    Path("Pulumi.dev.yaml").write_text(f"{STACK.replace('count: 3', 'count: 5')}{entry}")
    run = dpd("render", "Pulumi.dev.yaml", "--endpoint", "dpd-test")
    assert load_document(run.out).data == load_document(MANIFEST).data


def test_several_manifests_become_several_entries_and_other_kinds_are_named(dpd: Dpd) -> None:
    write(all=f"{MANIFEST}---\n{SERVICE}---\n{MANIFEST.replace('dpd-test', 'second')}")
    run = dpd("import", "all.yaml")
    assert list(load_document(run.out).data) == ["dpd-test", "second"]
    assert run.err == "dpd: not imported: Service web\n"


def test_what_differs_is_said_on_standard_error_and_ends_with_1(dpd: Dpd) -> None:
    write(endpoint=MANIFEST.replace("  namespace: default\n", ""))
    run = dpd("import", "endpoint.yaml")
    assert run.code == 1
    assert run.err == 'dpd: dpd-test: differs: metadata.namespace is added: "default"\n'
    assert load_document(run.out).data
    assert dpd("import", "endpoint.yaml", "--namespace", "default").code == 0


def test_json_holds_entries_differences_and_what_was_left_out(dpd: Dpd) -> None:
    write(endpoint=f"{MANIFEST}status: {{state: DeploymentComplete}}\n")
    data = json.loads(dpd("import", "endpoint.yaml", "--json").out)
    assert data["ok"] is True
    assert list(data["endpoints"]) == ["dpd-test"]
    assert (data["differences"], data["leftOut"], data["skipped"]) == ({"dpd-test": []}, {"dpd-test": ["status"]}, [])


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (SERVICE, 1, "holds no InferenceEndpointConfig: Service web"),
        ("", 1, "holds no InferenceEndpointConfig"),
        (MANIFEST.replace("name: dpd-test", "generateName: x-", 1), 1, "a manifest without metadata.name"),
        (f"{MANIFEST}---\n{MANIFEST}", 1, "dpd-test stands in endpoint.yaml more than once"),
        (MANIFEST.replace("name: dpd-test", "name: 9x", 1), 1, "'9x' cannot be an entry's name"),
    ],
)
def test_what_has_no_entry_is_one_line(dpd: Dpd, text: str, code: int, said: str) -> None:
    write(endpoint=text)
    run = dpd("import", "endpoint.yaml")
    assert run.code == code
    assert said in run.err
    assert run.err.count("\n") == 1


@pytest.mark.parametrize("name", sorted(set(PROBLEMS) - {"half a surrogate pair"}))
def test_a_file_that_cannot_be_read_is_one_line_with_its_place(dpd: Dpd, name: str) -> None:
    text, what, line, _ = PROBLEMS[name]
    Path("endpoint.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    run = dpd("import", "endpoint.yaml")
    assert run.code == 1
    assert what in run.err
    assert run.err.count("\n") == 1
    assert line == 0 or f"endpoint.yaml:{line}" in run.err


def test_a_file_that_is_not_there_is_wrong_usage(dpd: Dpd) -> None:
    Path("folder").mkdir()
    assert dpd("import", "missing.yaml").code == 2
    assert dpd("import", "folder").code == 2
    assert dpd("import").code == 2
