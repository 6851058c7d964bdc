"""The policy pack on recorded programs: our own stacks pass, and each policy trips on what it is for and not on what comes near."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy, StackValidationPolicy

from dpd_infra.policy.account_policies import TAGGABLE
from dpd_infra.policy.endpoint_rules import BEYOND_THE_MANIFEST
from dpd_infra.policy.policies import policies
from dpd_infra.policy.recorded import violations
from dpd_infra.policy.registry import StackPolicy, all_policies, own_policies
from dpd_infra.rules.registry import all_rules
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.finding import Severity
from dpd_infra.stack import _load
from dpd_infra.testing import UNKNOWN, Recorded, Recording
from tests.conftest import ROOT
from tests.graph.policy_kit import EKS, ENDPOINT, HYPERPOD, STACKS, analyze, edited, recording
from tests.pure.rules.kit import Raw
from tests.pure.rules.kit import Stack as StackCase
from tests.pure.rules.test_every_rule import CASES

Edit = Callable[[Recorded], Recorded | None]


@dataclass(frozen=True)
class Case:
    """One policy: a change of the dev stack that trips it, and one that nearly does."""

    policy: str
    trip: Edit
    near: Edit


def of(type_: str, change: Callable[[Recorded], Recorded | None]) -> Edit:
    """Change the resources of a type, and leave the others."""
    return lambda resource: change(resource) if resource.type == type_ else resource


def put(type_: str, path: str, value: Any) -> Edit:
    """Set an input of the resources of a type; None takes it away."""

    def change(resource: Recorded) -> Recorded:
        *way, last = path.split("|")
        place: Any = resource.inputs
        for step in way:
            place = place.setdefault(step, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
        return resource

    return of(type_, change)


def annotated(name: str, value: str | None) -> Edit:
    return put(ENDPOINT, f"metadata|annotations|{name}", value)


def trusted(principal: Any, condition: dict[str, Any] | None = None) -> Edit:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal, **({"Condition": condition} if condition else {})}
    return put("aws:iam/role:Role", "assumeRolePolicy", json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


ISSUER = "oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
PODS = {"Federated": f"arn:aws:iam::111122223333:oidc-provider/{ISSUER}"}


def subject(operator: str, *subjects: str) -> dict[str, Any]:
    return {operator: {f"{ISSUER}:sub": list(subjects)}}


def gone(name: str) -> Edit:
    return lambda resource: None if resource.name.endswith(name) else resource


ROLES = ("aws:iam/role:Role", "aws-native:iam:Role")
GROUP_TYPES = (
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
TO_ITSELF = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
CASES_OF_OUR_OWN = (
    Case(
        "DPD711",
        of(HYPERPOD, lambda r: replace(r, protect=None)),
        of(HYPERPOD, lambda r: replace(r, inputs={**r.inputs, "nodeRecovery": "None"})),
    ),
    Case("DPD712", put(EKS, "vpcConfig|publicAccessCidrs", ["0.0.0.0/0"]), put(EKS, "vpcConfig|publicAccessCidrs", ["0.0.0.0/1"])),
    Case(
        "DPD713",
        put(EKS, "encryptionConfig", None),
        put(EKS, "encryptionConfig", [{"resources": ["secrets"], "provider": {"keyArn": "k"}}]),
    ),
    Case("DPD714", annotated("pulumi.com/waitFor", None), annotated("pulumi.com/waitFor", "condition=Ready")),
    Case("DPD715", annotated("pulumi.com/skipAwait", "true"), annotated("pulumi.com/skipAwait", "false")),
    Case("DPD716", put("aws:ec2/vpc:Vpc", "tags", {"Name": "mine"}), put("aws:ec2/vpc:Vpc", "tags", {"owner": "me"})),
    Case("DPD717", gone("efa-to-itself"), gone("nodes-to-anywhere")),
    Case(
        "DPD718",
        trusted(PODS, subject("StringLike", "system:serviceaccount:kube-system:*")),
        trusted(PODS, subject("StringEquals", "system:serviceaccount:kube-system:s3-csi-driver-sa")),
    ),
)


def tripped(recorded: Recording, **config: Any) -> set[str]:
    """The policies that object, by both ways of asking; they must agree."""
    told = {(one.policy, one.urn, one.message) for one in analyze(recorded, config)}
    assert told == {(one.policy, one.urn, one.message) for one in violations(recorded, config)}
    return {policy for policy, _, _ in told}


@pytest.mark.parametrize("stack", STACKS)
def test_no_mandatory_policy_objects_to_our_own_stacks(stack: str, preview: bool) -> None:
    assert [one for one in analyze(recording(stack, preview=preview)) if one.level == "mandatory"] == []
    assert [one for one in violations(recording(stack, preview=preview)) if one.stops] == []


@pytest.mark.parametrize("stack", STACKS)
def test_no_policy_of_our_own_objects_to_our_own_stacks(stack: str, preview: bool) -> None:
    assert tripped(recording(stack, preview=preview)) & {policy.id for policy in own_policies()} == set()


def test_every_policy_of_our_own_has_one_case() -> None:
    assert [case.policy for case in CASES_OF_OUR_OWN] == [policy.id for policy in own_policies()]


@pytest.mark.parametrize("case", CASES_OF_OUR_OWN, ids=lambda case: case.policy)
def test_a_change_trips_its_policy_and_no_other(case: Case) -> None:
    before = tripped(recording("dev"))
    assert tripped(edited(recording("dev"), case.trip)) - before == {case.policy}


@pytest.mark.parametrize("case", CASES_OF_OUR_OWN, ids=lambda case: case.policy)
def test_a_near_miss_trips_nothing(case: Case) -> None:
    assert tripped(edited(recording("dev"), case.near)) == tripped(recording("dev"))


@pytest.mark.parametrize(
    ("policy", "edit"),
    [
        ("DPD712", put(EKS, "vpcConfig|publicAccessCidrs", None)),
        ("DPD712", put(EKS, "vpcConfig|publicAccessCidrs", ["0.0.0.0/1", "128.0.0.0/1"])),
        ("DPD712", put(EKS, "vpcConfig|publicAccessCidrs", ["203.0.113.0/24", "::/0"])),
        ("DPD713", put(EKS, "encryptionConfig", [{"resources": []}])),
        ("DPD714", of(ENDPOINT, lambda r: replace(r, timeouts={"create": "70m"}))),
        ("DPD714", of(ENDPOINT, lambda r: replace(r, timeouts={}))),
        ("DPD716", put("aws:eks/addon:Addon", "tags", None)),
        ("DPD716", put(HYPERPOD, "tags", [{"key": "Name", "value": "x"}])),
        ("DPD717", gone("efa-from-itself")),
        ("DPD717", put(TO_ITSELF, "ipProtocol", "tcp")),
        ("DPD718", trusted("*")),
        ("DPD718", trusted({"AWS": ["arn:aws:iam::111122223333:root", "*"]})),
        ("DPD718", trusted(PODS)),
        ("DPD718", trusted(PODS, {"StringEquals": {f"{ISSUER}:aud": "sts.amazonaws.com"}})),
        ("DPD718", trusted(PODS, subject("StringLike", "system:serviceaccount:*:hyperpod-inference-service-account*"))),
        ("DPD718", trusted(PODS, subject("ForAnyValue:StringLike", "system:serviceaccount:a:one", "system:serviceaccount:a:o?e"))),
    ],
)
def test_other_ways_to_the_same_trip_it_too(policy: str, edit: Edit) -> None:
    assert policy in tripped(edited(recording("dev"), edit))


@pytest.mark.parametrize(
    ("policy", "edit"),
    [
        ("DPD712", put(EKS, "vpcConfig|endpointPublicAccess", False)),
        ("DPD714", lambda r: annotated("pulumi.com/timeoutSeconds", "4200")(replace(r, timeouts={}) if r.type == ENDPOINT else r)),
        ("DPD716", put("aws:ec2/vpc:Vpc", "tagsAll", {"team": "inference"})),
        ("DPD717", of(HYPERPOD, lambda r: replace(r, property_dependencies={}))),
        ("DPD717", put(HYPERPOD, "instanceGroups", [{"instanceType": "ml.c5.4xlarge"}])),
        ("DPD718", trusted({"AWS": "*"}, {"StringEquals": {"aws:PrincipalOrgID": "o-1"}})),
        ("DPD718", trusted({"Service": "eks.amazonaws.com"})),
        ("DPD718", trusted(PODS, subject("StringLike", "system:serviceaccount:models:hyperpod-inference-service-account*"))),
        ("DPD718", trusted({"Federated": "arn:aws:iam::1:oidc-provider/token.actions.githubusercontent.com"})),
    ],
)
def test_what_is_meant_so_is_let_through(policy: str, edit: Edit) -> None:
    assert policy not in tripped(edited(recording("dev"), edit))


def test_the_rule_to_itself_may_be_written_in_the_older_ways() -> None:
    group = recording("dev").named("inference-network-efa")

    def in_the_group(resource: Recorded) -> Recorded | None:
        if resource.name == group.name:
            rule = {"self": True, "protocol": "-1", "fromPort": 0, "toPort": 0}
            return replace(resource, inputs={**resource.inputs, "ingress": [rule], "egress": [rule]})
        return gone("itself")(resource)

    def classic(resource: Recorded) -> Recorded | None:
        if resource.name.endswith("itself"):
            inputs = {"type": "egress" if "to-itself" in resource.name else "ingress", "protocol": "all", "self": True}
            return replace(resource, type="aws:ec2/securityGroupRule:SecurityGroupRule", inputs=inputs)
        return resource

    assert "DPD717" not in tripped(edited(recording("dev"), in_the_group))
    assert "DPD717" not in tripped(edited(recording("dev"), classic))


def test_tag_keys_can_be_asked_for() -> None:
    assert "DPD716" not in tripped(recording("prod"), DPD716={"keys": ["team", "environment"]})
    found = [one for one in violations(recording("prod"), {"DPD716": {"keys": ["team", "costs"]}}) if one.policy == "DPD716"]
    assert {one.urn for one in found} == {resource.urn for resource in recording("prod").custom if resource.type in TAGGABLE}
    assert all("costs" in one.message and "team" not in one.message for one in found)


def test_the_providers_default_tags_count() -> None:
    without = edited(recording("dev"), put("aws:ec2/vpc:Vpc", "tags", None))
    assert "DPD716" in tripped(without)
    tags = json.dumps({"tags": {"team": "inference"}})
    assert "DPD716" not in tripped(edited(without, put("pulumi:providers:aws", "defaultTags", tags)))


def test_what_takes_tags_is_the_providers_word() -> None:
    made = {resource.type for stack in STACKS for resource in recording(stack).custom if resource.type.startswith("aws:")}

    def takes_tags(type_: str) -> bool:
        _, module, name = type_.split(":")
        cls = getattr(importlib.import_module(f"pulumi_aws.{module.split('/')[0]}"), name)
        return "tags" in inspect.signature(cls._internal_init).parameters

    assert {type_ for type_ in made if takes_tags(type_)} - TAGGABLE == {"aws:s3/bucketObjectv2:BucketObjectv2"}
    assert [type_ for type_ in TAGGABLE if type_.startswith("aws:") and not takes_tags(type_)] == []


def registered(document: dict[str, Any], operator: str | None) -> Recording:
    """The dev stack with a manifest in the place of its endpoint, and another operator."""

    def change(resource: Recorded) -> Recorded | None:
        if resource.type == ENDPOINT:
            annotations = {"pulumi.com/waitFor": "jsonpath={.status.state}=DeploymentComplete"}
            metadata = document.get("metadata")
            if isinstance(metadata, dict):
                metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
            return replace(resource, inputs={**document, "metadata": metadata})
        if resource.inputs.get("addonName") == "amazon-sagemaker-hyperpod-inference":
            return replace(resource, inputs={**resource.inputs, "addonVersion": operator})
        return resource

    return edited(recording("dev"), change)


def manifests_of(case: Raw | StackCase) -> list[tuple[dict[str, Any], str | None]]:
    """The endpoints of a rule's case as they would be registered, with the operator's add-on version."""
    if isinstance(case, Raw):
        return [(case.data, case.operator)]
    subjects = _load(case.data, None).subject.endpoints.values()
    return [(dict(subject.rendered.document), subject.operator.addon_version if subject.operator else None) for subject in subjects]


ENDPOINT_CASES = [case for case in CASES if any(rule.id == case.rule and rule.scope is EndpointSubject for rule in all_rules())]


@pytest.mark.parametrize("case", ENDPOINT_CASES, ids=lambda case: case.rule)
def test_every_rule_on_an_endpoint_trips_on_a_registration_if_a_manifest_is_all_it_reads(case: Any) -> None:
    trips = {one.policy for manifest in manifests_of(case.trip) for one in violations(registered(*manifest))}
    assert (case.rule in trips) == (case.rule not in BEYOND_THE_MANIFEST)
    if isinstance(case.near, Raw):
        # The other near misses are ones because of what their stack file says.
        assert case.rule not in {one.policy for one in violations(registered(case.near.data, case.near.operator))}


def test_an_endpoint_that_a_preview_does_not_know_is_judged_in_the_update() -> None:
    unknown = edited(recording("dev"), put(ENDPOINT, "spec", UNKNOWN))
    assert {one.policy for one in analyze(unknown)} == set()
    in_part = edited(recording("dev"), put(ENDPOINT, "spec|worker|image", UNKNOWN))
    assert {one.policy for one in analyze(in_part)} == set()
    # How it is registered is known all the same.
    skipped = edited(unknown, annotated("pulumi.com/skipAwait", "true"))
    assert {one.policy for one in analyze(skipped)} == {"DPD715"}


@pytest.mark.parametrize("type_", [EKS, "aws:iam/role:Role", HYPERPOD, TO_ITSELF])
def test_unknown_inputs_trip_nothing(type_: str) -> None:
    def change(resource: Recorded) -> Recorded:
        return replace(resource, inputs=dict.fromkeys(resource.inputs, UNKNOWN))

    found = {one.policy for one in analyze(edited(recording("dev", preview=True), of(type_, change)))}
    # A rule whose protocol is not known allows nothing yet, but no other policy may guess.
    assert found - {"DPD717"} == tripped(recording("dev", preview=True))


def test_the_severity_of_a_rule_is_how_strictly_its_policy_is_meant() -> None:
    rules = {policy.id: policy for policy in all_policies()}
    made = policies()
    assert [policy.name for policy in made] == sorted(rules)
    for policy in made:
        expected = EnforcementLevel.MANDATORY if rules[policy.name].severity is Severity.ERROR else EnforcementLevel.ADVISORY
        assert policy.enforcement_level is expected
        assert policy.display_name == rules[policy.name].title
        assert isinstance(policy, StackValidationPolicy if isinstance(rules[policy.name], StackPolicy) else ResourceValidationPolicy)


def test_a_recording_is_judged_without_the_extra() -> None:
    code = "import dpd_infra.policy.recorded as r, sys; r.all_policies(); print('pulumi_policy' in sys.modules, 'pulumi' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_module_prints_the_folder_of_the_pack() -> None:
    done = subprocess.run([sys.executable, "-m", "dpd_infra.policy"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(ROOT / "dpd_infra" / "policy" / "pack")


def test_the_page_of_the_policies_is_what_the_register_makes() -> None:
    done = subprocess.run([sys.executable, "tools/make_policy_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    assert all(f"### {policy.id}: {policy.title}" in text and policy.why in text for policy in own_policies())


KEYS = (
    *("vpcConfig", "resourcesVpcConfig", "publicAccessCidrs", "endpointPublicAccess", "encryptionConfig", "resources", "self", "protocol"),
    *("assumeRolePolicy", "assumeRolePolicyDocument", "Statement", "Effect", "Principal", "Condition", "StringLike", "AWS", "Federated"),
    *("tags", "tagsAll", "key", "metadata", "annotations", "spec", "apiVersion", "kind", "instanceGroups", "instanceType", "x:sub"),
    *("ingress", "egress", "ipProtocol", "securityGroupId", "type", "addonName", "addonVersion", "pulumi.com/skipAwait"),
)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["*", "-1", "0.0.0.0/0", "10.0.0.0/99", "{", "[]", "true"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                sorted({EKS, ENDPOINT, HYPERPOD, *ROLES, *GROUP_TYPES, "aws:ec2/vpc:Vpc", "aws:eks/addon:Addon", "aws-native:eks:Cluster"})
            ),
            st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=6),
        ),
        max_size=4,
    )
)
def test_whatever_a_program_registers_no_policy_ends_in_an_exception(resources: list[tuple[str, dict[str, Any]]]) -> None:
    recorded = Recording(preview=False)
    for number, (type_, inputs) in enumerate(resources):
        example = recording("dev").one("aws:ec2/vpc:Vpc")
        urn = f"urn:pulumi:dev::test::{type_}::{number}"
        origins = {"vpcConfig": tuple(other.urn for other in recorded), "securityGroupId": tuple(other.urn for other in recorded)}
        recorded.add(replace(example, type=type_, name=str(number), urn=urn, inputs=inputs, property_dependencies=origins))
    violations(recorded)
