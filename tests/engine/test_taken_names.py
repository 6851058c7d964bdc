"""What another rehearsed stack has taken is refused with that stack, where its rehearsal is kept, and the way out; whatever kind it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpd_infra.cli import app
from dpd_infra.rehearsal import SimulatedAccount
from dpd_infra.rehearsal.account import Resource
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.explanations import TAKEN, explain
from dpd_infra.rehearsal.world.rules import RULES
from tests.engine.raw_platform import POLICY, RawPlatform
from tests.engine.world_kit import World as Made
from tests.engine.world_kit import make

ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"
UNIQUE = frozenset(
    {
        "access-entry-once",
        "addon-once",
        "bucket-exists",
        "eks-cluster-exists",
        "endpoint-name",
        "helm-name",
        "hyperpod-name",
        "iam-oidc-provider-exists",
        "iam-policy-exists",
        "iam-role-exists",
        "kms-alias-exists",
        "kubernetes-name",
        "log-group-exists",
        "one-internet-gateway",
        "one-of-an-id",
        "one-route-table",
        "route-once",
        "security-group-name",
        "security-group-rule",
        "subnets-apart",
        "vpc-blocks-apart",
    }
)
"""Rules by which a thing, or its place, is one stack's."""
assert set(RULES) >= UNIQUE


@pytest.fixture(scope="module")
def platform() -> Made:
    return make(RawPlatform())


def of_prod(made: Made, path: Path | None) -> Made:
    """The same account, in which all of it is stack prod's."""
    twin = made.copy()
    for record in twin.account:
        record.urn = record.urn.replace("urn:pulumi:dev::", "urn:pulumi:prod::")
    twin.account.path = path
    return twin


MORE: tuple[tuple[str, dict[str, Any]], ...] = (
    (base.BUCKET, {"bucket": "models"}),
    (base.POLICY, {"name": "policy", "policy": POLICY}),
    (base.LOG_GROUP, {"name": "/eks/logs"}),
    (base.KEY, {}),
    (base.ALIAS, {"name": "alias/eks", "targetKeyId": "KEY"}),
    (base.OIDC_PROVIDER, {"url": "https://issuer.example.com", "clientIdLists": ["sts.amazonaws.com"]}),
    (base.CIDR_ASSOCIATION, {"vpcId": "VPC", "cidrBlock": "10.77.0.0/16"}),
    (base.SECURITY_GROUP, {"vpcId": "VPC", "name": "nodes"}),
    ("kubernetes:helm.sh/v3:Release", {"name": "chart", "namespace": "default", "chart": "charts/chart.tgz", "skipAwait": True}),
    ("kubernetes:core/v1:ConfigMap", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}),
)
"""What the platform has none of."""


def asked_again(made: Made) -> Iterator[SimulatedError]:
    """What is refused where stack dev asks for all that stack prod has."""
    direct = made.direct
    for token, given in MORE:
        inputs = {
            key: made.of(base.VPC).id if value == "VPC" else direct.account.all(base.KEY)[-1].id if value == "KEY" else value
            for key, value in given.items()
        }
        direct.create(token, "more", inputs).urn = f"urn:pulumi:prod::test::{token}::more"
    for record in list(direct.account):
        if not record.urn.startswith("urn:pulumi:prod::"):
            continue
        try:
            direct.account.remove(direct.create(record.type, "again", record.inputs))
        except SimulatedError as error:
            yield error
    taken = made.of(ENDPOINT, "endpoint").inputs
    for group in made.of(base.HYPERPOD_CLUSTER).outputs["instanceGroups"]:
        group["instanceCount"] *= 2
    try:
        direct.create(ENDPOINT, "twin", {**taken, "metadata": {**taken["metadata"], "name": "twin"}})
    except SimulatedError as error:
        yield error


def test_every_kind_of_thing_that_is_taken_says_whose_it_is(platform: Made, tmp_path: Path) -> None:
    folder = tmp_path / ".dpd" / "rehearsal"
    met: set[str] = set()
    for error in asked_again(of_prod(platform, folder / "account.json")):
        met.add(error.rule.name)
        if error.rule.name in UNIQUE:
            assert f"; stack prod, rehearsed before and kept in {folder}, has it: choose another one here" in str(error)
            assert "`dpd rehearse prod --destroy`" in str(error)
            assert "`dpd rehearse dev --reset`" in str(error)
        else:
            assert "stack prod" not in str(error)
    assert met >= UNIQUE


def refused(account: SimulatedAccount, *, holder: str, asker: str = "urn:pulumi:dev::test") -> str:
    """What is said where one stack has a bucket and another one asks for it."""
    record = Resource(base.BUCKET, "models", {}, {}, urn=f"{holder}::{base.BUCKET}::models" if holder.startswith("urn:") else holder)
    account.remove(record)
    account.add(record)
    with pytest.raises(SimulatedError) as caught:
        account.add(Resource(base.BUCKET, "models", {}, {}, urn=f"{asker}::{base.BUCKET}::models"))
    return str(caught.value)


def test_whose_it_is_is_said_of_other_stacks_alone(tmp_path: Path) -> None:
    account = SimulatedAccount()
    assert "has it" not in refused(account, holder="urn:pulumi:dev::test")
    assert "has it" not in refused(account, holder="world")
    assert "has it" not in refused(account, holder="")
    in_memory = "; stack prod has it in this simulated account: choose another one here, or destroy that stack first"
    assert refused(account, holder="urn:pulumi:prod::test").endswith(in_memory)
    assert "; stack dev of project other has it" in refused(account, holder="urn:pulumi:dev::other")
    # A folder of somebody's own, which the command does not look into.
    account.path = tmp_path / "account.json"
    own = refused(account, holder="urn:pulumi:prod::test")
    assert f"kept in {tmp_path}, has it: choose another one here, destroy the rehearsal of that stack first" in own
    assert "dpd rehearse" not in own


def test_what_is_deployed_is_taken_down_by_no_rehearsal(tmp_path: Path) -> None:
    account = SimulatedAccount(tmp_path / "account.json")
    (tmp_path / "work-of-others" / "test" / "prod").mkdir(parents=True)
    said = refused(account, holder="urn:pulumi:prod::test")
    assert said.endswith("; stack prod has it by its exported state: choose another one here")
    found = explain(said)
    assert found is not None
    assert (found.symptom, len(found.way_out)) == (TAKEN.symptom, 1)


def test_two_stacks_that_are_rehearsed_one_after_the_other(tmp_path: Path) -> None:
    """On the real engine: the second one's report says whose the name is, and what it says leads out."""
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n", encoding="utf-8")
    (tmp_path / "__main__.py").write_text('import pulumi_aws as aws\n\naws.s3.Bucket("models", bucket="models")\n', encoding="utf-8")
    for stack in ("dev", "prod"):
        (tmp_path / f"Pulumi.{stack}.yaml").write_text("config:\n  aws:region: us-east-2\n", encoding="utf-8")

    def rehearse(*words: str) -> Any:
        return CliRunner().invoke(app, ["rehearse", *words, "--project", str(tmp_path)])

    assert rehearse("prod").exit_code == 0
    failed = rehearse("dev")
    assert failed.exit_code == 1
    folder = tmp_path / ".dpd" / "rehearsal"
    assert f"stack prod, rehearsed before and kept in {folder}, has it" in failed.output
    assert "docs/troubleshooting.md#another-rehearsed-stack-has-it" in failed.output
    (told,) = re.findall(r"\$ dpd rehearse (.* --destroy)$", failed.output, re.MULTILINE)
    assert rehearse(*told.split()).exit_code == 0
    assert rehearse("dev").exit_code == 0
