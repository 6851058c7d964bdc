"""Every wait of our own library is needed: without it the simulated world refuses, at once or later, or a document asks for the order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise

import pytest

from dpd_infra.catalog.sources import (
    CLI_TROUBLESHOOTING,
    EKS_PREREQUISITES_GUIDE,
    HYPERPOD_TERRAFORM,
    IAM_USER_GUIDE,
    PREREQUISITES_GUIDE,
    SETUP_GUIDE,
    Source,
)
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.world.rules import RULES
from tests.engine.world_kit import Key, World, is_implied, make, still_waits, without, without_edge
from tests.graph.recorder import Recorded
from tests.graph.test_ordering import CONTRACTS, find, program

S3_GUIDE = Source("Amazon S3 user guide: default encryption, versioning, bucket policies", "docs.aws.amazon.com/AmazonS3/latest/userguide")
TERRAFORM_EIP = Source("aws_eip: an internet gateway may have to exist before", "hashicorp/terraform-provider-aws, docs/r/eip")

NOW = "now"
LATER = "later"
BACK = "back"
"""How the world refuses: what came too early, what comes after it, or what was to come first."""


@cache
def platform() -> World:
    """The shipped dev stack, made whole."""
    return make(program)


def key(resource: Recorded) -> Key:
    return resource.type, resource.name


def outcome(
    world: World, later: Recorded, first: Recorded, take_away: Callable[[World, Key, Key], World] = without_edge
) -> tuple[str, str] | None:
    """How the world refuses when `later` does not wait for `first`: when, and by which rule or with which code."""
    early = take_away(world, key(later), key(first))
    try:
        early.direct.create(later.type, later.name, later.inputs, timeout=3600)
    except SimulatedError as error:
        return NOW, told(error)
    # Others name a resource by its id: what comes after is tried on a copy, and the original stands in for it.
    rest = take_away(world, key(later), key(first))
    rest.account.add(world.copy().made[key(later)])
    missing = [resource for resource in world.recording.custom if key(resource) in world.made and not is_there(world, rest, resource)]
    late = [resource for resource in missing if key(resource) != key(first)]
    if take_away is without_edge:
        late = [resource for resource in late if not still_waits(world, key(resource), key(first), without_edge=key(later))]
    for resource in late:
        try:
            rest.copy().direct.create(resource.type, resource.name, resource.inputs, timeout=3600)
        except SimulatedError as error:
            return LATER, told(error)
        rest.account.add(world.copy().made[key(resource)])
    other_way = without(world, key(later), key(first))
    other_way.direct.create(later.type, later.name, later.inputs, timeout=3600)
    try:
        other_way.direct.create(first.type, first.name, first.inputs)
    except SimulatedError as error:
        return BACK, told(error)
    return None


def is_there(world: World, twin: World, resource: Recorded) -> bool:
    record = world.made[key(resource)]
    return twin.account.find(record.type, record.id, region=record.region, cluster=record.cluster) is not None


def told(error: SimulatedError) -> str:
    """The rule's name, or that of a rule whose message a status holds, or the message itself."""
    held = [name for name, rule in RULES.items() if rule.message.split("{")[0].strip() and rule.message.split("{")[0] in str(error)]
    return error.rule.name if error.rule else next(iter(held), str(error))


def waits(world: World) -> list[tuple[Recorded, Recorded]]:
    """Every explicit wait that nothing else implies: what comes later, and what first. Waits for a value are needed as they are."""
    found = []
    for later in world.recording.custom:
        values = {urn for urns in later.property_dependencies.values() for urn in urns}
        for urn in later.dependencies:
            first = world.recording[urn]
            if (
                urn not in values
                and key(first) in world.made
                and key(later) in world.made
                and not is_implied(world, key(later), key(first))
            ):
                found.append((later, first))
    return found


DOCUMENTED: dict[tuple[str, str], Source] = {
    # What comes later, what first, by the end of the name: orders that documents ask for and the world lets pass.
    ("-tls-only", "-public-access"): S3_GUIDE,
    ("-lifecycle-on_create.sh", "-tls-only"): S3_GUIDE,
    ("-lifecycle-on_create.sh", "-encryption"): S3_GUIDE,
    ("-lifecycle-on_create.sh", "-versioning"): S3_GUIDE,
    ("-lifecycle-on_create_main.sh", "-tls-only"): S3_GUIDE,
    ("-lifecycle-on_create_main.sh", "-encryption"): S3_GUIDE,
    ("-lifecycle-on_create_main.sh", "-versioning"): S3_GUIDE,
    ("-operator-addon", "-tls-tls-only"): S3_GUIDE,
    ("-operator-addon", "-tls-encryption"): S3_GUIDE,
    ("-network-nat-address", "-public-default"): TERRAFORM_EIP,
    ("-control-plane-cluster", "-control-plane-role-permissions"): IAM_USER_GUIDE,
    ("-dependencies-release", "-eks-pod-identity-agent"): HYPERPOD_TERRAFORM,
    ("-dependencies-release", "-kube-proxy"): HYPERPOD_TERRAFORM,
    ("-cluster-cluster", "-execution-permissions"): PREREQUISITES_GUIDE,
    ("-cluster-cluster", "-AmazonSageMakerClusterInstanceRolePolicy"): PREREQUISITES_GUIDE,
    ("-cluster-cluster", "-lifecycle-on_create_main.sh"): HYPERPOD_TERRAFORM,
    ("-cluster-cluster", "-network-s3"): SETUP_GUIDE,
    ("-addons-aws-fsx-csi-driver", "-fsx-csi-permissions"): SETUP_GUIDE,
    ("-addons-aws-fsx-csi-driver", "-addons-cert-manager"): HYPERPOD_TERRAFORM,
    ("-addons-aws-mountpoint-s3-csi-driver", "-addons-cert-manager"): HYPERPOD_TERRAFORM,
    ("-addons-metrics-server", "-addons-cert-manager"): HYPERPOD_TERRAFORM,
    ("-operator-addon", "-operator-execution-permissions"): SETUP_GUIDE,
    ("-operator-addon", "-operator-keda-permissions"): SETUP_GUIDE,
    ("-operator-addon", "-addons-metrics-server"): CLI_TROUBLESHOOTING,
}


def named(table: Mapping[tuple[str, str], object], later: Recorded, first: Recorded) -> bool:
    return any(later.name.endswith(end) and first.name.endswith(start) for end, start in table)


def test_every_wait_is_needed_by_the_world_or_by_a_document() -> None:
    world = platform()
    found = waits(world)
    assert len(found) > 40
    unneeded = [(later, first) for later, first in found if not named(DOCUMENTED, later, first) and outcome(world, later, first) is None]
    assert {(later.name, first.name) for later, first in unneeded} == set()


def test_what_is_listed_as_documented_is_a_wait_that_the_world_lets_pass() -> None:
    world = platform()
    found = waits(world)
    for end, start in DOCUMENTED:
        of = [(later, first) for later, first in found if later.name.endswith(end) and first.name.endswith(start)]
        assert of, (end, start)
        assert [pair for pair in of if outcome(world, *pair) is None] == of, (end, start, [outcome(world, *pair) for pair in of])


ENFORCED: dict[tuple[str, str], tuple[str, str]] = {
    ("network-efa-from-itself", "cluster-cluster"): (NOW, "hyperpod-efa-security-group"),
    ("network-efa-to-itself", "cluster-cluster"): (NOW, "hyperpod-efa-security-group"),
    ("network-nodes-to-anywhere", "cluster-cluster"): (NOW, "hyperpod-egress"),
    ("network-private-default", "cluster-cluster"): (NOW, "hyperpod-way-out"),
    ("network-public-routes", "cluster-cluster"): (NOW, "hyperpod-way-out"),
    ("network-gpu-routes", "cluster-cluster"): (NOW, "hyperpod-way-out"),
    ("control-plane-vpc-cni", "cluster-cluster"): (NOW, "hyperpod-vpc-cni"),
    ("dependencies-release", "cluster-cluster"): (NOW, "hyperpod-dependencies"),
    ("cluster-lifecycle-on_create.sh", "cluster-cluster"): (NOW, "hyperpod-lifecycle-script"),
    ("control-plane-role-AmazonEKSClusterPolicy", "control-plane-cluster"): (NOW, "eks-role-policy"),
    ("cluster-cluster", "addons-coredns"): (NOW, "addon-needs-nodes"),
    ("addons-s3-csi-permissions", "addons-aws-mountpoint-s3-csi-driver"): (LATER, "s3-driver-permissions"),
    ("addons-cert-manager", "operator-addon"): (NOW, "operator-cert-manager"),
    ("addons-aws-mountpoint-s3-csi-driver", "operator-addon"): (NOW, "operator-s3-driver"),
    ("addons-aws-fsx-csi-driver", "operator-addon"): (NOW, "operator-fsx-driver"),
    ("operator-execution-AmazonSageMakerHyperPodInferenceAccess", "operator-addon"): (LATER, "endpoint-network-permission"),
    ("operator-load-balancer-controller-permissions", "operator-addon"): (LATER, "load-balancer-role"),
    ("operator-tls", "operator-addon"): (NOW, "operator-tls-bucket"),
    ("operator-addon", "llama-70b"): (NOW, "kubernetes-kind"),
}
"""Of the required orders, those of the world: what first, what later, and how the world refuses without the wait."""


def test_what_the_world_enforces_of_the_required_orders() -> None:
    world = platform()
    assert ENFORCED.keys() <= {(first, later) for first, later, _ in CONTRACTS}
    differing = {}
    for (first, later), expected in ENFORCED.items():
        found = outcome(world, find(world.recording, later), find(world.recording, first), without)
        if found is None or found[0] != expected[0] or expected[1] not in found[1]:
            differing[first, later] = found
    assert differing == {}


@pytest.mark.parametrize(("first", "later"), [(first, later) for first, later, _ in CONTRACTS])
def test_each_required_order_is_one_of_the_world_of_a_value_or_of_a_document(first: str, later: str) -> None:
    """A required order is a path of waits; each of its steps is needed by itself."""
    world = platform()
    path = world.recording.depends_path(find(world.recording, later), find(world.recording, first))
    assert path is not None
    for later_step, first_step in pairwise(path):
        values = {urn for urns in later_step.property_dependencies.values() for urn in urns}
        is_direct = (first_step.urn in values) or key(first_step) not in world.made or key(later_step) not in world.made
        implied = is_direct or is_implied(world, key(later_step), key(first_step))
        assert implied or named(DOCUMENTED, later_step, first_step) or outcome(world, later_step, first_step), (later_step, first_step)


def test_the_log_group_comes_before_the_cluster_that_would_make_it_itself() -> None:
    world = platform()
    recording = world.recording
    found = outcome(world, find(recording, "control-plane-cluster"), recording.one("aws:cloudwatch/logGroup:LogGroup"))
    assert found is not None
    assert found == (BACK, "log-group-exists")


def test_destroying_in_the_order_of_the_graph_meets_nothing_that_is_still_needed() -> None:
    world = platform().copy()
    recording = platform().recording
    # The stack protects its clusters: here somebody has lifted that on purpose, in the state and with EKS.
    order = [resource for resource in reversed(recording.resources) if key(resource) in world.made]
    for record in world.made.values():
        record.inputs.pop("deletionProtection", None)
    left = {key(resource): resource for resource in order}
    while left:
        waited_for = {urn for resource in left.values() for urn in (*resource.dependencies, resource.provider)}
        ready = [resource for resource in left.values() if resource.urn not in waited_for]
        assert ready
        for resource in ready:
            if resource.kind == "Bucket":
                world.made[key(resource)].inputs["forceDestroy"] = True
            world.direct.delete(world.made[key(resource)])
            del left[key(resource)]
    assert [record for record in world.account if record.type != "aws:cloudwatch/logGroup:LogGroup"] == []


def test_each_source_is_one() -> None:
    sources = {*DOCUMENTED.values(), EKS_PREREQUISITES_GUIDE}
    assert all(source.title and source.reference for source in sources)
