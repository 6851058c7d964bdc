"""The base of every spec: frozen plain data, unknown keys refused, camelCase in YAML and snake_case in Python."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Strict
from pydantic.alias_generators import to_camel

StrictInt = Annotated[int, Strict()]
"""An int that refuses booleans, floats and numeric strings: `count: "2"` in a stack file is a mistake to report."""

StrictBool = Annotated[bool, Strict()]
"""A bool that refuses 0, 1, "yes" and "true": Pulumi hands YAML booleans on as booleans."""


class Spec(BaseModel):
    """What a user asked for. Validated when it is built; raises `pydantic.ValidationError` with every problem at once."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )

    @classmethod
    def from_yaml_data(cls, data: Any) -> Self:
        """Build from the plain data of a stack file, whose keys are camelCase only.

        Raises `pydantic.ValidationError` with one entry a problem.
        """
        return cls.model_validate(data, by_alias=True, by_name=False)

    def to_yaml_data(self) -> dict[str, Any]:
        """The plain data that a stack file would hold: camelCase keys, only what was set."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
