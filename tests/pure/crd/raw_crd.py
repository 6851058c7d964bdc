"""The CRD itself, read from its own file, and a second judge built on it: the `jsonschema` library with what the API server adds.

Nothing here comes from the package under test: it is what the package is compared with.
"""

from __future__ import annotations

import copy
import datetime as dt
import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

CRD_FILE = Path(__file__).parents[2] / "data" / "inferenceendpointconfigs-operator-3.2.yaml.gz"


@cache
def _raw_version(version: str) -> dict[str, Any]:
    text = re.sub(r"\{\{.*?\}\}", "placeholder", gzip.decompress(CRD_FILE.read_bytes()).decode())
    # libyaml reads it ten times as fast, where it is there.
    crd = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return next(entry for entry in crd["spec"]["versions"] if entry["name"] == version)


def raw_schema(version: str = "v1") -> dict[str, Any]:
    """The CRD's own openAPIV3Schema."""
    return _raw_version(version)["schema"]["openAPIV3Schema"]


@cache
def held_schema(version: str = "v1") -> dict[str, Any]:
    """The same, with what the API server holds beside it: a count that can be scaled is not negative."""
    schema = copy.deepcopy(raw_schema(version))
    scale = _raw_version(version)["subresources"]["scale"]
    for path in (scale["specReplicasPath"], scale["statusReplicasPath"]):
        place = schema
        for step in path.removeprefix(".").split("."):
            place = place["properties"][step]
        place["minimum"] = 0
    return schema


def _properties(validator: Any, properties: dict[str, Any], instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    """Strict field validation; and a null gives way to a default (structural schemas are not nullable here)."""
    if not isinstance(instance, dict):
        return
    for name, value in instance.items():
        if name not in properties:
            yield ValidationError(f"unknown field {name}", path=[name], validator="unknownField")
        elif value is not None or "default" not in properties[name]:
            yield from validator.descend(value, properties[name], path=name, schema_path=name)


def _additional(validator: Any, inner: dict[str, Any], instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name, value in instance.items():
            yield from validator.descend(value, inner, path=name)


def _required(_validator: Any, required: list[str], instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in required:
            if instance.get(name) is None:
                yield ValidationError(f"{name} is missing", path=[name], validator="required")


def _format(_validator: Any, name: str, instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    # The API server stores it; the operator's own Go types do not hold it.
    if name == "int32" and isinstance(instance, (int, float)) and not isinstance(instance, bool) and not -(2**31) <= instance < 2**31:
        yield ValidationError(f"{instance} is not {name}", validator="format")
    if name == "date-time" and isinstance(instance, str) and not _is_date_time(instance):
        yield ValidationError(f"{instance!r} is not a {name}", validator="format")


def _is_date_time(text: str) -> bool:
    """kube-openapi's strfmt.IsDateTime: what stands before the first `t`, and what stands between it and the next."""
    day, *times = text.lower().split("t")
    if not times or not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", day):
        return False
    try:
        # Go knows a year 0, a leap year.
        dt.datetime.strptime(day.replace("0000-", "2000-", 1), "%Y-%m-%d")  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return False
    found = re.match(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))\Z", times[0])
    return found is not None and int(found[1]) < 24 and int(found[2]) < 60 and int(found[3]) < 60


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    # RE2's `$` is the end of the text; Python's also matches before a last line break. Python's `(?i)i` also matches the Turkish two.
    text = re.sub("[\u0130\u0131]", "?", instance) if pattern.startswith("(?i)") else instance
    if not re.search(pattern.replace("$", r"\Z"), text):
        yield ValidationError(f"{instance!r} does not match {pattern}", validator="pattern")


def _list_type(_validator: Any, kind: str, instance: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    if not isinstance(instance, list) or kind == "atomic":
        return
    defaults = {name: part.get("default") for name, part in schema["items"].get("properties", {}).items()}
    keys = schema.get("x-kubernetes-list-map-keys")
    seen: set[str] = set()
    for index, item in enumerate(instance):
        parts = [item.get(key, defaults[key]) for key in keys] if keys and isinstance(item, dict) else [item]
        mark = repr([int(part) if isinstance(part, float) and part.is_integer() else part for part in parts])
        if mark in seen:
            yield ValidationError("an entry stands twice", path=[index], validator="duplicate")
        seen.add(mark)


def _type(validator: Any, kind: str, instance: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    yield from Draft202012Validator.VALIDATORS["type"](validator, kind, instance, schema)
    # A whole number is one of 64 bits to the API server, whatever its format.
    if kind == "integer" and isinstance(instance, (int, float)) and not isinstance(instance, bool) and not -(2**63) <= instance < 2**63:
        yield ValidationError(f"{instance} has more than 64 bits", validator="format")
    # An object without properties keeps no field: strict field validation calls each unknown.
    if kind == "object" and isinstance(instance, dict) and not {"properties", "additionalProperties"} & set(schema):
        for name in instance:
            yield ValidationError(f"unknown field {name}", path=[name], validator="unknownField")


_ADDED = {
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "format": _format,
    "pattern": _pattern,
    "x-kubernetes-list-type": _list_type,
    "type": _type,
}

JUDGE = validators.extend(Draft202012Validator, _ADDED)
"""The library's validator with the API server's additions."""


def judge(document: dict[str, Any], version: str = "v1") -> list[str]:
    """What the raw CRD has against a document's spec and status; empty where it takes them."""
    return [f"{'/'.join(map(str, place))}: {error.message}" for place, error in _refusals(document, version)]


def refused_places(document: dict[str, Any], version: str = "v1") -> set[tuple[str | int, ...]]:
    """Where the raw CRD refuses a document's spec and status: of a missing field the place where it would stand."""
    return {place for place, _ in _refusals(document, version)}


def _refusals(document: dict[str, Any], version: str) -> Iterator[tuple[tuple[str | int, ...], ValidationError]]:
    for part in ("spec", "status"):
        # A status of null is none.
        if part in document and (part == "spec" or document[part] is not None):
            for error in _judge(version, part).iter_errors(document[part]):
                yield (part, *error.path), error


@cache
def _judge(version: str, part: str) -> Any:
    return JUDGE(held_schema(version)["properties"][part])
