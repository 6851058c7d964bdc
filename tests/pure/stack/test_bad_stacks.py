"""A bad stack file gives one report with every problem: where in the file, what, why and the fix; and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpd_infra.stack import StackRefused, StackSpec, load_file

GOOD = """\
config:
  aws:region: us-east-2
  dpd-infra:platform:
    name: inference-dev
    network: {zone: us-east-2a}
    controlPlane: {version: "1.33", publicAccessCidrs: [203.0.113.0/24]}
    instanceGroups:
      gpu: {instanceType: ml.p5.48xlarge, count: 2}
      system: {instanceType: ml.c5.4xlarge, count: 2}
    operator: {addonVersion: v1.4.0-eksbuild.1}
    modelBuckets: [my-models]
  dpd-infra:endpoints:
    llama-70b:
      model: {name: Llama-3.3-70B-Instruct, s3: {bucket: my-models, prefix: Llama-3.3-70B-Instruct}}
      instanceType: ml.p5.48xlarge
      prefill: {replicas: 1}
      decode: {replicas: 1}
      routing: {threshold: 4096, strategy: prefixaware}
"""

# What is changed, what it becomes, and the line and path that the report must name.
BAD = {
    "wrong type": ("ml.c5.4xlarge, count: 2}", 'ml.c5.4xlarge, count: "2"}', 9, "instanceGroups.system.count"),
    "unknown key": ("modelBuckets:", "modelBucket:", 11, "modelBucket"),
    "unsupported instance type": (
        "      instanceType: ml.p5.48xlarge\n      prefill",
        "      instanceType: ml.g6e.48xlarge\n      prefill",
        15,
        "instanceType",
    ),
    "group in another zone": ("ml.p5.48xlarge, count: 2}", "ml.p5.48xlarge, count: 2, zone: us-east-2b}", 8, "instanceGroups.gpu.zone"),
    "threshold below 0": ("threshold: 4096", "threshold: -1", 18, "routing.threshold"),
    "operator too old": ("v1.4.0-eksbuild.1", "v1.2.1-eksbuild.1", 10, "operator.addonVersion"),
    "names too long": ("    llama-70b:", f"    {'l' * 40}:", 13, "endpoints." + "l" * 40),
    "no way to the API": (", publicAccessCidrs: [203.0.113.0/24]", "", 6, "controlPlane"),
    "Kubernetes too old": ('version: "1.33"', 'version: "1.29"', 6, "controlPlane.version"),
    "misspelt strategy": ("strategy: prefixaware", "strategy: prefix-aware", 18, "routing.strategy"),
    "no region": ("  aws:region: us-east-2\n", "", 1, "config"),
}


def write(folder: Path, text: str) -> Path:
    path = folder / "Pulumi.dev.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_good_one_is_taken(tmp_path: Path) -> None:
    spec = StackSpec.from_file(write(tmp_path, GOOD))
    assert spec.aws.region == "us-east-2"
    assert list(spec.endpoints) == ["llama-70b"]


@pytest.mark.parametrize("case", BAD)
def test_one_problem_is_said_with_its_place(tmp_path: Path, case: str) -> None:
    old, new, line, path = BAD[case]
    assert GOOD.count(old) == 1
    with pytest.raises(StackRefused) as refused:
        StackSpec.from_file(write(tmp_path, GOOD.replace(old, new)))
    report = str(refused.value)
    assert f"Pulumi.dev.yaml:{line}:" in report
    assert path in report
    for part in ("what: ", "why:  ", "fix:  "):
        assert part in report


def test_all_problems_are_said_at_once(tmp_path: Path) -> None:
    text = GOOD
    for case, (old, new, _, _) in BAD.items():
        if case != "no region":
            text = text.replace(old, new, 1)
    with pytest.raises(StackRefused) as refused:
        StackSpec.from_file(write(tmp_path, text))
    report = str(refused.value)
    for case, (_, _, _, path) in BAD.items():
        if case not in ("no region", "names too long"):
            assert path in report, case
    assert "46" in report


def test_one_wrong_endpoint_does_not_hide_what_is_wrong_with_the_next(tmp_path: Path) -> None:
    text = GOOD + "    other: {model: {name: x}, instanceType: ml.p5.48xlarge}\n    third: nonsense\n"
    loaded = load_file(write(tmp_path, text))
    assert {"other", "third"} <= {finding.subject for finding in loaded.findings}
    assert set(loaded.subject.endpoints) >= {"llama-70b"}


def test_a_value_with_a_plain_meaning_is_read_as_it_was_meant(tmp_path: Path) -> None:
    # 1.29 without quotes is a number, and the version it means is too old: both are said.
    rules = {finding.rule for finding in load_file(write(tmp_path, GOOD.replace('"1.33"', "1.29"))).findings}
    assert {"DPD000", "DPD502"} <= rules


def test_a_verdict_that_rests_on_a_refused_value_is_withheld(tmp_path: Path) -> None:
    # Without a readable GPU zone there is nothing to say about a group's zone.
    text = GOOD.replace("zone: us-east-2a", "zone: [x]").replace("count: 2}\n      system", "count: 2, zone: us-east-2a}\n      system")
    assert "DPD521" not in {finding.rule for finding in load_file(write(tmp_path, text)).findings}


@pytest.mark.parametrize("said", ["{addonVersion: v1.4.0-eksbuild.1}", "{closedNetwork: true, addonVersion: v1.3.0-eksbuild.1}", "{}"])
def test_another_stacks_operator_beside_a_platform_is_refused_and_not_passed_over(tmp_path: Path, said: str) -> None:
    text = f"{GOOD}  dpd-infra:operator: {said}\n"
    (found,) = [finding for finding in load_file(write(tmp_path, text)).findings if finding.rule == "DPD540"]
    assert found.path == ("config", "dpd-infra:operator")
    assert found.line == len(text.splitlines())
    assert found.severity == "error"
    assert "move it to dpd-infra:platform.operator" in found.fix


@pytest.mark.parametrize("key", ["certificateArns", "hostedZoneIds", "dataCaptureBuckets", "dataCaptureKeyArns", "tlsBucket"])
def test_what_belongs_to_a_platforms_operator_is_sent_there(tmp_path: Path, key: str) -> None:
    alone = GOOD[: GOOD.index("  dpd-infra:platform")] + GOOD[GOOD.index("  dpd-infra:endpoints") :]
    text = f"{alone}  dpd-infra:operator: {{addonVersion: v1.4.0-eksbuild.1, {key}: [x]}}\n"
    (found,) = [finding for finding in load_file(write(tmp_path, text)).findings if finding.rule == "DPD000"]
    assert found.fix == f"write operator.{key} under dpd-infra:platform, in the stack file that makes the operator"


ARN = "arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012"


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        (f"certificateArns: [{ARN}]", "certificateArns"),
        (f"hostedZoneIds: [Z0123456789ABC], certificateArns: [{ARN}], tlsBucket: ours", "tlsBucket, certificateArns, hostedZoneIds"),
        ("configuration: {a: 1}", "configuration"),
    ],
)
def test_what_has_no_effect_on_an_adopted_operator_is_named_and_the_fix_mends_it(tmp_path: Path, said: str, keys: str) -> None:
    operator = f"operator: {{adopt: true, addonVersion: v1.4.0-eksbuild.1, {said}}}"
    text = GOOD.replace("operator: {addonVersion: v1.4.0-eksbuild.1}", operator)
    (found,) = [finding for finding in load_file(write(tmp_path, text)).findings if finding.rule == "DPD000"]
    assert f"{keys} would have no effect" in found.what
    assert f"remove {keys}: " in found.fix
    for mended in (text.replace(f", {said}", ""), text.replace("adopt: true, ", "")):
        assert [finding for finding in load_file(write(tmp_path, mended)).findings if finding.severity == "error"] == []


def test_an_encrypted_value_inside_a_section_is_refused_by_place_and_never_shown(tmp_path: Path) -> None:
    text = GOOD.replace("inference-dev", "{secure: AAABAQx0c2VjcmV0}")
    with pytest.raises(StackRefused) as refused:
        StackSpec.from_file(write(tmp_path, text))
    report = str(refused.value)
    assert "encrypted value" in report
    assert "pulumi config set --secret" in report


def test_project_defaults_are_filled_in_as_pulumi_does(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: own\nruntime: python\nconfig:\n  aws:region: {value: us-east-2}\n", encoding="utf-8")
    spec = StackSpec.from_file(write(tmp_path, GOOD.replace("  aws:region: us-east-2\n", "")))
    assert spec.aws.region == "us-east-2"


@pytest.mark.parametrize("command", ["dpd_infra"], ids=["python -m dpd_infra"])
def test_the_command_ends_with_1_and_prints_no_traceback(tmp_path: Path, command: str) -> None:
    path = write(tmp_path, GOOD.replace("threshold: 4096", "threshold: -1"))
    done = subprocess.run([sys.executable, "-m", command, "render", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "threshold" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
