"""The way from one stack to another: each rule has a change that trips it and a near one that does not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.rules.registry import all_rules
from dpd_infra.rules.wide_subjects import UpgradeSubject
from dpd_infra.spec.yaml_source import load_document
from dpd_infra.spec.yaml_writing import write_yaml
from dpd_infra.upgrade import compare
from tests.pure.cli.conftest import STACK

PLATFORM = "dpd-infra:platform"
ENDPOINTS = "dpd-infra:endpoints"
BASE: dict[str, Any] = load_document(STACK).data["config"]
ADOPTED = {f"{PLATFORM}.operator": {"adopt": True, "addonVersion": "v1.3.0-eksbuild.1"}}

Changes = dict[str, Any]
"""Values by place in the configuration, `dpd-infra:platform.name`; `...` takes one out."""


def changed(changes: Changes) -> dict[str, Any]:
    config = copy.deepcopy(BASE)
    for place, value in changes.items():
        *way, last = place.split(".") if not place.startswith("aws:") else [place]
        target = config
        for step in way:
            target = target.setdefault(step, {})
        if value is ...:
            del target[last]
        else:
            target[last] = copy.deepcopy(value)
    return {"config": config}


@pytest.fixture
def way(tmp_path: Path) -> Any:
    """The upgrade's findings from one stack to another, as `id path`."""

    def go(old: Changes, new: Changes) -> list[str]:
        files = [tmp_path / f"Pulumi.{name}.yaml" for name in ("old", "new")]
        for file, changes in zip(files, (old, new), strict=True):
            file.write_text(write_yaml(changed(changes)))
        old_file, new_file = map(str, files)
        found = compare(old_file, new_file).findings
        assert not [finding for finding in found if finding.rule == "DPD000"]
        return [f"{finding.rule} {'.'.join(map(str, finding.path[1:]))}" for finding in found if finding.rule.startswith("DPD6")]

    return go


LLAMA = f"{ENDPOINTS}.llama-70b"
ENDPOINT = BASE[ENDPOINTS]["llama-70b"]

ROOM = {f"{PLATFORM}.instanceGroups.gpu.count": 8}
"""Nodes for every endpoint twice."""

TRIPS: dict[str, tuple[Changes, Changes, list[str]]] = {
    "another platform name": ({}, {f"{PLATFORM}.name": "other"}, [f"DPD601 {PLATFORM}.name", f"DPD601 {PLATFORM}.name"]),
    "another cluster name": ({}, {f"{PLATFORM}.cluster.name": "other"}, [f"DPD601 {PLATFORM}.cluster.name"]),
    "another EKS name": ({}, {f"{PLATFORM}.controlPlane.name": "other"}, [f"DPD601 {PLATFORM}.controlPlane.name"]),
    "another zone": ({}, {f"{PLATFORM}.network.zone": "us-east-2b"}, [f"DPD601 {PLATFORM}.network.zone"]),
    "another block": ({}, {f"{PLATFORM}.network.cidr": "10.64.0.0/16"}, [f"DPD601 {PLATFORM}.network.cidr"]),
    "another GPU block": ({}, {f"{PLATFORM}.network.gpuCidr": "10.1.0.0/16"}, [f"DPD601 {PLATFORM}.network.gpuCidr"]),
    "another region": (
        {},
        {"aws:region": "us-west-2", f"{PLATFORM}.network.zone": "us-west-2a"},
        ["DPD601 aws:region", f"DPD601 {PLATFORM}.network.zone"],
    ),
    "a skipped version": ({}, {f"{PLATFORM}.controlPlane.version": "1.35"}, [f"DPD602 {PLATFORM}.controlPlane.version"]),
    "an older version": ({}, {f"{PLATFORM}.controlPlane.version": "1.32"}, [f"DPD602 {PLATFORM}.controlPlane.version"]),
    "another capacity": ({}, {f"{PLATFORM}.instanceGroups.gpu.capacity": "spot"}, [f"DPD603 {PLATFORM}.instanceGroups.gpu.capacity"]),
    "a volume key": (
        {},
        {f"{PLATFORM}.instanceGroups.gpu.volumeKeyArn": "arn:aws:kms:us-east-2:123456789012:key/a"},
        [f"DPD603 {PLATFORM}.instanceGroups.gpu.volumeKeyArn"],
    ),
    "a key of Secrets": (
        {},
        {f"{PLATFORM}.controlPlane.secretsKeyArn": "arn:aws:kms:us-east-2:123456789012:key/a"},
        [f"DPD603 {PLATFORM}.controlPlane.secretsKeyArn"],
    ),
    "another instance type": (
        {},
        {f"{PLATFORM}.instanceGroups.system.instanceType": "ml.m5.8xlarge"},
        [f"DPD604 {PLATFORM}.instanceGroups.system.instanceType"],
    ),
    "a group renamed": (
        {},
        {f"{PLATFORM}.instanceGroups.system": ..., f"{PLATFORM}.instanceGroups.operators": {"instanceType": "ml.c5.4xlarge", "count": 2}},
        [f"DPD604 {PLATFORM}.instanceGroups.operators"],
    ),
    "a group left out": (
        {f"{PLATFORM}.instanceGroups.more": {"instanceType": "ml.m5.8xlarge", "count": 1}},
        {},
        [f"DPD604 {PLATFORM}.instanceGroups"],
    ),
    "routing switched off": ({}, {f"{LLAMA}.routing": {"enabled": False}}, [f"DPD605 {LLAMA}.routing.enabled"]),
    "routing switched on": ({f"{LLAMA}.routing": {"enabled": False}}, {}, [f"DPD605 {LLAMA}.routing.enabled"]),
    "an endpoint renamed": ({}, {LLAMA: ..., f"{ENDPOINTS}.other": ENDPOINT}, [f"DPD606 {ENDPOINTS}.other"]),
    "another namespace": ({}, {f"{LLAMA}.namespace": "models"}, [f"DPD615 {LLAMA}.namespace"]),
    "another namespace, without a SageMaker endpoint": (
        {f"{LLAMA}.endpointName": ""},
        {f"{LLAMA}.endpointName": "", f"{LLAMA}.namespace": "models"},
        [f"DPD606 {LLAMA}.namespace"],
    ),
    "another namespace with an outage": (
        {},
        {f"{LLAMA}.namespace": "models", f"{LLAMA}.change": {"mode": "recreate", "recreations": 1}},
        [f"DPD613 {LLAMA}.change.recreations"],
    ),
    "another SageMaker name": ({}, {f"{LLAMA}.endpointName": "other"}, [f"DPD606 {LLAMA}.endpointName"]),
    "an older operator": ({}, {f"{PLATFORM}.operator.addonVersion": "v1.3.0-eksbuild.1"}, [f"DPD607 {PLATFORM}.operator.addonVersion"]),
    "what a newer operator of others needs": (
        {f"{PLATFORM}.operator": {"adopt": True, "addonVersion": "v1.0.0-eksbuild.1"}},
        ADOPTED,
        [f"DPD608 {PLATFORM}.operator.addonVersion"] * 4,
    ),
    "tiered storage alone": (
        {},
        {f"{PLATFORM}.cluster.tieredStorage": {"memoryPercent": 30}},
        [f"DPD609 {PLATFORM}.cluster.tieredStorage"],
    ),
    "an endpoint turned into its twin": ({}, {f"{LLAMA}.disaggregated": False}, [f"DPD610 {LLAMA}.disaggregated"]),
    "a generation without its mode": (
        {},
        {f"{LLAMA}.change": {"generation": 2}},
        [f"DPD611 {LLAMA}.change.generation", f"DPD613 {LLAMA}.change.generation"],
    ),
    "a generation under the other mode": (
        {},
        {f"{LLAMA}.change": {"mode": "recreate", "generation": 2}},
        [f"DPD611 {LLAMA}.change.generation", f"DPD613 {LLAMA}.change.generation"],
    ),
    "an older generation": (
        {f"{LLAMA}.change": {"generation": 3}},
        {f"{LLAMA}.change": {"mode": "blueGreen", "generation": 2}, **ROOM},
        [f"DPD611 {LLAMA}.change.generation", f"DPD606 {LLAMA}"],
    ),
    "recreated without its mode": (
        {},
        {f"{LLAMA}.change": {"recreations": 1}},
        [f"DPD611 {LLAMA}.change.recreations", f"DPD613 {LLAMA}.change.recreations"],
    ),
    "fewer recreations": (
        {f"{LLAMA}.change": {"recreations": 2}},
        {f"{LLAMA}.change": {"mode": "recreate", "recreations": 1}},
        [f"DPD611 {LLAMA}.change.recreations"],
    ),
    "routing switched blue/green without room": (
        {},
        {f"{LLAMA}.routing": {"enabled": False}, f"{LLAMA}.change": {"mode": "blueGreen", "generation": 2}},
        [f"DPD612 {LLAMA}.change.mode", f"DPD613 {LLAMA}.change.generation"],
    ),
    "routing switched blue/green": (
        {},
        {f"{LLAMA}.routing": {"enabled": False}, f"{LLAMA}.change": {"mode": "blueGreen", "generation": 2}, **ROOM},
        [f"DPD613 {LLAMA}.change.generation"],
    ),
    "routing switched with an outage": (
        {},
        {f"{LLAMA}.routing": {"enabled": False}, f"{LLAMA}.change": {"mode": "recreate", "recreations": 1}},
        [f"DPD613 {LLAMA}.change.recreations"],
    ),
    "the mode alone does not change what is fixed": (
        {},
        {f"{LLAMA}.routing": {"enabled": False}, f"{LLAMA}.change": {"mode": "recreate"}},
        [f"DPD605 {LLAMA}.routing.enabled"],
    ),
    "the twin, blue/green": (
        {},
        {f"{LLAMA}.disaggregated": False, f"{LLAMA}.change": {"mode": "blueGreen", "generation": 2}, **ROOM},
        [f"DPD613 {LLAMA}.change.generation"],
    ),
}

NEAR: dict[str, tuple[Changes, Changes]] = {
    "nothing": ({}, {}),
    "a name written that went without saying": (
        {},
        {f"{PLATFORM}.cluster.name": "inference-dev", f"{PLATFORM}.controlPlane.name": "inference-dev"},
    ),
    "a block written that went without saying": ({}, {f"{PLATFORM}.network.cidr": "10.0.0.0/16"}),
    "more zones for EKS": ({}, {f"{PLATFORM}.network.controlPlaneZones": ["us-east-2a", "us-east-2b", "us-east-2c"]}),
    "the next version": ({}, {f"{PLATFORM}.controlPlane.version": "1.34"}),
    "more nodes": ({}, {f"{PLATFORM}.instanceGroups.gpu.count": 4}),
    "one group more": ({}, {f"{PLATFORM}.instanceGroups.more": {"instanceType": "ml.m5.8xlarge", "count": 1}}),
    "capacity written that went without saying": ({}, {f"{PLATFORM}.instanceGroups.gpu.capacity": "onDemand"}),
    "another threshold and strategy": ({}, {f"{LLAMA}.routing": {"threshold": 8192, "strategy": "roundrobin"}}),
    "one endpoint more": ({}, {f"{ENDPOINTS}.second": ENDPOINT}),
    "an endpoint taken out": ({f"{ENDPOINTS}.second": ENDPOINT | {"invocationEndpoint": "v1/completions"}}, {}),
    "a newer operator": ({f"{PLATFORM}.operator": {"addonVersion": "v1.3.0-eksbuild.1"}}, {}),
    "a newer operator of others that needs nothing more": (
        ADOPTED,
        {f"{PLATFORM}.operator": {"adopt": True, "addonVersion": "v1.4.0-eksbuild.1"}},
    ),
    "tiered storage with a group": (
        {},
        {f"{PLATFORM}.cluster.tieredStorage": {}, f"{PLATFORM}.instanceGroups.system.count": 3},
    ),
    "a generation kept after its change": (
        {f"{LLAMA}.change": {"mode": "blueGreen", "generation": 2}, **ROOM},
        {f"{LLAMA}.change": {"generation": 2}, f"{LLAMA}.routing": {"threshold": 8192}},
    ),
    "another mode": ({}, {f"{LLAMA}.change": {"mode": "recreate"}}),
    "another image": ({}, {f"{LLAMA}.worker": {"image": "lmcache/vllm-openai:v0.4.3"}}),
}


@pytest.mark.parametrize("name", TRIPS)
def test_a_change_that_is_refused_or_tears_something_down_is_said_at_its_place(way: Any, name: str) -> None:
    old, new, expected = TRIPS[name]
    assert sorted(way(old, new)) == sorted(expected)


@pytest.mark.parametrize("name", NEAR)
def test_a_change_that_is_made_in_place_is_not(way: Any, name: str) -> None:
    assert way(*NEAR[name]) == []


def test_every_upgrade_rule_is_tripped_here() -> None:
    ids = {rule.id for rule in all_rules() if rule.scope is UpgradeSubject}
    assert ids <= {finding.split()[0] for _, _, expected in TRIPS.values() for finding in expected}


def test_the_new_files_own_findings_are_among_them(tmp_path: Path) -> None:
    old, new = tmp_path / "Pulumi.old.yaml", tmp_path / "Pulumi.new.yaml"
    old.write_text(STACK)
    new.write_text(STACK.replace("count: 3", "count: 1"))
    found = compare(str(old), str(new)).findings
    assert "DPD006" in {finding.rule for finding in found}
    assert {finding.file for finding in found} == {str(new)}


def test_two_versions_of_the_operator_are_compared_by_either_name() -> None:
    # Release notes 3.0 and 3.1.2.
    found = compare("v0.1.0-eksbuild.1", "3.1.2").findings
    said = " ".join(finding.what for finding in found)
    for action in ("acm:AddTagsToCertificate", "s3:PutObjectTagging", "hyperpodClusterArn"):
        assert action in said
    assert [finding.rule for finding in compare("3.3", "v1.3.0-eksbuild.1").findings] == ["DPD607"]
    assert compare("3.2", "3.3").findings == []


def test_an_operator_of_another_stack_is_compared_too(tmp_path: Path) -> None:
    files = [tmp_path / f"Pulumi.{name}.yaml" for name in ("old", "new")]
    old, new = map(str, files)
    for file, version in zip(files, ("v1.0.0-eksbuild.1", "v1.3.0-eksbuild.1"), strict=True):
        config = {"aws:region": "us-east-2", "dpd-infra:operator": {"addonVersion": version}}
        file.write_text(write_yaml({"config": config}))
    found = [finding for finding in compare(old, new).findings if finding.rule == "DPD608"]
    assert {".".join(map(str, finding.path)) for finding in found} == {"config.dpd-infra:operator.addonVersion"}
    assert {finding.line for finding in found} == {4}


def test_what_is_neither_a_file_nor_a_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.old.yaml"
    path.write_text(STACK)
    for old, new in ((str(path), "3.2"), ("3.2", str(path)), ("x", "y")):
        with pytest.raises(ValueError, match=r"no such file|no operator release"):
            compare(old, new)


def test_files_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    good, bad, link = (tmp_path / name for name in ("Pulumi.good.yaml", "Pulumi.bad.yaml", "Pulumi.link.yaml"))
    good.write_text(STACK)
    bad.write_text("a: [\n")
    link.symlink_to(link)
    for old, new, wrong in ((bad, good, bad), (good, bad, bad), (link, good, link)):
        found = compare(str(old), str(new)).findings
        assert [(finding.rule, finding.file) for finding in found if finding.rule == "DPD000"] == [("DPD000", str(wrong))]


def test_the_command_compares_and_ends_with_1_for_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from dpd_infra.cli import app

    monkeypatch.chdir(tmp_path)
    Path("Pulumi.old.yaml").write_text(STACK)
    Path("Pulumi.new.yaml").write_text(STACK.replace("us-east-2a", "us-east-2b"))
    run = CliRunner().invoke(app, ["check", "--from", "Pulumi.old.yaml", "Pulumi.new.yaml", "--json"])
    data = json.loads(run.stdout)
    assert run.exit_code == 1
    assert [finding["rule"] for finding in data["findings"] if finding["severity"] == "error"] == ["DPD601"]
    assert CliRunner().invoke(app, ["check", "--from", "Pulumi.old.yaml", "Pulumi.old.yaml"]).exit_code == 0
    assert CliRunner().invoke(app, ["check", "--from", "3.1.2", "3.3"]).exit_code == 0
