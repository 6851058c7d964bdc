"""Telling secrets from other text, so that they are refused where they stand and shown nowhere."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

_KNOWN = re.compile(
    r"""
    \bhf_[A-Za-z0-9_]{8,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{12,}\b
    | \bsk-[A-Za-z0-9_-]{8,}
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{8,}
    | \bgithub_pat_[A-Za-z0-9_]{8,}
    | \bglpat-[A-Za-z0-9_-]{8,}
    | \bxox[abprs]-[A-Za-z0-9-]{8,}
    | \bnvapi-[A-Za-z0-9_-]{8,}
    | \bAIza[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | (?<=://)[^/\s:@$]*:[^/\s@$]+(?=@)
    | [?&](?i:key|(?:[\w.-]{0,40}[_.-])?(?:token|(?:api|access)[_-]?key|secret|password|passwd|signature|credential)|sig)
      =[^&\s\#"'$]{6,}
    """,
    re.VERBOSE,
)
"""Tokens of Hugging Face, AWS, OpenAI, GitHub, GitLab, Slack, NVIDIA and Google by their prefixes, JSON web tokens, private keys, the
password of a URL, and what its query calls a token, a key, a password or a signature."""

_NAMED = re.compile(
    r"""(\\?["'](?:[\w.-]{0,40}[_.-])?(?i:token|(?:api|access|private)?[_-]?key|secret|password|passwd|credentials?)\\?["']\s*:\s*\\?["'])[^"'\\]+"""
)
"""A text in JSON whose key says that it is a secret. Not by itself an error: a tokenizer's `eos_token` is named so too."""

_NAMED_WORD = re.compile(
    r"""(?<![\w.-])(["']?(?:[\w.-]{0,40}[_.-])?(?i:token|(?:api|access|private)?[_-]?key|secret|password|passwd|credentials?)["']?\s*:\s*)"""
    r"""("[^"]*"|'[^']*'|[^\s,}"']+)"""
)
"""The same where quotes may have been lost: among the words of a command line."""

_MARKS = (
    "hf_",
    "AKIA",
    "ASIA",
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "nvapi-",
    "AIza",
    "eyJ",
    "-----BEGIN",
    "://",
)
"""One of these is in every text that the expression matches: most texts need no closer look."""

_SECRET_VARIABLE = re.compile(r"(^|_)(TOKEN|API_?KEY|ACCESS_KEY|SECRET(_ACCESS)?_KEY|PRIVATE_KEY|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
_SECRET_FLAG = re.compile(r"(^|-)(token|api-key|secret|password)$")
_PLAIN = re.compile(r"[+-]?[\d.]+|true|false|yes|no|none|null|on|off|auto|/[^\s]*|\$\(.*\)|\$\{?\w+\}?", re.IGNORECASE)
_AWS_KEY = re.compile(r"[A-Za-z0-9+][A-Za-z0-9/+]{39}")
_LEAST_LETTERS = 24
_LEAST_ENTROPY = 3.8

MASK = "…"


def has_known_secret(text: str) -> bool:
    """Whether the text holds something whose form alone says that it is a secret."""
    return any(_KNOWN.search(line) for line in _marked_lines(text))


def _marked_lines(text: str) -> Iterator[str]:
    """The lines with a mark: no secret goes over the end of one, and the expression is slow on a long text."""
    for mark in _MARKS:
        at = text.find(mark)
        while at >= 0:
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            yield text[begin : end if end >= 0 else len(text)]
            at = text.find(mark, end) if end >= 0 else -1


@lru_cache(maxsize=4096)
def is_secret_variable(name: str) -> bool:
    """Whether an environment variable's name says that its value is one: `HF_TOKEN`, `OPENAI_API_KEY`, `DB_PASSWORD`."""
    return _SECRET_VARIABLE.search(name.upper()) is not None


@lru_cache(maxsize=4096)
def is_secret_flag(name: str) -> bool:
    """Whether a flag's name says that its value is one: `api-key`, `hf-token`."""
    return _SECRET_FLAG.search(name) is not None


def is_plain(value: str) -> bool:
    """Whether a value cannot be a secret whatever its name: a number, a switch, a path, a reference to a variable, nothing."""
    return not value.strip() or _PLAIN.fullmatch(value.strip()) is not None


def looks_random(value: str) -> bool:
    """Whether a word is as random as a key: one unbroken run of 24 characters or more with capitals, small letters and digits.

    Names of models, images and commits are not: their runs are short, or hexadecimal. AWS's secret keys have 40 characters, slashes too.
    """
    if len(value) < _LEAST_LETTERS:
        return False
    return any(_is_random(run) for run in re.split(r"[^A-Za-z0-9+]", value)) or (
        _AWS_KEY.fullmatch(value) is not None and _is_random(value)
    )


def masked(text: str) -> str:
    """The text with every secret that its form gives away left out."""
    shown = _KNOWN.sub(MASK, text) if any(mark in text for mark in _MARKS) else text
    return _NAMED.sub(rf"\1{MASK}", shown) if '":' in shown or "':" in shown else shown


def without_named_values(words: str) -> str:
    """The words of a command line, without the values of JSON in them whose keys say that they are secrets."""
    return _NAMED_WORD.sub(rf"\1{MASK}", words) if ":" in words else words


def _is_random(run: str) -> bool:
    if len(run) < _LEAST_LETTERS or not (re.search(r"[a-z]", run) and re.search(r"[A-Z]", run) and re.search(r"\d", run)):
        return False
    counts = Counter(run)
    return -sum(number / len(run) * math.log2(number / len(run)) for number in counts.values()) >= _LEAST_ENTROPY
