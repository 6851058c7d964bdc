"""`dpd check --from` says of each changed field what an `up` makes of it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from dpd_infra.cli import app
from dpd_infra.upgrade import changed_fields
from tests.pure.cli.conftest import STACK


def files(folder: Path, *edits: tuple[str, str]) -> tuple[str, str]:
    text = STACK
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    paths = [folder / f"Pulumi.{name}.yaml" for name in ("old", "new")]
    for path, content in zip(paths, (STACK, text), strict=True):
        path.write_text(content)
    return str(paths[0]), str(paths[1])


def found(folder: Path, *edits: tuple[str, str]) -> list[tuple[str, object, object, str]]:
    return [
        (".".join(map(str, change.path)), change.before, change.after, str(change.effect.outcome) if change.effect else "")
        for change in changed_fields(*files(folder, *edits))
    ]


def test_a_field_of_each_outcome_is_told_with_both_values(tmp_path: Path) -> None:
    assert found(tmp_path, ("count: 3", "count: 4")) == [("platform.instanceGroups.gpu.count", 3, 4, "update")]
    assert found(tmp_path, ("zone: us-east-2a", "zone: us-east-2b")) == [("platform.network.zone", "us-east-2a", "us-east-2b", "refused")]
    silence = ("  dpd-infra:endpoints:\n", "    cluster: {protect: false}\n  dpd-infra:endpoints:\n")
    assert found(tmp_path, silence) == [("platform.cluster.protect", True, False, "nothing")]


def test_what_goes_without_saying_is_no_change(tmp_path: Path) -> None:
    assert found(tmp_path, ("zone: us-east-2a", "zone: us-east-2a, cidr: 10.0.0.0/16")) == []


def test_an_entry_that_is_new_is_told_as_a_whole(tmp_path: Path) -> None:
    edit = ("    instanceGroups:\n", "    instanceGroups:\n      more: {instanceType: ml.c5.4xlarge, count: 1}\n")
    (change,) = changed_fields(*files(tmp_path, edit))
    assert (change.path, change.before, change.effect) == (("platform", "instanceGroups", "more"), None, None)
    assert change.after["count"] == 1


def test_two_versions_of_the_operator_have_no_fields() -> None:
    assert changed_fields("3.2", "3.3") == []


def test_the_command_prints_and_returns_them(tmp_path: Path) -> None:
    old, new = files(tmp_path, ("count: 3", "count: 4"))
    printed = CliRunner().invoke(app, ["check", "--from", old, new])
    assert "update: platform.instanceGroups.gpu.count 3 -> 4 (update s3 BucketObjectv2, sagemaker Cluster)" in printed.stdout.splitlines()
    data = json.loads(CliRunner().invoke(app, ["check", "--from", old, new, "--json"]).stdout)
    assert data["changes"] == [
        {
            "path": ["platform", "instanceGroups", "gpu", "count"],
            "before": 3,
            "after": 4,
            "outcome": "update",
            "resources": {"s3 BucketObjectv2": "update", "sagemaker Cluster": "update"},
            "rules": [],
        }
    ]
    assert "changes" not in json.loads(CliRunner().invoke(app, ["check", new, "--json"]).stdout)
