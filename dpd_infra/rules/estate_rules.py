"""Rules on what is there already: no step is ours and somebody else's at once, and what is made has all it needs of what is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpd_infra.catalog.addons import COREDNS, S3_CSI
from dpd_infra.catalog.sources import (
    CLI_TROUBLESHOOTING,
    DESIGN_NOTE,
    EKS_PREREQUISITES_GUIDE,
    EKS_USER_GUIDE,
    PREREQUISITES_GUIDE,
    SETUP_GUIDE,
)
from dpd_infra.plan.pieces import NetworkPiece, pieces
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.spec.config_keys import NAMESPACE
from dpd_infra.spec.finding import Path, Severity

if TYPE_CHECKING:
    from dpd_infra.spec.platform import PlatformSpec

_STEPS = (
    ("network", "network", ("network",)),
    ("control_plane", "controlPlane", ("controlPlane",)),
    ("cluster", "cluster", ("instanceGroups", "cluster")),
    ("operator", "operator", ("operator",)),
)
"""The field of a step under `existing`, its key there, and the platform's own sections for it."""

_OPERATOR_PATH: Path = ("config", f"{NAMESPACE}:operator")
"""What a stack file says of an operator that another stack makes."""

_FIELDS = {
    "network": "network",
    "controlPlane": "control_plane",
    "instanceGroups": "instance_groups",
    "cluster": "cluster",
    "operator": "operator",
}


@rule(
    "DPD540",
    "A step is ours or somebody else's, not both",
    severity=Severity.ERROR,
    why="What `existing` names is read and never changed, so a section of its own for the same step would have no effect. Nor has "
    "`dpd-infra:operator`, which says what another stack's operator is, beside a platform, which has an operator of its own.",
    sources=(DESIGN_NOTE,),
)
def one_owner(stack: StackSubject) -> Iterator[Violation]:
    """A step under `existing` and a section of its own, or `dpd-infra:operator` beside a platform."""
    if stack.platform is None:
        return
    if stack.promises_operator:
        # A version has a place in both; what else stands there follows from the platform's network and its mirrors.
        place = "existing.operator" if stack.platform.existing.operator is not None else "operator"
        yield Violation(
            _OPERATOR_PATH,
            f"{_OPERATOR_PATH[-1]} stands beside {stack.platform_path[-1]}, whose own operator is the one that counts",
            f"move it to {stack.platform_path[-1]}.{place}, and remove it here: it is for a stack whose operator another one has "
            "(closedNetwork follows from the platform's network, imageMirrors is a key of the platform)",
        )
    for field, key, sections in _STEPS:
        if getattr(stack.platform.existing, field) is None:
            continue
        for section in sections:
            if _FIELDS[section] in stack.platform.model_fields_set:
                yield Violation(
                    (*stack.platform_path, section),
                    f"{section} is written, and existing.{key} says that it is there already",
                    f"remove {section}, or existing.{key}",
                    related=(stack.at("existing", key),),
                )


@rule(
    "DPD541",
    "Every step that the platform makes is described",
    severity=Severity.ERROR,
    why="A step that is not under `existing` is made, and it has no default that would fit any account.",
    sources=(DESIGN_NOTE,),
)
def every_step_is_described(stack: StackSubject) -> Iterator[Violation]:
    """A needed section that is missing."""
    if stack.platform is None:
        return
    made = pieces(stack.platform)
    needs_network = made.network in (NetworkPiece.OWN, NetworkPiece.IN_EXISTING_VPC)
    if needs_network and stack.platform.network is None:
        yield _missing(stack, "network", "network: {zone: us-east-2a}", "network: {vpcId: …, zone: …, …}")
    if made.control_plane and stack.platform.control_plane is None:
        yield _missing(stack, "controlPlane", "controlPlane: {publicAccessCidrs: [203.0.113.0/24]}", "controlPlane: {name: my-eks}")
    if made.cluster and not stack.platform.instance_groups:
        yield _missing(stack, "instanceGroups", "instanceGroups: {gpu: {instanceType: ml.p5.48xlarge, count: 2}}", "cluster: {arn: …}")


def _missing(stack: StackSubject, section: str, own: str, existing: str) -> Violation:
    return Violation(
        stack.platform_path,
        f"the needed key {section!r} is missing",
        f"add {own}, or say that it is there, existing: {{{existing}}}",
        related=((*stack.platform_path, section), stack.at("existing")),
    )


@rule(
    "DPD542",
    "An existing network has what is made in it",
    severity=Severity.ERROR,
    why="HyperPod nodes need a GPU subnet and security groups, an EKS cluster needs subnets in two zones and the nodes' groups.",
    sources=(PREREQUISITES_GUIDE, EKS_USER_GUIDE),
)
def existing_network_is_enough(stack: StackSubject) -> Iterator[Violation]:
    """Ids that a step of ours needs and `existing.network` does not give."""
    if stack.platform is None or (given := stack.platform.existing.network) is None:
        return
    made = pieces(stack.platform)
    wanted = []
    if made.cluster and not given.gpu_subnet_ids:
        wanted.append(("gpuSubnetIds", "the HyperPod cluster"))
    if made.control_plane and len(set(given.control_plane_subnet_ids)) < 2:
        wanted.append(("controlPlaneSubnetIds", "the EKS cluster (two or more)"))
    if (made.cluster or made.control_plane) and not given.node_security_group_ids:
        wanted.append(("nodeSecurityGroupIds", "the nodes"))
    for key, what in wanted:
        yield Violation(
            stack.at("existing", "network"),
            f"{key} is needed for {what}",
            f"add existing.network.{key}",
            related=(stack.at("existing", "network", key),),
        )


@rule(
    "DPD543",
    "A GPU subnet in an existing VPC says where and how",
    severity=Severity.ERROR,
    why="Nodes must be in the VPC of their EKS cluster: beside an existing one, a network of ours is one GPU subnet in that VPC. "
    "Its block, the VPC's own and the route table with the way out are known to the VPC's owner alone.",
    sources=(EKS_PREREQUISITES_GUIDE, PREREQUISITES_GUIDE),
)
def subnet_in_existing_vpc(stack: StackSubject) -> Iterator[Violation]:
    """Beside an existing EKS cluster: no routeTableId or no cidr; elsewhere: a routeTableId."""
    if stack.platform is None or (network := stack.platform.network) is None:
        return
    piece = pieces(stack.platform).network
    if piece is NetworkPiece.IN_EXISTING_VPC:
        if network.route_table_id is None:
            yield Violation(
                stack.at("network"),
                "the existing EKS cluster has a VPC, and nodes must be in it",
                "add routeTableId (a private route table of that VPC), cidr (the VPC's block) and gpuCidr (a free block), or give the "
                "subnets, existing.network",
                related=(stack.at("existing", "controlPlane"), stack.at("network", "routeTableId")),
            )
        elif "cidr" not in network.model_fields_set:
            yield Violation(
                stack.at("network"),
                "cidr is not written: whether gpuCidr lies in the existing VPC's block is not known",
                "add cidr, the block that the VPC has: a gpuCidr outside of it is associated with the VPC",
                related=(stack.at("network", "cidr"),),
            )
    elif piece is NetworkPiece.OWN and network.route_table_id is not None:
        yield Violation(
            stack.at("network", "routeTableId"),
            "a VPC of our own has route tables of its own",
            "remove routeTableId, or name the EKS cluster whose VPC it is of, existing.controlPlane",
            value=network.route_table_id,
            related=(stack.at("existing", "controlPlane"),),
        )


@rule(
    "DPD544",
    "What is written has an effect",
    severity=Severity.WARNING,
    why="A setting of a step that is somebody else's changes nothing, and who reads the file would think that it does.",
    sources=(DESIGN_NOTE,),
)
def settings_have_an_effect(stack: StackSubject) -> Iterator[Violation]:
    """A network that nothing needs, settings of add-ons that are there, buckets and a store that an existing S3 driver is to reach."""
    if stack.platform is None:
        return
    for section, what, fix in _without_effect(stack.platform):
        yield Violation(stack.at(section), what, fix, related=(stack.at("existing"),))


def _without_effect(platform: PlatformSpec) -> Iterator[tuple[str, str, str]]:
    made, written = pieces(platform), platform.model_fields_set
    if made.network is NetworkPiece.NONE and "network" in written:
        yield "network", "both clusters are there already, so no network is made", "remove network"
    if not made.cluster and "dependencies" in written:
        yield "dependencies", "the HyperPod cluster is there already, and its dependencies chart with it", "remove dependencies"
    if not made.node_addons and "addons" in written:
        yield "addons", "all add-ons are there already", "remove addons"
    if S3_CSI.name not in made.node_addons and platform.model_store is not None:
        yield (
            "modelStore",
            f"{S3_CSI.name} is there already, with a role of its maker's: endpoints cannot read the store",
            "let its role read the store's bucket",
        )
    if S3_CSI.name not in made.node_addons and platform.model_buckets:
        yield (
            "modelBuckets",
            f"{S3_CSI.name} is there already, with a role of its maker's",
            "let its role read these buckets, and remove modelBuckets",
        )


@rule(
    "DPD545",
    "An operator that runs has its add-ons",
    severity=Severity.ERROR,
    why="The operator does not start without the CSI drivers and cert-manager: where it runs in an existing cluster they are there, and "
    "making them again ends with `Addon already exists`.",
    sources=(SETUP_GUIDE, CLI_TROUBLESHOOTING),
)
def running_operator_has_addons(stack: StackSubject) -> Iterator[Violation]:
    """An existing operator in an existing HyperPod cluster, and add-ons of ours."""
    if stack.platform is None or stack.platform.existing.operator is None or stack.platform.existing.cluster is None:
        return
    if missing := pieces(stack.platform).node_addons:
        yield Violation(
            stack.at("existing"),
            f"the operator runs already, so {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} there too",
            "add existing.addons: true",
            related=(stack.at("existing", "addons"),),
        )


@rule(
    "DPD546",
    "coredns of an existing EKS cluster is named",
    severity=Severity.WARNING,
    why="An EKS cluster is made with coredns unless its maker said otherwise. Where it is an EKS add-on, making it again is refused; one "
    "that is not is taken over.",
    sources=(EKS_USER_GUIDE,),
)
def coredns_is_named(stack: StackSubject) -> Iterator[Violation]:
    """An existing EKS cluster, and coredns of ours."""
    if stack.platform is None or stack.platform.existing.control_plane is None or "addons" in stack.platform.existing.model_fields_set:
        return
    if COREDNS.name in pieces(stack.platform).node_addons and stack.platform.existing.operator is None:
        yield Violation(
            stack.at("existing"),
            "existing.controlPlane without existing.addons: coredns would be made",
            "add existing.addons: [coredns], or addons: [] if the cluster has none",
            related=(stack.at("existing", "addons"),),
        )


@rule(
    "DPD547",
    "What is there is of the stack's region",
    severity=Severity.ERROR,
    why="Every provider of a stack speaks to one region: what is in another is not found.",
    sources=(PREREQUISITES_GUIDE,),
)
def existing_is_in_region(stack: StackSubject) -> Iterator[Violation]:
    """An ARN or a zone of another region."""
    if stack.platform is None or stack.region is None:
        return
    existing = stack.platform.existing
    places = []
    if existing.network is not None:
        places.append((("network", "zone"), existing.network.zone[:-1], existing.network.zone))
    if existing.cluster is not None:
        places.append((("cluster", "arn"), existing.cluster.arn.split(":")[3], existing.cluster.arn))
    for path, region, value in places:
        if region != stack.region:
            yield Violation(
                stack.at("existing", *path),
                f"it is in {region}, the stack in {stack.region}",
                "name one of the stack's region, or change aws:region",
                value=value,
            )
