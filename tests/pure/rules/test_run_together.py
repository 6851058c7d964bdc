"""An entry that holds several words: the fix is the list that was meant, JSON whole, and every other rule reads it so."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpd_infra.plan.worker_args import server_args
from dpd_infra.spec.vocabulary import Role
from tests.pure.rules.kit import more, raw

NAMES = st.sampled_from(["--hf-overrides", "--override-generation-config", "-cc", "--mm-processor-kwargs"])
LEAVES = st.none() | st.booleans() | st.integers(-9, 10**6) | st.text(max_size=6)
DATA = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2), max_leaves=4
)
VALUES = st.lists(DATA, max_size=2) | st.dictionaries(st.text(max_size=4), DATA, max_size=3)
STYLES = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])


def fix_of(entry: str) -> tuple[list[str], int]:
    """The words that DPD018 tells for an entry, as YAML reads them when they are pasted into a list, and how many it says they are."""
    (found,) = [finding for finding in raw(more(entry)).findings if finding.rule == "DPD018"]
    told, _, count = found.fix.removeprefix("write ").removesuffix(" entries").rpartition(" as ")
    return yaml.safe_load(f"[{told}]"), int(count)


@given(NAMES, VALUES, STYLES, st.booleans(), st.sampled_from([[], ["--port", "8000"]]))
@example("--hf-overrides", {"'": ["\x85\u00a0"]}, {"ensure_ascii": False}, True, [])
@settings(max_examples=150, deadline=None)
def test_json_behind_its_flag_is_one_entry_of_the_fix(
    name: str, value: object, style: dict[str, object], quoted: bool, more_words: list[str]
) -> None:
    text = json.dumps(value, **style)  # pyright: ignore[reportArgumentType]
    entry = " ".join([name, shlex.quote(text) if quoted else text, *more_words])
    words = [name, text, *more_words]
    if sum(map(len, words)) <= 900 and "…" not in str(raw(more(entry)).findings):
        assert fix_of(entry) == (words, len(words))
    apart, together = (server_args(raw(more(*written)).data, Role.PREFILL) for written in (words, [entry]))
    assert [(flag.name, flag.value) for flag in together.flags] == [(flag.name, flag.value) for flag in apart.flags]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('--hf-overrides {"json": 1}', ["--hf-overrides", '{"json": 1}']),
        # What a shell and JSON both use quotes for.
        ("""--hf-overrides '{"a": "it's"}' --port 8000""", ["--hf-overrides", """{"a": "it's"}""", "--port", "8000"]),
        ("""--hf-overrides {"a": "it's } ]"} -x""", ["--hf-overrides", """{"a": "it's } ]"}""", "-x"]),
        (r"--hf-overrides {'a': [1, 2]}", ["--hf-overrides", "{'a': [1, 2]}"]),
        ("--chat-template {{ messages }} --port 8000", ["--chat-template", "{{ messages }}", "--port", "8000"]),
        ('  --hf-overrides={"a": 1, "b": 2} --port 8000', ['--hf-overrides={"a": 1, "b": 2}', "--port", "8000"]),
        # A bracket that nothing closes goes as far as the next flag.
        ('--hf-overrides {"a": 1 --port 8000', ["--hf-overrides", '{"a": 1', "--port", "8000"]),
        # Quotes that hold more than JSON, and one that is not closed.
        ("--chat-template '{a} and {b}' --port 8000", ["--chat-template", "{a} and {b}", "--port", "8000"]),
        ("""--served-model-name it's --hf-overrides {"a": 1}""", ["--served-model-name", "it's", "--hf-overrides", '{"a": 1}']),
        # A no-break space, as it comes out of a web page.
        ("--port\u00a08000", ["--port", "8000"]),
        (r"--chat-template a\\b", ["--chat-template", r"a\b"]),
        ("\u2014max-num-seqs 16", ["--max-num-seqs", "16"]),
        ("--served-model-name 'a\tb'", ["--served-model-name", "a\tb"]),
    ],
)
def test_the_fix_can_be_pasted_into_a_list(entry: str, words: list[str]) -> None:
    assert fix_of(entry) == (words, len(words))


def test_more_than_a_report_holds_is_shown_by_its_beginning() -> None:
    (found,) = [finding for finding in raw(more("--hf-overrides " + json.dumps({"a": "b" * 5000}))).findings if finding.rule == "DPD018"]
    assert found.fix.startswith("""write "--hf-overrides", '{"a": "bbb""")
    assert "…' as 2 entries" in found.fix
    assert len(found.fix) < 200
