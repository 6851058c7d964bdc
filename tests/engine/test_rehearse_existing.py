"""`dpd rehearse` of a stack over what is there already: supposed as the stack counts on it, and as a world file says where it says so."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from dpd_infra.cli import app
from dpd_infra.rehearsal import Rehearsal, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.aws.storage import WRITTEN_BY_AWS
from dpd_infra.rehearsal.suppose import suppose
from dpd_infra.rehearsal.world import World
from dpd_infra.stack import StackSpec
from tests.docs import snippets
from tests.engine.estate import HYPERPOD_ARN, REGION, SUBNET_A, THEIR_EKS, Estate
from tests.engine.harness import REPOSITORY, pulumi_cli
from tests.engine.test_existing import ENDPOINTS

MIXTURES: tuple[dict[str, Any], ...] = (
    {"network": True},
    {"control_plane": True},
    {"network": True, "control_plane": True},
    {"control_plane": True, "cluster": True, "operator": True},
)


@pytest.fixture(autouse=True)
def _cli_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pulumi_cli().parent), prepend=":")


def project(folder: Path, platform: dict[str, Any], **config: Any) -> Path:
    """A project of one stack, `dev`, with the program that users run."""
    settings = yaml.safe_load((REPOSITORY / "Pulumi.yaml").read_text(encoding="utf-8"))
    shutil.copy(REPOSITORY / "stacks" / "__main__.py", folder / "__main__.py")
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": settings["name"], "runtime": "python"}), encoding="utf-8")
    data = {"aws:region": REGION, "dpd-infra:platform": platform, "dpd-infra:endpoints": ENDPOINTS, **config}
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": data}, sort_keys=False), encoding="utf-8")
    return folder


def rehearse(folder: Path, *options: str, world: Any = None) -> Result:
    if world is not None:
        (folder / "world.yaml").write_text(yaml.safe_dump(world), encoding="utf-8")
        options = (*options, "--world", str(folder / "world.yaml"))
    return CliRunner().invoke(app, ["rehearse", "dev", "--project", str(folder), *options])


def missing(folder: Path, world: Any) -> dict[str, str]:
    """What one report says is missing: the fix by the place in the stack file."""
    result = rehearse(folder, "--json", world=world)
    assert result.exit_code == 1
    return {finding["path"]: f"{finding['what']}; {finding['fix']}" for finding in json.loads(result.stdout)["findings"]}


@pytest.mark.parametrize("mixture", MIXTURES, ids=" ".join)
@pytest.mark.timeout(300)
def test_what_the_stack_names_is_there(tmp_path: Path, mixture: dict[str, Any]) -> None:
    """No world file at all: `up` comes through and settles, on all that is supposed."""
    folder = project(tmp_path, Estate(**mixture).platform)
    rehearsal = Rehearsal(folder, "dev")
    assert rehearsal.up().created > 0
    assert rehearsal.up().changes == 0
    spec = StackSpec.from_file(folder / "Pulumi.dev.yaml")
    account = SimulatedAccount(rehearsal.folder / "account.json", world=suppose(World.default(), spec).world)
    theirs = {item.id for item in account if item.urn == "world"}
    for step, identity in (("control_plane", THEIR_EKS), ("cluster", HYPERPOD_ARN), ("network", SUBNET_A)):
        assert (identity in theirs) is (step in mixture)


@pytest.mark.timeout(300)
def test_after_an_interrupted_run_what_is_supposed_is_still_there(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(network=True, control_plane=True).platform)
    state = folder / ".dpd" / "rehearsal"
    state.mkdir(parents=True)
    (state / "running").touch()  # what a run leaves that was killed
    result = rehearse(folder)
    assert result.exit_code == 0, result.output


@pytest.mark.timeout(300)
def test_an_up_that_fails_ends_with_what_was_done_what_is_left_and_what_was_warned_of(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(network=True, control_plane=True).platform)
    page = tmp_path / "report.html"
    result = rehearse(folder, "--html", str(page), "--fail", "inference-operator-addon")
    assert result.exit_code == 1
    # The stack made in one go, without the add-on that failed, and the endpoint that waits for it.
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("up of dev:")]
    assert re.search(r"up of dev: [1-9]\d* created, 1 failed, 0 unchanged", line)
    assert "1 not begun: llama-70b; what was done stays done: the next `dpd rehearse dev` is the next `up`" in result.stdout
    assert "Nothing was made." not in page.read_text(encoding="utf-8")
    short = rehearse(folder, "--json", "--reset", world={"capacity": {"us-east-2a": {"ml.p5.48xlarge": 1}}})
    assert short.exit_code == 1
    (warned,) = json.loads(short.stdout)["warnings"]
    assert warned["name"] == "inference-cluster-cluster"
    assert "prefill has 0 of 1 ml.p5.48xlarge" in warned["message"] or "decode has 0 of 1 ml.p5.48xlarge" in warned["message"]


def test_the_report_says_what_is_supposed(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(control_plane=True, cluster=True, operator=True).platform)
    result = rehearse(folder, "--json")
    assert result.exit_code == 0, result.output
    (note,) = json.loads(result.stdout)["notes"]
    assert note.startswith(
        "supposed to be there, because the stack file's `existing` names it: the EKS cluster their-eks, the HyperPod cluster"
    )
    assert "amazon-sagemaker-hyperpod-inference" in note
    assert "--world FILE" in note
    assert "notes" not in json.loads(rehearse(folder, "--json", "--preview", world=everything()).stdout)


def everything() -> dict[str, Any]:
    """A world file that names all that `existing` of a bare EKS cluster with its HyperPod cluster and operator names."""
    addons = ["vpc-cni", "coredns", "cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server"]
    eks = {"name": THEIR_EKS, "vpc": "vpc-0a", "addons": [*addons, "amazon-sagemaker-hyperpod-inference"]}
    groups = {name: {"instanceType": "ml.p5.48xlarge", "count": 1} for name in ("prefill", "decode")}
    hyperpod = {"arn": HYPERPOD_ARN, "eksCluster": THEIR_EKS, "instanceGroups": groups}
    existing = {"vpcs": [{"id": "vpc-0a", "cidr": "10.50.0.0/16"}], "eksClusters": [eks], "hyperPodClusters": [hyperpod]}
    return {"suppose": False, "existing": existing}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("own", [True, False])
def test_an_endpoint_with_a_certificate_of_its_own_has_no_self_signed_one(tmp_path: Path, own: bool) -> None:
    arn = "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"
    platform, endpoint = Estate(network=True, control_plane=True).platform, dict(ENDPOINTS["llama-70b"])
    if own:
        platform["operator"] = platform.get("operator", {}) | {"certificateArns": [arn]}
        endpoint["tls"] = {"certificateArn": arn, "domainName": "llama.example.com"}
    folder = project(tmp_path, platform, **{"dpd-infra:endpoints": {"llama-70b": endpoint}})
    result = rehearse(folder, "--json")
    assert result.exit_code == 0, result.output
    text = json.dumps(json.loads(result.stdout)["outputs"]["endpoints"])
    assert (arn in text, "-ca.pem" in text) == (own, not own)
    state = folder / ".dpd" / "rehearsal" / "account.json"
    # Either way the TLS bucket is not empty any more.
    objects = [item["id"] for item in json.loads(state.read_text(encoding="utf-8"))["resources"] if item["type"] == WRITTEN_BY_AWS]
    assert [name.endswith("-ca.pem") for name in objects] == [not own]


@pytest.mark.timeout(300)
def test_what_cannot_be_killed_says_why_and_is_wrong_usage_only_where_it_is(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(network=True, control_plane=True).platform)
    late = rehearse(folder, "--kill-at", "99999")
    assert late.exit_code == 2
    (count,) = re.findall(r"this up has (\d+) operations; name a number from 0 to \1, or `--reset`", late.stderr)
    assert int(count) > 20
    # It is a copy that is killed: nothing is there yet.
    nothing = rehearse(folder, "--kill-at", "5", "--destroy", "--json")
    assert nothing.exit_code == 2
    assert json.loads(nothing.stdout)["error"].endswith(
        "this destroy has 0 operations; `dpd rehearse dev` makes something that can be destroyed"
    )
    (folder / "__main__.py").write_text("raise SystemExit('the program says no')", encoding="utf-8")
    failing = rehearse(folder, "--kill-at", "5")
    assert failing.exit_code == 1
    assert "the up fails without being killed: the program says no" in failing.output
    assert not re.search("--reset|smaller|from 0", failing.output)


def test_a_world_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(network=True, control_plane=True).platform)
    result = rehearse(folder, "--world", str(tmp_path / "missing.yaml"))
    assert result.exit_code == 2
    assert "no such file" in result.output


def test_a_stack_of_another_project_is_wrong_usage(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(network=True, control_plane=True).platform)
    result = CliRunner().invoke(app, ["rehearse", "acme/other/dev", "--project", str(folder)])
    assert result.exit_code == 2
    assert "acme/other/dev is a stack of project other" in result.output


@pytest.mark.timeout(300)
def test_a_refused_destroy_advises_only_what_the_stack_has_and_the_advice_leads_out(tmp_path: Path) -> None:
    platform = Estate(network=True, control_plane=True).platform
    folder = project(tmp_path, platform)
    assert rehearse(folder).exit_code == 0
    refused = rehearse(folder, "--destroy", "--json")
    assert refused.exit_code == 1
    told = " ".join(json.loads(refused.stdout)["explanation"]["wayOut"])
    assert "controlPlane" not in told
    assert "modelStore" not in told
    # What it says, word for word.
    (key,) = re.findall(r"`(\w+: {.*?})`", told)
    assert key == "cluster: {protect: false}"
    platform["cluster"] = platform.get("cluster", {}) | yaml.safe_load(key)["cluster"]
    project(folder, platform)
    assert rehearse(folder).exit_code == 0
    assert rehearse(folder, "--destroy").exit_code == 0


@pytest.mark.timeout(300)
def test_a_world_file_that_names_everything_needs_nothing_supposed(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(control_plane=True, cluster=True, operator=True).platform)
    result = rehearse(folder, "--keep", str(tmp_path / "kept"), world=everything())
    assert result.exit_code == 0, result.output
    assert "supposed" not in result.output
    # What was kept is the state that another rehearsal begins with.
    again = rehearse(folder, "--from", str(tmp_path / "kept"), world=everything())
    assert again.exit_code == 0, again.output
    assert "up of dev: 0 changes" in again.stdout


def test_everything_that_is_missing_is_one_report_with_its_place_and_what_to_write(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(network=True, control_plane=True, cluster=True, operator=True).platform)
    section = "config.dpd-infra:platform.existing"
    found = missing(folder, {"suppose": False})
    assert list(found) == [f"{section}.network.vpcId", f"{section}.controlPlane.name", f"{section}.cluster.arn"]
    assert "add to existing.eksClusters: {name: their-eks" in found[f"{section}.controlPlane.name"]
    assert all("leave `suppose: false` out" in text for text in found.values())
    text = rehearse(folder, world={"suppose": False}).output
    assert "Pulumi.dev.yaml:" in text
    assert "3 errors" in text
    assert "Traceback" not in text


def test_what_a_named_cluster_or_network_lacks_is_missing_too(tmp_path: Path) -> None:
    """The file names the thing, so it is as the file says: nothing of it is supposed."""
    folder = project(tmp_path, Estate(network=True, control_plane=True).platform)
    world = {
        "existing": {
            "vpcs": [{"id": "vpc-0a", "cidr": "10.50.0.0/16", "subnets": [{"id": SUBNET_A, "zone": "us-east-2a", "cidr": "10.50.0.0/20"}]}],
            "eksClusters": [{"name": THEIR_EKS, "vpc": "vpc-0a", "addons": [], "oidcProvider": False}],
        }
    }
    found = missing(folder, world)
    network, places = "config.dpd-infra:platform.existing.network", set(found)
    assert {f"{network}.gpuSubnetIds[0]", f"{network}.controlPlaneSubnetIds[1]", f"{network}.nodeSecurityGroupIds[0]"} <= places
    assert f"{network}.controlPlaneSubnetIds[0]" not in places
    result = json.loads(rehearse(folder, "--json", world=world).stdout)
    said = " ".join(finding["what"] for finding in result["findings"])
    for what in ("the IAM OIDC provider of the EKS cluster their-eks", "the add-on vpc-cni of", "the add-on coredns of"):
        assert what in said
    # What the world may have besides does not lead out of it.
    assert not [text for text in found.values() if "suppose" in text]


def test_a_world_file_says_otherwise_of_what_it_names(tmp_path: Path) -> None:
    folder = project(tmp_path, Estate(control_plane=True).platform)
    eks = {"name": THEIR_EKS, "vpc": "vpc-0a", "version": "1.31", "addons": ["vpc-cni", "coredns"]}
    world = {"existing": {"vpcs": [{"id": "vpc-0a", "cidr": "10.50.0.0/16"}], "eksClusters": [eks]}}
    result = rehearse(folder, "--preview", world=world)
    assert result.exit_code == 1
    assert "runs Kubernetes 1.31" in result.output


def test_of_groups_that_nobody_knows_there_are_nodes_enough(tmp_path: Path) -> None:
    platform = Estate(control_plane=True, cluster=True, operator=True).platform
    platform["existing"]["cluster"].pop("instanceGroups")
    found = suppose(World.default(), StackSpec.from_file(project(tmp_path, platform) / "Pulumi.dev.yaml"))
    (cluster,) = found.world.existing.hyper_pod_clusters
    assert {name: (group.instance_type, group.count) for name, group in cluster.instance_groups.items()} == {
        "prefill": ("ml.p5.48xlarge", 1),
        "decode": ("ml.p5.48xlarge", 1),
    }


def test_a_stack_without_such_a_section_supposes_nothing() -> None:
    spec = StackSpec.from_file(REPOSITORY / "stacks" / "Pulumi.dev.yaml")
    assert suppose(World.default(), spec).notes == ()
    assert suppose(World.default(), None).world == World.default()


def test_values_of_a_cluster_that_may_not_be_described_are_what_the_file_says(tmp_path: Path) -> None:
    values = {
        "version": "1.34",
        "endpoint": "https://ABC.gr7.us-east-2.eks.amazonaws.com",
        "certificateAuthority": "LS0tLS1CRUdJTg==",
        "oidcIssuer": "https://oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF",
        "clusterSecurityGroupId": "sg-0c",
        "vpcId": "vpc-0b",
    }
    platform = Estate(control_plane=True, cluster=True, operator=True).platform
    platform["existing"]["controlPlane"]["values"] = values
    account = SimulatedAccount(world=suppose(World.default(), StackSpec.from_file(project(tmp_path, platform) / "Pulumi.dev.yaml")).world)
    (eks,) = account.all(base.CLUSTER)
    assert (eks.get("version"), eks.get("endpoint"), eks.get("vpcConfig.vpcId")) == ("1.34", values["endpoint"], "vpc-0b")
    assert eks.get("vpcConfig.clusterSecurityGroupId") == "sg-0c"
    assert account.all(base.OIDC_PROVIDER)[0].id.endswith("oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF")


ESTATES = [item for item in snippets("yaml") if "existing:" in item.text and "dpd-infra:platform" in item.text]


@pytest.mark.parametrize("snippet", ESTATES, ids=str)
@pytest.mark.timeout(300)
def test_an_estate_of_the_documents_can_be_rehearsed(tmp_path: Path, snippet: Any) -> None:
    folder = project(tmp_path, {})
    (folder / "Pulumi.dev.yaml").write_text(snippet.text, encoding="utf-8")
    result = rehearse(folder, "--preview")
    assert result.exit_code == 0, result.output
