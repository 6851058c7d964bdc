"""Documents made from the raw CRD: valid ones, and the same broken in one field."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.pure.crd.raw_crd import held_schema

HEAD = {"apiVersion": "inference.sagemaker.aws.amazon.com/v1", "kind": "InferenceEndpointConfig", "metadata": {"name": "made"}}

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=8)

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"unknown": 1}),
)


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    bits = 31 if schema.get("format") == "int32" else 63
    low, high = schema.get("minimum", -(2**bits)), schema.get("maximum", 2**bits - 1)
    return st.integers(int(low), int(high)) | st.sampled_from([low, high])


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("format") == "date-time":
        return st.sampled_from(["2026-06-12T00:00:00Z", "2026-06-12t23:59:59.5+02:00"])
    longest = schema.get("maxLength")
    if "pattern" in schema:
        found = st.from_regex(schema["pattern"].replace("$", r"\Z"))
        return found.filter(lambda text: longest is None or len(text) <= longest)
    return st.text(max_size=min(12, longest or 12), min_size=schema.get("minLength", 0))


def _lists(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    inner = schema["items"]
    keys = schema.get("x-kubernetes-list-map-keys")
    defaults = {name: part.get("default") for name, part in inner.get("properties", {}).items()}
    unique = None
    if keys:
        unique = lambda item: repr([item.get(key, defaults[key]) for key in keys])  # noqa: E731
    elif schema.get("x-kubernetes-list-type") == "set":
        unique = repr
    return st.lists(values(_key(inner)), min_size=schema.get("minItems", 0), max_size=max(2, schema.get("minItems", 0)), unique_by=unique)


_SCHEMAS: dict[int, dict[str, Any]] = {}


def _key(schema: dict[str, Any]) -> int:
    _SCHEMAS[id(schema)] = schema
    return id(schema)


@cache
def values(key: int) -> st.SearchStrategy[Any]:
    """Values that one part of the CRD takes."""
    schema = _SCHEMAS[key]
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(-(2**63), 2**63 - 1) | _texts({**schema, "type": "string"})
    match schema["type"]:
        case "string":
            return _texts(schema)
        case "integer":
            return _numbers(schema)
        case "number":
            return st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "array":
            return _lists(schema)
    if "additionalProperties" in schema:
        return st.dictionaries(NAMES, values(_key(schema["additionalProperties"])), max_size=2)
    return _objects(schema)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    optional = [name for name in properties if name not in required]

    @st.composite
    def build(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(st.lists(st.sampled_from(optional), max_size=2, unique=True)) if optional else []
        return {name: draw(values(_key(properties[name]))) for name in (*required, *chosen)}

    return build()


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Whole documents that the CRD takes."""
    return values(_key(held_schema()["properties"]["spec"])).map(lambda spec: {**copy.deepcopy(HEAD), "spec": spec})


def _places(value: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    found = [path] if len(path) > 1 else []
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        found += _places(part, (*path, step))
    return found


@st.composite
def broken_documents(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A document with one place changed: another value, a field more, a field less, or an entry twice."""
    document = copy.deepcopy(draw(documents()))
    path = draw(st.sampled_from(_places(document["spec"], ("spec",))))
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    step = path[-1]
    how = draw(st.sampled_from(["value", "nudge", "more", "less", "twice"]))
    if how == "nudge" and isinstance(place[step], (int, float)) and not isinstance(place[step], bool):
        place[step] += draw(st.sampled_from([-1, 1, -(2**31), 2**31, 0.5]))
    elif how == "nudge" and isinstance(place[step], str):
        place[step] = draw(st.sampled_from(["", " ", "\n", "é", "."])) + place[step] + draw(st.sampled_from(["", "\n", "$", "-"]))
    elif how == "more" and isinstance(place, dict):
        place[draw(NAMES)] = draw(JUNK)
    elif how == "less":
        del place[step]
    elif how == "twice" and isinstance(place, list):
        place.append(copy.deepcopy(place[step]))
    else:
        place[step] = draw(JUNK)
    return document, f"{how} at {'.'.join(map(str, path))}"
