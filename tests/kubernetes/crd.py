"""The CRD itself on an API server, and what the server is to store of a document by it."""

from __future__ import annotations

import copy
import gzip
import re
import time
from typing import Any

import yaml

from tests.kubernetes.client import Client
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
        while not client.request("GET", f"/apis/{group}/{version['name']}/{plural}").taken:
            assert time.monotonic() < deadline, "the CRD is not served"
            time.sleep(0.1)


def stored(document: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """The spec of a document as the server is to keep it: the CRD's defaults added, nulls left out, all else as it was."""
    return _filled(copy.deepcopy(document["spec"]), raw_schema(version)["properties"]["spec"])


def _filled(value: Any, schema: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_filled(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    inner = schema.get("additionalProperties")
    properties = schema.get("properties", {})
    found = {name: _filled(part, properties.get(name) or inner or {}) for name, part in value.items() if part is not None}
    for name, part in properties.items():
        if name not in found and "default" in part:
            found[name] = _filled(copy.deepcopy(part["default"]), part)
    return found
