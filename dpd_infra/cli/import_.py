"""`dpd import`: raw manifests as entries of a stack file."""

from __future__ import annotations

import pathlib
import sys
from typing import Annotated, Any

import typer

from dpd_infra.cli._output import FAILED, WRONG_USAGE, existing_file, fail, print_json
from dpd_infra.render.from_manifest import CannotImport, Imported, import_manifest
from dpd_infra.rules.manifest_file import described, resources
from dpd_infra.spec.yaml_source import MAX_BYTES, YamlProblem, decode


def command(
    file: Annotated[str, typer.Argument(help="A file of InferenceEndpointConfig manifests, or - for standard input.")],
    namespace: Annotated[str | None, typer.Option(help="The namespace of manifests that name none.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print stack entries for manifests.

    The entries for `dpd-infra:endpoints` that render back to the manifests of FILE. Exit code 1 where one cannot exactly.
    """
    entries, skipped = _read(file, namespace, as_json=json)
    if not entries:
        fail(f"{file} holds no InferenceEndpointConfig{': ' + ', '.join(skipped) if skipped else ''}", as_json=json)
    if len({entry.name for entry in entries}) < len(entries):
        names = [entry.name for entry in entries]
        twice = sorted({name for name in names if names.count(name) > 1})
        fail(f"{', '.join(twice)} stands in {file} more than once: entries go by name, import them into stacks of their own", as_json=json)
    exact = not any(entry.differences for entry in entries)
    if json:
        data: dict[str, Any] = {
            "ok": exact,
            "endpoints": {entry.name: entry.entry for entry in entries},
            "differences": {entry.name: list(entry.differences) for entry in entries},
            "leftOut": {entry.name: list(entry.left_out) for entry in entries},
            "skipped": skipped,
        }
        print_json(data)
    else:
        _print(entries, skipped)
    raise SystemExit(0 if exact else FAILED)


def _read(file: str, namespace: str | None, *, as_json: bool) -> tuple[list[Imported], list[str]]:
    entries: list[Imported] = []
    skipped: list[str] = []
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with existing_file(pathlib.Path(file), as_json=as_json).open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
        for place in resources(decode(raw, file), file):
            if place.kind == "InferenceEndpointConfig":
                entries.append(import_manifest(place.data, namespace=namespace))
            else:
                skipped.append(described(place.data))
    except YamlProblem as problem:
        where = f":{problem.line}:{problem.column}" if problem.line else ""
        fail(f"{file}{where}: {problem.what}{f'; {problem.fix}' if problem.fix else ''}", as_json=as_json)
    except CannotImport as error:
        fail(f"{file}: {error}", as_json=as_json)
    except OSError as error:
        fail(f"{file} cannot be opened: {(error.strerror or str(error)).lower()}", as_json=as_json, code=WRONG_USAGE)
    return entries, skipped


def _print(entries: list[Imported], skipped: list[str]) -> None:
    from dpd_infra.spec.yaml_writing import write_yaml

    print(write_yaml({entry.name: entry.entry for entry in entries}), end="")
    for entry in entries:
        for what in entry.left_out:
            print(f"dpd: {entry.name}: left out: {what}", file=sys.stderr)
        for what in entry.differences:
            print(f"dpd: {entry.name}: differs: {what}", file=sys.stderr)
    for what in skipped:
        print(f"dpd: not imported: {what}", file=sys.stderr)
