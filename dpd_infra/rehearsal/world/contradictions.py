"""What a world file says of things that cannot all be so: names that stand twice, and subnets that share addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_network
from typing import TYPE_CHECKING

from dpd_infra.spec.finding import Finding, Path, Severity
from dpd_infra.spec.shape_rule import SHAPE_RULE

if TYPE_CHECKING:
    from dpd_infra.rehearsal.world.file import ExistingSubnet, ExistingVpc, World

_UNIQUE = "AWS has one of a name."
_APART = "The subnets of a VPC share no addresses (AWS: https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html)."
_RESERVED = 5
"""Addresses of each subnet that AWS keeps for itself (the same page)."""


def contradictions(world: World) -> Iterator[Finding]:
    """Everything of a world that cannot be so, by its place in the file."""
    existing = world.existing
    at: Path = ("existing",)
    for key, names in (("buckets", existing.buckets), ("roles", existing.roles), ("logGroups", existing.log_groups)):
        yield from _twice(((*at, key, index), name) for index, name in enumerate(names))
    yield from _twice(((*at, "eksClusters", index, "name"), one.name) for index, one in enumerate(existing.eks_clusters))
    yield from _twice(((*at, "hyperPodClusters", index, "arn"), one.arn) for index, one in enumerate(existing.hyper_pod_clusters))
    yield from _twice(((*at, "vpcs", index, "id"), vpc.id) for index, vpc in enumerate(existing.vpcs))
    for key, parts in (("subnets", _subnets), ("securityGroups", _security_groups), ("routeTables", _route_tables)):
        yield from _twice(
            ((*at, "vpcs", index, key, place, "id"), id) for index, vpc in enumerate(existing.vpcs) for place, id in enumerate(parts(vpc))
        )
    for index, vpc in enumerate(existing.vpcs):
        yield from _addresses((*at, "vpcs", index, "subnets"), vpc.subnets)


def _subnets(vpc: ExistingVpc) -> list[str]:
    return [subnet.id for subnet in vpc.subnets]


def _security_groups(vpc: ExistingVpc) -> list[str]:
    return [group.id for group in vpc.security_groups]


def _route_tables(vpc: ExistingVpc) -> list[str]:
    return [table.id for table in vpc.route_tables]


def _twice(named: Iterable[tuple[Path, str]]) -> Iterator[Finding]:
    seen: set[str] = set()
    for path, name in named:
        if name in seen:
            yield _finding(path, f"{name!r} stands twice", _UNIQUE, "give it another name, or remove one of the two")
        seen.add(name)


def _addresses(at: Path, subnets: Sequence[ExistingSubnet]) -> Iterator[Finding]:
    for index, subnet in enumerate(subnets):
        block = ip_network(subnet.cidr)
        room = max(block.num_addresses - _RESERVED, 0)
        if subnet.addresses_in_use > room:
            what = f"{subnet.cidr} has {room} addresses for others than AWS, and {subnet.addresses_in_use} are in use"
            yield _finding((*at, index, "addressesInUse"), what, _APART, f"write {room} or fewer")
        other = next((before for before in subnets[:index] if before.id != subnet.id and ip_network(before.cidr).overlaps(block)), None)
        if other is not None:
            what = f"{subnet.cidr} shares addresses with {other.cidr} of {other.id}"
            yield _finding((*at, index, "cidr"), what, _APART, "give it a block of its own")


def _finding(path: Path, what: str, why: str, fix: str) -> Finding:
    return Finding(SHAPE_RULE, Severity.ERROR, path, what, why, fix)
