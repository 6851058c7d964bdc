"""Check a document against the CRD's facts, offline, as the API server would: every problem at once, each at its place."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from dpd_infra.catalog.crd import API_GROUP, API_VERSION, OF_V1, CrdFacts, crd_facts
from dpd_infra.catalog.crd.json_schema import METADATA, as_written, document_schema, is_date_time
from dpd_infra.catalog.crd.releases import HELD, UNKNOWN_FIELD

Path = tuple[str | int, ...]

DEPTH_LIMIT = 100
"""Levels of a document that are looked at. The resource itself has under 20; a deeper one is refused rather than followed."""

_LABEL_KEY: str = METADATA["properties"]["labels"]["propertyNames"]["pattern"].removesuffix("$").removeprefix("^")

DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that the API server would refuse."""

    path: Path
    """Where, in the document; for a missing field: where it would stand."""
    keyword: str
    """`type`, `required`, `minimum`, `pattern`, `enum`, …; `unknownField`, `duplicate`, `plainData` and `depth` are this library's."""
    message: str
    """What is wrong, in one sentence."""
    expected: Any = None
    """What the facts ask for: the type, the limit, the pattern, the list of values; for an unknown field its nearest known names."""
    value: Any = None
    """What stands there."""
    certain: bool = True
    """False for an unknown field of a release whose CRD is not held: the field may exist there."""

    @property
    def pointer(self) -> str:
        """RFC 6901 JSON pointer."""
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


def validate_document(document: Any, release: str = HELD) -> list[Problem]:
    """Every problem of one document, ordered by place; empty where the API server would take it in a server-side apply, as Pulumi does.

    Refused beyond that is what the server would store and the operator cannot read: a number beyond a field's 32 bits, and a fraction so
    near to an integer that the server takes it for one; and what an apply drops: a status that is not the CRD's, and a field that is null
    in an object that has none.

    `release` is the operator release, `3.2` (`operator_releases.release_of(addon_version).operator`). The document's own apiVersion
    chooses v1 or v1alpha1. The document is not changed. Raises `KeyError` for a release that the catalog does not hold.
    """
    if not isinstance(document, dict):
        return [Problem((), "type", f"a resource is an object, this is {_kind(document)}", "object", document)]
    version = document.get("apiVersion")
    facts = crd_facts(release, "v1alpha1" if version == f"{API_GROUP}/v1alpha1" else "v1")
    walk = _Walk(facts)
    clean = walk.clean(document, {"type": "object", "properties": {**facts.schema["properties"], "metadata": METADATA}}, ())
    if walk.stop:
        return walk.problems
    found = [problem for error in _validator(release, facts.version).iter_errors(clean) for problem in _problems(error, facts)]
    return sorted(
        [*walk.problems, *found], key=lambda problem: [(str(step), 0) if isinstance(step, str) else ("", step) for step in problem.path]
    )


@cache
def _validator(release: str, version: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        document_schema(crd_facts(release, version)),
        # Go's patterns are RE2, whose dialect Rust's regex crate shares.
        pattern_options=jsonschema_rs.RegexOptions(),
        validate_formats=True,
        formats={"date-time": is_date_time},
    )


class _Walk:
    """What comes before a JSON Schema can look: a null gives way to the field's default, and list-maps hold each key once."""

    def __init__(self, facts: CrdFacts) -> None:
        self._facts = facts
        self.problems: list[Problem] = []
        self.stop = False

    def clean(self, value: Any, schema: dict[str, Any] | None, path: Path) -> Any:
        if len(path) > DEPTH_LIMIT:
            self._refuse(Problem(path, "depth", f"nested deeper than {DEPTH_LIMIT} levels", DEPTH_LIMIT))
            return None
        known = self._facts.resolve(schema) if schema else {}
        if isinstance(value, dict):
            return self._clean_object(value, known, path)
        if isinstance(value, (list, tuple)):
            inner = known.get("items")
            items = [item if _is_plain(item) else self.clean(item, inner, (*path, index)) for index, item in enumerate(value)]
            self._each_once(items, known, path)
            return items
        if isinstance(value, float) and not math.isfinite(value):
            self._refuse(Problem(path, "plainData", "not a number that JSON can hold", "number", str(value)))
        elif isinstance(value, str):
            if not _is_text(value):
                self._refuse(Problem(path, "plainData", "holds half of a surrogate pair, which is no character", "text", ascii(value)))
        elif value is not None and not isinstance(value, (int, float, bool)):
            self._refuse(
                Problem(path, "plainData", f"{_kind(value)} is not JSON data; write it as text in quotes", "plain data", str(value))
            )
        return value

    def _clean_object(self, value: dict[Any, Any], known: dict[str, Any], path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        properties, free = known.get("properties", {}), known.get("additionalProperties")
        for key, item in value.items():
            if not (type(key) is str and key.isascii()) and not (isinstance(key, str) and _is_text(key)):
                shown = ascii(key)
                self._refuse(Problem((*path, shown), "plainData", f"the key {shown} is not text; write it in quotes", "string", shown))
                continue
            kind = type(item)
            # `_is_plain`, written out: nine of ten values of a document end here.
            if (kind is str and item.isascii()) or kind is int or kind is bool:
                result[key] = item
                continue
            inner = properties.get(key, free if isinstance(free, dict) else None)
            if item is None and inner is not None and not (field := self._facts.resolve(inner)).get("nullable"):
                if "default" not in field and key not in known.get("required", ()):
                    self._null(field, (*path, key))
                continue
            result[key] = self.clean(item, inner, (*path, key))
        return result

    def _null(self, field: dict[str, Any], path: Path) -> None:
        """A null without a default: a create or a client-side apply leaves the field out, a server-side apply refuses it (measured)."""
        # Metadata is read by other code, and takes any.
        if path[0] == "spec" or (len(path) > 1 and path[0] == "status"):
            wanted = ["integer", "string"] if field.get("x-kubernetes-int-or-string") else [field["type"]]
            # The CRD asks for no spec at all, and the operator can do nothing without one.
            otherwise = "" if path == ("spec",) else ", or left out"
            self.problems.append(Problem(path, "type", f"{_sentence('type', wanted, None)}{otherwise}", wanted))

    def _each_once(self, items: list[Any], known: dict[str, Any], path: Path) -> None:
        kind = known.get("x-kubernetes-list-type")
        if kind not in {"map", "set"}:
            return
        keys = known.get("x-kubernetes-list-map-keys", ())
        entry = self._facts.resolve(known.get("items", {})).get("properties", {})
        seen: list[Any] = []
        for index, item in enumerate(items):
            if kind == "map" and not isinstance(item, dict):
                continue
            mark = _typed([item.get(key, entry.get(key, {}).get("default")) for key in keys] if kind == "map" else item)
            if mark in seen:
                shown = ", ".join(f"{key} {item.get(key)!r}" for key in keys) if kind == "map" else repr(item)
                place = (*path, index)
                self.problems.append(Problem(place, DUPLICATE, f"{shown} stands in this list twice; each may stand once", list(keys), item))
            seen.append(mark)

    def _refuse(self, problem: Problem) -> None:
        self.problems.append(problem)
        self.stop = True


def _is_plain(value: Any) -> bool:
    """Whether a value needs no closer look: most of a document are short texts and numbers."""
    return (type(value) is str and value.isascii()) or type(value) is int or type(value) is bool


def _is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8: Python's may hold a lone surrogate."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _typed(value: Any) -> Any:
    """A value that tells 1 from true and from "1", which Python's `==` does not all do; 1 and 1.0 are one number."""
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return ("number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__, value)


def _problems(error: jsonschema_rs.ValidationError, facts: CrdFacts) -> Iterator[Problem]:
    path: Path = tuple(error.instance_path)
    kind = error.kind
    keyword, wanted = kind.name, getattr(kind, "value", None)
    value: Any = error.instance
    if keyword == "pattern":
        wanted = as_written(str(wanted))
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        for name in kind.unexpected:
            yield _unknown((*path, name), value[name], facts)
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        yield Problem((*path, kind.property), "required", f"{kind.property} is missing", kind.property)
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.PropertyNames):
        for name in value:
            if not re.fullmatch(_LABEL_KEY, name):
                yield Problem((*path, name), "propertyNames", f"{name!r} is not the name of a label", _LABEL_KEY, value[name])
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AnyOf):
        yield Problem((*path, "name"), "required", "a resource needs a name", "name")
    else:
        yield Problem(path, keyword, _sentence(keyword, wanted, value), wanted, value)


def _unknown(path: Path, value: Any, facts: CrdFacts) -> Problem:
    around = facts.field(path[:-1]) if path[:-1] else None
    properties = METADATA if path[:-1] == ("metadata",) else around.schema if around else facts.schema
    near = difflib.get_close_matches(str(path[-1]), list(properties.get("properties", {})), n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    certain = facts.complete or path[0] != "spec"
    if facts.version == "v1alpha1" and crd_facts(HELD).field(path) is not None:
        return Problem(path, UNKNOWN_FIELD, f"{path[-1]} is not a field in v1alpha1, it came with v1", [OF_V1], value)
    where = f"operator {facts.release}" if certain else f"the CRD of operator {HELD}, the newest that is held"
    return Problem(path, UNKNOWN_FIELD, f"{path[-1]} is not a field here in {where}{hint}", near, value, certain)


def _sentence(keyword: str, wanted: Any, value: Any) -> str:
    if keyword == "type":
        names: list[str] = wanted if isinstance(wanted, list) else [wanted]
        return f"is {_kind(value)}, must be {' or '.join(_ARTICLES.get(name, name) for name in names)}"
    if keyword in _SENTENCES:
        return _SENTENCES[keyword].format(wanted=wanted)
    if keyword == "enum":
        return f"must be one of {', '.join(map(str, wanted))}"
    return f"must satisfy {keyword} {wanted}"


_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}

_SENTENCES = {
    "const": "must be {wanted}",
    "format": "must be a {wanted}",
    "minimum": "must be {wanted} or more",
    "maximum": "must be {wanted} or less",
    "minLength": "must have {wanted} characters or more",
    "maxLength": "must have {wanted} characters or fewer",
    "minItems": "must have {wanted} entries or more",
    "maxItems": "must have {wanted} entries or fewer",
    "pattern": "must match {wanted}",
}


def _kind(value: Any) -> str:
    if value is None:
        return "nothing (null)"
    names = {dict: "an object", list: "a list", tuple: "a list", str: "text", bool: "true or false", int: "an integer", float: "a fraction"}
    return names.get(type(value), f"a {type(value).__name__}")


__all__ = ["API_VERSION", "DUPLICATE", "UNKNOWN_FIELD", "Problem", "validate_document"]
