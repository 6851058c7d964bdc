"""`--fix` writes what is safe, touches nothing else, and never leaves a file with more errors than it had."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpd_infra.render.provenance import leaves
from dpd_infra.rules import fixing
from dpd_infra.rules.fixing import improve, split_documents, write_atomically, write_patch
from dpd_infra.rules.yaml_edits import CannotPatch, carried_over
from dpd_infra.spec.finding import Finding, Patch, Severity
from dpd_infra.spec.yaml_source import Dialect, load_document, load_documents
from dpd_infra.spec.yaml_writing import write_yaml
from tests.pure.cli.conftest import MANIFEST, STACK, Dpd
from tests.pure.cli.test_check import write

TEXT = """\
# top
config:   # c
  a: { b: "3", c: 1.30 }   # keep

  env:
    # first
    NIXL: UCX   # gone
    # about next
    HF: x
  list:
  - name: A
    value: "1"
  # between
  - name: B
    value: 2
  long: [1,2,   3]
  none:
"""

Case = tuple[Patch, list[str], list[str]]
"""A patch, the lines that go and the lines that come."""

CASES: dict[str, Case] = {
    "a scalar in a flow mapping": (
        Patch(("config", "a", "b"), 3),
        ['  a: { b: "3", c: 1.30 }   # keep'],
        ["  a: { b: 3, c: 1.30 }   # keep"],
    ),
    "a number meant as text keeps its spelling": (
        Patch(("config", "a", "c"), "1.3"),
        ['  a: { b: "3", c: 1.30 }   # keep'],
        ['  a: { b: "3", c: "1.30" }   # keep'],
    ),
    "a key with a comment is taken out": (Patch(("config", "env", "NIXL"), remove=True), ["    NIXL: UCX   # gone"], []),
    "a key is added to a block": (Patch(("config", "env", "NEW"), "0"), [], ['    NEW: "0"']),
    "an entry is added to a list": (
        Patch(("config", "list", 2), {"name": "C", "value": "on"}),
        [],
        ["  - name: C", '    value: "on"'],
    ),
    "an entry is taken out of a list": (Patch(("config", "list", 0), remove=True), ["  - name: A", '    value: "1"'], []),
    "the first key of an entry is taken out": (
        Patch(("config", "list", 0, "name"), remove=True),
        ["  - name: A", '    value: "1"'],
        ['  - value: "1"'],
    ),
    "keys on the way are made": (Patch(("config", "x", "y", "z"), value=True), [], ["  x:", "    y:", "      z: true"]),
    "one item of an odd list": (Patch(("config", "long", 1), "q"), ["  long: [1,2,   3]"], ["  long: [1,q,   3]"]),
    "an item is added to an odd list": (Patch(("config", "long", 3), 4), ["  long: [1,2,   3]"], ["  long: [1,2,   3, 4]"]),
    "an item is taken out of an odd list": (Patch(("config", "long", 0), remove=True), ["  long: [1,2,   3]"], ["  long: [2,   3]"]),
    "nothing becomes a value": (Patch(("config", "none"), "v w"), ["  none:"], ["  none: v w"]),
    "a key is added to a flow mapping": (
        Patch(("config", "a", "new"), "z"),
        ['  a: { b: "3", c: 1.30 }   # keep'],
        ['  a: { b: "3", c: 1.30, new: z }   # keep'],
    ),
    "a key is taken out of a flow mapping": (
        Patch(("config", "a", "b"), remove=True),
        ['  a: { b: "3", c: 1.30 }   # keep'],
        ["  a: { c: 1.30 }   # keep"],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_patch_changes_the_lines_it_is_about_and_no_other(name: str, newline: str) -> None:
    patch, gone, come = CASES[name]
    before, after = TEXT.splitlines(), write_patch(TEXT.replace("\n", newline), patch).split(newline)
    assert after[-1] == ""
    kept = [line for line in before if line not in gone]
    assert [line for line in after[:-1] if line not in come] == kept
    assert [line for line in after if line in come] == come


def test_a_value_that_comes_from_an_anchor_is_not_written_elsewhere() -> None:
    text = "base: &base {a: 1}\nown:\n  <<: *base\ncopy: *base\n"
    with pytest.raises(CannotPatch):
        write_patch(text, Patch(("copy", "a"), 2))
    assert write_patch(text, Patch(("own", "b"), 2)) == "base: &base {a: 1}\nown:\n  <<: *base\n  b: 2\ncopy: *base\n"


def test_what_another_layout_changed_is_carried_over_where_the_layouts_agree() -> None:
    own, before, after = "a:   1\nb: 2\nc: 3\n", "a: 1\nb: 2\nc: 3\n", "a: 1\nb: 9\nc: 3\nd: 4\n"
    assert carried_over(own, before, after) == "a:   1\nb: 9\nc: 3\nd: 4\n"
    with pytest.raises(CannotPatch):
        carried_over(own, before, "a: 9\nb: 2\nc: 3\n")


@pytest.mark.parametrize("text", [TEXT, STACK, MANIFEST], ids=["commented", "stack", "manifest"])
def test_every_value_of_a_file_can_be_set_and_taken_out_without_a_comment_lost(text: str) -> None:
    comments = [line.partition("#")[2] for line in text.splitlines() if line.lstrip().startswith("#")]
    for path, _ in leaves(load_document(text).data):
        for patch in (Patch(path, "new"), Patch(path, remove=True)):
            changed = write_patch(text, patch)
            data: Any = load_document(changed).data
            for step in path[:-1]:
                data = data[step]
            assert patch.remove or data[path[-1]] == "new"
            assert [line.partition("#")[2] for line in changed.splitlines() if line.lstrip().startswith("#")] == comments


KEYS = st.text("abcde", min_size=1, max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab #:-'\"y0.", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def patches(draw: st.DrawFn, value: Any) -> Patch:
    path: list[str | int] = []
    while isinstance(value, (dict, list)) and (not path or draw(st.booleans())):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        new = draw(KEYS) if isinstance(value, dict) else len(value)
        step: Any = draw(st.sampled_from([*keys, new]))
        path.append(step)
        value = value[step] if step in keys else None
        if step not in keys:
            return Patch(tuple(path), draw(VALUES))
    return Patch(tuple(path), remove=True) if draw(st.booleans()) else Patch(tuple(path), draw(VALUES))


@settings(max_examples=150)
@given(
    st.data(), st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.sampled_from([None, True, False]), st.sampled_from(list(Dialect))
)
def test_any_patch_is_written_exactly_or_refused(data: st.DataObject, value: dict[str, Any], flow: bool | None, dialect: Dialect) -> None:
    import yaml

    text = write_yaml(value) if flow is None else yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    before = load_document(text, dialect=dialect).data
    patch = data.draw(patches(before))
    try:
        changed = write_patch(text, patch, dialect)
    except CannotPatch:
        return
    after = load_document(changed, dialect=dialect).data
    place, other = after, before
    steps: list[Any] = list(patch.path)
    for step in steps[:-1]:
        place, other = place[step], other[step] if isinstance(other, (dict, list)) else {}
    if patch.remove:
        assert (steps[-1] not in place) if isinstance(place, dict) else len(place) == len(other) - 1
    elif not isinstance(place[steps[-1]], str):
        assert place[steps[-1]] == patch.value
    rest = {key: part for key, part in before.items() if key != steps[0]}
    assert {key: part for key, part in after.items() if key != steps[0]} == rest


LINES = ("---\n", "a: 1\n", "# c\n", "\n", "--- \n", "- x\n", "---# no\n", "...\n", "...\n%YAML 1.1\n# c\n---\n", "--- b\r\n")


@given(st.lists(st.sampled_from(LINES), max_size=8))
def test_a_text_falls_into_its_documents_and_back(lines: list[str]) -> None:
    text = "".join(lines)
    parts = split_documents(text)
    assert "".join(parts) == text
    try:
        documents = [document.data for document in load_documents(text)]
        apart = [document.data for part in parts for document in load_documents(part)]
    except Exception:  # noqa: BLE001 - not every list of lines is YAML
        return
    assert apart == documents


def finding(patch: Patch, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("DPD999", severity, patch.path, "what", "why", "fix", patch=patch)


def test_a_patch_that_brings_an_error_is_left_and_the_others_are_written() -> None:
    text = "a: 1\nb: 2\nc: 3\n"
    good, bad = finding(Patch(("a",), 10)), finding(Patch(("b",), "bad"))

    def count(changed: str) -> int:
        data = load_document(changed).data
        return (data["a"] != 10) + 3 * (data["b"] == "bad") + 1

    improved = improve(text, [good, bad], Dialect.PULUMI, count)
    assert improved.text == "a: 10\nb: 2\nc: 3\n"
    assert (improved.applied, improved.left) == ((good,), (bad,))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=5), st.randoms(use_true_random=False))
def test_no_text_ever_gets_more_errors(wanted: list[tuple[str, int]], chance: random.Random) -> None:
    text = "a: 1\nb: 2\nc: 3\n"
    costs = {(key, value): chance.randrange(4) for key in "abc" for value in range(6)}

    def count(changed: str) -> int:
        return sum(costs.get((key, value), 0) for key, value in load_document(changed).data.items())

    improved = improve(text, [finding(Patch((key,), value)) for key, value in wanted], Dialect.PULUMI, count)
    assert count(improved.text) <= count(text)


COMMENTED = STACK.replace("replicas: 1}", 'replicas: "1"} # one is enough', 1).replace("strategy: prefixaware", "strategy: PrefixAware")


def test_fix_writes_the_file_shows_the_change_and_reports_what_is_left(dpd: Dpd) -> None:
    write(Pulumi_dot_dev=COMMENTED)
    assert dpd("check", "Pulumi.dev.yaml").code == 1
    run = dpd("check", "--fix", "Pulumi.dev.yaml")
    assert run.code == 0
    assert '-      prefill: {replicas: "1"} # one is enough\n+      prefill: {replicas: 1} # one is enough\n' in run.out
    assert Path("Pulumi.dev.yaml").read_text() == COMMENTED.replace('"1"', "1").replace("PrefixAware", "prefixaware")


def test_diff_shows_the_same_and_writes_nothing(dpd: Dpd) -> None:
    write(Pulumi_dot_dev=COMMENTED)
    shown = dpd("check", "--diff", "Pulumi.dev.yaml")
    assert Path("Pulumi.dev.yaml").read_text() == COMMENTED
    assert shown.code == 1
    written = dpd("check", "--fix", "Pulumi.dev.yaml")
    change = [line for line in shown.out.splitlines() if line.startswith(("+", "-"))]
    assert change
    assert change == [line for line in written.out.splitlines() if line.startswith(("+", "-"))]


def test_a_file_of_many_manifests_is_fixed_document_by_document(dpd: Dpd) -> None:
    wrong = MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "4096"')
    text = f"# head\n{wrong}---\n# second\n{wrong.replace('dpd-test', 'second')}---\n{MANIFEST.replace('dpd-test', 'third')}"
    write(all=text)
    run = dpd("check", "--fix", "--json", "all.yaml")
    assert run.code == 0
    assert Path("all.yaml").read_text() == text.replace('"4096"', "4096")
    assert json.loads(run.out)["diff"].count("+    routingThreshold: 4096") == 2


def test_a_good_file_is_not_touched(dpd: Dpd) -> None:
    write(endpoint=MANIFEST)
    path = Path("endpoint.yaml")
    os.utime(path, (1, 1))
    dpd("check", "--fix", "endpoint.yaml")
    assert path.stat().st_mtime == 1
    assert path.read_text() == MANIFEST


@pytest.mark.parametrize(
    ("mark", "codec"), [(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]
)
def test_a_file_keeps_its_encoding(dpd: Dpd, mark: bytes, codec: str) -> None:
    text = MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "4096" # é')
    Path("endpoint.yaml").write_bytes(mark + text.encode(codec))
    assert dpd("check", "--fix", "endpoint.yaml").code == 0
    assert Path("endpoint.yaml").read_bytes() == mark + text.replace('"4096"', "4096").encode(codec)


def test_a_link_stays_a_link_and_the_mode_stays(dpd: Dpd) -> None:
    write(real__endpoint=MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "4096"'))
    Path("real/endpoint.yaml").chmod(0o640)
    Path("link.yaml").symlink_to("real/endpoint.yaml")
    assert dpd("check", "--fix", "link.yaml").code == 0
    assert Path("link.yaml").is_symlink()
    assert Path("real/endpoint.yaml").read_text() == MANIFEST
    assert stat.S_IMODE(Path("real/endpoint.yaml").stat().st_mode) == 0o640


def test_a_file_that_cannot_be_written_stays_whole_and_no_other_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "endpoint.yaml"
    path.write_text("old")

    def full(descriptor: int) -> None:
        del descriptor
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fixing.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new", "utf-8")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["endpoint.yaml"]


def test_a_change_that_cannot_be_written_is_one_line(dpd: Dpd, monkeypatch: pytest.MonkeyPatch) -> None:
    write(endpoint=MANIFEST.replace("routingThreshold: 4096", 'routingThreshold: "4096"'))
    monkeypatch.setattr(fixing.tempfile, "mkstemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    run = dpd("check", "--fix", "endpoint.yaml")
    assert run.code == 1
    assert run.err == "dpd: endpoint.yaml cannot be written: permission denied\n"
