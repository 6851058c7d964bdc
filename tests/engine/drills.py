"""The repository's own stacks for tests of drills: a copy whose platform may be taken down, and a rehearsal of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from dpd_infra.rehearsal import Rehearsal, SimulatedAccount
from tests.engine.harness import REPOSITORY


def copy_of_stacks(into: Path, *, protect: bool = True) -> Path:
    """The repository's program and stack files in a folder of their own, without protection if asked for."""
    folder = into / "project"
    shutil.copytree(REPOSITORY / "stacks", folder / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "Pulumi.yaml", folder)
    if not protect:
        for file in (folder / "stacks").glob("Pulumi.*.yaml"):
            settings = yaml.safe_load(file.read_text(encoding="utf-8"))
            platform = settings["config"]["dpd-infra:platform"]
            platform.setdefault("cluster", {})["protect"] = False
            platform["controlPlane"] |= {"protect": False, "deletionProtection": False}
            file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return folder


def rehearsal_of(project: Path, stack: str, account: SimulatedAccount | None = None) -> Rehearsal:
    """A rehearsal with its state beside the project."""
    return Rehearsal(project, stack, state_dir=project.parent / "state", account=SimulatedAccount() if account is None else account)
