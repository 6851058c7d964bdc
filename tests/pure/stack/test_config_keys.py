"""A key of a stack file that nothing reads is said: misspelt, in another namespace, or in a file with nothing of ours at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpd_infra.spec.config_keys import SECTIONS, is_ours, key_findings
from dpd_infra.spec.finding import pointer
from dpd_infra.stack import load_file, platform_missing
from tests.pure.stack.test_bad_stacks import GOOD, write

PLATFORM: dict[str, Any] = {"name": "x", "instanceGroups": {"gpu": {"instanceType": "ml.p5.48xlarge", "count": 2}}}
ENDPOINTS: dict[str, Any] = {"llama": {"model": {"name": "m"}, "prefill": {"replicas": 1}}}
TOKEN = {"llama": {"model": {"huggingFace": {"modelId": "a/b", "token": {"configKey": "dpd-infra:huggingFaceToken"}}}}}


def said(config: dict[str, Any]) -> list[tuple[str, str]]:
    return [(str(found.path[-1]), found.fix) for found in key_findings(config)]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("at", [0, 1, -1])
@pytest.mark.parametrize("value", [{"name": "x"}, [1], "x"])
def test_a_section_with_a_letter_left_out_is_asked_about(section: str, at: int, value: Any) -> None:
    wrong = section[:-1] if at == -1 else section[:at] + section[at + 1 :]
    assert said({f"dpd-infra:{wrong}": value}) == [(f"dpd-infra:{wrong}", f"did you mean dpd-infra:{section}?")]


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"dpd-infra:platform": PLATFORM, "dpd-infra:alarms": {"email": "x"}}, ["dpd-infra:alarms"]),
        ({"dpd-infra:platform": PLATFORM, "dpd-infra:alarms": ["x"]}, ["dpd-infra:alarms"]),
        ({"mine:platform": PLATFORM}, ["mine:platform"]),
        ({"dpd_infra:endpoints": ENDPOINTS}, ["dpd_infra:endpoints"]),
        ({"platform": PLATFORM, "endpoints": ENDPOINTS}, ["platform", "endpoints"]),
        ({"dpd-infra:endpoints": TOKEN, "dpd-infra:huggingFaceTokn": "x"}, ["dpd-infra:huggingFaceTokn"]),
        # What a program may read itself, and what is another library's.
        ({"dpd-infra:platform": PLATFORM, "dpd-infra:alarmEmail": "x", "dpd-infra:days": 3}, []),
        ({"dpd-infra:endpoints": TOKEN, "dpd-infra:huggingFaceToken": "x", "dpd-infra:huggingFaceToken2": "x"}, []),
        ({"shop:platform": {"size": 3}, "shop:endpoints": {"api": {"url": "x"}}, "shop:operator": {"name": "x"}}, []),
        ({"dpd-infra:platform": PLATFORM, "shop:platform": PLATFORM}, []),
    ],
)
def test_which_keys_are_said(config: dict[str, Any], keys: list[str]) -> None:
    assert [key for key, _ in said(config)] == keys


@given(
    st.dictionaries(
        st.text(max_size=20), st.recursive(st.none() | st.text(max_size=5), lambda part: st.lists(part) | st.dictionaries(st.text(), part))
    )
)
@example({"dpd-infra": []})
@example({"dpd-infra:": []})
@example({"platform": {"instanceGroups": {}}})
def test_any_configuration_can_be_asked_about(config: dict[str, Any]) -> None:
    assert bool(key_findings(config)) <= is_ours(config)


@pytest.mark.parametrize(("key", "namespace"), [("platform", "mine"), ("platform", "dpd_infra"), ("endpoints", "my-project")])
def test_a_stack_with_a_section_in_another_namespace_is_refused(tmp_path: Path, key: str, namespace: str) -> None:
    loaded = load_file(write(tmp_path, GOOD.replace(f"dpd-infra:{key}", f"{namespace}:{key}")))
    assert loaded.spec is None
    assert f"write dpd-infra:{key}" in [found.fix for found in loaded.findings]


@pytest.mark.parametrize("named", [True, False], ids=["named", "in a folder"])
def test_a_stack_file_with_nothing_of_ours_is_not_called_good(tmp_path: Path, named: bool) -> None:
    path = write(tmp_path, "config:\n  shop:size: 3\n  shop:platform: {a: 1}\n")
    done = subprocess.run(
        [sys.executable, "-m", "dpd_infra", "check", str(path if named else tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "nothing of dpd-infra in it" in done.stdout
    assert "no findings" not in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("instanceGroups:", "instanceGroup:", ["did you mean 'instanceGroups'?"]),
        ("network:", "netwrk:", ["did you mean 'network'?"]),
        ("controlPlane:", "controlplane:", ["did you mean 'controlPlane'?"]),
        ("name: inference-dev", "nme: inference-dev", ["did you mean 'name'?"]),
        ("{zone: us-east-2a}", "{zon: us-east-2a}", ["did you mean 'zone'?"]),
        ("model: {name", "model: {nam", ["did you mean 'name'?"]),
        ("instanceType: ml.c5.4xlarge, count: 2}", "instanceTyp: ml.c5.4xlarge, count: 2}", ["did you mean 'instanceType'?"]),
        ('"1.33"', "1.3", ['put it in quotes as it is meant, "1.30" or "1.3": without them YAML reads a number, and 1.30 is 1.3']),
        ("  aws:region: us-east-2\n", "", ["add config.aws:region, for example aws:region: us-east-2"]),
        ("aws:region: us-east-2", "aws:region: us-east-2a", ["that is a zone: write us-east-2"]),
        ("zone: us-east-2a", "zone: us-east2a", ["write a value of that form, for example us-east-2a"]),
        ("203.0.113.0/24", "203.0.113.5/24", ["write a block's first address and its length, for example 203.0.113.0/24"]),
        ("v1.4.0-eksbuild.1", "1.4.0", ["write a value of that form, for example v1.4.0-eksbuild.1"]),
        ("name: inference-dev", "name: My_Platform", ["write a value of that form, for example inference-prod"]),
        (
            "network: {zone: us-east-2a}",
            "network: {zone: us-east-2a, cidr: 10.0.0.0/8}",
            ["write a block of that size, or give the GPU subnet a block of its own with gpuCidr, for example cidr: 10.0.0.0/16"],
        ),
        (
            ", s3: {bucket: my-models, prefix: Llama-3.3-70B-Instruct}",
            "",
            ["add one of s3, fsx, huggingFace, kubernetesVolume, for example s3: {bucket: my-models, prefix: Llama-3.3-70B-Instruct}"],
        ),
    ],
)
def test_one_mistake_has_one_error_that_says_what_to_write(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    assert GOOD.count(old) == 1
    findings = load_file(write(tmp_path, GOOD.replace(old, new))).findings
    assert [found.fix for found in findings if found.severity == "error"] == said
    if old.strip().startswith("aws:region"):
        assert [pointer(found.path) for found in findings if found.severity == "error"] == ["config.aws:region"]


def test_the_patch_of_a_zone_for_a_region_is_at_the_key_of_the_file(tmp_path: Path) -> None:
    loaded = load_file(write(tmp_path, GOOD.replace("aws:region: us-east-2", "aws:region: us-east-2a")))
    assert [(found.patch.path, found.patch.value) for found in loaded.findings if found.patch and found.rule == "DPD000"] == [
        (("config", "aws:region"), "us-east-2")
    ]


def test_a_program_that_makes_a_platform_of_none_is_told_the_key() -> None:
    assert "dpd-infra:platform" in str(platform_missing())


PROJECT = """\
name: shop
runtime: python
config:
  needed: {type: string, description: a text}
  listed: {type: array, items: {type: string}}
  key: {type: string, secret: true}
  described: {description: any text}
  counted: {type: integer, default: 3}
  plain: text
  dpd-infra:platform: {description: ours}
"""
NAMES_A_TOKEN = """\
config:
  aws:region: us-east-2
  dpd-infra:operator: {addonVersion: v1.4.0-eksbuild.1}
  dpd-infra:endpoints:
    llama:
      model: {name: m, huggingFace: {modelId: a/b, token: {configKey: "shop:token"}}}
      instanceType: ml.p5.48xlarge
"""


def absent(folder: Path, more: str, project: str = PROJECT) -> dict[str, str]:
    """The fix of every warning about a value that is not there, by key."""
    (folder / "Pulumi.yaml").write_text(project, encoding="utf-8")
    file = write(folder, NAMES_A_TOKEN + more)
    found = [finding for finding in load_file(file).findings if "no value for" in finding.what]
    assert {finding.severity.value for finding in found} <= {"warning"}
    return {finding.what.rsplit(" ", 1)[-1]: finding.fix for finding in found}


def test_a_value_that_a_deployment_needs_and_the_file_lacks_is_said(tmp_path: Path) -> None:
    # The first four are what Pulumi 3.272 names of this project: "Stack 'dev' is missing configuration values 'described', ...".
    assert absent(tmp_path, "") == {
        "shop:needed": "pulumi config set shop:needed VALUE",
        "shop:listed": "pulumi config set shop:listed VALUE",
        "shop:key": "pulumi config set --secret shop:key",
        "shop:described": "pulumi config set shop:described VALUE",
        "shop:token": "pulumi config set --secret shop:token",
    }


@pytest.mark.parametrize("value", ["hf_x", "{secure: AAABAA==}"])
def test_a_value_that_is_there_is_not_missed_whatever_it_is(tmp_path: Path, value: str) -> None:
    more = f"  shop:token: {value}\n  shop:key: {value}\n  shop:needed: ''\n  shop:listed: []\n"
    assert set(absent(tmp_path, more)) == {"shop:described"}


def test_an_environment_of_esc_may_hold_what_the_file_lacks(tmp_path: Path) -> None:
    assert absent(tmp_path, "environment: [prod]\n") == {}


def test_a_misspelt_key_has_one_finding(tmp_path: Path) -> None:
    names = NAMES_A_TOKEN.replace("shop:token", "dpd-infra:huggingFaceToken")
    file = write(tmp_path, names + "  dpd-infra:huggingFaceTokn: {secure: AAABAA==}\n")
    assert [finding.fix for finding in load_file(file).findings if "huggingFaceTok" in finding.what] == [
        "did you mean dpd-infra:huggingFaceToken?"
    ]


def test_an_absent_token_is_shown_where_it_is_named(tmp_path: Path) -> None:
    (finding,) = [finding for finding in load_file(write(tmp_path, NAMES_A_TOKEN)).findings if "no value for" in finding.what]
    assert pointer(finding.path).endswith(".token.configKey")
    assert finding.line == NAMES_A_TOKEN[: NAMES_A_TOKEN.index("configKey")].count("\n") + 1
