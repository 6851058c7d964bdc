"""`dpd render`: the manifests that a stack file's endpoints become."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any

import typer

from dpd_infra.cli._output import WRONG_USAGE, existing_file, fail, print_json, print_report, refuse
from dpd_infra.stack import load_file


def command(
    file: Annotated[pathlib.Path, typer.Argument(help="A stack file, Pulumi.<stack>.yaml.")],
    endpoint: Annotated[str | None, typer.Option(help="Only this endpoint.")] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON, with where each value comes from.")] = False,
) -> None:
    """Print the manifests of a stack file.

    The InferenceEndpointConfig of each endpoint of FILE, as Kubernetes will see it.
    """
    loaded = load_file(existing_file(file, as_json=json))
    if loaded.spec is None:
        refuse(loaded.findings, loaded.documents, as_json=json)
    names = list(loaded.spec.endpoints)
    if endpoint is not None and endpoint not in names:
        fail(f"{file} has no endpoint {endpoint!r}; it has {', '.join(names) or 'none'}", as_json=json, code=WRONG_USAGE)
    manifests = {name: loaded.spec.manifest(name) for name in ([endpoint] if endpoint is not None else names)}
    if json:
        print_json(
            {
                "ok": True,
                "endpoints": {
                    name: {"manifest": manifest.document, "provenance": manifest.provenance.as_json_pointers()}
                    for name, manifest in manifests.items()
                },
            }
        )
        return
    if loaded.findings:
        print_report(loaded.findings, loaded.documents)
    print("---\n".join(to_yaml(manifest.document) for manifest in manifests.values()), end="")


def to_yaml(document: dict[str, Any]) -> str:
    """A manifest as YAML in its own order of keys."""
    from dpd_infra.spec.yaml_writing import write_yaml

    return write_yaml(document)
