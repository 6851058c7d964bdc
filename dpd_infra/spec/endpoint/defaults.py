"""How a default of the short form names where it comes from."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from dpd_infra.catalog.sources import Source

_KEY = "defaultSource"

Auto = Literal["auto"]
"""In place of a number: work it out from the model, the GPU and the endpoint's `load`."""


def sourced(source: Source | str, *, default: Any, **constraints: Any) -> Any:
    """A pydantic field with a default and the document that the default comes from."""
    return Field(default=default, json_schema_extra={_KEY: str(source)}, **constraints)


def default_source(field: FieldInfo) -> str:
    """Where a field's default comes from; empty for a field that says nothing (its default is absence)."""
    extra = field.json_schema_extra
    return str(extra.get(_KEY, "")) if isinstance(extra, dict) else ""
