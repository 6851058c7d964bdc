"""The policy pack as Pulumi runs it: its own process behind the Analyzer protocol, and the engine with `--policy-pack`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from dpd_infra.policy.recorded import violations
from dpd_infra.policy.registry import StackPolicy, all_policies
from dpd_infra.spec.finding import Severity
from dpd_infra.testing import UNKNOWN, Recording
from tests.conftest import ROOT
from tests.engine.harness import CliProject, cli_project
from tests.graph.policy_kit import EKS, ENDPOINT, HYPERPOD, STACKS, analyze_request, analyzer_resource, edited, recording
from tests.graph.test_policy import CASES_OF_OUR_OWN, Case, put

PACK = ROOT / "dpd_infra" / "policy" / "pack"

Told = set[tuple[str, str, str, str]]
"""Policy, level, resource and message."""


@pytest.fixture(scope="module")
def pack() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    """The pack in a process of its own, and a client of it."""
    process = subprocess.Popen([sys.executable, "-u", str(PACK)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield analyzer_pb2_grpc.AnalyzerStub(channel)
    finally:
        process.kill()
        process.communicate()


def told(pack: Any, recorded: Recording) -> tuple[Told, list[Any]]:
    """What the pack answers for every resource of a recording and for all together; and where it says that a policy does not apply."""
    answers = [(resource.urn, pack.Analyze(analyze_request(resource, recorded))) for resource in recorded.custom]
    stack = analyzer_pb2.AnalyzeStackRequest(resources=[analyzer_resource(resource, recorded) for resource in recorded.custom])
    answers.append(("", pack.AnalyzeStack(stack)))
    found = {
        (one.policyName, analyzer_pb2.EnforcementLevel.Name(one.enforcementLevel), one.urn or urn, one.message.partition("\n")[2])
        for urn, answer in answers
        for one in answer.diagnostics
    }
    return found, [one for _, answer in answers for one in answer.not_applicable]


def expected(recorded: Recording) -> Told:
    """The same by the policies' own functions."""
    return {(one.policy, "MANDATORY" if one.stops else "ADVISORY", one.urn, one.message) for one in violations(recorded)}


def test_the_pack_names_every_policy_and_how_strictly_it_is_meant(pack: Any) -> None:
    info = pack.GetAnalyzerInfo(empty_pb2.Empty())
    assert info.name == "dpd-infra"
    assert info.supportsConfig
    assert [policy.name for policy in info.policies] == [policy.id for policy in all_policies()]
    for told_of, policy in zip(info.policies, all_policies(), strict=True):
        level = analyzer_pb2.MANDATORY if policy.severity is Severity.ERROR else analyzer_pb2.ADVISORY
        kind = analyzer_pb2.POLICY_TYPE_STACK if isinstance(policy, StackPolicy) else analyzer_pb2.POLICY_TYPE_RESOURCE
        assert (told_of.enforcementLevel, told_of.policy_type, told_of.displayName) == (level, kind, policy.title)
        assert told_of.description.startswith(policy.title)
    assert yaml.safe_load((PACK / "PulumiPolicy.yaml").read_text(encoding="utf-8"))["runtime"] == "python"


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "update"])
@pytest.mark.parametrize("stack", STACKS)
def test_our_own_stacks_pass(pack: Any, stack: str, preview: bool) -> None:
    found, not_applicable = told(pack, recording(stack, preview=preview))
    assert found == expected(recording(stack, preview=preview))
    assert [one for one in found if one[1] == "MANDATORY"] == []
    assert preview or not_applicable == []


@pytest.mark.parametrize("case", CASES_OF_OUR_OWN, ids=lambda case: case.policy)
def test_a_changed_registration_is_reported_over_the_wire(pack: Any, case: Case) -> None:
    changed = edited(recording("dev"), case.trip)
    found, _ = told(pack, changed)
    assert found == expected(changed)
    assert case.policy in {policy for policy, *_ in found}


@pytest.mark.parametrize(
    ("rule", "edit"),
    [
        ("DPD001", put(ENDPOINT, "spec|instanceType", "ml.g5.48xlarge")),
        ("DPD701", put(ENDPOINT, "spec|pdSpec|routingThreshold", -1)),
        ("DPD702", put(ENDPOINT, "spec|prefilSpec", {})),
    ],
)
def test_a_rule_on_endpoints_is_reported_over_the_wire(pack: Any, rule: str, edit: Any) -> None:
    changed = edited(recording("dev"), edit)
    found, _ = told(pack, changed)
    assert found == expected(changed)
    assert rule in {policy for policy, *_ in found}


def test_what_a_preview_does_not_know_is_no_violation(pack: Any) -> None:
    found, not_applicable = told(pack, edited(recording("dev", preview=True), put(ENDPOINT, "spec", UNKNOWN)))
    assert found == set()
    assert {one.reason for one in not_applicable} >= {"spec is not known in this preview"}


def test_levels_and_configuration_are_the_users_to_set(pack: Any) -> None:
    open_to_all = edited(recording("dev"), put(EKS, "vpcConfig|publicAccessCidrs", ["0.0.0.0/0"]))
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["DPD712"].enforcementLevel = analyzer_pb2.DISABLED
    request.policyConfig["DPD716"].enforcementLevel = analyzer_pb2.MANDATORY
    request.policyConfig["DPD716"].properties.update({"keys": ["cost-centre"]})
    try:
        pack.Configure(request)
        found, _ = told(pack, open_to_all)
    finally:
        pack.Configure(analyzer_pb2.ConfigureAnalyzerRequest())
    assert "DPD712" not in {policy for policy, *_ in found}
    assert {(level, message) for policy, level, _, message in found if policy == "DPD716"} == {
        ("MANDATORY", "the tag cost-centre is missing. Fix: add it here or to the provider's defaultTags.")
    }


@pytest.fixture
def dev_stack(tmp_path: Path) -> Iterator[CliProject]:
    """The dev stack for the plain `pulumi` commands; its dependencies chart, which comes from the network, is said to be there."""
    with cli_project(ROOT, tmp_path) as project:
        _edit_platform(project, dependencies={"preinstalled": True})
        assert project.pulumi("stack", "init", "dev").status == 0
        yield project


def _edit_platform(project: CliProject, **sections: Any) -> None:
    path = project.folder / "stacks" / "Pulumi.dev.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings["config"]["dpd-infra:platform"].update(sections)
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def test_the_engine_holds_the_pack_against_a_preview_and_shows_what_is_advisory(dev_stack: CliProject) -> None:
    done = dev_stack.pulumi("preview", "--stack", "dev", "--policy-pack", str(PACK))
    assert done.status == 0, done.output
    assert re.search(r"\[advisory\].*DPD404", done.output), done.output
    assert "[mandatory]" not in done.output


def test_the_engine_makes_nothing_that_a_mandatory_policy_objects_to(dev_stack: CliProject) -> None:
    _edit_platform(dev_stack, controlPlane={"publicAccessCidrs": ["0.0.0.0/1", "128.0.0.0/1"]})
    done = dev_stack.pulumi("up", "--stack", "dev", "--yes", "--skip-preview", "--policy-pack", str(PACK))
    assert done.status != 0, done.output
    assert re.search(r"\[mandatory\].*DPD712.*inference-control-plane-cluster", done.output), done.output
    made = {resource["type"] for resource in dev_stack.json("stack", "export", "--stack", "dev")["deployment"]["resources"]}
    assert "aws:ec2/vpc:Vpc" in made
    assert made.isdisjoint({EKS, HYPERPOD, ENDPOINT})
