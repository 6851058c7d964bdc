"""The CRD itself, read from its own file, and a second judge built on it: the `jsonschema` library with what the API server adds.

Nothing here comes from the package under test: it is what the package is compared with.
"""

from __future__ import annotations

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
def raw_schema(version: str = "v1") -> dict[str, Any]:
    """The CRD's own openAPIV3Schema."""
    text = re.sub(r"\{\{.*?\}\}", "placeholder", gzip.decompress(CRD_FILE.read_bytes()).decode())
    # libyaml reads it ten times as fast, where it is there.
    crd = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return next(entry["schema"]["openAPIV3Schema"] for entry in crd["spec"]["versions"] if entry["name"] == version)


def _properties(validator: Any, properties: dict[str, Any], instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    """Strict field validation; and a null counts as absent (structural schemas are not nullable here)."""
    if not isinstance(instance, dict):
        return
    for name, value in instance.items():
        if name not in properties:
            yield ValidationError(f"unknown field {name}", path=[name], validator="unknownField")
        elif value is not None:
            yield from validator.descend(value, properties[name], path=name, schema_path=name)


def _additional(validator: Any, inner: dict[str, Any], instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name, value in instance.items():
            if value is not None:
                yield from validator.descend(value, inner, path=name)


def _required(_validator: Any, required: list[str], instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in required:
            if instance.get(name) is None:
                yield ValidationError(f"{name} is missing", validator="required")


def _format(_validator: Any, name: str, instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    bits = {"int32": 31, "int64": 63}.get(name)
    if bits and isinstance(instance, (int, float)) and not isinstance(instance, bool) and not -(2**bits) <= instance < 2**bits:
        yield ValidationError(f"{instance} is not {name}", validator="format")


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    # RE2's `$` is the end of the text; Python's also matches before a last line break.
    if isinstance(instance, str) and not re.search(pattern.replace("$", r"\Z"), instance):
        yield ValidationError(f"{instance!r} does not match {pattern}", validator="pattern")


def _list_type(_validator: Any, kind: str, instance: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    if not isinstance(instance, list) or kind == "atomic":
        return
    defaults = {name: part.get("default") for name, part in schema["items"].get("properties", {}).items()}
    keys = schema.get("x-kubernetes-list-map-keys")
    marks = [repr([item.get(key, defaults[key]) for key in keys]) if keys and isinstance(item, dict) else repr(item) for item in instance]
    if len(set(marks)) != len(marks):
        yield ValidationError("an entry stands twice", validator="duplicate")


def _type(validator: Any, kind: str, instance: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    yield from Draft202012Validator.VALIDATORS["type"](validator, kind, instance, schema)
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
    properties = raw_schema(version)["properties"]
    return [
        f"{'/'.join(map(str, (part, *error.path)))}: {error.message}"
        for part in ("spec", "status")
        if document.get(part) is not None
        for error in JUDGE(properties[part]).iter_errors(document[part])
    ]
