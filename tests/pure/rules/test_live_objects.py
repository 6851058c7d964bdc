"""What a cluster gives back of an endpoint, defaults and status included, is judged as what was sent."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpd_infra.catalog.crd import crd_facts
from tests.pure.rules.kit import Edit, colocated, put, raw

FACTS = crd_facts("3.2")


def fill(value: Any, schema: dict[str, Any]) -> None:
    """What the API server does on a write: defaults at every place that is there."""
    schema = FACTS.resolve(schema)
    for key, part in schema.get("properties", {}).items() if isinstance(value, dict) else ():
        known = FACTS.resolve(part)
        if key not in value and "default" in known:
            value[key] = copy.deepcopy(known["default"])
        if key in value:
            fill(value[key], known)
    for entry in value if isinstance(value, list) else ():
        fill(entry, schema.get("items", {}))


def live(document: dict[str, Any]) -> None:
    fill(document["spec"], FACTS.schema["properties"]["spec"])
    own = {"f:spec": {".": {}}}
    document["metadata"] |= {
        "creationTimestamp": "2026-07-10T10:00:00Z",
        "generation": 2,
        "resourceVersion": "123",
        "uid": "11111111-2222-3333-4444-555555555555",
        "finalizers": ["inference.sagemaker.aws.amazon.com/finalizer"],
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": own}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    document["status"] = {"state": "DeploymentComplete", "replicas": 2}


@pytest.mark.parametrize("edits", [(), (colocated,), (put("spec|metrics", {"enabled": True, "modelMetrics": {"port": 8000}}),)])
def test_a_live_object_has_the_findings_of_what_was_sent(edits: tuple[Edit, ...]) -> None:
    sent, stored = raw(*edits), raw(*edits, live)
    assert [(found.rule, found.what) for found in stored.findings] == [(found.rule, found.what) for found in sent.findings]


def test_replicas_that_somebody_wrote_are_told_of_a_live_object_too() -> None:
    assert "DPD016" in {found.rule for found in raw(put("spec|replicas", 2), live).findings}
    assert "DPD016" in {found.rule for found in raw(put("spec|replicas", 1)).findings}
