"""From the CRD's structural schema to a JSON Schema that accepts and refuses what the API server does.

The differences between the two, each as the API server has it (apiextensions-apiserver and kube-openapi):

- an unknown field is an error (strict field validation), where a JSON Schema would let it pass; an object without any properties, such
  as the metadata of a volume claim template, takes no field at all;
- `x-kubernetes-int-or-string` is an integer or a string;
- an integer is one of 32 bits for `format: int32`, else one of 64;
- defaults come before checks, so a field with a default is never missing;
- `date-time` is checked, other formats are notes;
- patterns are RE2: `$` is the end of the text and nothing else, and `.` is every character but a line feed. The library reads them as
  JavaScript, whose `.` leaves three more out, so it is given a class of its own for a `.`.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from dpd_infra.catalog.crd import API_GROUP, KIND, CrdFacts

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)

_COPIED = frozenset(
    {"enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")

_LABEL_NAME = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

_TEXT = {"type": "string"}
_KEYS = {"type": "string", "maxLength": 317, "pattern": rf"^({_SUBDOMAIN}/)?{_LABEL_NAME}$"}

METADATA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "anyOf": [{"required": ["name"]}, {"required": ["generateName"]}],
    "properties": {
        "name": {"type": "string", "maxLength": 253, "pattern": rf"^{_SUBDOMAIN}$"},
        "generateName": _TEXT,
        "namespace": {"type": "string", "maxLength": 63, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "labels": {
            "type": "object",
            "propertyNames": _KEYS,
            "additionalProperties": {"type": "string", "pattern": rf"^({_LABEL_NAME})?$"},
        },
        "annotations": {"type": "object", "additionalProperties": _TEXT},
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": {"type": "object"}},
        "managedFields": {"type": "array", "items": {"type": "object"}},
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "generation": {"type": "integer"},
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
}
"""meta/v1 ObjectMeta, which the API server checks by itself: the CRD says `type: object` and no more."""


def is_date_time(text: str) -> bool:
    """Whether the API server takes a text as `date-time` (kube-openapi, strfmt.IsDateTime).

    Not RFC 3339 to the letter: no leap second, any offset, any one character before a fraction, and nothing is read from a second `t` on.
    """
    day, *times = text.lower().split("t")
    match = _TIME.fullmatch(times[0]) if times else None
    try:
        # Go knows a year 0, which is a leap year; Python's first is 1.
        dt.date.fromisoformat(day.replace("0000-", "2000-", 1) if _DAY.fullmatch(day) else "")
    except ValueError:
        return False
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


_DOT_OR_NONE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\.")
_NOT_LINE_FEED = r"[^\n]"


def _given(pattern: str) -> str:
    """A pattern of the CRD as the library is given it; escapes and classes stay as they are."""
    return _DOT_OR_NONE.sub(lambda found: _NOT_LINE_FEED if found[0] == "." else found[0], pattern)


def as_written(pattern: str) -> str:
    """A pattern of `document_schema` as the CRD has it."""
    return pattern.replace(_NOT_LINE_FEED, ".")


def document_schema(facts: CrdFacts) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a whole document of the facts' version."""
    root = facts.schema["properties"]
    spec, status = (_scaled(strict(root[part], facts)) for part in ("spec", "status"))
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"const": f"{API_GROUP}/{facts.version}"},
            "kind": {"const": KIND},
            "metadata": METADATA,
            "spec": spec,
            "status": status,
        },
        "$defs": {name: strict(part, facts) for name, part in facts.shared.items()},
    }


def _scaled(schema: dict[str, Any]) -> dict[str, Any]:
    """What the CRD's scale subresource names is not negative (apiextensions-apiserver, registry/customresource/validator.go)."""
    replicas = schema["properties"]["replicas"]
    return {**schema, "properties": {**schema["properties"], "replicas": {**replicas, "minimum": 0}}}


def strict(schema: dict[str, Any], facts: CrdFacts) -> dict[str, Any]:
    """One structural schema as JSON Schema; `facts` tell a shared part's default."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    result: dict[str, Any] = {key: value for key, value in schema.items() if key in _COPIED}
    if "pattern" in result:
        result["pattern"] = _given(result["pattern"])
    _put_type(result, schema)
    if "items" in schema:
        result["items"] = strict(schema["items"], facts)
    if schema.get("format") == "date-time":
        result["format"] = "date-time"
    properties = schema.get("properties", {})
    if properties:
        result["properties"] = {name: strict(part, facts) for name, part in properties.items()}
        missing = [name for name in schema.get("required", ()) if "default" not in facts.resolve(properties[name])]
        if missing:
            result["required"] = missing
    free = schema.get("additionalProperties")
    if isinstance(free, dict):
        result["additionalProperties"] = strict(free, facts)
    elif schema.get("type") == "object" and free is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
        result["additionalProperties"] = False
        # Without it the library says of the object that it is wrong, and not which field is too many.
        result.setdefault("properties", {})
    return result


def _put_type(result: dict[str, Any], schema: dict[str, Any]) -> None:
    if schema.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
    elif "type" in schema:
        types = [schema["type"]]
    else:
        return
    if "integer" in types:
        low, high = _INT32 if schema.get("format") == "int32" else _INT64
        result["minimum"], result["maximum"] = max(low, schema.get("minimum", low)), min(high, schema.get("maximum", high))
    if schema.get("nullable"):
        types.append("null")
    result["type"] = types[0] if len(types) == 1 else types
