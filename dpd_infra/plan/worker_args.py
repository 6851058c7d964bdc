"""The flags that the vLLM server of a role sees: the entry point's, the worker's, then the role's own, read as vLLM reads them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dpd_infra.plan.entry_words import is_run_together, words_meant
from dpd_infra.spec.finding import Path
from dpd_infra.spec.vocabulary import Role

SHORT_FORMS: dict[str, str] = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "dpl": "data-parallel-size-local",
    "pcp": "prefill-context-parallel-size",
    "dcp": "decode-context-parallel-size",
    "ep": "enable-expert-parallel",
    "q": "quantization",
    "n": "nnodes",
    "r": "node-rank",
    "cc": "compilation-config",
    "O": "optimization-level",
}
"""vLLM's single-dash names (vllm/engine/arg_utils.py)."""

_MULTIPLIERS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""What vLLM takes behind a number: `16k` is 16,000 and `16K` is 16,384 (vllm/utils/argparse_utils.py)."""

_HUMAN = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)([kKmMgGtT])")
_NEGATIVE = re.compile(r"-\d+(\.\d+)?")
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_ROLE_KEYS = {Role.PREFILL: "prefillSpec", Role.DECODE: "decodingSpec"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command line and where in the manifest it stands."""

    text: str
    path: Path
    """Of the list's entry; several words share one where the entry is a shell line."""
    alone: bool = True
    """Whether the word is the whole entry."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag as it was written."""

    name: str
    """Without dashes, with hyphens: `max-model-len`. For `--no-<name>` it is `<name>`, with `off`."""
    value: str | None
    """Its text; None for a switch."""
    path: Path
    """Where in the manifest its value stands, for a switch the flag itself."""
    flag_path: Path
    """Where the flag itself stands."""
    alone: bool
    """Whether the value is a list entry of its own, which can be replaced by itself."""
    off: bool = False
    """Written as `--no-<name>`."""
    keys: tuple[str, ...] = ()
    """For `--<name>.<key>.<key> value`: the keys."""

    @property
    def text(self) -> str:
        """As people write it: `--max-model-len`."""
        return f"--{'no-' if self.off else ''}{'.'.join((self.name, *self.keys))}"

    @property
    def integer(self) -> int | None:
        """The value as vLLM reads an integer, `16k` included; None where it is none."""
        return human_integer(self.value) if self.value is not None else None

    @property
    def number(self) -> float | None:
        """The value as a number; None where it is none."""
        try:
            return float(self.value) if self.value is not None else None
        except ValueError:
            return None


class WorkerArgs:
    """All flags of one command line; where a flag stands twice, the last one wins."""

    def __init__(self, flags: Iterable[Flag], positionals: Iterable[Word] = ()) -> None:
        self.flags: tuple[Flag, ...] = tuple(flags)
        self.positionals: tuple[Word, ...] = tuple(positionals)
        """Words that are neither a flag nor its value."""
        self._last = {flag.name: flag for flag in self.flags if not flag.keys}

    def last(self, name: str) -> Flag | None:
        """The flag that is in force; None where it is not given."""
        return self._last.get(name)

    def text(self, name: str) -> str | None:
        """The value in force."""
        flag = self._last.get(name)
        return flag.value if flag else None

    def integer(self, name: str) -> int | None:
        """The value in force as an integer; None where it is not given or is no integer."""
        flag = self._last.get(name)
        return flag.integer if flag else None

    def number(self, name: str) -> float | None:
        """The value in force as a number; None where it is not given or is no number."""
        flag = self._last.get(name)
        return flag.number if flag else None

    def is_on(self, name: str) -> bool | None:
        """Whether a switch is on; None where it is not given."""
        flag = self._last.get(name)
        if flag is None:
            return None
        return not flag.off and (flag.value or "true").lower() not in {"false", "0", "no"}

    def json(self, name: str) -> Any:
        """The value in force of a flag that takes JSON, with the dotted forms `--<name>.<key> value` merged in; None where it is not given.

        Text that is no JSON stays text.
        """
        flag = self._last.get(name)
        dotted = [other for other in self.flags if other.name == name and other.keys]
        value = _json(flag.value) if flag and flag.value is not None else None
        if not dotted:
            return value
        merged: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
        for other in dotted:
            place = merged
            for key in other.keys[:-1]:
                inner = place.get(key)
                place[key] = dict(inner) if isinstance(inner, dict) else {}
                place = place[key]
            place[other.keys[-1]] = _json(other.value)
        return merged


@lru_cache(maxsize=4096)
def human_integer(text: str) -> int | None:
    """An integer as vLLM reads it: `16384`, `16k` (16,000), `16K` (16,384), `25.6k`; -1 for `auto`; None for anything else."""
    text = text.strip()
    if text.lower() == "auto":
        return -1
    if match := _HUMAN.fullmatch(text):
        number, suffix = match.groups()
        if "." in number and suffix.isupper():
            return None
        return int(float(number) * _MULTIPLIERS[suffix]) if "." in number else int(number) * _MULTIPLIERS[suffix]
    return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else None


def parse_words(words: Sequence[Word]) -> WorkerArgs:
    """Flags and positional words of one command line."""
    flags: list[Flag] = []
    positionals: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        name, equals, inline = word.text.partition("=")
        if not _is_flag(name):
            positionals.append(word)
            continue
        value, place, alone = (inline, word.path, False) if equals else (None, word.path, False)
        if not equals and index < len(words) and not _is_flag(words[index].text):
            value, place, alone = words[index].text, words[index].path, words[index].alone
            index += 1
        flags.append(_flag(name, value, place, word.path, alone=alone))
    return WorkerArgs(flags, positionals)


def server_args(manifest: Mapping[str, Any], role: Role | None = None) -> WorkerArgs:
    """The flags of one role's server in an InferenceEndpointConfig, or of the one server of an endpoint without roles.

    Flags may stand in the entry point too, and the entry point may be a shell line. Anything that is no text is passed over.
    """
    spec = manifest.get("spec")
    worker = spec.get("worker") if isinstance(spec, Mapping) else None
    worker = worker if isinstance(worker, Mapping) else {}
    command = list(_words(("spec", "worker", "command"), worker.get("command")))
    args = list(_words(("spec", "worker", "args"), worker.get("args")))
    if role is not None and isinstance(spec, Mapping):
        pd = spec.get("pdSpec")
        part = pd.get(_ROLE_KEYS[role]) if isinstance(pd, Mapping) else None
        if isinstance(part, Mapping):
            args += _words(("spec", "pdSpec", _ROLE_KEYS[role], "args"), part.get("args"))
    if is_shell(worker.get("command")):
        lines = [word for word in (*command[1:], *args) if not (word.text.startswith("-") and len(word.text) <= len("-euxc"))]
        return parse_words([word for line in lines for word in _shell_words(line)])
    return parse_words([*command, *args])


def is_shell(command: Any) -> bool:
    """Whether an entry point is a shell, whose words are lines."""
    return isinstance(command, list) and bool(command) and isinstance(command[0], str) and command[0].rpartition("/")[2] in _SHELLS


def _words(path: Path, items: Any) -> Iterator[Word]:
    found: list[Any] = items if isinstance(items, list) else []
    for index, item in enumerate(found):
        if isinstance(item, str) and is_run_together(item):
            # Read as meant: that it is not written so is one finding, and not one for each flag in it.
            for word in words_meant(item):
                yield Word(word, (*path, index), alone=False)
        elif isinstance(item, str):
            yield Word(item, (*path, index))


def _shell_words(line: Word) -> Iterator[Word]:
    try:
        parts = shlex.split(line.text, comments=True)
    except ValueError:
        parts = line.text.split()
    for part in parts:
        yield Word(part, line.path, alone=False)


def _is_flag(text: str) -> bool:
    return len(text) > 1 and text.startswith("-") and not _NEGATIVE.fullmatch(text)


def _flag(written: str, value: str | None, path: Path, flag_path: Path, *, alone: bool) -> Flag:
    if not written.startswith("--"):
        return Flag(SHORT_FORMS.get(written[1:], written[1:]), value, path, flag_path, alone)
    first, *keys = written[2:].split(".")
    name = first.replace("_", "-")
    off = name.startswith("no-")
    return Flag(name.removeprefix("no-"), value, path, flag_path, alone, off, tuple(keys))


def _json(text: str | None) -> Any:
    try:
        return json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return text
