"""Shape problems as findings: what pydantic refuses, said with the path in the user's file, the field's meaning and the fix."""

from __future__ import annotations

import copy
import difflib
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from dpd_infra.spec.base import Spec, documentation
from dpd_infra.spec.finding import Finding, Patch, Path, Severity, pointer
from dpd_infra.spec.shape_examples import example_named, example_of, with_example
from dpd_infra.spec.shape_fixes import fix_of
from dpd_infra.spec.shape_rule import SHAPE_RULE
from dpd_infra.spec.shape_words import fix, is_kind, kinds, meant, message, shown

SpecT = TypeVar("SpecT", bound=Spec)

_MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class _Refusal:
    """One value that was refused, whatever number of ways a union tried to read it in."""

    steps: Path
    """Where, from the root of the model's data; for a missing key: where it would stand."""
    detail: ErrorDetails
    must: str
    """What the value must be."""
    meant: Any
    """What it was plainly meant to be; None where it is not plain."""

    @property
    def is_missing(self) -> bool:
        return self.detail["type"] == "missing"


def build(
    model: type[SpecT], data: Any, path: Path, subject: str, place: Callable[[Path], Path] = lambda path: path
) -> tuple[SpecT | None, list[Finding]]:
    """Build a spec from a file's data; where parts are refused, build it from the rest so that the rules still speak of that.

    A value whose meaning is plain (a number for text) is read as it was meant. A needed key that is missing or refused is stood in for by
    the field's documented example; where it has none, what holds it is left out. Returns the spec (None where too little is left) and a
    finding for each refused part, at the `place` of its path in the file; with findings the spec is good for nothing but finding more of
    them.
    """
    findings: list[Finding] = []
    left = copy.deepcopy(data)
    taken_out: list[Path] = []
    for round_number in range(_MAX_ROUNDS):
        try:
            return model.from_yaml_data(left), findings
        except ValidationError as error:
            refusals = _refusals(left, error.errors(include_url=False))
            # Validators across fields run only once the fields are sound, so their refusals come in later rounds.
            new = refusals if round_number == 0 else [refusal for refusal in refusals if _is_news(refusal, taken_out)]
            new = [refusal for refusal in new if not (refusal.is_missing and _is_misspelt(model, refusal, refusals))]
            findings += [_finding(model, refusal, path, subject, place) for refusal in new]
            taken_out += [refusal.steps for refusal in refusals if refusal.meant is None]
            if not isinstance(left, dict) or not _mend(model, left, refusals):
                break
    return None, findings


def _refusals(data: Any, details: list[ErrorDetails]) -> list[_Refusal]:
    """What was refused, one entry a place: the branches of a union each say what they would have wanted."""
    by_place: dict[Path, list[ErrorDetails]] = {}
    for detail in details:
        by_place.setdefault(_real_steps(data, detail["loc"], missing=detail["type"] == "missing"), []).append(detail)
    refusals = []
    for steps, found in by_place.items():
        deeper = any(other[: len(steps)] == steps and len(other) > len(steps) for other in by_place)
        # A branch that read the value further is the one that was meant; and a list is short because of the entries that were refused.
        said = [detail for detail in found if not (deeper and (is_kind(detail) or detail["type"] == "too_short"))]
        said = [detail for detail in said if not is_kind(detail)] or said
        if said:
            first = next((detail for detail in said if meant(detail) is not None), said[0])
            must = kinds(said) if all(is_kind(detail) for detail in said) else message(first)
            refusals.append(_Refusal(steps, first, must, meant(first)))
    return refusals


def _is_news(refusal: _Refusal, taken_out: list[Path]) -> bool:
    """Whether a later round's refusal speaks of what the user wrote, and not of what was taken out here."""
    if refusal.detail["type"] != "value_error":
        return False
    below = [
        place[len(refusal.steps)] for place in taken_out if place[: len(refusal.steps)] == refusal.steps and len(place) > len(refusal.steps)
    ]
    return not any(re.search(rf"\b{re.escape(str(key))}\b", refusal.detail["msg"]) for key in below)


def _is_misspelt(model: type[BaseModel], missing: _Refusal, refusals: list[_Refusal]) -> bool:
    """Whether a missing key is there under a name that is near to it: the unknown key says so already."""
    owner, *_ = _documentation(model, missing.steps)
    unknown = [other.steps for other in refusals if other.detail["type"] == "extra_forbidden" and other.steps[:-1] == missing.steps[:-1]]
    return any(missing.steps[-1] in _near(steps, _keys(owner)) for steps in unknown)


def _near(steps: Path, known: list[str]) -> list[str]:
    """The known key that an unknown one was meant to be; empty where none is near."""
    return difflib.get_close_matches(str(steps[-1]), known, n=1, cutoff=0.6)


def _mend(model: type[BaseModel], left: Any, refusals: list[_Refusal]) -> bool:
    """Take what is refused out of the data and stand in for what is missing. False where nothing more can be done."""
    # Deepest and last first, so that list positions stay true while items are taken out.
    mended = [
        _remove(left, refusal.steps) if refusal.meant is None else _put(left, refusal.steps, refusal.meant)
        for refusal in sorted(refusals, key=lambda refusal: _depth(refusal.steps), reverse=True)
        if not refusal.is_missing
    ]
    for refusal in refusals:
        if refusal.is_missing:
            owner, *_ = _documentation(model, refusal.steps)
            field = _field(owner, str(refusal.steps[-1])) if owner else None
            examples = field.examples if field is not None else None
            mended.append(_put(left, refusal.steps, examples[0]) if examples else _remove(left, refusal.steps[:-1]))
    return any(mended)


def _put(data: Any, path: Path, value: Any) -> bool:
    current = data
    for step in path[:-1]:
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            # What it would stand in was refused and taken out.
            return False
    current[path[-1]] = copy.deepcopy(value)
    return True


def _finding(model: type[BaseModel], refusal: _Refusal, prefix: Path, subject: str, place: Callable[[Path], Path]) -> Finding:
    detail, steps = refusal.detail, refusal.steps
    owner, field_doc, field, below = _documentation(model, steps)
    path = place(prefix + steps)
    example, related = example_of(field, below), ()
    found = "" if refusal.is_missing else shown(detail.get("input"))
    match detail["type"]:
        case "extra_forbidden":
            known = _keys(owner)
            near = _near(steps, known)
            what = f"unknown key {str(steps[-1])!r}"
            fixed = f"did you mean {near[0]!r}?" if near else f"remove it; the keys here are: {', '.join(known)}"
            if owner is not None and issubclass(owner, Spec) and (elsewhere := owner.key_elsewhere(str(steps[-1]))):
                fixed = elsewhere
            related = tuple(place((*prefix, *steps[:-1], key)) for key in near)
            why = "An unknown key is refused rather than ignored: a misspelt setting would silently keep its default."
        case "missing":
            what = f"the needed key {str(path[-1])!r} is missing"
            why = field_doc or "It has no default."
            fixed = f"add {pointer(path)}{f', for example {path[-1]}: {example}' if example else ''}"
        case "value_error":
            what = detail["msg"].removeprefix("Value error, ")
            why = field_doc or "The parts of this section contradict each other."
            section = next(iter(_models_in(field.annotation)), None) if field is not None else None if steps else model
            named = example_named(section.model_fields, what) if section else example
            fixed = f"{fix_of(what) or 'change one of what it names'}{f', for example {named}' if named else ''}"
        case _ if detail["loc"][-1:] == ("[key]",):
            what = f"the name {found} {refusal.must}"
            why = field_doc or "The name has the wrong shape."
            fixed = "rename it"
        case _:
            what = f"{refusal.must}, found {found}" if found else refusal.must
            why = field_doc or "The value has the wrong shape."
            fixed = with_example(fix(detail, refusal.must), example)
    patch = None if refusal.meant is None else Patch(path, refusal.meant)
    value = detail.get("input") if found and not refusal.is_missing else None
    value = value if not isinstance(value, str) or len(value) <= 200 else f"{value[:200]}…"
    return Finding(SHAPE_RULE, Severity.ERROR, path, what, why, fixed, value=value, patch=patch, subject=subject, related=related)


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


def _documentation(model: type[BaseModel], steps: Path) -> tuple[type[BaseModel] | None, str, FieldInfo | None, int]:
    """The model that owns the last step; the documentation of the last field on the way, the field, and how many steps go below it."""
    candidates: list[type[BaseModel]] = [model]
    owner: type[BaseModel] | None = model
    text, last, below = "", None, 0
    for step in steps:
        below += 1
        entering = [(candidate, field) for candidate in candidates if (field := _field(candidate, str(step))) is not None]
        if entering:
            owner, field = entering[0]
            last, below = field, 0
            name = next(name for name, known in owner.model_fields.items() if known is field)
            text = " ".join(documentation(owner).get(name, "").split())
            candidates = list(_models_in(field.annotation))
        elif candidates:
            owner = candidates[0]
    return owner, text, last, below


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
