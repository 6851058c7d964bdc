"""The test kit sees an order that a program leaves open, whoever wrote the program, and sees none where there is an order."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any

import pulumi
import pytest

from dpd_infra.testing import Recorded, Recording, assert_order, assert_platform_order, platform_exports, run_program, run_project
from tests.conftest import ROOT
from tests.engine.raw_platform import REGION, RawPlatform
from tests.graph.test_ordering import CONTRACTS, find, recorded

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/Pulumi.yaml"))
BY_INPUT = {
    # Where no dependency can be forgotten: the one cannot be written without the other's id or name.
    "network-vpc",
    "network-gpu",
    "network-public-default",
    "control-plane-cluster",
    "cluster-execution",
    "operator-tls",
}
SOFT = {
    # The order of AWS's modules, which saves time and without which everything still comes up.
    ("addons-coredns", "addons-cert-manager"),
    ("addons-coredns", "addons-aws-mountpoint-s3-csi-driver"),
    ("addons-cert-manager", "addons-aws-mountpoint-s3-csi-driver"),
    ("addons-cert-manager", "addons-aws-fsx-csi-driver"),
    ("addons-cert-manager", "addons-metrics-server"),
}
THROUGH_OTHERS = {
    # Held between neighbours: the first is before something else that is before the last.
    ("network-s3", "operator-addon"),
    ("control-plane-vpc-cni", "dependencies-release"),
    ("control-plane-eks-pod-identity-agent", "addons-cert-manager"),
    ("control-plane-oidc", "addons-s3-csi"),
    ("control-plane-oidc", "operator-execution"),
}
HELD = [
    (first, then)
    for first, then, _ in CONTRACTS
    if first not in BY_INPUT and (first, then) not in SOFT and (first, then) not in THROUGH_OTHERS
]


def without(recording: Recording, urn: str) -> Recording:
    """The same recording of a program in which nothing waits for one resource."""

    def kept(urns: Any) -> tuple[str, ...]:
        return tuple(each for each in urns if each != urn)

    cut = Recording(recording.preview)
    for each in recording:
        inputs = {key: kept(urns) for key, urns in each.property_dependencies.items()}
        cut.add(dataclasses.replace(each, dependencies=kept(each.dependencies), property_dependencies=inputs))
    return cut


@cache
def by_hand(**switches: Any) -> Recording:
    return run_program(RawPlatform(**switches), config={"aws:region": REGION})


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_the_shipped_stacks_leave_nothing_open(stack: str, preview: bool) -> None:
    assert_platform_order(run_project(stack, ROOT, preview=preview))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_no_example_leaves_anything_open(example: Any, preview: bool) -> None:
    recording = run_project("dev", example, preview=preview, stacks=platform_exports)
    assert len(recording)
    assert_platform_order(recording)


@pytest.mark.parametrize(("first", "then"), HELD, ids=[f"{first} before {then}" for first, then in HELD])
def test_an_edge_that_is_left_out_is_named(first: str, then: str, preview: bool) -> None:
    recording = recorded(preview=preview)
    cut = without(recording, find(recording, first).urn)
    with pytest.raises(AssertionError) as failure:
        assert_platform_order(cut)
    said = f"{find(cut, then).kind} {find(cut, then).name} may be made before {find(cut, first).kind} {find(cut, first).name}\n"
    assert said in str(failure.value)


def test_a_kubernetes_object_that_does_not_wait_for_access_is_named(preview: bool) -> None:
    recording = recorded(preview=preview)
    (right,) = recording.of_type("AccessPolicyAssociation")
    with pytest.raises(AssertionError, match=f"may be made before AccessPolicyAssociation {right.name}"):
        assert_platform_order(without(recording, right.urn))


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        # Each program comes up where the simulated account is quick enough; the graph says that it need not.
        (
            {"endpoint_after_operator": False},
            "InferenceEndpointConfig endpoint may be made before Addon amazon-sagemaker-hyperpod-inference",
        ),
        ({"addons_after_nodes": False}, "Addon coredns may be made before Cluster hyperpod"),
    ],
)
def test_a_program_by_hand_that_leaves_an_order_open_is_seen(switches: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_platform_order(by_hand(**switches))
    assert said in str(failure.value)
    with pytest.raises(AssertionError) as rest:
        assert_platform_order(by_hand())
    assert said not in str(rest.value)


def test_what_may_come_whenever_it_does_can_be_said() -> None:
    with pytest.raises(AssertionError, match="OpenIdConnectProvider oidc"):
        assert_platform_order(by_hand())
    assert_platform_order(by_hand(), allow=["oidc"])


def test_two_platforms_of_one_program_do_not_wait_for_each_other() -> None:
    recording = recorded(preview=False)
    both = Recording(preview=False)
    for each in (*recording, *map(of_a_second_platform, recording)):
        both.add(each)
    assert_platform_order(both)


def of_a_second_platform(resource: Recorded) -> Recorded:
    """The same resource of another platform: every URN another one, and every name."""

    def other(urn: str) -> str:
        return f"{urn}-2" if urn else urn

    return dataclasses.replace(
        resource,
        name=f"{resource.name}-2",
        urn=other(resource.urn),
        inputs=json.loads(json.dumps(resource.inputs).replace("inference-dev", "inference-two")),
        parent=other(resource.parent),
        provider=other(resource.provider),
        dependencies=tuple(map(other, resource.dependencies)),
        property_dependencies={key: tuple(map(other, urns)) for key, urns in resource.property_dependencies.items()},
    )


def chain() -> None:
    first = pulumi.CustomResource("test:index:First", "first", {})
    box = pulumi.ComponentResource("test:index:Box", "box", {}, pulumi.ResourceOptions(depends_on=[first]))
    middle = pulumi.CustomResource("test:index:Middle", "middle", {}, pulumi.ResourceOptions(parent=box))
    pulumi.CustomResource("test:index:Last", "last", {"of": middle.id})
    pulumi.CustomResource("test:index:Alone", "alone", {})


@pytest.mark.parametrize("steps", [("first", "last"), ("First", "middle", "Last"), ("first", "box", "last"), ("test:index:First", "box")])
def test_steps_in_order_pass(steps: tuple[str, ...], preview: bool) -> None:
    assert_order(run_program(chain, preview=preview), *steps)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (("last", "first"), "<test:index:First first> may be made before <test:index:Last last>"),
        (("first", "alone"), "<test:index:Alone alone> may be made before <test:index:First first>"),
        (("alone", "box"), "<test:index:Middle middle> may be made before <test:index:Alone alone>"),
        (("first", "lst"), "no resource is named 'lst'; near it are last"),
        (("first", []), "empty list"),
    ],
)
def test_steps_without_an_order_fail(steps: tuple[Any, ...], said: str) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_order(run_program(chain), *steps)
    assert said in str(failure.value)


def test_one_step_is_no_order() -> None:
    with pytest.raises(ValueError, match="two steps"):
        assert_order(run_program(chain), "first")
