"""A cluster that somebody else's program made is taken over: Pulumi imports what `dpd import-state` writes, and up changes it in place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.ops.import_state import ImportPlan, Step, plan_import
from dpd_infra.ops.live_estate import describe
from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from tests.engine.conftest import MakeProject
from tests.engine.harness import REPOSITORY, CliProject, cli_project
from tests.engine.raw_platform import RawPlatform

STACK = "imported"


def clients_of(account: SimulatedAccount) -> dict[str, Any]:
    """What boto3's clients would answer of a simulated account."""
    [hyperpod] = account.all(base.HYPERPOD_CLUSTER)
    [eks] = account.all(base.CLUSTER)
    addons = {item.outputs["addonName"]: item for item in account.all(base.ADDON)}

    def pascal(value: Any) -> Any:
        if isinstance(value, dict):
            return {key[:1].upper() + key[1:]: pascal(item) for key, item in value.items()}
        return [pascal(item) for item in value] if isinstance(value, list) else value

    cluster = pascal(
        {key: hyperpod.outputs.get(key) for key in ("clusterArn", "clusterName", "vpcConfig", "orchestrator", "nodeProvisioningMode")}
    )
    cluster["NodeRecovery"] = "Automatic"
    cluster["InstanceGroups"] = [
        {**{key: value for key, value in pascal(group).items() if key != "InstanceCount"}, "TargetCount": group["instanceCount"]}
        for group in hyperpod.outputs["instanceGroups"]
    ]
    return {
        "sagemaker": SimpleNamespace(describe_cluster=lambda **_: cluster),
        "eks": SimpleNamespace(
            describe_cluster=lambda **_: {
                "cluster": {
                    "identity": {"oidc": {"issuer": eks.outputs["identities"][0]["oidcs"][0]["issuer"]}},
                    "resourcesVpcConfig": {"vpcId": eks.outputs["vpcConfig"]["vpcId"]},
                }
            },
            get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: [{"addons": sorted(addons)}]),
            describe_addon=lambda **asked: {"addon": addons[asked["addonName"]].outputs},
        ),
        "ec2": SimpleNamespace(
            describe_subnets=lambda **asked: {
                "Subnets": [
                    {"SubnetId": item.id, "AvailabilityZone": item.outputs["availabilityZone"]}
                    for item in account.all(base.SUBNET)
                    if item.id in asked["SubnetIds"]
                ]
            }
        ),
        "iam": SimpleNamespace(
            list_open_id_connect_providers=lambda: {
                "OpenIDConnectProviderList": [{"Arn": item.id} for item in account.all(base.OIDC_PROVIDER)]
            }
        ),
    }


@pytest.fixture
def account(engine: MakeProject) -> SimulatedAccount:
    """An account with a platform that a program of raw resources made."""
    account = SimulatedAccount()
    engine(RawPlatform(endpoint=False), account).up()
    return account


def project(plan: ImportPlan, into: Path) -> Path:
    """The repository's own program with the plan's two files."""
    folder = into / "source"
    shutil.copytree(REPOSITORY / "stacks", folder / "stacks")
    shutil.copy(REPOSITORY / "Pulumi.yaml", folder)
    (folder / "stacks" / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(plan.stack_file), encoding="utf-8")
    (folder / "import.json").write_text(json.dumps(plan.import_file), encoding="utf-8")
    return folder


def taken_over(cli: CliProject) -> dict[str, str]:
    """The steps of a preview by name, of what exists already."""
    preview = cli.json("preview", "-s", STACK, "--json")
    return {step["urn"].rsplit("::", 1)[-1]: step["op"] for step in preview["steps"] if step["op"] not in ("create", "same", "read")}


def imported(cli: CliProject) -> None:
    assert cli.pulumi("stack", "init", STACK).status == 0
    command = cli.pulumi("import", "-s", STACK, "--file", "import.json", "--yes", "--generate-code=false", "--skip-preview")
    assert command.status == 0, command.output


def test_a_cluster_of_somebody_elses_program_is_taken_over_in_place(account: SimulatedAccount, tmp_path: Path) -> None:
    plan = plan_import(describe("test", clients_of(account)))
    ids = {(item.type, item.id) for item in account}
    with cli_project(project(plan, tmp_path), tmp_path, account) as cli:
        imported(cli)
        changed = taken_over(cli)
        assert "inference-cluster-cluster" in changed
        assert "inference-operator-addon" in changed
        assert set(changed.values()) == {"update"}, changed
        up = cli.pulumi("up", "-s", STACK, "--yes", "--skip-preview")
        assert up.status == 0, up.output
        again = cli.pulumi("preview", "-s", STACK, "--expect-no-changes")
        assert again.status == 0, again.output
    assert ids <= {(item.type, item.id) for item in account}, "something of what was there is gone"


def test_all_that_is_kept_is_read_and_nothing_is_imported(account: SimulatedAccount, tmp_path: Path) -> None:
    plan = plan_import(describe("test", clients_of(account)), keep=list(Step))
    assert plan.import_file == {"resources": []}
    before = {(item.type, item.id): json.dumps(item.outputs, sort_keys=True, default=str) for item in account}
    with cli_project(project(plan, tmp_path), tmp_path, account) as cli:
        assert cli.pulumi("stack", "init", STACK).status == 0
        up = cli.pulumi("up", "-s", STACK, "--yes", "--skip-preview")
        assert up.status == 0, up.output
        outputs = cli.json("stack", "output", "-s", STACK, "--json")
        assert outputs["hyperPodClusterName"] == "test"
    assert {(item.type, item.id): json.dumps(item.outputs, sort_keys=True, default=str) for item in account} == before


def test_the_operators_certificates_stay_in_their_bucket(account: SimulatedAccount) -> None:
    plan = plan_import(describe("test", clients_of(account)))
    operator = plan.stack_file["config"]["dpd-infra:platform"]["operator"]
    assert operator["tlsBucket"] == "hyperpod-tls-test"
    ids = {resource.get("id") for resource in plan.import_file["resources"]}
    assert {"hyperpod-tls-test", f"test:{ADDON_NAME}"} <= ids
