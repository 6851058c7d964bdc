"""`dpd fetch-chart`: the chart that HyperPod needs in the cluster, packed from its repository."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpd_infra.cli._output import WRONG_USAGE, existing_file, fail, print_json, refuse
from dpd_infra.cli._output_paths import Folder, Replaced, need_writable
from dpd_infra.ops.chart import REPOSITORY, fetch_chart
from dpd_infra.ops.chart_archive import ChartError
from dpd_infra.spec.dependencies import DependenciesSpec
from dpd_infra.spec.stack_file import find_project_file
from dpd_infra.stack import load_file


def command(
    file: Annotated[
        Path | None, typer.Argument(help="A stack file: its revision, into its project. Else the pinned revision.", show_default=False)
    ] = None,
    repository: Annotated[str, typer.Option(help="Where git fetches from: an address or a folder.")] = REPOSITORY,
    force: Annotated[bool, typer.Option("--force", help="Replace an archive with other content.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Pack HyperPod's dependencies chart.

    It goes into charts/, where `pulumi up` takes it from. Needs git, Helm and the network.
    """
    dependencies = DependenciesSpec() if file is None else _dependencies(file, as_json=json)
    other = "preinstalled" if dependencies.preinstalled else "oci" if dependencies.oci else None
    if other is not None:
        fail(f"nothing to pack: {file} says `{other}` of its dependencies", as_json=json, code=WRONG_USAGE)
    start = Path.cwd() if file is None else file.resolve().parent
    project = find_project_file(start)
    if project is None:
        fail(f"no Pulumi.yaml in {start} or above it", as_json=json, code=WRONG_USAGE)
    archive = project.parent / dependencies.archive
    _look(archive, force=force, as_json=json)
    try:
        chart = fetch_chart(
            dependencies.revision,
            archive,
            repository=repository,
            force=force,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except ChartError as error:
        fail(str(error), as_json=json)
    if json:
        print_json({"ok": True, **dataclasses.asdict(chart)})
        return
    for subchart in chart.subcharts:
        print(f"  {subchart.name} {subchart.version}")
    print(f"{chart.path}: {chart.name} {chart.version} with {len(chart.subcharts)} subcharts, sha256 {chart.sha256}")


def _look(archive: Path, *, force: bool, as_json: bool) -> None:
    """End the command, before anything is fetched, where the archive cannot be written; one that is there may be the same."""
    if not archive.is_file():
        need_writable(Folder("the chart's folder", archive.parent, [archive.name], named=False), as_json=as_json)
    elif force:
        need_writable(Replaced("--force", archive), as_json=as_json)


def _dependencies(file: Path, *, as_json: bool) -> DependenciesSpec:
    loaded = load_file(existing_file(file, as_json=as_json))
    if loaded.spec is None:
        refuse(loaded.findings, loaded.documents, as_json=as_json)
    if loaded.spec.platform is None:
        fail(f"{file} has no platform: another stack has it, and the chart belongs there", as_json=as_json, code=WRONG_USAGE)
    return loaded.spec.platform.dependencies
