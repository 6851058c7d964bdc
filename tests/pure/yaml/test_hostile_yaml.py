"""Input made to hurt ends in one clear report, with the place, in bounded time and memory."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.spec.yaml_source import Dialect, YamlProblem, load_documents

MANY = 10 * 1024 * 1024


def explosion() -> str:
    levels = "".join(f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12))
    return f"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n{levels}"


def merge_explosion() -> str:
    first = ", ".join(f"k{number}: 1" for number in range(100))
    return f"m0: &m0 {{{first}}}\n" + "".join(f"m{level}: &m{level} {{<<: *m{level - 1}, own{level}: 1}}\n" for level in range(1, 2000))


def alias_tower() -> str:
    return "a0: &a0 [x]\n" + "".join(f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 500))


PROBLEMS: dict[str, tuple[str | bytes, str, int, str]] = {
    "anchors that explode": (explosion(), "anchors expand to more than", 5, ""),
    "merges that explode": (merge_explosion(), "anchors expand to more than", 0, ""),
    "a tower of aliases": (alias_tower(), "nested deeper than 100 levels", 0, ""),
    "an anchor that contains itself": ("a: &a [*a]", "the anchor &a contains itself", 1, ""),
    "an alias of nothing": ("a: *b", "there is no &b before it", 1, ""),
    "deep flow lists": ("[" * 1_000_000, "maximum nesting depth", 1, ""),
    "deep flow mappings": ("{a: " * 200_000, "nested deeper than 100 levels", 1, ""),
    "deep block lists": ("- " * 1_000_000, "nested deeper than 100 levels", 1, ""),
    "deep indentation": ("\n".join(f"{' ' * level}a:" for level in range(2000)), "nested deeper than 100 levels", 102, ""),
    "deep complex keys": ("? " * 100_000, "a key that is a list, a mapping or an alias", 1, "write the key out as text"),
    "a NUL character": (b"a: 1\nb: \x00\n", "a NUL character", 2, "binary or damaged"),
    "UTF-16 without a mark": ("a: 1".encode("utf-16-le"), "a NUL character", 1, "save the file as UTF-8"),
    "UTF-32": ("a: 1".encode("utf-32"), "UTF-32 text", 0, "save the file as UTF-8"),
    "Latin-1": ("a: 1\nb: é\n".encode("latin-1"), "not UTF-8 text: byte 8", 2, "save the file as UTF-8"),
    "half a UTF-16 character": (b"\xff\xfea\x00:\x00 \x00\x00\xd8", "not UTF-16 text", 1, "save the file as UTF-8"),
    "half a surrogate pair": ("a: \ud800", "half of a surrogate pair", 0, "save the file as UTF-8"),
    "a control character": ("a: 1\nb: \x07\n", "a control character, U+0007", 2, "remove it"),
    "an executable": (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 4, "not UTF-8 text", 0, ""),
    "more than the limit": (b"#" * (17 * 1024 * 1024), "larger than 16 MiB", 0, "split it"),
    "a document of too many values": ("a:\n" + "  - 1\n" * 200_000, "a document of more than 100,000 values", 100_000, "split it"),
    "too many documents": ("---\n" * 400_000, "more documents than one file may hold", 20_001, "split the file"),
    "not YAML": ("a: b: c", "mapping values are not allowed", 1, "in quotes"),
    "an open quote": ('a: 1\nb: "x\n', "unexpected end of stream", 3, "close the quote"),
    "a tab": ("a:\n\tb: 1\n", "a tab where YAML wants spaces", 2, "indent with spaces"),
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", "the key 'a' stands twice, first in line 1", 3, "keep one of the two"),
    "a duplicate key inside": ("x:\n  - {a: 1, a: 2}\n", "the key 'a' stands twice, first in line 2", 2, "keep one of the two"),
    "a key that is a list": ("? [x]\n: 1", "a key that is a list", 1, "write the key out as text"),
    "a merge of no mapping": ("a: 1\n<<: 2\n", "merges mappings only", 2, ""),
    "a merge of nested lists": ("a: &a {x: 1}\nb: {<<: [[*a]]}\n", "merges mappings only", 2, ""),
    "a Python object": ("a: !!python/object/apply:os.system [ls]", "!!python/object/apply:os.system means nothing here", 1, "leave it out"),
    "a tag of its own": ("a: 1\nb: !Ref x\n", "the tag !Ref means nothing here", 2, "leave it out"),
    "a tag that does not fit": ("a: !!int x", "'x' is no !!int", 1, ""),
    "binary that is none": ("a: !!binary '%%%'", "!!binary with what is not base64", 1, ""),
    "a template": ("a: 1\nb: {{ .Values.b }}\n", "not YAML but a template", 2, "helm template"),
    "a template's branch": ("a: 1\n{{- if .Values.x }}\nb: 2\n{{- end }}\n", "not YAML but a template", 2, "helm template"),
    "a version that does not exist": ("%YAML 7.0\n---\na: 1", "incompatible YAML document", 1, ""),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_cannot_be_read_is_one_problem_with_its_place(name: str) -> None:
    text, what, line, fix = PROBLEMS[name]
    before = time.process_time()
    with pytest.raises(YamlProblem) as raised:
        list(load_documents(text))
    problem = raised.value
    assert what in problem.what
    assert fix in problem.fix
    assert line in {0, problem.line}
    assert "\n" not in problem.what
    # Seconds of processor time, far above what any of them takes.
    assert time.process_time() - before < 5


READABLE: dict[str, str] = {
    "one long text": "a: " + "x" * MANY,
    "one long quoted text": 'a: "' + "x\\n" * (MANY // 3) + '"',
    "one long block": "a: |\n" + "  a line of text\n" * (MANY // 17),
    "many words": "a: " + "word " * (MANY // 5),
    "one long comment": "#" * MANY + "\na: 1",
    "empty lines": "\n" * MANY + "a: 1",
    "spaces": "a: 1" + " " * MANY,
    "many documents": "---\na: 1\n" * 15_000,
}


@pytest.mark.parametrize("name", READABLE)
def test_ten_megabytes_are_read_in_seconds(name: str) -> None:
    before = time.process_time()
    last = list(load_documents(READABLE[name]))[-1]
    assert set(last.data) == {"a"}
    assert time.process_time() - before < 10


def test_the_memory_that_ten_megabytes_take_is_bounded() -> None:
    # In a process of its own under a limit: 10 MB of small documents, read one by one, in far less than a gigabyte.
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from dpd_infra.spec.yaml_source import load_documents\n"
        "text = '---\\n' + 'a: {b: [1, 2, 3], c: text}\\n'\n"
        "print(sum(1 for _ in load_documents(text * 10_000)))\n"
        "try:\n"
        "    list(load_documents('a:\\n' + ''.join(f'  k{n}: &n{n} value number {n} and more\\n' for n in range(250_000))))\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["10000", "a document of more than 100,000 values"], done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20


def refusal(text: str | bytes, dialect: Dialect = Dialect.PULUMI) -> YamlProblem | None:
    """What is said of a text that cannot be read; any other exception is the test's failure."""
    try:
        for document in load_documents(text, dialect=dialect):
            document.locate(("a", 0, "b"))
    except YamlProblem as problem:
        return problem
    return None


@given(st.binary(max_size=400), st.sampled_from(list(Dialect)))
def test_bytes_of_any_kind_are_read_or_refused_and_nothing_else_is_raised(raw: bytes, dialect: Dialect) -> None:
    problem = refusal(raw, dialect)
    assert problem is None or problem.what


@given(st.text(st.sampled_from(list("ab01:-?[]{},&*!|>'\"%@`#~<= \n\t.")), max_size=60), st.sampled_from(list(Dialect)))
def test_texts_of_yaml_signs_are_read_or_refused_and_nothing_else_is_raised(text: str, dialect: Dialect) -> None:
    problem = refusal(text, dialect)
    assert problem is None or problem.what


def test_a_valid_file_with_any_one_byte_changed_is_read_or_refused() -> None:
    whole = b"config:\n  aws:region: us-east-2\n  dpd-infra:endpoints:\n    a: &x {model: {name: 'b', s3: [1, 2.5, ~]}}\n    c: *x\n"
    chance = random.Random(7)
    refused = 0
    for _ in range(3000):
        raw = bytearray(whole)
        raw[chance.randrange(len(raw))] = chance.randrange(256)
        refused += refusal(bytes(raw)) is not None
    assert 0 < refused < 3000
