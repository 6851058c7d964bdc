"""`dpd plan` shows what the program registers, without AWS and without the engine, and fails in one line where there is nothing to show."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from typer.testing import CliRunner

from dpd_infra.cli import app
from dpd_infra.testing import UNKNOWN, run_project
from dpd_infra.testing.answers import _INVOKES
from tests.conftest import ROOT

STACKS = ROOT / "stacks"
PROGRAMS = [*sorted(STACKS.glob("Pulumi.*.yaml")), *sorted((ROOT / "examples").glob("*/Pulumi.*.yaml"))]
Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan() -> Plan:
    """`plan(file, "--json")`: exit code, standard output, standard error."""

    def run(file: Path | str, *options: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["plan", str(file), *options])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    return run


@pytest.fixture
def data(plan: Plan) -> Callable[..., dict[str, Any]]:
    """The JSON of a plan that comes about."""

    def run(file: Path | str, *options: str) -> dict[str, Any]:
        code, out, err = plan(file, "--json", *options)
        assert code == 0, out + err
        return json.loads(out)

    return run


def project(folder: Path, program: str, stack: str = "config: {aws:region: us-east-2}\n", about: str = "") -> Path:
    """A small project; its stack file."""
    (folder / "Pulumi.yaml").write_text(f"name: shop\nruntime: python\n{about}", encoding="utf-8")
    (folder / "__main__.py").write_text(program, encoding="utf-8")
    file = folder / "Pulumi.dev.yaml"
    file.write_text(stack, encoding="utf-8")
    return file


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_every_program_of_the_repository_has_a_plan_in_each_form(file: Path, plan: Plan, data: Callable[..., dict[str, Any]]) -> None:
    found = data(file)
    assert found["counts"]["resources"] >= 2
    assert found["endpoints"]
    assert found["openOrders"] == []
    code, text, _ = plan(file)
    assert code == 0
    assert all(resource["name"] in text for resource in found["resources"])
    resources, components = found["counts"]["resources"], found["counts"]["components"]
    held = f" in {components} component{'s' if components > 1 else ''}" if components else ""
    assert text.startswith(f"{resources} resources{held}, stack ")
    assert plan(file, "--mermaid")[1].startswith("flowchart LR\n")
    assert plan(file, "--dot")[1].startswith("digraph ")


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_what_it_shows_is_what_a_preview_registers(stack: str, data: Callable[..., dict[str, Any]]) -> None:
    found = {resource["urn"]: resource for resource in data(STACKS / f"Pulumi.{stack}.yaml")["resources"]}
    recording = run_project(stack, ROOT, preview=True)
    assert set(found) == {resource.urn for resource in recording}
    for resource in recording:
        shown = found[resource.urn]
        assert (shown["type"], shown["parent"] or "", shown["provider"] or "") == (resource.type, resource.parent, resource.provider)
        assert (shown["protect"], shown["dependsOn"]) == (bool(resource.protect), list(resource.dependencies))
        assert shown["timeouts"] == resource.timeouts
        known = {key: value for key, value in resource.inputs.items() if value is not UNKNOWN and isinstance(value, int | bool)}
        assert {key: shown["inputs"][key] for key in known} == known


def test_nothing_of_a_shipped_stack_is_left_unknown_and_every_made_up_id_says_whose_it_is(data: Callable[..., dict[str, Any]]) -> None:
    found = data(STACKS / "Pulumi.prod.yaml")
    assert "[unknown]" not in json.dumps({key: found[key] for key in ("resources", "subnets", "groups", "roles", "policies", "endpoints")})
    names = {resource["name"] for resource in found["resources"]}
    stand_ins = set(re.findall(r"<([^<>]+)\.[a-z]+>", json.dumps(found["resources"])))
    assert stand_ins
    assert stand_ins - {"name"} <= names
    assert found["standIns"]["accountId"] == "111122223333"


def test_the_tables_of_the_dev_stack(data: Callable[..., dict[str, Any]]) -> None:
    found = data(STACKS / "Pulumi.dev.yaml")
    subnets = {subnet["name"]: subnet for subnet in found["subnets"]}
    # Two P5 nodes of 81 addresses (HyperPod prerequisites) and two CPU nodes of 50, in a /17 less the five that AWS keeps.
    assert subnets["inference-network-gpu"]["needed"] == {"nodes": 2 * 81 + 2 * 50}
    assert (subnets["inference-network-gpu"]["usable"], subnets["inference-network-gpu"]["room"]) == (2**15 - 5, 2**15 - 5 - 262)
    groups = {group["name"]: group for group in found["groups"]}
    assert (groups["gpu"]["gpus"], groups["gpu"]["askedGpus"], groups["gpu"]["efaDevices"]) == (16, 16, 64)
    (endpoint,) = found["endpoints"]
    assert (endpoint["name"], endpoint["routingThreshold"], endpoint["routingStrategy"]) == ("llama-70b", 4096, "prefixaware")
    assert [(role["role"], role["replicas"], role["gpus"]) for role in endpoint["roles"]] == [("prefill", 1, 8), ("decode", 1, 8)]


def test_each_role_shows_who_takes_it_and_all_that_it_allows(data: Callable[..., dict[str, Any]], plan: Plan) -> None:
    file = STACKS / "Pulumi.dev.yaml"
    roles = {role["resource"]: role for role in data(file)["roles"]}
    assert len(roles) == 7
    node = roles["inference-cluster-execution"]
    assert node["trustedBy"] == ["sagemaker.amazonaws.com"]
    assert node["managed"] == ["arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"]
    actions = {action for statement in node["inline"]["permissions"]["Statement"] for action in statement["Action"]}
    assert "ec2:CreateNetworkInterface" in actions
    assert "ec2:CreateNetworkInterface" not in plan(file)[1]
    everything = plan(file, "--policies")[1]
    assert all(action in everything for action in actions)


def test_a_resource_that_somebody_added_is_in_it(data: Callable[..., dict[str, Any]]) -> None:
    found = data(ROOT / "examples" / "own_tests" / "Pulumi.dev.yaml")
    (peering,) = [resource for resource in found["resources"] if resource["type"].endswith(":VpcPeeringConnection")]
    assert peering["inputs"]["vpcId"] == "<chat-network-vpc.id>"
    assert found["program"] == str(ROOT / "examples" / "own_tests" / "__main__.py")


def test_a_stack_file_without_a_project_gets_the_standard_program(tmp_path: Path, data: Callable[..., dict[str, Any]]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text((STACKS / "Pulumi.dev.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    found, own = data(file), data(STACKS / "Pulumi.dev.yaml")
    assert found["program"].startswith("the standard program")

    def shape(plan: dict[str, Any]) -> set[tuple[str, str]]:
        return {(resource["type"], resource["name"]) for resource in plan["resources"]}

    assert shape(found) == shape(own)


def test_endpoints_without_a_platform_need_the_program_of_their_project(tmp_path: Path, plan: Plan) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text((ROOT / "examples" / "endpoints_only" / "Pulumi.dev.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    code, out, err = plan(file)
    assert (code, out) == (1, "")
    assert "no platform" in err


EXISTING = """\
config:
  aws:region: us-east-2
  dpd-infra:platform:
    name: shared
    existing:
      network:
        vpcId: vpc-0123456789abcdef0
        zone: us-east-2b
        gpuSubnetIds: [subnet-0aaaaaaaaaaaaaaa1]
        nodeSecurityGroupIds: [sg-0aaaaaaaaaaaaaaa1]
      controlPlane: {name: my-eks}
      addons: true
    instanceGroups:
      gpu: {instanceType: ml.p5.48xlarge, count: 2}
    modelBuckets: [my-models]
  dpd-infra:endpoints:
    llama-70b:
      model: {name: Llama-3.3-70B-Instruct, s3: {bucket: my-models, prefix: Llama-3.3-70B-Instruct}}
      instanceType: ml.p5.48xlarge
      prefill: {replicas: 1}
      decode: {replicas: 1}
"""


def test_an_existing_estate_is_planned_as_the_file_describes_it(tmp_path: Path, data: Callable[..., dict[str, Any]]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(EXISTING, encoding="utf-8")
    found = data(file)
    kinds = {resource["type"] for resource in found["resources"]}
    assert "aws-native:sagemaker:Cluster" in kinds
    assert not kinds & {"aws:ec2/vpc:Vpc", "aws:eks/cluster:Cluster"}
    assert found["subnets"] == []
    (cluster,) = [resource for resource in found["resources"] if resource["type"] == "aws-native:sagemaker:Cluster"]
    assert cluster["inputs"]["vpcConfig"]["subnets"] == ["subnet-0aaaaaaaaaaaaaaa1"]


def test_the_account_may_be_named(data: Callable[..., dict[str, Any]], plan: Plan) -> None:
    found = data(STACKS / "Pulumi.dev.yaml", "--account", "999988887777")
    text = json.dumps(found)
    assert "999988887777" in text
    assert "111122223333" not in text
    code, _, err = plan(STACKS / "Pulumi.dev.yaml", "--account", "12345")
    assert code == 2
    assert "12 digits" in err


def test_it_asks_nobody(monkeypatch: pytest.MonkeyPatch, data: Callable[..., dict[str, Any]]) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert data(STACKS / "Pulumi.dev.yaml")["ok"]


def test_a_stack_with_errors_is_reported_and_not_planned(tmp_path: Path, plan: Plan) -> None:
    text = (STACKS / "Pulumi.dev.yaml").read_text(encoding="utf-8").replace("ml.p5.48xlarge\n", "ml.g5.48xlarge\n")
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text, encoding="utf-8")
    code, out, err = plan(file)
    assert (code, out) == (1, "")
    assert "DPD001" in err
    code, out, _ = plan(file, "--json")
    assert code == 1
    assert json.loads(out)["ok"] is False


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise LookupError('no such shop')", r"LookupError: no such shop \(__main__.py, line 1\)"),
        ("import pulumi\nraise pulumi.RunError('closed today')", "closed today"),
        ("raise SystemExit('not for this stack')", "not for this stack"),
        ("raise SystemExit(3)", "ended with 3"),
        ("import pulumi\npulumi.Config().require('absent')", "absent"),
        ("this is no Python", "SyntaxError"),
        ("import pulumi_aws as aws\naws.ec2.get_vpc(id='vpc-1')", "aws:ec2/getVpc:getVpc"),
        ("import pulumi\nfor _ in (1, 2):\n    pulumi.CustomResource('a:b:C', 'same')", "Duplicate resource URN"),
    ],
)
def test_a_program_that_fails_is_told_in_its_own_words(tmp_path: Path, plan: Plan, program: str, said: str) -> None:
    file = project(tmp_path, program)
    code, out, err = plan(file)
    assert (code, out) == (1, "")
    assert re.search(said, err), err
    assert "Traceback" not in err
    code, out, _ = plan(file, "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)


TOKENS = """\
  dpd-infra:endpoints:
    llama-70b:
      model: {name: m, huggingFace: {modelId: a/b, token: {configKey: "dpd-infra:hub"}}}
      instanceType: ml.p5.48xlarge
"""
STORE = """\
    modelStore:
      models:
        llama: {modelId: a/b, revision: 6f6073b423013f6a7d4d9f39144961bfbfbc386b, token: {configKey: "dpd-infra:storeHub"}}
"""


def test_a_token_that_has_no_value_yet_hinders_no_plan(tmp_path: Path, data: Callable[..., dict[str, Any]]) -> None:
    text = (STACKS / "Pulumi.dev.yaml").read_text(encoding="utf-8").partition("  dpd-infra:endpoints:")[0]
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text + STORE + TOKENS, encoding="utf-8")
    made = [resource for resource in data(file)["resources"] if resource["type"] == "kubernetes:core/v1:Secret"]
    assert len(made) == 2
    assert {secret["inputs"]["stringData"] for secret in made} == {"[secret]"}


def test_a_platform_without_the_tokens_of_its_model_store_registers_nothing(tmp_path: Path, plan: Plan) -> None:
    program = "import dpd_infra as dpd\nstack = dpd.StackSpec.from_config()\ndpd.Platform('x', stack.platform, aws_settings=stack.aws)\n"
    text = (STACKS / "Pulumi.dev.yaml").read_text(encoding="utf-8").partition("  dpd-infra:endpoints:")[0]
    file = project(tmp_path, program, text + STORE)
    code, out, err = plan(file)
    assert (code, out) == (1, "")
    assert "dpd-infra:storeHub" in err
    assert "hugging_face_tokens=stack.hugging_face_tokens()" in err
    recording = run_project("dev", tmp_path, expect=pulumi.RunError)
    assert recording.resources == []


def test_what_a_data_source_answers_can_be_said(tmp_path: Path, plan: Plan, data: Callable[..., dict[str, Any]]) -> None:
    program = (
        "import pulumi\nimport pulumi_aws as aws\n"
        "found = aws.ec2.get_vpc(id='vpc-1')\n"
        "aws.ec2.Subnet('more', vpc_id=found.id, cidr_block=found.cidr_block)\n"
    )
    file = project(tmp_path, program)
    code, out, err = plan(file)
    assert (code, out) == (1, "")
    assert "aws:ec2/getVpc:getVpc with {'id': 'vpc-1'}" in err
    assert "--answers" in err
    answers = tmp_path / "answers.yaml"
    answers.write_text("aws:ec2/getVpc:getVpc: {id: vpc-1, cidrBlock: 10.9.0.0/16}\n", encoding="utf-8")
    (subnet,) = data(file, "--answers", str(answers))["resources"]
    assert subnet["inputs"] == {"cidrBlock": "10.9.0.0/16", "vpcId": "vpc-1"}
    for text in ("- 1", "aws:ec2/getVpc:getVpc: 3", "a: [", "a: {b"):
        answers.write_text(text, encoding="utf-8")
        code, out, err = plan(file, "--answers", str(answers))
        assert (code, out) == (2, "")
        assert len(err.strip().splitlines()) == 1
    assert plan(file, "--answers", str(tmp_path / "absent.yaml"))[0] == 2


def test_every_data_source_of_this_library_is_answered() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "dpd_infra" / "components").glob("*.py"))
    asked = {match.removesuffix("_output") for match in re.findall(r"\baws\.\w+\.get_(\w+)\(", text)}
    assert len(asked) >= 5
    known = {token.rsplit(":", 1)[-1].removeprefix("get").lower() for token in _INVOKES}
    # Subnets are those that a stack file names: they are answered from it.
    assert {name.replace("_", "").lower() for name in asked} - known == {"subnet"}


def test_an_order_that_the_program_leaves_open_is_shown(tmp_path: Path, plan: Plan, data: Callable[..., dict[str, Any]]) -> None:
    program = (
        "import pulumi\nimport pulumi_aws as aws\n"
        "vpc = aws.ec2.Vpc('vpc', cidr_block='10.0.0.0/16')\n"
        "aws.ec2.InternetGateway('gateway', vpc_id=vpc.id)\n"
        "public = aws.ec2.Subnet('public', vpc_id=vpc.id, cidr_block='10.0.0.0/24')\n"
        "aws.ec2.NatGateway('nat', subnet_id=public.id)\n"
    )
    file = project(tmp_path, program)
    ((first, then),) = [(pair["first"], pair["then"]) for pair in data(file)["openOrders"]]
    assert (first.rsplit("::", 1)[-1], then.rsplit("::", 1)[-1]) == ("gateway", "nat")
    assert "NatGateway nat may be made before InternetGateway gateway" in plan(file)[1]


def test_what_a_program_prints_does_not_get_into_the_plan(tmp_path: Path, data: Callable[..., dict[str, Any]]) -> None:
    file = project(tmp_path, "import pulumi\nprint('hello')\npulumi.export('a', 1)\n")
    assert data(file)["outputs"] == {"a": 1}


def test_secrets_are_masked_and_what_is_not_known_says_so(tmp_path: Path, plan: Plan, data: Callable[..., dict[str, Any]]) -> None:
    program = (
        "import pulumi\nkey = pulumi.Config().require_secret('key')\n"
        "one = pulumi.CustomResource('random:index:Pet', 'one', {'length': None, 'key': key, 'text': pulumi.Output.format('a {0}', key)})\n"
        "pulumi.CustomResource('shop:index:Shelf', 'two', {'size': one.length})\n"
        "pulumi.export('key', key)\n"
    )
    file = project(
        tmp_path,
        program,
        "config: {aws:region: us-east-2, shop:key: hunter2hunter2}\n",
        "config: {shop:key: {type: string, secret: true}}\n",
    )
    found = data(file)
    one, two = found["resources"]
    assert one["inputs"]["key"] == one["inputs"]["text"] == found["outputs"]["key"] == "[secret]"
    assert two["inputs"]["size"] == "[unknown]"
    for form in ((), ("--mermaid",), ("--dot",), ("--json",)):
        assert "hunter2" not in "".join(plan(file, *form)[1:])


def test_a_project_of_another_language_gets_the_standard_program(tmp_path: Path, data: Callable[..., dict[str, Any]]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text((STACKS / "Pulumi.dev.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: nodejs\n", encoding="utf-8")
    assert data(file)["program"].startswith("the standard program")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("no-such-file.yaml",),
        (str(STACKS),),
        (str(STACKS / "Pulumi.dev.yaml"), "--json", "--dot"),
        (str(STACKS / "Pulumi.dev.yaml"), "--odd"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["plan", *arguments])
    assert done.exit_code == 2
    assert len((done.stderr or done.stdout).strip().splitlines()) == 1 or "--json" in arguments


@pytest.mark.parametrize("form", ["--json", "--mermaid", "--dot", "--policies"])
def test_two_runs_say_the_same(form: str) -> None:
    command = [sys.executable, "-m", "dpd_infra", "plan", str(STACKS / "Pulumi.dev.yaml"), form]
    seeds = ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2"))
    first, second = (subprocess.run(command, capture_output=True, check=True, env=environment).stdout for environment in seeds)
    assert first == second


def test_it_leaves_the_folder_and_this_process_as_they_were(tmp_path: Path, data: Callable[..., dict[str, Any]]) -> None:
    file = project(tmp_path, "import helper\nhelper.make()\n")
    (tmp_path / "helper.py").write_text("import pulumi\n\n\ndef make():\n    pulumi.export('a', 1)\n", encoding="utf-8")
    before = Path.cwd(), list(sys.path), os.environ.copy(), {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts}
    assert data(file)["outputs"] == {"a": 1}
    after = Path.cwd(), list(sys.path), os.environ.copy(), {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts}
    assert after == before
    assert "helper" not in sys.modules
