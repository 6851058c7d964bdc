"""What a stack file's `existing` names is there in its rehearsal, which has no account to ask; the world file has the last word."""

from __future__ import annotations

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.rehearsal.operator import pods
from dpd_infra.rehearsal.world.file import (
    Existing,
    ExistingCluster,
    ExistingGroup,
    ExistingHyperPod,
    ExistingRouteTable,
    ExistingSecurityGroup,
    ExistingSubnet,
    ExistingVpc,
    World,
)
from dpd_infra.rehearsal.world.nodes import GROUP_LABEL, TYPE_LABEL
from dpd_infra.spec.finding import Finding, Path, Severity

if TYPE_CHECKING:
    from dpd_infra.spec.platform import PlatformSpec
    from dpd_infra.stack import StackSpec

AT: Path = ("config", "dpd-infra:platform", "existing")
"""Where a stack file says what is there."""

RULE = "rehearsal-existing"
VPC_CNI = "vpc-cni"
_ROOM = "10.0.0.0/8"
"""The addresses of a VPC of which nothing is known: what the world does not name has room."""


@dataclass(frozen=True)
class Supposed:
    """A world with all that a stack file counts on, as far as it may be supposed."""

    world: World
    notes: tuple[str, ...] = ()
    """What is supposed to be there, each in a few words."""
    missing: tuple[Finding, ...] = ()
    """What the stack file names and is not there, each with its place in that file."""


def suppose(world: World, spec: StackSpec | None, world_file: str = "") -> Supposed:
    """Put what `existing` of a stack names into a world. `world_file` is the name of the user's file, for reports."""
    if spec is None or spec.platform is None:
        return Supposed(world)
    work = _Supposing(world, spec, spec.platform, world_file or "a world file (`--world`)")
    work.network()
    work.control_plane()
    work.cluster()
    return Supposed(work.result(), tuple(work.notes), tuple(work.missing))


@dataclass
class _Supposing:
    world: World
    spec: StackSpec
    platform: PlatformSpec
    world_file: str
    notes: list[str] = field(default_factory=list)
    missing: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        existing = self.world.existing
        self.existing = self.platform.existing
        self.region = self.spec.aws.region
        self.vpcs = {vpc.id: vpc for vpc in existing.vpcs}
        self.clusters = {cluster.name: cluster for cluster in existing.eks_clusters}
        self.hyperpods = {cluster.arn: cluster for cluster in existing.hyper_pod_clusters}
        self.operator_version = existing.operator_version
        control_plane = self.existing.control_plane
        self.eks = control_plane.name if control_plane else self.platform.name

    def result(self) -> World:
        """The world as it is then."""
        known = self.world.existing
        existing = {
            **known.model_dump(),
            "region": known.region if "region" in known.model_fields_set else self.region,
            "vpcs": [vpc.model_dump() for vpc in self.vpcs.values()],
            "eks_clusters": [cluster.model_dump() for cluster in self.clusters.values()],
            "hyper_pod_clusters": [cluster.model_dump() for cluster in self.hyperpods.values()],
            "operator_version": self.operator_version,
        }
        return self.world.model_copy(update={"existing": Existing.model_validate(existing)})

    # Network

    def network(self) -> None:
        """The VPC with its subnets and security groups, where they are given by ids."""
        given = self.existing.network
        if given is None:
            return
        at = (*AT, "network")
        if given.vpc_id not in self.vpcs:
            if not self._may(given.vpc_id, (*at, "vpcId"), f"the VPC {given.vpc_id}", "existing.vpcs", f"{{id: {given.vpc_id}, cidr: …}}"):
                return
            self.vpcs[given.vpc_id] = ExistingVpc.model_validate({"id": given.vpc_id, "cidr": _ROOM, "subnets": list(self._subnets())})
            groups = [ExistingSecurityGroup.model_validate({"id": group}) for group in given.node_security_group_ids]
            self._change(given.vpc_id, security_groups=groups)
            return
        vpc = self.vpcs[given.vpc_id]
        subnets, groups = {subnet.id for subnet in vpc.subnets}, {group.id for group in vpc.security_groups}
        place = f"existing.vpcs, {vpc.id}"
        for key, named, there, what, entry in (
            ("gpuSubnetIds", given.gpu_subnet_ids, subnets, "subnet", "{id: ID, zone: …, cidr: …}"),
            ("controlPlaneSubnetIds", given.control_plane_subnet_ids, subnets, "subnet", "{id: ID, zone: …, cidr: …}"),
            ("nodeSecurityGroupIds", given.node_security_group_ids, groups, "security group", "{id: ID}"),
        ):
            for index, id in enumerate(named):
                if id not in there:
                    under = f"{place}, {'subnets' if what == 'subnet' else 'securityGroups'}"
                    self._miss((*at, key, index), f"the {what} {id} of {vpc.id}", under, entry.replace("ID", id))

    def _subnets(self) -> Iterator[ExistingSubnet]:
        """The subnets that are given by ids: those of the GPU nodes in their zone, the others over the zones, beginning there."""
        given = self.existing.network
        if given is None:
            return
        blocks = ipaddress.ip_network(_ROOM).subnets(new_prefix=16)
        zones = self._zones(given.zone)
        others = [id for id in given.control_plane_subnet_ids if id not in given.gpu_subnet_ids]
        shift = 1 if len(others) < len(given.control_plane_subnet_ids) else 0
        for id in given.gpu_subnet_ids:
            yield ExistingSubnet.model_validate({"id": id, "zone": given.zone, "cidr": str(next(blocks))})
        for index, id in enumerate(others):
            yield ExistingSubnet.model_validate({"id": id, "zone": zones[(index + shift) % len(zones)], "cidr": str(next(blocks))})

    def _zones(self, first: str) -> list[str]:
        return [first, *(zone for letter in "abc" if (zone := f"{self.region}{letter}") != first)]

    def _change(self, vpc: str, **changed: object) -> None:
        self.vpcs[vpc] = self.vpcs[vpc].model_copy(update=changed)

    # EKS

    def control_plane(self) -> None:
        """The EKS cluster, the VPC it is in, its OIDC provider and its VPC CNI."""
        given = self.existing.control_plane
        if given is None:
            return
        at, name = (*AT, "controlPlane"), given.name
        values = given.values
        # Nodes that run already have a network plugin that works.
        reads_cni = values is None and not given.self_managed_cni and self.existing.cluster is None
        reads_oidc = values is None and not given.make_oidc_provider
        if there := self.clusters.get(name):
            under = f"existing.eksClusters, {name}"
            if reads_oidc and not there.oidc_provider:
                self._miss((*at, "name"), f"the IAM OIDC provider of the EKS cluster {name}", under, "oidcProvider: true")
            if reads_cni and VPC_CNI not in there.addons:
                self._miss((*at, "name"), f"the add-on {VPC_CNI} of the EKS cluster {name}", f"{under}, addons", VPC_CNI)
        elif self._may(name, (*at, "name"), f"the EKS cluster {name}", "existing.eksClusters", f"{{name: {name}, vpc: …}}"):
            network = self.existing.network
            vpc = network.vpc_id if network else values.vpc_id if values else _id("vpc", name)
            self._vpc_of(vpc)
            said = (
                {
                    "version": values.version,
                    "endpoint": values.endpoint,
                    "certificateAuthority": values.certificate_authority,
                    "oidcIssuer": values.oidc_issuer.removeprefix("https://"),
                    "clusterSecurityGroup": values.cluster_security_group_id,
                }
                if values
                else {}
            )
            subnets = list(network.control_plane_subnet_ids) if network else []
            self.clusters[name] = ExistingCluster.model_validate(
                {"name": name, "vpc": vpc, "subnets": subnets, "oidcProvider": not given.make_oidc_provider, **said}
            )
        self._route_table()

    def _vpc_of(self, vpc: str) -> None:
        """The VPC of an EKS cluster of which no more is known: two subnets in two zones, apart from what is to be made in it."""
        if vpc in self.vpcs:
            return
        ours = self.platform.network
        cidr = ours.cidr if ours is not None and ours.in_existing_vpc else _ROOM
        taken = ipaddress.ip_network(ours.gpu_cidr) if ours is not None and ours.gpu_cidr else None
        whole = ipaddress.ip_network(cidr)
        blocks = whole.subnets(new_prefix=min(28, max(whole.prefixlen + 4, 16)))
        free = [block for block in blocks if taken is None or not block.overlaps(taken)]
        zones = self._zones(ours.zone if ours is not None else f"{self.region}a")
        subnets = [
            {"id": _id("subnet", vpc, zone), "zone": zone, "cidr": str(block)} for zone, block in zip(zones[:2], free[:2], strict=False)
        ]
        self.vpcs[vpc] = ExistingVpc.model_validate({"id": vpc, "cidr": cidr, "subnets": subnets})

    def _route_table(self) -> None:
        """The route table that a GPU subnet of ours takes, in the VPC of their EKS cluster."""
        ours = self.platform.network
        there = self.clusters.get(self.eks)
        if ours is None or ours.route_table_id is None or there is None or there.vpc not in self.vpcs:
            return
        vpc, table = self.vpcs[there.vpc], ours.route_table_id
        if table not in {known.id for known in vpc.route_tables} and table not in {f"rtb-{subnet.id}" for subnet in vpc.subnets}:
            at: Path = (*AT[:2], "network", "routeTableId")
            place = f"existing.vpcs, {vpc.id}, routeTables"
            if self._may(table, at, f"the route table {table} of {vpc.id}", place, f"{{id: {table}}}"):
                way_out = "nat" if ours.egress.value == "nat" else "none"
                made = ExistingRouteTable.model_validate({"id": table, "wayOut": way_out})
                self._change(vpc.id, route_tables=[*vpc.route_tables, made])

    # HyperPod, add-ons, operator

    def cluster(self) -> None:
        """The HyperPod cluster, the add-ons that are EKS add-ons, and the operator."""
        given = self.existing.cluster
        if given is not None and given.arn not in self.hyperpods:
            entry = f"{{arn: {given.arn}, eksCluster: {self.eks}}}"
            if self._may(given.label, (*AT, "cluster", "arn"), f"the HyperPod cluster {given.arn}", "existing.hyperPodClusters", entry):
                known = given.instance_groups.items()
                groups = {name: {"instanceType": group.instance_type, "count": group.count} for name, group in known}
                self.hyperpods[given.arn] = ExistingHyperPod.model_validate(
                    {"arn": given.arn, "name": given.name, "eksCluster": self.eks, "instanceGroups": groups}
                )
                if not groups:
                    self.hyperpods[given.arn] = self.hyperpods[given.arn].model_copy(update={"instance_groups": self._nodes()})
        self._addons()

    def _nodes(self) -> dict[str, ExistingGroup]:
        """A node for every pod that the stack's endpoints ask for, where nothing is known of the groups: then nothing is checked."""
        wanted: Counter[tuple[str, str]] = Counter()
        for name in self.spec.endpoints:
            for _, selector, _ in pods(self.spec.manifest(name).document["spec"]):
                kind = selector.get(TYPE_LABEL, "ml.p5.48xlarge")
                wanted[selector.get(GROUP_LABEL, f"any-{kind.replace('.', '-')}"), kind] += 1
        return {group: ExistingGroup(instance_type=kind, count=count) for (group, kind), count in wanted.items()}

    def _addons(self) -> None:
        existing, eks = self.existing, self.clusters.get(self.eks)
        names = [name for name in existing.addon_names if name not in existing.self_managed_addons]
        operator = existing.operator
        if existing.control_plane is None or eks is None:
            # The EKS cluster is to be made: what comes with its HyperPod cluster comes with it.
            self.operator_version = self.operator_version or (operator.addon_version if operator else None)
            return
        if operator is not None and existing.cluster is not None:
            names.append(ADDON_NAME)
        elif operator is not None:
            self.operator_version = self.operator_version or operator.addon_version
        missing = [name for name in names if name not in eks.addons]
        is_theirs = eks in self.world.existing.eks_clusters
        versions = dict(eks.addon_versions)
        addons = list(eks.addons)
        for name in missing:
            at: Path = (*AT, "operator") if name == ADDON_NAME else (*AT, "addons")
            if is_theirs:
                self._miss(at, f"the add-on {name} of the EKS cluster {self.eks}", f"existing.eksClusters, {self.eks}, addons", name)
                continue
            addons.append(name)
            if name == ADDON_NAME and operator is not None:
                versions[name] = operator.addon_version
        has_chart = eks.dependencies_chart or (existing.cluster is not None and not is_theirs)
        self.clusters[self.eks] = eks.model_copy(update={"addons": addons, "addon_versions": versions, "dependencies_chart": has_chart})
        if missing and not is_theirs:
            self.notes.append(f"its add-ons {', '.join(missing)}")

    # Reports

    def _may(self, name: str, at: Path, what: str, place: str, entry: str) -> bool:
        """Whether something that the world does not name may be supposed; else it is missing."""
        if self.world.suppose:
            self.notes.append(what)
            return True
        self._miss(at, what, place, entry, may=True)
        return False

    def _miss(self, at: Path, what: str, place: str, entry: str, *, may: bool = False) -> None:
        why, fix = f"the stack counts on it, and {self.world_file} does not name it", f"add to {place}: {entry}"
        if may:
            why += " and says `suppose: false`"
            fix += "; or leave `suppose: false` out, and it is supposed to be there"
        self.missing.append(Finding(RULE, Severity.ERROR, at, f"{what} is not in the rehearsal's account", why, fix, subject="platform"))


def _id(kind: str, *of: str) -> str:
    return f"{kind}-{hashlib.sha256('/'.join(of).encode()).hexdigest()[:17]}"
