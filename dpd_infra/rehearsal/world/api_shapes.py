"""HyperPod requests against the service's own model: botocore's CreateCluster and UpdateCluster shapes, read when one is made.

The provider's property names differ from the API's in their first letter and in the case of abbreviations, so members are found without
regard to case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

_ONLY_PROVIDER = frozenset({"currentcount"})
"""Properties of the CloudFormation type that only answers carry."""


@cache
def _shapes() -> dict[str, Any]:
    from botocore.loaders import Loader  # noqa: PLC0415 - the model is three megabytes: read where a cluster is made

    return Loader().load_service_model("sagemaker", "service-2")["shapes"]


def request_problem(operation: str, inputs: Mapping[str, Any]) -> str | None:
    """What the service says of a request's shape (`operation` is `CreateCluster`, `UpdateCluster`), or None where it takes it."""
    problems = list(_check(_shapes()[f"{operation}Request"], inputs, ""))
    if not problems:
        return None
    errors = "error" if len(problems) == 1 else "errors"
    return f"{len(problems)} validation {errors} detected: {'; '.join(problems)}"


def _check(shape: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    kind = shape["type"]
    # A boolean is an int to Python, and no number to the service.
    if not isinstance(value, _PYTHON[kind]) or (str(value) in {"True", "False"} and kind not in {"boolean", "string"}):
        yield _breach(value, path, f"Member must be of type {kind}")
        return
    match kind:
        case "structure":
            yield from _structure(shape, value, path)
        case "list":
            yield from _length(shape, value, path, len(value))
            for index, item in enumerate(value):
                yield from _check(_shapes()[shape["member"]["shape"]], item, f"{path}.{index + 1}.member")
        case "map":
            yield from _length(shape, value, path, len(value))
            for key, item in value.items():
                yield from _check(_shapes()[shape["key"]["shape"]], key, f"{path}.key")
                yield from _check(_shapes()[shape["value"]["shape"]], item, f"{path}.{key}.value")
        case "string":
            yield from _text(shape, value, path)
        case "integer" | "long" | "float" | "double":
            yield from _number(shape, value, path)


_PYTHON: dict[str, Any] = {
    "structure": Mapping,
    "list": list,
    "map": Mapping,
    "string": str,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "boolean": bool,
    "timestamp": (str, int, float),
}


def _structure(shape: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[str]:
    members = {name.lower(): (name, member) for name, member in shape["members"].items()}
    given: set[str] = set()
    for key, item in value.items():
        if key.startswith("__") or key.lower() in _ONLY_PROVIDER or item is None:
            continue
        if key.lower() not in members:
            yield _breach(key, path or "request", "Member must be one of: " + ", ".join(_camel(name) for name, _ in members.values()))
            continue
        name, member = members[key.lower()]
        given.add(name)
        yield from _check(_shapes()[member["shape"]], item, f"{path}.{_camel(name)}" if path else _camel(name))
    for name in shape.get("required", ()):
        if name not in given:
            place = f"{path}.{_camel(name)}" if path else _camel(name)
            yield f"Value null at '{place}' failed to satisfy constraint: Member must not be null"


def _length(shape: Mapping[str, Any], value: Any, path: str, length: int) -> Iterator[str]:
    if length < shape.get("min", 0):
        yield _breach(value, path, f"Member must have length greater than or equal to {shape['min']}")
    if "max" in shape and length > shape["max"]:
        yield _breach(value, path, f"Member must have length less than or equal to {shape['max']}")


def _text(shape: Mapping[str, Any], value: str, path: str) -> Iterator[str]:
    if "enum" in shape and value not in shape["enum"]:
        yield _breach(value, path, f"Member must satisfy enum value set: [{', '.join(shape['enum'])}]")
        return
    yield from _length(shape, value, path, len(value))
    pattern = shape.get("pattern")
    if pattern and not re.fullmatch(_python_pattern(pattern), value):
        yield _breach(value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _number(shape: Mapping[str, Any], value: float, path: str) -> Iterator[str]:
    if "min" in shape and value < shape["min"]:
        yield _breach(value, path, f"Member must have value greater than or equal to {shape['min']}")
    if "max" in shape and value > shape["max"]:
        yield _breach(value, path, f"Member must have value less than or equal to {shape['max']}")


def _python_pattern(pattern: str) -> str:
    """A Java pattern as Python reads it: Unicode classes stand for any character of their kind, where one is used for tags."""
    if r"\p{" not in pattern:
        return pattern
    # Keys and values of tags: letters, separators, numbers and `_.:/=+-@`.
    return re.sub(r"\[[^\]]*\\p\{[^\]]*\]", r"[\\w\\s_.:/=+\\-@]", pattern)


def _breach(value: Any, path: str, constraint: str) -> str:
    return f"Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"


def _camel(name: str) -> str:
    return name[:1].lower() + name[1:]
