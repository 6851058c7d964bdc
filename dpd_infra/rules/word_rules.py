"""Rules on how the server's words are written: one a list entry, none lost in a shell, none misspelt."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache

from dpd_infra.catalog.sources import CRD_3_2, KUBERNETES_DOCS, VLLM
from dpd_infra.plan.entry_words import is_run_together, words_meant
from dpd_infra.plan.worker_args import is_shell
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.report import printable
from dpd_infra.rules.secret_text import MASK, has_known_secret, is_secret_flag, looks_random, without_named_values
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.yaml_edits import scalar_text
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import entries

KNOWN_FLAGS = (
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "max-model-len",
    "gpu-memory-utilization",
    "max-num-seqs",
    "max-num-batched-tokens",
    "kv-cache-dtype",
    "enable-chunked-prefill",
    "enable-prefix-caching",
    "served-model-name",
    "trust-remote-code",
    "enforce-eager",
    "quantization",
    "block-size",
)
"""Flags of vLLM that no other flag of it is nearly named like (vllm/engine/arg_utils.py)."""

_SURE = frozenset({*KNOWN_FLAGS, "model", "host", "port"})
_NEAR = 0.85
_SHOWN, _MOST_WORDS = 80, 12
"""How much of a word a report repeats, and how many words, where not all of them can be shown."""
_TAKES_WORDS = re.compile(r"\$\{?[@*1-9]")
_WITH_SCRIPT = re.compile(r"-[a-z]{0,4}c")


def _lists(endpoint: EndpointSubject) -> Iterator[tuple[Path, list[object]]]:
    """The lists of words of the server: the worker's, then each role's own."""
    yield ("spec", "worker", "args"), entries(endpoint.reading.worker.get("args"))
    if endpoint.reading.disaggregated:
        for server in endpoint.reading.servers:
            yield (*server.path, "args"), entries(server.block.get("args"))


@rule(
    "DPD018",
    "Each flag and each value is an entry of its own",
    severity=Severity.ERROR,
    why="An entry of args is one word for the server, blanks included: it knows no such argument, ends at once, and the pod restarts for "
    "ever. Only a shell splits words.",
    sources=(VLLM, KUBERNETES_DOCS),
)
def one_word_an_entry(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An entry like `--port 8000`, one with a blank at its beginning or end, or one that begins with a dash that is no hyphen."""
    if is_shell(endpoint.reading.worker.get("command")):
        return
    for path, words in _lists(endpoint):
        for index, word in enumerate(words):
            if not isinstance(word, str) or not is_run_together(word):
                continue
            server = endpoint.reading.server
            if server is not None and server.name != "vLLM":
                return
            meant = words_meant(word)
            place: Path = (*path, index)
            # As many words as the beginning that is shown can hold.
            told = _without_secrets(words_meant(without_named_values(word))[:_SHOWN])
            is_open = told == meant[:_SHOWN]
            said = word if is_open else " ".join(told)
            patch = set_value(endpoint, place, meant[0]) if len(meant) == 1 and is_open else None
            fix = f"write {_as_entries(told, len(meant))}{f' as {len(meant)} entries' if len(meant) > 1 else ''}"
            yield Violation(
                endpoint.at(*place), f"{said[:_SHOWN]!r} is one entry", fix, value=said[:_SHOWN], patch=patch, secret=not is_open
            )


@rule(
    "DPD019",
    "A shell hands flags on",
    severity=Severity.ERROR,
    why="`sh -c` runs its script alone: words after the script are its $0, $1 and so on, and the server sees none of them, those of the "
    "roles included.",
    sources=(KUBERNETES_DOCS, CRD_3_2),
)
def shell_hands_flags_on(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A shell with `-c` and a script without `"$@"`, and flags after the script."""
    command = entries(endpoint.reading.worker.get("command"))
    if not is_shell(command):
        return
    first: tuple[Path, list[object]] = ("spec", "worker", "command"), command
    words = [((*path, index), word) for path, found in (first, *_lists(endpoint)) for index, word in enumerate(found)][1:]
    options = [index for index, (_, word) in enumerate(words) if isinstance(word, str) and _WITH_SCRIPT.fullmatch(word)]
    if not options or options[0] + 1 >= len(words):
        return
    script = words[options[0] + 1][1]
    lost = [(path, word) for path, word in words[options[0] + 2 :] if isinstance(word, str) and len(word) > 2 and word.startswith("-")]
    if lost and isinstance(script, str) and not _TAKES_WORDS.search(script):
        path, word = lost[0][0], _without_secrets([lost[0][1]])[0]
        what = f"{word[:_SHOWN]} stands after the script of {command[0]} -c, which does not hand it on"
        yield Violation(endpoint.at(*path), what, 'let the script hand its words on: exec vllm serve "$@", and -- after the script', word)


@rule(
    "DPD037",
    "Flags are spelt as vLLM spells them",
    severity=Severity.WARNING,
    why="vLLM ends at once on a flag that it does not know, and the pod restarts for ever. Nearly the name of one that it has is a slip.",
    sources=(VLLM,),
)
def flags_are_spelt(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A flag that differs by a letter or two from one that vLLM has; beginnings of names are taken, as vLLM takes them."""
    reading = endpoint.reading
    if reading.server is not None and reading.server.name != "vLLM":
        return
    seen: set[Path] = set()
    for server in reading.servers:
        for flag in server.args.flags:
            if flag.name not in _SURE and flag.flag_path not in seen and (meant := _meant(flag.name)):
                seen.add(flag.flag_path)
                yield Violation(endpoint.at(*flag.flag_path), f"--{flag.name} is no flag of vLLM", f"write --{meant}", f"--{flag.name}")


def _as_entries(words: list[str], count: int) -> str:
    """Words as they are to be pasted between the brackets of a list in YAML; of very many or long ones the beginnings."""
    if len(words) < count or sum(map(len, words)) > _SHOWN * _MOST_WORDS:
        rest = ", …" if count > _MOST_WORDS else ""
        return ", ".join(_as_entry(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}…") for word in words[:_MOST_WORDS]) + rest
    return ", ".join(map(_as_entry, words))


def _as_entry(word: str) -> str:
    # Text of JSON is read more easily between single quotes.
    return printable(scalar_text(word, quote="'" if '"' in word or "\\" in word else '"'))


def _without_secrets(words: list[str]) -> list[str]:
    """The words, with a mark for what a flag's name or its own form says is a secret."""
    shown: list[str] = []
    before = ""
    for word in words:
        name, equals, value = word.partition("=")
        if is_secret_flag(before) or has_known_secret(word) or looks_random(word):
            shown.append(MASK)
        else:
            is_secret = value and is_secret_flag(_flag_name(name))
            shown.append(f"{name}={MASK}" if is_secret else word)
        before = "" if equals else _flag_name(name)
    return shown


def _flag_name(word: str) -> str:
    return word.lstrip("-").replace("_", "-") if word.startswith("-") else ""


@lru_cache(maxsize=1024)
def _meant(name: str) -> str | None:
    """The flag that was meant; None for one that is there, or that is like none."""
    if len(name) > _SHOWN or any(known.startswith(name) for known in KNOWN_FLAGS):
        return None
    near = difflib.get_close_matches(name, KNOWN_FLAGS, n=1, cutoff=_NEAR)
    return near[0] if near else None
