"""The base of every spec: frozen plain data, unknown keys refused, camelCase in YAML and snake_case in Python."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

StrictInt = Annotated[int, Strict()]
"""An int that refuses booleans, floats and numeric strings: `count: "2"` in a stack file is a mistake to report."""

StrictBool = Annotated[bool, Strict()]
"""A bool that refuses 0, 1, "yes" and "true": Pulumi hands YAML booleans on as booleans."""


def section() -> Any:
    """A field that is a spec of its own and may be left out: everything in it then has its default.

    The default is plain data that the owner's own validation reads: an instance would build its model when the class is made.
    """
    return Field(default_factory=dict)


class Spec(BaseModel):
    """What a user asked for. Validated when it is built; raises `pydantic.ValidationError` with every problem at once."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        validate_default=True,
        # A model is built when it is first used: a command that needs one of them does not pay for all.
        defer_build=True,
    )

    @classmethod
    def from_yaml_data(cls, data: Any) -> Self:
        """Build from the plain data of a stack file, whose keys are camelCase only.

        Raises `pydantic.ValidationError` with one entry a problem.
        """
        return cls.model_validate(data, by_alias=True, by_name=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The model's JSON Schema with its attributes' docstrings as descriptions."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in documentation(cls).items():
            alias = cls.model_fields[name].alias or name
            if alias in properties:
                properties[alias].setdefault("description", text)
        return schema

    @classmethod
    def key_elsewhere(cls, key: str) -> str:
        """Where a key that this section does not have belongs, in a few words; empty where nothing is known of it."""
        del key
        return ""

    def to_yaml_data(self) -> dict[str, Any]:
        """The plain data that a stack file would hold: camelCase keys, only what was set."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


@cache
def documentation(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of a model's attributes by name, read from its source when they are first asked for.

    pydantic's own `use_attribute_docstrings` reads the source of every class on every import.
    """
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, Spec) and kind is not Spec:
            texts |= {name: text for name, text in _docstrings(kind) if name in model.model_fields}
    return texts


def _docstrings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    try:
        source = inspect.getsource(model)
    except OSError:
        # A program without its sources, such as a frozen one, has no texts and works without.
        return
    (tree,) = ast.parse(textwrap.dedent(source)).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for statement, following in itertools.pairwise(body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
            case _:
                pass
