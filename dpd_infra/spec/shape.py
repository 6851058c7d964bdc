"""Shape problems as findings: what pydantic refuses, said with the path in the user's file, the field's meaning and the fix."""

from __future__ import annotations

import copy
import difflib
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpd_infra.spec.base import Spec
from dpd_infra.spec.finding import Finding, Patch, Path, Severity, pointer

SHAPE_RULE = "DPD000"
"""The id of every finding about a value's shape: type, range, pattern, unknown or missing key."""

SpecT = TypeVar("SpecT", bound=Spec)

_MAX_ROUNDS = 8


def build(model: type[SpecT], data: Any, path: Path, subject: str) -> tuple[SpecT | None, list[Finding]]:
    """Build a spec from a file's data; where parts are refused, build it from the rest so that the rules still speak of that.

    A value whose meaning is plain (a number for text) is read as it was meant. A needed key that is missing or refused is stood in for by
    the field's documented example; where it has none, what holds it is left out. Returns the spec (None where too little is left) and a finding for each refused part; with findings the spec is good for nothing
    but finding more of them.
    """
    findings: list[Finding] = []
    left = copy.deepcopy(data)
    for round_number in range(_MAX_ROUNDS):
        try:
            return model.from_yaml_data(left), findings
        except ValidationError as error:
            details = error.errors(include_url=False)
            # Validators across fields run only once the fields are sound, so their refusals come in later rounds.
            new = details if round_number == 0 else [detail for detail in details if detail["type"] == "value_error"]
            findings += _findings(model, data if round_number == 0 else left, new, path, subject)
            if not isinstance(left, dict) or not _mend(model, left, details):
                break
    return None, findings


def _mend(model: type[BaseModel], left: Any, details: list[ErrorDetails]) -> bool:
    """Take what is refused out of the data and stand in for what is missing. False where nothing more can be done."""
    refused = {}
    for detail in details:
        if detail["type"] != "missing":
            refused[_real_steps(left, detail["loc"], missing=False)] = _meant(detail)
    # Deepest and last first, so that list positions stay true while items are taken out.
    mended = []
    for place in sorted(refused, key=_depth, reverse=True):
        meant = refused[place]
        mended.append(_remove(left, place) if meant is None else _put(left, place, meant))
    for detail in details:
        if detail["type"] == "missing":
            place = _real_steps(left, detail["loc"], missing=True)
            owner, _ = _documentation(model, place)
            field = _field(owner, str(place[-1])) if owner else None
            examples = field.examples if field is not None else None
            mended.append(_put(left, place, examples[0]) if examples else _remove(left, place[:-1]))
    return any(mended)


def _put(data: Any, path: Path, value: Any) -> bool:
    current = data
    for step in path[:-1]:
        current = current[step]
    current[path[-1]] = copy.deepcopy(value)
    return True


def _findings(model: type[BaseModel], data: Any, details: list[ErrorDetails], path: Path, subject: str) -> list[Finding]:
    seen: dict[tuple[Path, str], Finding] = {}
    for detail in details:
        finding = _finding(model, data, detail, path, subject)
        seen.setdefault((finding.path, finding.what), finding)
    return list(seen.values())


def _finding(model: type[BaseModel], data: Any, detail: ErrorDetails, prefix: Path, subject: str) -> Finding:
    steps = _real_steps(data, detail["loc"], missing=detail["type"] == "missing")
    owner, field_doc = _documentation(model, steps)
    value = None if detail["type"] == "missing" else _shown(detail.get("input"))
    path = prefix + steps
    match detail["type"]:
        case "extra_forbidden":
            known = _keys(owner)
            key = str(steps[-1])
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            what = f"unknown key {key!r}"
            fix = f"did you mean {near[0]!r}?" if near else f"remove it; the keys here are: {', '.join(known)}"
            why = "An unknown key is refused rather than ignored: a misspelt setting would silently keep its default."
        case "missing":
            what = f"the needed key {str(steps[-1])!r} is missing"
            why = field_doc or "It has no default."
            fix = f"add {pointer(path)}"
        case "value_error":
            what = detail["msg"].removeprefix("Value error, ")
            why = field_doc or "The parts of this section contradict each other."
            fix = "change it as said"
        case _:
            what = f"{_message(detail)}, found {value!r}" if not isinstance(value, (dict, list)) else _message(detail)
            why = field_doc or "The value has the wrong shape."
            fix = _fix(detail)
    meant = _meant(detail)
    patch = None if meant is None else Patch(path, meant)
    return Finding(SHAPE_RULE, Severity.ERROR, path, what, why, fix, value=value, patch=patch, subject=subject)


def _meant(detail: ErrorDetails) -> Any:
    """What a value of the wrong type was plainly meant to be: `1.31` for text, `"2"` for a number, `yes` for true; None where it is not plain."""
    value = detail.get("input")
    match detail["type"]:
        case "string_type" if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        case "int_type" if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit():
            return int(value)
        case "bool_type" if str(value).lower() in {"yes", "on", "true", "1"}:
            return True
        case "bool_type" if str(value).lower() in {"no", "off", "false", "0"}:
            return False
        case _:
            return None


def _message(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "greater_than_equal":
            return f"must be {context['ge']} or more"
        case "less_than_equal":
            return f"must be {context['le']} or less"
        case "greater_than":
            return f"must be more than {context['gt']}"
        case "less_than":
            return f"must be less than {context['lt']}"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}"
        case "string_type":
            return "must be text"
        case "int_type":
            return "must be a whole number"
        case "bool_type":
            return "must be true or false"
        case "enum" | "literal_error":
            return f"must be one of {context['expected']}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "must be a mapping of keys to values"
        case "tuple_type" | "list_type":
            return "must be a list"
        case "too_short" | "string_too_short":
            return f"is too short: at least {context.get('min_length')}"
        case "too_long" | "string_too_long":
            return f"is too long: at most {context.get('max_length')}"
        case _:
            return detail["msg"][:1].lower() + detail["msg"][1:]


def _fix(detail: ErrorDetails) -> str:
    match detail["type"], _meant(detail):
        case "string_type", str(text):
            return f'put it in quotes: "{text}" (without them YAML reads a number)'
        case "int_type", int(number):
            return f"take the quotes away: {number}"
        case "bool_type", bool(flag):
            return f"write {str(flag).lower()}"
    message = _message(detail)
    return message.replace("must be", "write", 1).replace("must match", "write a value that matches", 1) if message.startswith("must") else "correct it"


def _real_steps(data: Any, loc: tuple[int | str, ...], *, missing: bool) -> Path:
    """The part of pydantic's location that exists in the data: it names union branches and validators between the real steps too."""
    steps: list[int | str] = []
    current = data
    for index, step in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(current, Mapping) and (step in current or (missing and last)):
            steps.append(step)
            current = current.get(step)
        elif isinstance(current, (list, tuple)) and isinstance(step, int) and step < len(current):
            steps.append(step)
            current = current[step]
        elif missing and last:
            steps.append(step)
    return tuple(steps)


def _documentation(model: type[BaseModel], steps: Path) -> tuple[type[BaseModel] | None, str]:
    """The model that owns the last step, and the documentation of the field it names."""
    candidates: list[type[BaseModel]] = [model]
    owner: type[BaseModel] | None = model
    documentation = ""
    for step in steps:
        entering = [(candidate, field) for candidate in candidates if (field := _field(candidate, str(step))) is not None]
        if entering:
            owner, field = entering[0]
            documentation = " ".join((field.description or "").split())
            candidates = list(_models_in(field.annotation))
        elif candidates:
            owner = candidates[0]
    return owner, documentation


def _field(model: type[BaseModel], key: str) -> Any:
    for name, field in model.model_fields.items():
        if key in (field.alias, name):
            return field
    return None


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)


def _keys(model: type[BaseModel] | None) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _shown(value: Any) -> Any:
    """A value fit for a report: long text is cut."""
    return value if not isinstance(value, str) or len(value) <= 200 else f"{value[:200]}…"


def _depth(path: Path) -> tuple[int, str]:
    return len(path), "/".join(f"{step:09d}" if isinstance(step, int) else step for step in path)


def _remove(data: Any, path: Path) -> bool:
    if not path:
        return False
    current = data
    for step in path[:-1]:
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            return False
    last = path[-1]
    if isinstance(current, dict) and last in current:
        del current[last]
        return True
    if isinstance(current, list) and isinstance(last, int) and last < len(current):
        del current[last]
        return True
    return False
