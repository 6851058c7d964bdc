"""The models and the CRD's facts say the same of every field, in both directions."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dpd_infra.catalog.crd import CrdFacts, crd_facts
from dpd_infra.catalog.crd.releases import FIELDS, LATER_FIELDS
from dpd_infra.spec.inference_endpoint_config import InferenceEndpointConfig, InferenceEndpointConfigSpec
from dpd_infra.spec.inference_endpoint_config.data_capture import CaptureContentTypes
from dpd_infra.spec.inference_endpoint_config.status import InferenceEndpointConfigStatus
from tests.pure.crd.raw_crd import raw_schema
from tests.pure.endpoint.test_published_example import PUBLISHED

NEWEST = "3.7"
LIMITS = ("pattern", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "format")
OPAQUE = {"coreObject": True}
BITS = {"int32": 31, "int64": 63}


def _limits(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    found = {key: schema[key] for key in LIMITS if key in schema}
    if kind == "integer" and schema.get("format") in BITS:
        bits = BITS[schema["format"]]
        found["minimum"], found["maximum"] = (
            max(-(2**bits), found.get("minimum", -(2**bits))),
            min(2**bits - 1, found.get("maximum", 2**bits)),
        )
    return found


def of_model(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """What a model says of a field, in a common form."""
    if "$ref" in schema:
        outer = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**defs[schema["$ref"].removeprefix("#/$defs/")], **outer}
    found: dict[str, Any] = {}
    if schema.get("default") is not None:
        found["default"] = schema["default"]
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
        kinds = {choice.get("type") for choice in choices}
        if kinds == {"integer", "string"}:
            return {**found, "type": "int-or-string", **_limits(next(c for c in choices if c["type"] == "string"), "string")}
        if kinds == {"integer", "number"}:
            return {**found, "type": "number"}
        assert len(choices) == 1
        return {
            **found,
            **of_model({**{key: value for key, value in schema.items() if key in (*LIMITS, "uniqueItems")}, **choices[0]}, defs),
        }
    kind = schema["type"]
    if kind == "object" and schema.get("additionalProperties") is True and "properties" not in schema:
        return OPAQUE
    found |= {"type": kind, **_limits(schema, kind)}
    if "properties" in schema:
        found["properties"] = {name: of_model(part, defs) for name, part in schema["properties"].items()}
        found["required"] = sorted(schema.get("required", []))
    elif isinstance(schema.get("additionalProperties"), dict):
        found["values"] = of_model(schema["additionalProperties"], defs)
    if "items" in schema:
        found["items"] = of_model(schema["items"], defs)
    if schema.get("uniqueItems"):
        found["set"] = True
    return found


def of_facts(schema: dict[str, Any], facts: CrdFacts, model: dict[str, Any]) -> dict[str, Any]:
    """What the facts say of the same field, in the same form; a core/v1 object is opaque where the model keeps it as plain data."""
    schema = facts.resolve(schema)
    if model == OPAQUE:
        assert schema["type"] == "object"
        return OPAQUE
    found = {key: schema[key] for key in ("default",) if schema.get(key) is not None}
    if schema.get("x-kubernetes-int-or-string"):
        return {**found, "type": "int-or-string", **_limits(schema, "string")}
    kind = schema["type"]
    found |= {"type": kind, **_limits(schema, kind)}
    if "properties" in schema:
        inner = model.get("properties", {})
        found["properties"] = {name: of_facts(part, facts, inner.get(name, {})) for name, part in schema["properties"].items()}
        found["required"] = sorted(schema.get("required", []))
    elif isinstance(schema.get("additionalProperties"), dict):
        found["values"] = of_facts(schema["additionalProperties"], facts, model.get("values", {}))
    if "items" in schema:
        found["items"] = of_facts(schema["items"], facts, model.get("items", {}))
    if schema.get("x-kubernetes-list-type") == "set":
        found["set"] = True
    return found


@pytest.mark.parametrize(("model", "part"), [(InferenceEndpointConfigSpec, "spec"), (InferenceEndpointConfigStatus, "status")])
def test_models_and_facts_are_equal_field_by_field(model: Any, part: str) -> None:
    schema = model.model_json_schema(by_alias=True)
    facts = crd_facts(NEWEST)
    from_model = of_model(schema, schema["$defs"])
    assert from_model == of_facts(facts.schema["properties"][part], facts, from_model)


def _releases(schema: dict[str, Any], defs: dict[str, Any], path: str) -> dict[str, str]:
    if "$ref" in schema:
        schema = {**defs[schema["$ref"].removeprefix("#/$defs/")], **schema}
    found: dict[str, str] = {}
    for choice in schema.get("anyOf", []):
        found |= _releases(choice, defs, path)
    for name, part in schema.get("properties", {}).items():
        if "operatorRelease" in part:
            found[f"{path}.{name}"] = part["operatorRelease"]
        found |= _releases(part, defs, f"{path}.{name}")
    return found


def test_a_models_field_names_the_release_that_the_catalog_names() -> None:
    schema = InferenceEndpointConfigSpec.model_json_schema(by_alias=True)
    catalog = {path: brought.release for path, brought in FIELDS.items()} | {field.path: field.brought.release for field in LATER_FIELDS}
    assert _releases(schema, schema["$defs"], "spec") == catalog


def test_every_field_of_the_models_is_documented() -> None:
    for model in (InferenceEndpointConfigSpec, InferenceEndpointConfigStatus):
        schema = model.model_json_schema(by_alias=True)
        bare = [
            f"{name}.{field}"
            for name, part in schema["$defs"].items()
            for field, body in part.get("properties", {}).items()
            if not body.get("description")
        ]
        assert bare == []


def test_the_published_manifest_goes_through_the_models_unchanged() -> None:
    assert InferenceEndpointConfig.from_manifest(PUBLISHED).to_manifest() == PUBLISHED


def test_a_null_counts_as_left_out() -> None:
    document = {**PUBLISHED, "spec": {**PUBLISHED["spec"], "replicas": None, "dnsConfig": None}}
    assert InferenceEndpointConfig.from_manifest(document).to_manifest() == PUBLISHED


def test_odd_spellings_are_the_crds() -> None:
    names = set(raw_schema()["properties"]["spec"]["properties"])
    assert "InitialReplicaCount" in names
    spec = InferenceEndpointConfig.from_manifest({**PUBLISHED, "spec": {**PUBLISHED["spec"], "InitialReplicaCount": 2}}).spec
    assert spec.initial_replica_count == 2


@pytest.mark.parametrize(
    "worker",
    [
        {"environmentVariables": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        {"resources": {"claims": [{"name": "gpu"}, {"name": "gpu"}]}},
    ],
)
def test_a_list_map_refuses_one_key_twice(worker: dict[str, Any]) -> None:
    document = {**PUBLISHED, "spec": {**PUBLISHED["spec"], "worker": {**PUBLISHED["spec"]["worker"], **worker}}}
    with pytest.raises(ValidationError, match="stands there twice"):
        InferenceEndpointConfig.from_manifest(document)


def test_a_set_refuses_one_entry_twice() -> None:
    with pytest.raises(ValidationError, match="twice"):
        CaptureContentTypes.from_yaml_data({"csvContentTypes": ["text/csv", "text/csv"]})
