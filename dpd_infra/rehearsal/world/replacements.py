"""Which changes replace a resource, as the providers publish it: pulumi-aws's schema, and what the installed SDKs say in their code."""

from __future__ import annotations

import ast
import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

FACTS = Path(__file__).with_name("replacements.json")
"""By type token: the properties, as dotted paths, whose change replaces a resource of pulumi-aws (tools/make_replacement_facts.py)."""


@cache
def _facts() -> dict[str, Any]:
    return json.loads(FACTS.read_text(encoding="utf-8"))


def published(token: str) -> tuple[str, ...]:
    """The dotted paths whose change replaces a resource of pulumi-aws; empty for a type that the facts do not hold."""
    return tuple(_facts()["types"].get(token, {}).get("replaces", ()))


@cache
def sdk_replacements(module: str, token: str) -> tuple[str, ...]:
    """What an SDK passes as `replace_on_changes` for a type, read from its code without importing it; empty where it passes nothing."""
    file = _module_file(module, token)
    if file is None:
        return ()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "replace_on_changes" and isinstance(node.value, ast.List):
            return tuple(str(item.value) for item in node.value.elts if isinstance(item, ast.Constant))
    return ()


def _module_file(module: str, token: str) -> Path | None:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    _, area, name = token.split(":")
    folder = Path(spec.origin).parent / area.split("/")[0].replace("-", "").lower()
    # `DataQualityJobDefinition` stands in data_quality_job_definition.py.
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    exact = folder / f"{snake}.py"
    if exact.is_file():
        return exact
    return next((file for file in sorted(folder.glob("*.py")) if file.stem.replace("_", "") == name.lower()), None)
