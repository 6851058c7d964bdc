"""What is said of a value that a spec refuses: what it must be, what it was plainly meant to be, and what to write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import ErrorDetails

from dpd_infra.spec.inference_endpoint_config.fields import QUANTITY_PATTERN

_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "list_type": "a list",
    "frozen_set_type": "a list",
    "set_type": "a list",
    "none_required": "nothing",
}
"""By pydantic's error type: what a value of another kind should have been."""

_PATTERNS = {QUANTITY_PATTERN: "be a Kubernetes quantity such as 8, 500m or 1024Gi"}
"""Patterns that say nothing to people."""

_TRUE, _FALSE = {"yes", "on", "true", "1", "y"}, {"no", "off", "false", "0", "n"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def is_kind(detail: ErrorDetails) -> bool:
    """Whether a value is of the wrong kind, rather than of the right kind and wrong in itself."""
    return detail["type"] in _KINDS or detail["type"] == "literal_error"


def kinds(details: Sequence[ErrorDetails]) -> str:
    """What a value of the wrong kind must be: `must be text or a mapping of keys to values`; whole numbers are numbers."""
    words = list(dict.fromkeys(_KINDS.get(detail["type"]) or message(detail).removeprefix("must be ") for detail in details))
    if "a number" in words and "a whole number" in words:
        words.remove("a whole number")
    return f"must be {' or '.join(words)}"


def message(detail: ErrorDetails) -> str:
    """What a value must be, as the end of a sentence that begins with it."""
    context = detail.get("ctx", {})
    match detail["type"]:
        case "greater_than_equal":
            return f"must be {_number(context['ge'])} or more"
        case "less_than_equal":
            return f"must be {_number(context['le'])} or less"
        case "greater_than":
            return f"must be more than {_number(context['gt'])}"
        case "less_than":
            return f"must be less than {_number(context['lt'])}"
        case "finite_number":
            return "must be a finite number"
        case "string_pattern_mismatch":
            return f"must {_PATTERNS.get(context['pattern'], 'match ' + context['pattern'])}"
        case "enum" | "literal_error":
            choices = _choices(detail)
            return f"must be {' or '.join(filter(None, [', '.join(choices[:-1]), choices[-1]]))}"
        case "string_too_short" | "too_short" if context.get("min_length") == 1:
            return "must not be empty"
        case "string_too_short":
            return f"must have {context['min_length']} characters or more"
        case "string_too_long":
            return f"must have {context['max_length']} characters or fewer"
        case "too_short":
            return f"must have {context['min_length']} entries or more"
        case "too_long":
            return f"must have {context['max_length']} entries or fewer"
        case kind if kind in _KINDS:
            return f"must be {_KINDS[kind]}"
        case _:
            return detail["msg"][:1].lower() + detail["msg"][1:]


def meant(detail: ErrorDetails) -> Any:
    """What a value was plainly meant to be: `1.31` for text, `"2"` for a number, `yes` for true; None where it is not plain."""
    value = detail.get("input")
    match detail["type"]:
        case "string_type" if isinstance(value, (int, float)):
            if _may_have_lost_a_zero(detail):
                return None
            return str(value).lower() if isinstance(value, bool) else str(value)
        case "int_type" if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 20:
            return int(value)
        case "float_type" if isinstance(value, str) and value.isascii() and _NUMBER.fullmatch(value) and len(value) < 20:
            return float(value)
        case "bool_type" if str(value).lower() in _TRUE:
            return True
        case "bool_type" if str(value).lower() in _FALSE:
            return False
        case "enum" | "literal_error" if isinstance(value, str):
            return next((choice for choice in _choices(detail) if choice.lower() == value.lower()), None)
        case "string_pattern_mismatch" if isinstance(value, str) and re.search(detail.get("ctx", {})["pattern"], f"ml.{value}"):
            # The instance types of SageMaker carry a prefix that those of EC2 do not.
            return f"ml.{value}" if detail.get("ctx", {})["pattern"].startswith(r"^ml\.") else None
        case "string_pattern_mismatch" if isinstance(value, str) and _is_zone_for_region(detail):
            return value[:-1]
        case _:
            return None


def _may_have_lost_a_zero(detail: ErrorDetails) -> bool:
    """Whether a number stands for a version whose last zero YAML has dropped: 1.3 is what it makes of 1.30."""
    value = detail.get("input")
    return isinstance(value, float) and str(detail["loc"][-1]).lower().endswith("version") and bool(re.fullmatch(r"\d+\.\d", str(value)))


def _is_zone_for_region(detail: ErrorDetails) -> bool:
    """Whether an availability zone stands where a region is asked for."""
    zone, pattern = str(detail.get("input")), detail.get("ctx", {})["pattern"]
    return bool(re.fullmatch(r"[a-z-]+-[0-9][a-z]", zone) and re.search(pattern, zone[:-1]))


def fix(detail: ErrorDetails, must: str) -> str:
    """What to write; `must` is what the value must be."""
    value = detail.get("input")
    match detail["type"], meant(detail):
        case "string_type", str():
            return f"put it in quotes: without them YAML reads {'true or false' if isinstance(value, bool) else 'a number'}"
        case "int_type" | "float_type", (int() | float()) as number:
            return f"take the quotes away: {number}"
        case "bool_type", bool(flag):
            return f"write {str(flag).lower()}"
        case "string_type", None if _may_have_lost_a_zero(detail):
            return f'put it in quotes as it is meant, "{value}0" or "{value}": without them YAML reads a number, and 1.30 is 1.3'
        case "string_pattern_mismatch", str(text) if _is_zone_for_region(detail):
            return f"that is a zone: write {text}"
        case _, str(text):
            return f"write {text}"
    if value is None:
        return f"{_write(must)}, or remove the key"
    return _write(must)


def shown(value: Any) -> str:
    """A value as YAML has it, long ones cut; empty for a mapping or a list, which the report's line shows."""
    if isinstance(value, (dict, list)):
        return ""
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _write(must: str) -> str:
    if must.startswith("must be "):
        return f"write {must.removeprefix('must be ')}"
    if must.startswith("must match "):
        return "write a value of that form"
    return "write something" if must == "must not be empty" else "correct it"


def _choices(detail: ErrorDetails) -> list[str]:
    """The allowed values of an enum, out of pydantic's sentence about them."""
    return re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", ""))) or [str(detail.get("ctx", {}).get("expected", ""))]


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
