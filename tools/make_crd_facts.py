"""Make the CRD facts of one operator release from its InferenceEndpointConfig CRD: everything but the prose.

    python tools/make_crd_facts.py CRD.yaml --release 3.2

CRD.yaml is `inference.sagemaker.aws.amazon.com_inferenceendpointconfigs.yaml` of the operator's Helm chart (aws/sagemaker-hyperpod-cli,
Apache-2.0); its Helm placeholders stand in names that no fact needs. A path that ends in `.gz` is unpacked. Without `--output` the facts
go to `dpd_infra/catalog/crd/`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

FACTS = Path(__file__).parent.parent / "dpd_infra" / "catalog" / "crd"

PROSE = frozenset({"description"})
"""Keys of a schema that only people read."""

SHARED_FROM = 200
"""A part that stands in several places is written once from this many characters on."""


def read_crd(path: Path) -> dict[str, Any]:
    """The CRD as plain data, a neutral word in the place of each Helm placeholder."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    return yaml.safe_load(re.sub(r"\{\{.*?\}\}", "placeholder", text))


def without_prose(schema: Any) -> Any:
    """A structural schema without its descriptions; a property that is named `description` stays."""
    if not isinstance(schema, dict):
        return schema
    facts: dict[str, Any] = {}
    for key, value in schema.items():
        if key in PROSE:
            continue
        if key == "properties":
            facts[key] = {name: without_prose(part) for name, part in value.items()}
        elif key in {"items", "additionalProperties"}:
            facts[key] = without_prose(value)
        else:
            facts[key] = value
    return facts


def parts(schema: Any, name: str) -> list[tuple[str, dict[str, Any]]]:
    """A schema and all parts of it, inner ones first, each with the property that it stands under."""
    found: list[tuple[str, dict[str, Any]]] = []
    if isinstance(schema, dict):
        for key, part in schema.get("properties", {}).items():
            found += parts(part, key)
        for key in ("items", "additionalProperties"):
            found += parts(schema.get(key), name)
        found.append((name, schema))
    return found


def share_repeats(schemas: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas with every larger repeated part replaced by a reference, and those parts by name."""
    texts = [(name, json.dumps(part, sort_keys=True)) for schema in schemas.values() for name, part in parts(schema, "root")]
    counts = Counter(text for _, text in texts)
    names: dict[str, str] = {}
    for name, text in texts:
        if counts[text] > 1 and len(text) >= SHARED_FROM and text not in names:
            taken = set(names.values())
            names[text] = next(free for free in (name, *(f"{name}{number}" for number in range(2, 100))) if free not in taken)

    def shrink(schema: Any, *, whole: bool = False) -> Any:
        if not isinstance(schema, dict):
            return schema
        text = json.dumps(schema, sort_keys=True)
        if text in names and not whole:
            return {"$ref": f"#/$defs/{names[text]}"}
        small = dict(schema)
        if "properties" in small:
            small["properties"] = {key: shrink(part) for key, part in small["properties"].items()}
        for key in ("items", "additionalProperties"):
            if key in small:
                small[key] = shrink(small[key])
        return small

    shared = {name: shrink(json.loads(text), whole=True) for text, name in sorted(names.items(), key=lambda item: item[1])}
    return {version: shrink(schema) for version, schema in schemas.items()}, shared


def make_facts(crd: dict[str, Any], release: str) -> dict[str, Any]:
    """The facts of one release: what the API server checks, by version."""
    spec = crd["spec"]
    schemas = {version["name"]: without_prose(version["schema"]["openAPIV3Schema"]) for version in spec["versions"] if version["served"]}
    versions, shared = share_repeats(schemas)
    return {
        "release": release,
        "group": spec["group"],
        "kind": spec["names"]["kind"],
        "plural": spec["names"]["plural"],
        "versions": versions,
        "$defs": shared,
    }


def write_facts(facts: dict[str, Any], path: Path) -> None:
    """One line a fact file: it is read by programs."""
    path.write_text(json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")


def main() -> None:
    """Read the arguments, write the facts, say what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crd", type=Path)
    parser.add_argument("--release", required=True, help="the operator release, 3.2")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    output = arguments.output or FACTS / f"inferenceendpointconfigs-{arguments.release}.json"
    facts = make_facts(read_crd(arguments.crd), arguments.release)
    write_facts(facts, output)
    print(f"{output}: versions {', '.join(facts['versions'])}, {len(facts['$defs'])} shared parts, {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
