"""YAML is read as the Go programs read it that will read it later, and every value knows where it stands."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.spec.yaml_source import Dialect, Document, YamlProblem, load_document, load_documents
from dpd_infra.spec.yaml_writing import write_yaml

KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
# PyYAML writes 0E0 and 0o7 without quotes: text to YAML 1.1, numbers to Go's readers.
WORDS = KEYS.filter(lambda text: text[0] not in "-+.0123456789")
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20)
PLAIN_KEYS = st.text("abcd", min_size=1, max_size=4)
PLAIN_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_KEYS, inner, max_size=4), max_leaves=20
)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [entry for key, part in items for entry in [((*path, key), part), *paths(part, (*path, key))]]


# From resolve.go of yaml.v3 and of sigs.k8s.io/yaml/goyaml.v2: what the word is to Pulumi, and what it is to kubectl where they differ.
SCALAR_WORDS = [
    ("true", True, True),
    ("False", False, False),
    ("yes", "yes", True),
    ("No", "No", False),
    ("on", "on", True),
    ("OFF", "OFF", False),
    ("y", "y", True),
    ("N", "N", False),
    ("yEs", "yEs", "yEs"),
    ("~", None, None),
    ("Null", None, None),
    ("12", 12, 12),
    ("+1", 1, 1),
    ("-0x1F", -31, -31),
    ("0b101", 5, 5),
    ("0o17", 15, 15),
    ("017", 15, 15),
    ("09", 9.0, 9.0),
    ("1_000", 1000, 1000),
    ("18446744073709551615", 2**64 - 1, 2**64 - 1),
    ("18446744073709551616", 2.0**64, 2.0**64),
    ("1e3", 1000.0, 1000.0),
    (".5", 0.5, 0.5),
    ("1.", 1.0, 1.0),
    ("1e999", "1e999", "1e999"),
    (".inf", math.inf, math.inf),
    ("-.Inf", -math.inf, -math.inf),
    ("12:30", "12:30", "12:30"),
    ("1.31", 1.31, 1.31),
    ("1.31.2", "1.31.2", "1.31.2"),
    ("0x", "0x", "0x"),
    ("2026-06-12", "2026-06-12", "2026-06-12"),
]


@pytest.mark.parametrize(("word", "pulumi", "kubernetes"), SCALAR_WORDS)
def test_an_unquoted_word_means_what_it_means_to_the_program_that_reads_the_file(word: str, pulumi: Any, kubernetes: Any) -> None:
    for dialect, expected in ((Dialect.PULUMI, pulumi), (Dialect.KUBERNETES, kubernetes)):
        value = load_document(f"a: {word}", dialect=dialect).data["a"]
        assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize("word", [word for word, _, _ in SCALAR_WORDS])
def test_a_quoted_word_is_text(word: str) -> None:
    for dialect in Dialect:
        assert load_document(f"a: '{word}'\nb: \"{word}\"\nc: !!str {word}", dialect=dialect).data == {"a": word, "b": word, "c": word}


def test_a_key_that_is_a_boolean_word_becomes_what_kubectl_sends() -> None:
    assert load_document("on: 1\n0x10: 2\n'no': 3", dialect=Dialect.KUBERNETES).data == {"true": 1, "16": 2, "no": 3}
    assert load_document("on: 1").data == {"on": 1}


@given(VALUES)
def test_what_another_library_wrote_is_read_back(value: Any) -> None:
    for flow in (True, False):
        text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow)
        read = load_document(text).data
        assert read == value


@given(st.dictionaries(PLAIN_KEYS, PLAIN_VALUES, min_size=1, max_size=4), st.booleans())
def test_every_key_and_item_is_found_at_its_place(value: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow)
    document = load_document(text)
    lines = text.split("\n")
    for path, part in paths(value):
        position = document.locate(path)
        here = lines[position.line - 1][position.column - 1 :]
        if isinstance(path[-1], str):
            assert here.startswith(f"{path[-1]}:")
        span = document.span(path)
        assert span is not None
        # A block collection's lines mean nothing without their indentation.
        if flow or not isinstance(part, (dict, list)):
            assert load_document(text[slice(*span)]).data == part


def test_positions_count_characters_and_lines_as_editors_do() -> None:
    document = load_document("# é\r\na:\r\n  - ü: 1\r\n    b: {c: 2, d: [3, 4]}\r\n")
    assert [(document.locate(path).line, document.locate(path).column) for path in [("a",), ("a", 0), ("a", 0, "b", "d", 1)]] == [
        (2, 1),
        (3, 5),
        (4, 22),
    ]
    assert document.source_line(4) == "    b: {c: 2, d: [3, 4]}"
    assert document.source_line(99) == ""


def test_a_place_that_is_not_there_is_its_nearest_ancestor() -> None:
    document = load_document("a:\n  b: 1\n")
    assert document.locate(("a", "x", "y")) == document.locate(("a",))
    assert document.span(("a", "x")) is None


def test_anchors_and_merges_read_as_they_expand_and_own_keys_win() -> None:
    text = "base: &base {p: 1, q: 2}\nother: &other {q: 3, r: 4}\nall:\n  p: 0\n  <<: [*base, *other]\ncopy: *base\n"
    document = load_document(text)
    assert document.data["all"] == {"p": 0, "q": 2, "r": 4}
    assert document.data["copy"] == {"p": 1, "q": 2}
    # A merged key stands where it was written; it has no text of its own to change here.
    assert document.locate(("all", "q")).line == 1
    assert document.span(("all", "q")) is None
    # Each copy is its own: changing one does not change the other.
    document.data["copy"]["p"] = 9
    assert document.data["base"]["p"] == 1


def test_documents_come_one_by_one_with_their_places_in_the_whole_file() -> None:
    documents = list(load_documents("a: 1\n---\n---\nb: 2\n...\n---\n- c\n"))
    assert [(document.index, document.data) for document in documents] == [(0, {"a": 1}), (1, None), (2, {"b": 2}), (3, ["c"])]
    assert documents[2].locate(("b",)).line == 4


@pytest.mark.parametrize(
    "raw",
    [
        "a: é".encode(),
        b"\xef\xbb\xbf" + "a: é".encode(),
        b"\xff\xfe" + "a: é".encode("utf-16-le"),
        b"\xfe\xff" + "a: é".encode("utf-16-be"),
    ],
)
def test_the_encodings_that_yaml_readers_take_are_taken(raw: bytes) -> None:
    document: Document = load_document(raw)
    assert document.data == {"a": "é"}
    assert document.locate(("a",)).column == 1


def test_an_empty_text_is_no_data_and_two_documents_are_not_one() -> None:
    assert load_document("").data is None
    assert load_document("# only a comment\n").data is None
    with pytest.raises(YamlProblem, match="more than one document"):
        load_document("a: 1\n---\nb: 2\n")


@given(st.dictionaries(st.text(), VALUES | st.text(), max_size=3))
def test_what_is_written_is_read_back_by_every_reader(value: dict[str, Any]) -> None:
    text = write_yaml(value)
    assert yaml.safe_load(text) == value
    for dialect in Dialect:
        assert load_document(text, dialect=dialect).data == value


@pytest.mark.parametrize("word", [word for word, _, _ in SCALAR_WORDS])
def test_text_that_some_reader_takes_for_something_else_is_written_in_quotes(word: str) -> None:
    for dialect in Dialect:
        assert load_document(write_yaml({"a": word}), dialect=dialect).data == {"a": word}
