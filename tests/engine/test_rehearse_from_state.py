"""What is deployed is rehearsed from an export: in its own account, with encrypted values left alone; and how the options are used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dpd_infra.cli import app
from dpd_infra.cli._rehearse_drills import no_such
from dpd_infra.rehearsal import Rehearsal, SimulatedAccount
from dpd_infra.rehearsal.engine import Step
from dpd_infra.rehearsal.from_state import ExportedState, StateRefused, fill
from dpd_infra.rehearsal.other_stacks import ExportedStates
from dpd_infra.rehearsal.wire import SECRET_SIGNATURE, SIGNATURE_KEY
from dpd_infra.rehearsal.workspace import STAND_IN, ProjectFiles
from tests.engine.drills import copy_of_stacks
from tests.engine.harness import REPOSITORY, pulumi_cli

SEALED = {SIGNATURE_KEY: SECRET_SIGNATURE, "ciphertext": "v1:AAAA:BBBB"}


@pytest.fixture(autouse=True)
def _cli_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=":")


def exported(resources: list[dict[str, object]]) -> str:
    return json.dumps({"version": 3, "deployment": {"manifest": {}, "resources": resources}})


def write(folder: Path, *resources: dict[str, object]) -> Path:
    file = folder / "state.json"
    file.write_text(exported(list(resources)), encoding="utf-8")
    return file


def resource(urn: str, **fields: object) -> dict[str, object]:
    return {"urn": urn, "type": urn.split("::")[2], "custom": True, "id": "x", "inputs": {}, "outputs": {}, **fields}


def test_encrypted_values_become_stand_ins_and_are_counted(tmp_path: Path) -> None:
    bucket = resource("urn:pulumi:dev::shop::aws:s3/bucket:Bucket::b", inputs={"policy": SEALED, "tags": [{"a": SEALED}]})
    state = ExportedState.read(write(tmp_path, bucket), project="shop", stack="dev")
    assert state.sealed == 2
    opened = state.resources[0]["inputs"]["policy"]
    assert json.loads(opened["plaintext"]) == STAND_IN
    assert "AAAA" not in json.dumps(state.document)


@pytest.mark.parametrize(
    ("urn", "said"),
    [
        ("urn:pulumi:prod::shop::aws:s3/bucket:Bucket::b", "the state of stack prod of project shop, not of dev of project shop"),
        ("urn:pulumi:dev::other::aws:s3/bucket:Bucket::b", "the state of stack dev of project other"),
    ],
)
def test_the_state_of_another_stack_is_refused(tmp_path: Path, urn: str, said: str) -> None:
    with pytest.raises(StateRefused, match=said):
        ExportedState.read(write(tmp_path, resource(urn)), project="shop", stack="dev")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"deployment": {"resources": []}}',
        '{"deployment": {"resources": [1]}}',
        '{"checkpoint": {"latest": null}}',
        '{"checkpoint": []}',
        '{"deployment": {"resources": [{}]}}',
        '{"deployment": {"resources": [{"urn": "urn"}]}}',
    ],
)
def test_what_is_no_state_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StateRefused):
        ExportedState.read(file, project="shop", stack="dev")


VPC = "urn:pulumi:dev::shop::aws:ec2/vpc:Vpc::main"


def test_everything_that_the_engine_never_writes_is_told_at_once_and_by_its_place(tmp_path: Path) -> None:
    broken: dict[str, object] = {
        "id": 7,
        "provider": {},
        "parent": [],
        "custom": "yes",
        "external": 1,
        "delete": "no",
        "outputs": [],
        "inputs": {"tags": [{SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": "{"}]},
    }
    file = write(tmp_path, resource(VPC), resource(VPC, **broken), {"urn": "urn:pulumi:dev::shop::aws", "inputs": 3})
    with pytest.raises(StateRefused) as refused:
        ExportedState.read(file, project="shop", stack="dev")
    head, *lines = str(refused.value).splitlines()
    assert head == f"{file} is no state as Pulumi writes it; write it anew with `pulumi stack export`:"
    places = [line.split()[0].removeprefix("deployment.resources") for line in lines]
    assert sorted(places) == sorted(
        [f"[1].{name}" for name in broken if name != "inputs"] + ["[1].inputs.tags[0].plaintext", "[2].urn", "[2]", "[2].inputs"]
    )


def test_a_state_nested_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(StateRefused, match="nested too deeply"):
        ExportedState.read(file, project="shop", stack="dev")


PROVIDER = "urn:pulumi:dev::shop::pulumi:providers:kubernetes::eks"
BROKEN_PROVIDER = resource(PROVIDER, inputs={"kubeconfig": "{[["})
HELD = resource("urn:pulumi:dev::shop::kubernetes:core/v1:Secret::s", provider=f"{PROVIDER}::x")
"""By a provider whose kubeconfig is none."""


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ([resource(VPC), resource(VPC.replace(":Vpc", ":Moat"), outputs={"region": "us-east-2"})], ["aws:region", "aws:ec2/vpc:Moat"]),
        ([HELD, BROKEN_PROVIDER], ["failed to parse kubeconfig data"]),
        ([resource(VPC, outputs={"region": "us-east-2"}, parent=f"{VPC}-of-old")], ["does not take the state of stack dev", "main-of-old"]),
        ([resource(VPC, outputs={"region": "us-east-2"}, created="yesterday")], ["yesterday"]),
    ],
    ids=["no region, no such type", "no kubeconfig", "a parent that is gone", "no time"],
)
def test_a_state_that_cannot_be_begun_with_is_wrong_usage_in_one_report(tmp_path: Path, resources: list[Any], said: list[str]) -> None:
    files_of(tmp_path / "shop").stack_file.write_text("config: {aws:region: us-east-2}\n", encoding="utf-8")
    file = write(tmp_path, *resources)
    done = CliRunner().invoke(app, ["rehearse", "dev", "--project", str(tmp_path / "shop"), "--from", str(file), "--preview"])
    assert done.exit_code == 2, done.output
    assert all(word in done.stderr for word in said), done.stderr


def test_a_resource_whose_provider_found_its_region_elsewhere_is_where_it_says() -> None:
    account = SimulatedAccount()
    outputs: list[dict[str, object]] = [{"region": "eu-west-1"}, {"arn": "arn:aws:ec2:eu-west-1:111122223333:vpc/x"}]
    for index, given in enumerate(outputs):
        fill(account, [resource(f"{VPC}{index}", id=f"vpc-{index}", outputs=given)])
        assert account.find("aws:ec2/vpc:Vpc", f"vpc-{index}", region="eu-west-1", cluster="") is not None


@pytest.mark.timeout(300)
def test_a_deployed_stack_is_as_it_was_deployed_and_an_edit_is_one_update(tmp_path: Path) -> None:
    project = copy_of_stacks(tmp_path)
    # Deployed for real: another account than the rehearsal's own.
    account = SimulatedAccount()
    account.number, account.deployer = "111122223333", "arn:aws:iam::111122223333:role/deployer"
    deployed = Rehearsal(project, "dev", state_dir=tmp_path / "deployed", account=account)
    deployed.up()
    file = tmp_path / "state.json"
    with deployed.session() as session:
        session.engine.command("stack", "export", "--file", str(file))
    assert "123456789012" not in file.read_text(encoding="utf-8")

    done = CliRunner().invoke(app, ["rehearse", "dev", "--project", str(project), "--from", str(file), "--preview", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["changes"] | {"unchanged": 0} == dict.fromkeys(("created", "updated", "replaced", "deleted", "unchanged"), 0)
    assert told["changes"]["unchanged"] >= 80

    settings = project / "stacks" / "Pulumi.dev.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("threshold: 4096", "threshold: 2048"), encoding="utf-8")
    done = CliRunner().invoke(app, ["rehearse", "dev", "--project", str(project), "--from", str(file), "--json"])
    told = json.loads(done.stdout)
    assert (told["changes"]["updated"], told["changes"]["created"], told["changes"]["replaced"], told["changes"]["deleted"]) == (1, 0, 0, 0)
    assert [item["name"] for item in told["resources"] if item["operation"] == "update"] == ["llama-70b"]


def files_of(folder: Path, *, program: str = "") -> ProjectFiles:
    """A project `shop` with a stack `dev`."""
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n", encoding="utf-8")
    (folder / "Pulumi.dev.yaml").write_text("config: {}\n", encoding="utf-8")
    (folder / "__main__.py").write_text(program, encoding="utf-8")
    return ProjectFiles.read(folder, "dev")


def states(folder: Path, *stacks: tuple[str, str]) -> list[Path]:
    """One export of each stack, given by project and name."""
    folder.mkdir()
    paths: list[Path] = []
    for index, (project, stack) in enumerate(stacks):
        path = folder / f"{index}.json"
        path.write_text(exported([resource(f"urn:pulumi:{stack}::{project}::aws:s3/bucket:Bucket::b")]), encoding="utf-8")
        paths.append(path)
    return paths


def test_the_states_of_other_stacks_lie_beside_its_own_in_any_order_or_in_a_folder(tmp_path: Path) -> None:
    files = files_of(tmp_path / "project")
    given = states(tmp_path / "states", ("base", "prod"), ("shop", "dev"), ("shop", "prod"))
    for paths in (given, given[::-1], [tmp_path / "states"]):
        read = ExportedStates.read(paths, files)
        assert read.own is not None
        assert (read.own.project, read.own.stack) == ("shop", "dev")
        assert sorted((state.project, state.stack) for state in read.others) == [("base", "prod"), ("shop", "prod")]


def test_a_stack_that_is_not_deployed_begins_with_nothing_where_it_refers_to_the_other(tmp_path: Path) -> None:
    given = states(tmp_path / "states", ("base", "prod"))
    read = ExportedStates.read(given, files_of(tmp_path / "named", program='StackReference("acme/base/prod")'))
    assert read.own is None
    assert [(state.project, state.stack) for state in read.others] == [("base", "prod")]
    with pytest.raises(StateRefused, match=r"not of dev of project shop; nor do Pulumi\.dev\.yaml and its program name base/prod"):
        ExportedStates.read(given, files_of(tmp_path / "silent"))


def test_what_a_rehearsal_kept_is_a_state_like_an_export(tmp_path: Path) -> None:
    files = files_of(tmp_path / "project")
    kept = tmp_path / "kept"
    kept.mkdir()
    resources = [resource("urn:pulumi:dev::shop::aws:s3/bucket:Bucket::b")]
    # The file backend's form (pulumi apitype VersionedCheckpoint).
    document = {"version": 3, "checkpoint": {"stack": "organization/shop/dev", "latest": {"manifest": {}, "resources": resources}}}
    (kept / "state.json").write_text(json.dumps(document), encoding="utf-8")
    for name in ("account.json", "report.json", "report.html"):
        (kept / name).write_text("{}", encoding="utf-8")
    for path in (kept, kept / "state.json"):
        own = ExportedStates.read([path], files).own
        assert own is not None
        assert own.resources == resources
        assert own.document["deployment"]["resources"] == resources
    (kept / "report.html").unlink()
    with pytest.raises(StateRefused, match=r"account\.json is no state"):
        ExportedStates.read([kept], files)


def test_two_states_of_one_stack_and_a_folder_without_any_are_refused(tmp_path: Path) -> None:
    files = files_of(tmp_path / "project")
    with pytest.raises(StateRefused, match="are both the state of stack dev of project shop"):
        ExportedStates.read(states(tmp_path / "states", ("shop", "dev"), ("shop", "dev")), files)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StateRefused, match="has no JSON file"):
        ExportedStates.read([tmp_path / "empty"], files)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("organization", ["organization", "acme"])
def test_endpoints_are_rehearsed_on_the_exported_state_of_their_platform(tmp_path: Path, organization: str) -> None:
    project = copy_of_stacks(tmp_path)
    settings = project / "stacks" / "Pulumi.dev.yaml"
    document = yaml.safe_load(settings.read_text(encoding="utf-8"))
    del document["config"]["dpd-infra:endpoints"]  # they would have the GPUs
    settings.write_text(yaml.safe_dump(document), encoding="utf-8")
    platform = Rehearsal(project, "dev", state_dir=tmp_path / "deployed")
    platform.up()
    with platform.session() as session:
        session.engine.command("stack", "export", "--file", str(tmp_path / "platform.json"))
    endpoints = shutil.copytree(REPOSITORY / "examples" / "endpoints_only", tmp_path / "endpoints")
    file = endpoints / "Pulumi.dev.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("organization/", f"{organization}/", 1), encoding="utf-8")
    asked = ["rehearse", "dev", "--project", str(endpoints), "--json"]

    alone = CliRunner().invoke(app, asked)
    assert alone.exit_code == 1
    told = json.loads(alone.stdout)
    assert told["explanation"]["page"].endswith("#another-stack-is-not-known")
    assert f"$ pulumi stack export --stack {organization}/dpd-infra/dev --file other.json" in told["explanation"]["wayOut"]

    done = CliRunner().invoke(app, [*asked, "--from", str(tmp_path / "platform.json")])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert "search-70b" in {item["name"] for item in told["resources"] if item["operation"] == "create"}
    assert told["notes"] == ["no state of dev itself is among what --from names: it begins with nothing"]


@pytest.mark.parametrize(
    "options",
    [
        ["--preview", "--destroy"],
        ["--fail", "x", "--fail-each"],
        ["--fail-each", "--kill-at", "3"],
        ["--kill-at", "3", "--preview"],
        ["--fail", "x", "--preview"],
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other_are_wrong_usage(options: list[str]) -> None:
    done = CliRunner().invoke(app, ["rehearse", "dev", *options])
    assert done.exit_code == 2
    assert "exclude each other" in done.output


def test_a_name_that_nothing_has_is_wrong_usage_with_the_names_there_are(tmp_path: Path) -> None:
    project = copy_of_stacks(tmp_path)
    done = CliRunner().invoke(app, ["rehearse", "dev", "--project", str(project), "--fail", "inference-addons-coredn"])
    assert done.exit_code == 2
    assert "Did you mean inference-addons-coredns" in done.output
    assert "inference-vpc" not in done.output, "the names that are not near are left out"
    assert "--preview --json` lists all" in done.output


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("bucket", "Did you mean store-bucket or aws:s3/bucket:Bucket?"),
        ("subnt", "Did you mean aws:ec2/subnet:Subnet?"),
        ("qqqqqq", "\n  aws:ec2/subnet:Subnet\n  aws:s3/bucket:Bucket\n"),
    ],
)
def test_a_hint_is_of_what_is_near_by_name_or_type(wanted: str, hint: str) -> None:
    steps = [
        Step("aws:s3/bucket:Bucket", "store-bucket", "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::store-bucket", "create"),
        Step("aws:ec2/subnet:Subnet", "gpu", "urn:pulumi:dev::shop::aws:ec2/subnet:Subnet::gpu", "create"),
        Step("dpd:index:Platform", "bucketful", "urn:pulumi:dev::shop::dpd:index:Platform::bucketful", "create"),
    ]
    told = no_such("dev", wanted, steps)
    assert hint in told
    assert "bucketful" not in told
