"""`dpd import-state`: a stack file and the file of `pulumi import` for a HyperPod cluster that is there already."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpd_infra.cli._output import WRONG_USAGE, existing_file, fail, print_json
from dpd_infra.cli._output_paths import Folder, need_writable, unwritten
from dpd_infra.ops.import_state import ImportPlan, Step, plan_import
from dpd_infra.ops.live_estate import EstateUnreadable, LiveEstate, describe

if TYPE_CHECKING:
    from collections.abc import Mapping

IMPORT_FILE = "import.json"


def command(
    cluster: Annotated[
        str | None, typer.Argument(help="The HyperPod cluster: name or ARN. With --terraform: where its state has several.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="The cluster's region.", show_default="that of the profile")] = None,
    profile: Annotated[str | None, typer.Option(help="A profile of the AWS config files.")] = None,
    terraform: Annotated[Path | None, typer.Option(help="A Terraform state file (version 4) instead of AWS.")] = None,
    keep: Annotated[list[Step] | None, typer.Option(help="A step that stays its maker's; may be repeated.")] = None,
    name: Annotated[str, typer.Option(help="The platform's name in the program, dpd.Platform(NAME, …).")] = "inference",
    stack: Annotated[str, typer.Option(help="The stack: Pulumi.STACK.yaml is written.")] = "imported",
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print both files and the notes as JSON, and write nothing.")] = False,
) -> None:
    """Take over an existing cluster.

    Describes a HyperPod cluster with its EKS cluster and add-ons, and writes what takes it over. Nothing in AWS is changed.
    """
    if not json:
        _look(out, stack, force=force)
    try:
        plan = plan_import(_estate(cluster, region, profile, terraform, as_json=json), name=name, keep=keep or ())
    except EstateUnreadable as error:
        fail(str(error), as_json=json)
    if json:
        print_json({"ok": True, "stackFile": plan.stack_file, "importFile": plan.import_file, "notes": list(plan.notes)})
        return
    _write(plan, out, stack)


def _estate(cluster: str | None, region: str | None, profile: str | None, terraform: Path | None, *, as_json: bool) -> LiveEstate:
    if terraform is not None:
        from dpd_infra.ops.terraform_state import STATE_VERSION, from_terraform

        try:
            state = json_format.loads(existing_file(terraform, as_json=as_json).read_text(encoding="utf-8"))
        except ValueError as error:
            fail(f"{terraform} is not JSON: {error}", as_json=as_json, code=WRONG_USAGE)
        except OSError as error:
            fail(f"{terraform} cannot be read: {(error.strerror or str(error)).lower()}", as_json=as_json, code=WRONG_USAGE)
        if not isinstance(state, dict):
            fail(f"{terraform} is no Terraform state: not an object", as_json=as_json, code=WRONG_USAGE)
        if state.get("version") != STATE_VERSION:
            what = f"{terraform} is no Terraform state of version {STATE_VERSION}: version {state.get('version')!r}"
            fail(what, as_json=as_json, code=WRONG_USAGE)
        return from_terraform(state, cluster)
    if cluster is None:
        fail("name a HyperPod cluster, or a Terraform state file with --terraform", as_json=as_json, code=WRONG_USAGE)
    try:
        return describe(cluster, clients(region, profile))
    except _aws_errors() as error:
        fail(str(error), as_json=as_json)


def clients(region: str | None, profile: str | None) -> Mapping[str, Any]:
    """boto3's clients with the credentials that the AWS CLI would use."""
    import boto3

    session = boto3.Session(profile_name=profile, region_name=region)
    return {service: session.client(service) for service in ("sagemaker", "eks", "ec2", "iam")}


def _aws_errors() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError)


def _look(folder: Path, stack: str, *, force: bool) -> None:
    """End the command, before AWS is asked, where the files cannot be written or are there already."""
    files = (f"Pulumi.{stack}.yaml", IMPORT_FILE)
    if "/" in stack:
        fail(f"--stack {stack}: a stack's own name, without organization and project", code=WRONG_USAGE)
    need_writable(Folder("--out", folder, files))
    if taken := [name for name in files if (folder / name).exists() and not force]:
        fail(f"{', '.join(str(folder / name) for name in taken)}: there already; write elsewhere with --out, or over it with --force")


def _write(plan: ImportPlan, folder: Path, stack: str) -> None:
    import yaml

    files = {f"Pulumi.{stack}.yaml": yaml.safe_dump(plan.stack_file, sort_keys=False, width=140)}
    if plan.import_file["resources"]:
        files[IMPORT_FILE] = json_format.dumps(plan.import_file, indent=2) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
            print(folder / file)
    except OSError as error:
        fail(f"{error.filename} {unwritten(error)}")
    for note in plan.notes:
        print(f"  note: {note}", file=sys.stderr)
    if IMPORT_FILE in files:
        print(f"next: pulumi import -s {stack} --file {folder / IMPORT_FILE} --generate-code=false, then pulumi preview -s {stack}")
    else:
        print(f"next: pulumi preview -s {stack}; there is nothing to import")
