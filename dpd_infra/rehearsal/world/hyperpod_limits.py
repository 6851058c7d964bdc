"""What a HyperPod cluster may use: the quotas of the account, and the addresses of its subnets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dpd_infra.rehearsal.account import Resource, SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.world.interfaces import interfaces
from dpd_infra.rehearsal.world.nodes import Group, groups, size_of
from dpd_infra.rehearsal.world.rule import Said
from dpd_infra.rehearsal.world.rules import hyperpod as rules

_PER_CLUSTER = "Maximum number instances allowed per SageMaker HyperPod cluster"
_OF_ALL = "Total number of instances allowed across SageMaker HyperPod clusters"


def breaches(account: SimulatedAccount, candidate: Resource) -> Iterator[tuple[Said, str]]:
    """What a cluster as it would be asks for beyond what there is, each with the code of the refusal."""
    found = [group for group in groups(account, candidate) if group.cluster.region == candidate.region]
    for message in (*_types(account, candidate, found), *_sizes(account, candidate, found), *_volumes(account, candidate, found)):
        yield message, "ServiceLimitExceeded"
    for message in _addresses(account, candidate, found):
        yield message, "GeneralServiceException"


def _types(account: SimulatedAccount, candidate: Resource, found: list[Group]) -> Iterator[Said]:
    world = account.world
    for spot, limits in ((False, world.quotas.cluster_instances), (True, world.quotas.cluster_spot_instances)):
        used: Counter[str] = Counter() if spot else Counter(world.existing.instances)
        mine: Counter[str] = Counter()
        for group in found:
            if group.is_spot is spot:
                (mine if group.cluster is candidate else used)[group.type] += group.wanted
        for kind, limit in limits.items():
            if mine[kind] and used[kind] + mine[kind] > limit:
                before = account.find(candidate.type, candidate.id, region=candidate.region)
                mine_before = sum(group.wanted for group in _own(account, before) if group.type == kind and group.is_spot is spot)
                quota = f"{kind} for cluster {'spot instance usage' if spot else 'usage'}"
                yield rules.TYPE_QUOTA(quota=quota, limit=limit, used=used[kind] + mine_before, delta=mine[kind] - mine_before)


def _own(account: SimulatedAccount, cluster: Resource | None) -> list[Group]:
    return [group for group in groups(account) if cluster is not None and group.cluster is cluster]


def _sizes(account: SimulatedAccount, candidate: Resource, found: list[Group]) -> Iterator[Said]:
    quotas = account.world.quotas
    mine = sum(group.wanted for group in found if group.cluster is candidate)
    everything = sum(group.wanted for group in found) + sum(account.world.existing.instances.values())
    for quota, limit, wanted in (
        (_PER_CLUSTER, quotas.instances_per_cluster, mine),
        (_OF_ALL, quotas.instances_of_all_clusters, everything),
    ):
        if limit is not None and wanted > limit:
            yield rules.SIZE_QUOTA(quota=quota, limit=limit, wanted=wanted)


def _volumes(account: SimulatedAccount, candidate: Resource, found: list[Group]) -> Iterator[Said]:
    limit = account.world.quotas.volume_gb
    for group in found if limit is not None else []:
        for storage in group.spec.get("instanceStorageConfigs") or []:
            config: dict[str, Any] = {key.lower(): value for key, value in (storage.get("ebsVolumeConfig") or {}).items()}
            size = int(config.get("volumesizeingb") or 0)
            if limit is not None and group.cluster is candidate and size > limit:
                yield rules.VOLUME_QUOTA(limit=limit, group=group.name, size=size)


def _addresses(account: SimulatedAccount, candidate: Resource, found: list[Group]) -> Iterator[Said]:
    mine = [group for group in found if group.cluster is candidate]
    by_others: Counter[str] = Counter()
    number = 0
    for item in interfaces(account, candidate.region):
        number += item.number
        by_others[item.subnet] += item.addresses
    for group in _own(account, account.find(candidate.type, candidate.id, region=candidate.region)):
        for subnet, count in group.placed.items():
            number -= count
            by_others[subnet] -= count * max(1, group.addresses)
    limit = account.world.quotas.network_interfaces
    number += sum(group.wanted for group in mine)
    if limit is not None and number > limit:
        yield rules.INTERFACE_QUOTA(limit=limit, wanted=number)
    # Groups that share their subnets share the addresses.
    shared: dict[tuple[str, ...], int] = {}
    for group in mine:
        key = tuple(sorted(str(id) for id in group.network.get("subnets") or []))
        shared[key] = shared.get(key, 0) + group.addresses * group.wanted
    for ids, needed in shared.items():
        known = [account.find(base.SUBNET, id, region=candidate.region) for id in ids]
        there = sum(size_of(subnet) - by_others[subnet.id] for subnet in known if subnet is not None)
        if all(known) and known and needed > there:
            yield rules.ADDRESSES(subnets=", ".join(ids), needed=needed, there=there)
