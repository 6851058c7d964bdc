"""vLLM's flags are read as vLLM reads them: `vllm/utils/argparse_utils.py` is the judge of every expected value here."""

from __future__ import annotations

import argparse
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.worker_args import WorkerArgs, human_integer, server_args
from dpd_infra.spec.vocabulary import Role


def manifest(args: list[Any], *, command: list[Any] | None = None, prefill: list[Any] | None = None) -> dict[str, Any]:
    worker: dict[str, Any] = {"args": args}
    if command is not None:
        worker["command"] = command
    return {"spec": {"worker": worker, "pdSpec": {"prefillSpec": {"args": prefill or []}, "decodingSpec": {}}}}


def read(*args: str) -> WorkerArgs:
    return server_args(manifest(list(args)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16384", 16384),
        ("16k", 16_000),
        ("16K", 16_384),
        ("25.6k", 25_600),
        ("1m", 1_000_000),
        ("1M", 1_048_576),
        ("auto", -1),
        ("-1", -1),
        ("1.5K", None),
        ("16 k", None),
        ("sixteen", None),
        ("", None),
        ("1e4", None),
    ],
)
def test_integers_are_read_with_vllms_suffixes(text: str, expected: int | None) -> None:
    assert human_integer(text) == expected


@pytest.mark.parametrize(
    "args",
    [
        ("--tensor-parallel-size", "8"),
        ("--tensor-parallel-size=8",),
        ("--tensor_parallel_size", "8"),
        ("--tensor_parallel_size=8",),
        ("-tp", "8"),
        ("-tp=8",),
        ("--tensor-parallel-size", "4", "-tp", "8"),
        ("serve", "/opt/ml/model", "-tp", "8"),
    ],
)
def test_one_flag_in_every_spelling(args: tuple[str, ...]) -> None:
    assert read(*args).integer("tensor-parallel-size") == 8


def test_a_role_has_the_last_word() -> None:
    document = manifest(["--max-num-seqs", "8", "--port", "8000"], prefill=["--max-num-seqs=16"])
    assert server_args(document, Role.PREFILL).integer("max-num-seqs") == 16
    assert server_args(document, Role.DECODE).integer("max-num-seqs") == 8
    assert server_args(document).integer("max-num-seqs") == 8
    assert server_args(document, Role.PREFILL).integer("port") == 8000


def test_a_flag_knows_where_its_value_stands() -> None:
    document = manifest(["--enforce-eager", "--port", "8000"], prefill=["--port=9000"])
    alone = server_args(document, Role.DECODE).last("port")
    inline = server_args(document, Role.PREFILL).last("port")
    switch = server_args(document).last("enforce-eager")
    assert alone is not None
    assert inline is not None
    assert switch is not None
    assert (alone.path, alone.flag_path, alone.alone) == (("spec", "worker", "args", 2), ("spec", "worker", "args", 1), True)
    assert (inline.path, inline.alone) == (("spec", "pdSpec", "prefillSpec", "args", 0), False)
    assert (switch.path, switch.value) == (("spec", "worker", "args", 0), None)


def test_switches_and_their_negations() -> None:
    args = read(
        "--enforce-eager", "--no-enable-chunked-prefill", "--enable-prefix-caching=False", "--trust-remote-code", "--no-trust-remote-code"
    )
    assert args.is_on("enforce-eager") is True
    assert args.is_on("enable-chunked-prefill") is False
    assert args.is_on("enable-prefix-caching") is False
    assert args.is_on("trust-remote-code") is False
    assert args.is_on("disable-log-stats") is None


def test_a_switch_before_another_flag_takes_no_value() -> None:
    args = read("--enforce-eager", "--max-model-len", "-1")
    assert args.text("enforce-eager") is None
    assert args.integer("max-model-len") == -1


def test_json_values_and_their_dotted_form_are_one() -> None:
    inline = read("--kv-transfer-config", '{"kv_connector": "LMCacheConnectorV1", "kv_connector_extra_config": {"a": 1}}')
    dotted = read("--kv-transfer-config.kv_connector", "LMCacheConnectorV1", "--kv_transfer_config.kv_connector_extra_config.a=1")
    assert inline.json("kv-transfer-config") == dotted.json("kv-transfer-config")
    assert read("--hf-overrides", "{broken").json("hf-overrides") == "{broken"
    assert read("--port", "1").json("hf-overrides") is None


def test_flags_of_the_entry_point_count() -> None:
    document = manifest(["--port", "9000"], command=["vllm", "serve", "/opt/ml/model", "--port", "8000", "--max-model-len", "4096"])
    assert server_args(document).integer("port") == 9000
    assert server_args(document).integer("max-model-len") == 4096
    assert [word.text for word in server_args(document).positionals] == ["vllm", "serve", "/opt/ml/model"]


@pytest.mark.parametrize("command", [["/bin/bash", "-c"], ["sh", "-euxc"]])
def test_a_shell_line_is_read_word_by_word(command: list[str]) -> None:
    document = manifest(["exec vllm serve /opt/ml/model --served-model-name 'my model' --port=8000 # --port 1"], command=command)
    args = server_args(document)
    assert args.integer("port") == 8000
    assert args.text("served-model-name") == "my model"
    port = args.last("port")
    assert port is not None
    assert (port.path, port.alone) == (("spec", "worker", "args", 0), False)


@pytest.mark.parametrize(
    "document",
    [{}, {"spec": None}, {"spec": {"worker": []}}, {"spec": {"worker": {"args": "text", "command": 3}}}, manifest([1, None, {}, "--port"])],
)
def test_what_is_no_list_of_text_is_passed_over(document: dict[str, Any]) -> None:
    for role in (None, *Role):
        assert server_args(document, role).integer("port") is None


NAMES = st.from_regex(re.compile(r"[a-z]{2,6}(-[a-z]{2,6}){0,2}"), fullmatch=True).filter(lambda name: not name.startswith("no-"))
VALUES = st.from_regex(re.compile(r"[A-Za-z0-9_./]{1,8}"), fullmatch=True)


@given(st.lists(st.tuples(NAMES, VALUES, st.sampled_from(["apart", "equals"])), max_size=8))
def test_it_agrees_with_argparse(flags: list[tuple[str, str, str]]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in sorted({name for name, _, _ in flags}):
        parser.add_argument(f"--{name}", dest=name)
    words = [word for name, value, form in flags for word in ([f"--{name}={value}"] if form == "equals" else [f"--{name}", value])]
    expected = vars(parser.parse_args(words))
    args = read(*words)
    assert {name: args.text(name) for name in expected} == expected
