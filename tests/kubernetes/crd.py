"""The CRD itself on an API server, and what the server is to store of a document by it."""

from __future__ import annotations

import copy
import gzip
import math
import re
import time
from typing import Any

import yaml

from tests.kubernetes.client import Answer, Client
from tests.pure.crd.raw_crd import CRD_FILE, raw_schema

START_SECONDS = 30


def crd() -> dict[str, Any]:
    """The operator's CRD as it ships, its Helm placeholders filled and without its conversion webhook: the operator is not there."""
    text = re.sub(r"\{\{.*?\}\}", "placeholder", gzip.decompress(CRD_FILE.read_bytes()).decode())
    document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    del document["spec"]["conversion"]
    return document


def install_crd(client: Client) -> None:
    """Apply the CRD and wait until the server serves it."""
    document = crd()
    client.make(document)
    group, plural = document["spec"]["group"], document["spec"]["names"]["plural"]
    deadline = time.monotonic() + START_SECONDS
    for version in document["spec"]["versions"]:
        at = f"/apis/{group}/{version['name']}"
        # That it is listed, and that it is served, follow each other at no fixed distance.
        while not all(client.request("GET", path).taken for path in (at, f"{at}/{plural}")):
            assert time.monotonic() < deadline, "the CRD is not served"
            time.sleep(0.1)


def stored(document: dict[str, Any], part: str = "spec") -> Any:
    """The spec, or the status, of a document as the server is to keep it: the CRD's defaults added, nulls left out, all else as it was."""
    version = str(document["apiVersion"]).rpartition("/")[2]
    return _filled(copy.deepcopy(document.get(part)), raw_schema(version)["properties"][part])


def keeps(answer: Answer, document: dict[str, Any], part: str = "spec") -> bool:
    """Whether the server took a document and would store it unchanged: an apply drops silently what an object without fields holds."""
    return answer.taken and same(answer.body.get(part), stored(document, part))


def same(left: Any, right: Any) -> bool:
    """Whether two values are one to JSON, in which a number may be written in several ways."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(part, right[name]) for name, part in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
    numbers = [one for one in (left, right) if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(numbers) == 2 and any(isinstance(one, float) or not -(2**63) < one < 2**63 - 1 for one in numbers):
        # The server has no integer of more than 64 bits, and writes a number without a fraction as one.
        return math.isclose(*numbers, rel_tol=1e-15)
    return type(left) is type(right) and left == right


def _filled(value: Any, schema: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_filled(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    inner = schema.get("additionalProperties")
    properties = schema.get("properties", {})
    found = {name: _filled(part, properties.get(name) or inner or {}) for name, part in value.items() if part is not None}
    for name, part in properties.items():
        if name not in found and "default" in part:
            found[name] = _filled(copy.deepcopy(part["default"]), part)
    return found
