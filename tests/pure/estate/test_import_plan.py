"""From an estate to a stack file and an import file: what they say of each other, and what the notes warn of."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.cli import import_state as command
from dpd_infra.components import tokens
from dpd_infra.ops.import_state import ADDONS, CLUSTER, OPERATOR, PLATFORM, ImportPlan, Step, plan_import
from dpd_infra.ops.live_cluster import groups_of, unmatched
from dpd_infra.ops.live_estate import EstateUnreadable, LiveAddon, LiveEstate
from dpd_infra.ops.terraform_state import from_terraform
from dpd_infra.render.hyperpod_cluster import render_cluster
from dpd_infra.rules.check import errors
from dpd_infra.spec.cluster import ClusterSpec
from dpd_infra.stack import load_file
from tests.pure.estate.test_live_estate import ARN, TERRAFORM

NODE_ADDONS = {
    "coredns": LiveAddon("v1.12.4-eksbuild.1"),
    "cert-manager": LiveAddon("v1.18.2-eksbuild.2"),
    "aws-mountpoint-s3-csi-driver": LiveAddon("v1.14.1-eksbuild.1", has_role=True),
    "aws-fsx-csi-driver": LiveAddon("v1.6.0-eksbuild.1"),
    "metrics-server": LiveAddon("v0.7.2-eksbuild.4"),
}
FULL = dataclasses.replace(from_terraform(TERRAFORM), addons={**from_terraform(TERRAFORM).addons, **NODE_ADDONS})


def platform(plan: ImportPlan) -> dict[str, Any]:
    return plan.stack_file["config"]["dpd-infra:platform"]


def checked(plan: ImportPlan, folder: Path) -> None:
    """The stack file is one that this library takes."""
    file = folder / "Pulumi.imported.yaml"
    file.write_text(yaml.safe_dump(plan.stack_file), encoding="utf-8")
    findings = errors(load_file(file).findings)
    # What is there has the groups that it has.
    assert [finding.what for finding in findings if finding.rule != "DPD523"] == []


@pytest.mark.parametrize(
    "keep", [(), (Step.CLUSTER,), (Step.ADDONS,), (Step.OPERATOR,), tuple(Step)], ids=lambda kept: " ".join(kept) or "nothing"
)
def test_the_stack_file_passes_every_rule(keep: tuple[Step, ...], tmp_path: Path) -> None:
    checked(plan_import(FULL, keep=keep), tmp_path)


def test_what_is_imported_is_no_longer_existing() -> None:
    plan = plan_import(FULL)
    assert set(platform(plan)["existing"]) == {"controlPlane", "network", "addons"}
    assert platform(plan)["existing"]["addons"] == ["aws-mountpoint-s3-csi-driver"]
    assert {resource["id"] for resource in plan.import_file["resources"] if "id" in resource} == {
        ARN,
        "my-eks:coredns",
        "my-eks:cert-manager",
        "my-eks:aws-fsx-csi-driver",
        "my-eks:metrics-server",
        f"my-eks:{ADDON_NAME}",
        "hyperpod-tls-x",
    }


def test_every_parent_and_provider_is_in_the_file_under_one_name() -> None:
    resources = plan_import(FULL, name="platform").import_file["resources"]
    names = [resource["name"] for resource in resources]
    assert len(set(names)) == len(names)
    for resource in resources:
        assert resource.get("parent", names[0]) in names
        assert resource.get("provider", names[0]) in names
        assert names.index(resource.get("parent", names[0])) <= names.index(resource["name"])
    assert {resource["type"] for resource in resources if resource.get("component")} == {PLATFORM, CLUSTER, ADDONS, OPERATOR}


def test_the_tokens_are_those_of_the_components() -> None:
    assert (PLATFORM, CLUSTER, ADDONS, OPERATOR) == (
        tokens.PLATFORM,
        tokens.HYPERPOD_CLUSTER,
        tokens.NODE_ADDONS,
        tokens.INFERENCE_OPERATOR,
    )


def test_an_operator_that_runs_proves_its_add_ons() -> None:
    plan = plan_import(dataclasses.replace(FULL, addons={ADDON_NAME: FULL.addons[ADDON_NAME], "vpc-cni": FULL.addons["vpc-cni"]}))
    assert len(platform(plan)["existing"]["addons"]) == 5
    assert platform(plan)["existing"]["selfManagedAddons"] == platform(plan)["existing"]["addons"]
    assert any("no EKS add-ons there" in note for note in plan.notes)


def test_without_an_operator_up_installs_it_and_what_it_needs() -> None:
    plan = plan_import(dataclasses.replace(FULL, addons={"coredns": LiveAddon("v1.12.4-eksbuild.1")}, operator_configuration={}))
    assert "operator" not in platform(plan)
    assert platform(plan)["existing"]["addons"] == []
    assert platform(plan)["existing"]["controlPlane"]["selfManagedCni"] is True
    assert "there is no inference operator: up installs it" in plan.notes
    with pytest.raises(EstateUnreadable, match="there is no operator to keep"):
        plan_import(dataclasses.replace(FULL, addons={}), keep=[Step.OPERATOR])


def test_the_operators_own_settings_and_the_users_are_kept_apart() -> None:
    values = {**FULL.operator_configuration, "alb": {"enabled": False}, "keda": {"enabled": True}, "nodeSelector": {"pool": "system"}}
    operator = platform(plan_import(dataclasses.replace(FULL, operator_configuration=values)))["operator"]
    assert operator == {
        "addonVersion": "v1.4.0-eksbuild.1",
        "tlsBucket": "hyperpod-tls-x",
        "loadBalancerController": False,
        "configuration": {"nodeSelector": {"pool": "system"}},
    }


def changed(**cluster: Any) -> LiveEstate:
    return dataclasses.replace(FULL, cluster={**FULL.cluster, **cluster})


def group(**parts: Any) -> dict[str, Any]:
    return {**FULL.cluster["InstanceGroups"][0], **parts}


@pytest.mark.parametrize(
    ("estate", "said"),
    [
        (changed(RestrictedInstanceGroups=[{}]), "restricted instance groups"),
        (changed(AutoScaling={"Mode": "Enable"}), "Karpenter autoscaling"),
        (changed(InstanceGroups=[group(InstanceRequirements={"InstanceTypes": ["a"]})]), "several instance types (group gpu)"),
        (changed(InstanceGroups=[group(AutoPatchConfig={"PatchingStrategy": "WhenIdle"})]), "automatic patches (group gpu)"),
        (changed(InstanceGroups=[group(InstanceStorageConfigs=[{"FsxLustreConfig": {"DnsName": "x"}}])]), "a file system"),
    ],
    ids=["restricted", "karpenter", "requirements", "patches", "file system"],
)
def test_a_cluster_that_a_stack_file_cannot_say_stays_its_makers(estate: LiveEstate, said: str) -> None:
    plan = plan_import(estate)
    assert "instanceGroups" not in platform(plan)
    assert platform(plan)["existing"]["cluster"]["arn"] == ARN
    assert any(said in note for note in plan.notes)


def test_autoscaling_that_is_off_is_no_reason() -> None:
    assert "instanceGroups" in platform(plan_import(changed(AutoScaling={"Mode": "Disable"})))


def test_a_cluster_in_two_zones_must_be_kept() -> None:
    estate = dataclasses.replace(FULL, zones={"subnet-1": "us-east-2a", "subnet-2": "us-east-2b"})
    with pytest.raises(EstateUnreadable, match="us-east-2a, us-east-2b, and a stack file has one GPU zone"):
        plan_import(estate)
    assert plan_import(estate, keep=[Step.CLUSTER])


def test_what_up_would_change_in_a_group_is_said() -> None:
    live = {"InstanceGroups": [group(InstanceStorageConfigs=[])]}
    assert unmatched(live, groups_of(live)) == [
        "up changes InstanceStorageConfigs of group gpu from None to [{'EbsVolumeConfig': {'VolumeSizeInGB': 500}}]"
    ]


group_specs = st.fixed_dictionaries(
    {"instanceType": st.sampled_from(["ml.p5.48xlarge", "ml.p5en.48xlarge", "ml.c5.4xlarge"]), "count": st.integers(0, 9)},
    optional={
        "minCount": st.integers(0, 9),
        "storageGib": st.integers(1, 16384),
        "threadsPerCore": st.integers(1, 2),
        "capacity": st.sampled_from(["spot", "onDemand"]),
        "volumeKeyArn": st.just("arn:aws:kms:us-east-2:111122223333:key/1"),
        "trainingPlanArn": st.just("arn:aws:sagemaker:us-east-2:111122223333:training-plan/p"),
        "labels": st.dictionaries(st.sampled_from(["pool", "my_label"]), st.just("x"), max_size=2),
        "taints": st.lists(st.just({"key": "nvidia.com/gpu", "effect": "NoSchedule"}), max_size=1),
        "deepHealthChecks": st.lists(st.sampled_from(["InstanceStress", "InstanceConnectivity"]), unique=True),
    },
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), group_specs, min_size=1, max_size=3))
def test_a_cluster_that_this_library_made_is_described_as_it_was_written(groups: dict[str, Any]) -> None:
    """Whatever groups a stack file has: rendered as a request and read back, they render to the same request."""

    def request(of: dict[str, Any]) -> list[dict[str, Any]]:
        spec = ClusterSpec.from_yaml_data({"instanceGroups": of})
        nowhere: dict[str, Any] = {
            "eks_cluster_arn": "",
            "execution_role_arn": "",
            "lifecycle_uri": "",
            "security_group_ids": [],
            "subnet_ids": [],
        }
        rendered = render_cluster(spec, name="x", tags={}, **nowhere)["InstanceGroups"]
        # Their order means nothing to the service.
        return [{key: sorted(part) if key == "OnStartDeepHealthChecks" else part for key, part in one.items()} for one in rendered]

    live = {"InstanceGroups": request(groups), "NodeProvisioningMode": "Continuous"}
    assert request(groups_of(live)) == live["InstanceGroups"]
    assert unmatched(live, groups_of(live)) == []


@given(st.text(alphabet="aZ9-", min_size=1, max_size=63).filter(lambda name: name.strip("-")))
def test_any_cluster_name_makes_a_platform_name(name: str) -> None:
    plan = plan_import(changed(ClusterName=name))
    made = platform(plan)["name"]
    assert made == made.lower()
    assert len(made) <= 40
    assert made[0].isalpha()
    assert "--" not in made
    assert platform(plan)["cluster"]["name"] == name


def run(*arguments: str) -> Any:
    import typer

    app = typer.Typer()
    app.command()(command.command)
    return CliRunner().invoke(app, list(arguments))


def test_the_command_writes_two_files_and_says_what_comes_next(tmp_path: Path) -> None:
    state = tmp_path / "terraform.tfstate"
    state.write_text(json.dumps(TERRAFORM), encoding="utf-8")
    done = run("--terraform", str(state), "--out", str(tmp_path), "--stack", "prod")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "Pulumi.prod.yaml").is_file()
    assert json.loads((tmp_path / "import.json").read_text())["resources"]
    assert "pulumi import -s prod --file" in done.output
    again = run("--terraform", str(state), "--out", str(tmp_path), "--stack", "prod")
    assert again.exit_code == 1
    assert run("--terraform", str(state), "--out", str(tmp_path), "--stack", "prod", "--force").exit_code == 0


def test_json_writes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "terraform.tfstate"
    state.write_text(json.dumps(TERRAFORM), encoding="utf-8")
    done = run("--terraform", str(state), "--json", "--keep", "cluster", "--keep", "addons", "--keep", "operator")
    data = json.loads(done.stdout)
    assert (data["ok"], data["importFile"]) == (True, {"resources": []})
    assert list(tmp_path.iterdir()) == [state]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("{", 2, "is not JSON"),
        ("root:x:0:0:root:/root:/bin/bash\n", 2, "is not JSON"),
        ("[]", 2, "not an object"),
        ('{"version": 3}', 2, "version 4"),
        # A state it is, and what is looked for is not in it.
        ('{"version": 4}', 1, "holds no awscc_sagemaker_cluster"),
    ],
)
def test_a_file_that_is_no_state_is_one_line(text: str, code: int, said: str, tmp_path: Path) -> None:
    state = tmp_path / "x.tfstate"
    state.write_text(text, encoding="utf-8")
    done = run("--terraform", str(state))
    assert done.exit_code == code
    assert said in done.output
    assert "Traceback" not in done.output


def test_neither_a_cluster_nor_a_state_is_wrong_usage() -> None:
    assert run().exit_code == 2
