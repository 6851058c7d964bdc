"""The kinds of values that the InferenceEndpointConfig CRD knows, and how a model's field says which operator release brought it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, Strict, StringConstraints

from dpd_infra.spec.base import Spec, StrictInt

Int32 = Annotated[StrictInt, Field(ge=-(2**31), le=2**31 - 1, json_schema_extra={"format": "int32"})]
"""An integer of 32 bits: the API server refuses anything larger (CRD, `format: int32`)."""

Int32NotNegative = Annotated[StrictInt, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int32"})]
"""An integer of 32 bits from 0 on."""

Number = StrictInt | Annotated[float, Strict()]
"""An integer or a fraction, kept as it was written: `5` does not become `5.0`."""

QUANTITY_PATTERN = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
"""The CRD's pattern of a Kubernetes quantity."""

Quantity = StrictInt | Annotated[str, StringConstraints(pattern=QUANTITY_PATTERN)]
"""A Kubernetes quantity: `8`, `"96"`, `1024Gi`, `30000m`. An integer or a string, never a fraction (CRD, int-or-string)."""

DNS_SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""RFC 1123 subdomain, as the CRD spells it."""

CoreObject = dict[str, Any]
"""A core/v1 object (container, volume, probe, affinity) as plain data; the CRD's facts check it."""


def since(release: str) -> dict[str, Any]:
    """The `json_schema_extra` of a field that an operator release brought: `Field(json_schema_extra=since("3.2"))`."""
    return {"operatorRelease": release}


class CrdModel(Spec):
    """A part of the custom resource: its fields, defaults, ranges and patterns are the CRD's."""
