"""Renew which changes replace an AWS resource, from the schema that pulumi-aws publishes.

pulumi package get-schema aws > schema.json
python tools/make_replacement_facts.py schema.json            write dpd_infra/rehearsal/world/replacements.json
python tools/make_replacement_facts.py schema.json --check    say what differs, and end with 1 where anything does
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FACTS = Path(__file__).resolve().parent.parent / "dpd_infra" / "rehearsal" / "world" / "replacements.json"
_DEEPEST = 6


def replacing(schema: dict[str, Any], token: str) -> list[str]:
    """The dotted paths of a resource's inputs whose change replaces it; the outermost of each."""
    return sorted(_below(schema, schema["resources"][token].get("inputProperties", {}), "", 0))


def _below(schema: dict[str, Any], properties: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    for name, property_ in properties.items():
        here = f"{path}.{name}" if path else name
        if property_.get("willReplaceOnChanges") or property_.get("replaceOnChanges"):
            yield here
            continue
        reference = property_.get("$ref") or property_.get("items", {}).get("$ref") or ""
        inner = schema.get("types", {}).get(reference.removeprefix("#/types/"), {})
        if depth < _DEEPEST:
            yield from _below(schema, inner.get("properties", {}), here, depth + 1)


def renewed(schema: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with what a schema says of the types that they hold. Raises `KeyError` for a type that the schema does not have."""
    version = f"pulumi-aws {schema.get('version', 'of unknown version')}, schema"
    types = {token: {"replaces": replacing(schema, token), "read": version} for token in facts["types"]}
    return {"source": "pulumi-aws's published schema, willReplaceOnChanges", "types": types}


def main(arguments: list[str] | None = None) -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description="Renew which changes replace an AWS resource.")
    parser.add_argument("schema", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    fresh = renewed(json.loads(options.schema.read_text(encoding="utf-8")), facts)
    if not options.check:
        FACTS.write_text(f"{json.dumps(fresh, indent=1)}\n", encoding="utf-8")
        return 0
    differing = [token for token, old in facts["types"].items() if old["replaces"] != fresh["types"][token]["replaces"]]
    for token in differing:
        print(f"{token}: {facts['types'][token]['replaces']} here, {fresh['types'][token]['replaces']} in the schema")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
