"""The JSON Schema of a stack file: what an editor needs to complete and check it."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.spec.platform import PlatformSpec
from dpd_infra.stack import ENDPOINTS_KEY, OPERATOR_KEY, PLATFORM_KEY

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def stack_file_schema() -> dict[str, Any]:
    """The schema of `Pulumi.<stack>.yaml`, JSON Schema 2020-12. Keys of other libraries are let through."""
    models = [(model, "validation") for model in (AwsSettings, PlatformSpec, OperatorFacts, EndpointSpec)]
    _, definitions = models_json_schema(models, by_alias=True, ref_template="#/$defs/{model}")  # type: ignore[arg-type]
    aws = definitions["$defs"].pop("AwsSettings")
    return {
        "$schema": _DIALECT,
        "title": "A stack file of dpd-infra",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": {
                    **{f"aws:{key}": value for key, value in aws["properties"].items()},
                    str(PLATFORM_KEY): {"$ref": "#/$defs/PlatformSpec"},
                    str(ENDPOINTS_KEY): {
                        "type": "object",
                        "description": "The endpoints by name.",
                        "additionalProperties": {"$ref": "#/$defs/EndpointSpec"},
                        "propertyNames": TypeAdapter(str).json_schema() | {"pattern": r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"},
                    },
                    OPERATOR_KEY: {"$ref": "#/$defs/OperatorFacts"},
                },
            }
        },
        "$defs": dict(sorted(definitions["$defs"].items())),
    }
