"""What an unquoted YAML scalar means to Go's readers: yaml.v3, which Pulumi uses, and Kubernetes' fork of yaml.v2 (their resolve.go)."""

from __future__ import annotations

import math
import re
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_KUBERNETES_WORDS: dict[str, Any] = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_FIRST = frozenset("yYnNtTfFoO~+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[oO]?([0-7]+)|0[xX]([0-9a-fA-F]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def plain_value(text: str, *, kubernetes: bool = False) -> Any:
    """What an unquoted scalar means to yaml.v3 or to Kubernetes' fork of yaml.v2 (their resolve.go)."""
    if text and text[0] not in _FIRST:
        return text
    words = _KUBERNETES_WORDS if kubernetes else _WORDS
    if text in words:
        return words[text]
    digits = text.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        sign = -1 if match[1] == "-" else 1
        for group, base in ((2, 2), (3, 8), (4, 16)):
            if match[group] is not None:
                number = sign * int(match[group], base) if len(match[group]) <= 64 else None
                return number if number is not None and -(2**63) <= number < 2**64 else text
        # Python refuses to convert very long numbers; beyond 64 bits Go reads a decimal as a float.
        number = sign * int(match[5]) if len(match[5]) <= 20 else math.inf
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return number if math.isfinite(number) else text
    return text


def key_text(key: str) -> str:
    """An unquoted key as kubectl's conversion to JSON writes it: `on` is `true`, `0x10` is `16`."""
    if key.isidentifier() and key not in _KUBERNETES_WORDS:
        return key
    value = plain_value(key, kubernetes=True)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else key
