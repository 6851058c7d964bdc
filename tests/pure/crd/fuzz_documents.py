"""Documents made from the raw CRD around one field that is chosen among all of them, and broken there in one way."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.pure.crd.documents import HEAD, JUNK, NAMES, _key, values
from tests.pure.crd.raw_crd import held_schema

GROUP = "inference.sagemaker.aws.amazon.com"
VERSIONS = ("v1", "v1alpha1")

Steps = tuple[str, ...]
"""A place in the CRD: property names, `[]` for an entry of a list, `{}` for a value of a free mapping."""


Change = Callable[[Any], Any]
"""From a value that the CRD takes to the one that stands in the broken document; `MISSING` where none is to stand there."""

MISSING = object()

DATE_TIMES = (
    "2026-06-12T00:00:00Z",
    "2026-06-12t23:59:59.5+02:00",
    "2026-06-12T00:00:00",
    "2026-06-12 00:00:00Z",
    "2026-06-12",
    "2026-13-12T00:00:00Z",
    "2026-02-29T00:00:00Z",
    "2026-06-12T24:00:00Z",
    "2026-06-12T23:59:60Z",
    "2026-06-12T00:00:00+99:99",
    "2026-06-12T00:00:00,5Z",
    "2026-06-12T00:00:00Zt",
    "0000-02-29T00:00:00Z",
    "2026-06-12T00:00:00Z\n",
    "yesterday",
    "",
)
"""Texts on both sides of `date-time`."""

QUANTITIES = (True, False, 1.5, 2.0, 0, -1, "", "1", "500m", "1Gi", "1 Gi", "+.5e3", "x", "1\n", [], {}, 2**63, 2**63 - 1, -(2**63))
"""Values on both sides of integer or string, and of a quantity's pattern."""

CHARACTERS = "aZ0-._:/,\n \t$^\u00e9\u0131\u0130\u017f\u212a\u2028"
"""What the dialects of regular expressions may see differently, and plain ones."""


@dataclass(frozen=True, slots=True)
class Break:
    """One way of breaking one field of one version of the resource."""

    version: str
    steps: Steps
    how: str

    def __str__(self) -> str:
        return f"{self.how} at {'.'.join(self.steps)} of {self.version}"


@dataclass(frozen=True, slots=True)
class Broken:
    """A document and what was done to it."""

    document: dict[str, Any]
    what: Break


def _inner(schema: dict[str, Any], step: str) -> dict[str, Any]:
    if step == "[]":
        return schema["items"]
    return schema["additionalProperties"] if step == "{}" else schema["properties"][step]


def _steps_below(schema: dict[str, Any]) -> list[str]:
    more = [step for step, key in (("[]", "items"), ("{}", "additionalProperties")) if isinstance(schema.get(key), dict)]
    return [*schema.get("properties", {}), *more]


def _ways(schema: dict[str, Any], step: str, *, required: bool) -> list[str]:
    """The ways in which a field can be broken, by what the CRD says of it."""
    kind = "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema["type"]
    ways = ["type", "null"]
    if required:
        ways.append("missing")
    if kind == "object":
        ways += ["unknown field"]
    if kind in {"integer", "number"}:
        ways += ["range", "fraction"]
    if kind == "string":
        ways += [
            way
            for way, key in (("length", "maxLength"), ("length", "minLength"), ("enum", "enum"), ("pattern", "pattern"))
            if key in schema
        ]
        ways += ["format"] if schema.get("format") == "date-time" else []
    if kind == "int-or-string":
        ways += ["int-or-string", "pattern"]
    if kind == "array":
        ways += [way for way, key in (("length", "maxItems"), ("length", "minItems")) if key in schema]
        if schema.get("x-kubernetes-list-type") in {"map", "set"}:
            ways += ["list keys"]
    if step == "[]":
        ways += ["null entry"]
    return list(dict.fromkeys(ways))


@cache
def breaks() -> tuple[Break, ...]:
    """Every way of breaking every field of every version's spec and status."""
    found: list[Break] = []

    def walk(version: str, schema: dict[str, Any], steps: Steps) -> None:
        for step in _steps_below(schema):
            inner = _inner(schema, step)
            here = (*steps, step)
            required = step in schema.get("required", ())
            found.extend(Break(version, here, way) for way in _ways(inner, step, required=required))
            walk(version, inner, here)

    for version in VERSIONS:
        root = held_schema(version)["properties"]
        for part in ("spec", "status"):
            found.extend(Break(version, (part,), way) for way in ("type", "unknown field"))
            walk(version, root[part], (part,))
    return tuple(found)


@cache
def _by_way() -> dict[str, list[Break]]:
    """The breaks by their kind: each kind is to come up as often as the others, and few fields have a list's keys."""
    ways: dict[str, list[Break]] = {}
    for one in breaks():
        ways.setdefault(one.how, []).append(one)
    return ways


@cache
def _of_field() -> dict[tuple[str, Steps], list[str]]:
    """The ways of breaking each field."""
    found: dict[tuple[str, Steps], list[str]] = {}
    for one in breaks():
        found.setdefault((one.version, one.steps), []).append(one.how)
    return found


AT_ONCE = 6
"""Documents that are made of one: drawing it costs ten times what judging it does."""


@st.composite
def broken(draw: st.DrawFn) -> tuple[Broken, ...]:
    """A document that the CRD takes, several times, each time with the same field broken in one way. Some breaks are harmless."""
    first = draw(st.sampled_from(sorted(_by_way())).flatmap(lambda way: st.sampled_from(_by_way()[way])))
    schema = _schema(first)
    ways = [replace(first, how=way) for way in _of_field()[first.version, first.steps]]
    # Before the document is drawn: hypothesis tends to the simplest choice late in a long row of them.
    # Half of them are of the first one's kind, or the ways that every field has would crowd out the others.
    others = st.sampled_from([*ways, *[first] * len(ways)])
    breaks_of_it = [first, *draw(st.lists(others, min_size=AT_ONCE - 1, max_size=AT_ONCE - 1))]
    changes = [draw(_changes(schema, what.how)) for what in breaks_of_it]
    root = held_schema(first.version)["properties"]
    document: dict[str, Any] = {**copy.deepcopy(HEAD), "apiVersion": f"{GROUP}/{first.version}"}
    path: list[str | int] = [first.steps[0]]
    document[first.steps[0]] = _around(draw, root[first.steps[0]], first.steps[1:], path)
    if "spec" not in document:
        document["spec"] = draw(values(_key(root["spec"])))
    return tuple(Broken(_changed(document, path, change), what) for what, change in zip(breaks_of_it, changes, strict=True))


def _changed(document: dict[str, Any], path: list[str | int], change: Change) -> dict[str, Any]:
    document = copy.deepcopy(document)
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    value = change(holder[path[-1]])
    if value is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return document


def _schema(what: Break) -> dict[str, Any]:
    schema = held_schema(what.version)
    for step in what.steps:
        schema = _inner(schema, step)
    return schema


def _around(draw: st.DrawFn, schema: dict[str, Any], steps: Steps, path: list[str | int]) -> Any:
    """A value that holds the field at `steps`; the real path to it is appended to `path`."""
    value = draw(values(_key(schema)))
    if not steps:
        return value
    step = steps[0]
    inner = _inner(schema, step)
    if step == "[]":
        path.append(0)
        return [_around(draw, inner, steps[1:], path), *value[1:2]]
    name = draw(NAMES) if step == "{}" else step
    path.append(name)
    value[name] = _around(draw, inner, steps[1:], path)
    return value


def _changes(schema: dict[str, Any], how: str) -> st.SearchStrategy[Change]:
    """What happens to a value that the CRD takes."""
    match how:
        case "missing":
            return st.just(lambda _: MISSING)
        case "null" | "null entry":
            return st.just(lambda _: None)
        case "unknown field":
            return st.tuples(NAMES, JUNK).map(lambda field: lambda value: {**value, field[0]: field[1]})
        case "range":
            bits = 31 if schema.get("format") == "int32" else 63
            edges = [-(2**bits), 2**bits - 1, *(schema[key] for key in ("minimum", "maximum") if key in schema)]
            return st.sampled_from([edge + step for edge in edges for step in (-1, 0, 1)]).map(_instead)
        case "fraction":
            return (st.sampled_from([1.5, -0.5, 2.0, 4096.0, 1e6]) | st.floats(allow_nan=False, allow_infinity=False)).map(_instead)
        case "length":
            return _lengths(schema)
        case "enum":
            near = [other for text in schema["enum"] for other in (text, text.upper(), text[:-1], f"{text} ", f"{text}\n")]
            return (st.sampled_from(near) | st.text(max_size=8)).map(_instead)
        case "pattern":
            return st.tuples(st.sampled_from(["more", "less", "other", "end"]), st.sampled_from(CHARACTERS), st.integers(0, 60)).map(
                _other_text
            )
        case "format":
            return st.sampled_from(DATE_TIMES).map(_instead)
        case "int-or-string":
            return (st.sampled_from(QUANTITIES) | st.text(max_size=6)).map(_instead)
        case "list keys":
            return st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.booleans()).map(_twice)
        case _:
            return JUNK.map(_instead)


def _instead(other: Any) -> Change:
    return lambda _: copy.deepcopy(other)


def _lengths(schema: dict[str, Any]) -> st.SearchStrategy[Change]:
    sizes = {schema[key] + step for key in ("minLength", "maxLength", "minItems", "maxItems") if key in schema for step in (-1, 0, 1)}
    size = st.sampled_from(sorted(size for size in sizes if size >= 0))
    if schema["type"] == "string":
        # A character of two bytes counts as one.
        return st.tuples(size, st.sampled_from("a\u00e9")).map(
            lambda drawn: lambda value: (value or drawn[1]).ljust(drawn[0], drawn[1])[: drawn[0]]
        )
    return st.tuples(size, values(_key(schema["items"]))).map(
        lambda drawn: lambda value: [*value, *(copy.deepcopy(drawn[1]) for _ in range(drawn[0]))][: drawn[0]]
    )


def _other_text(drawn: tuple[str, str, int]) -> Change:
    """A text near one that matches: a character more, less, or another."""
    how, character, place = drawn

    def change(value: Any) -> str:
        text = str(value)
        at = len(text) if how == "end" else place % (len(text) + 1)
        return text[:at] + ("" if how == "less" else character) + text[at + (how in {"less", "other"}) :]

    return change


def _twice(drawn: tuple[int, int | None, bool]) -> Change:
    """An entry twice: the same, or with one of its fields taken away."""
    which, field, at_end = drawn

    def change(value: Any) -> Any:
        if not value:
            return value
        again = copy.deepcopy(value[which % len(value)])
        if field is not None and isinstance(again, dict) and again:
            del again[sorted(again)[field % len(again)]]
        return [*value, again] if at_end else [again, *value]

    return change
