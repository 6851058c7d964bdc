"""What a platform makes and what it finds: each step is ours or somebody else's, and what the network is follows from both clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dpd_infra.catalog.addons import NODE_ADDONS

if TYPE_CHECKING:
    from dpd_infra.spec.platform import PlatformSpec


class NetworkPiece(StrEnum):
    """What a platform's network is."""

    OWN = "own"
    """A VPC of its own."""
    IN_EXISTING_VPC = "inExistingVpc"
    """One GPU subnet, in the VPC of an EKS cluster of somebody else's: HyperPod's nodes must be in the VPC of their EKS cluster."""
    EXISTING = "existing"
    """Given by ids."""
    NONE = "none"
    """Not needed: both clusters are there."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Which steps a platform makes."""

    network: NetworkPiece
    control_plane: bool
    """The EKS cluster."""
    cluster: bool
    """The HyperPod cluster, and with it the dependencies chart, which must be in the EKS cluster before it."""
    node_addons: tuple[str, ...]
    """Names of the add-ons to make, in the order of the catalog."""
    operator: bool
    """The inference operator."""


def pieces(spec: PlatformSpec) -> Pieces:
    """What a platform makes: what `existing` does not name."""
    existing = spec.existing
    control_plane, cluster = existing.control_plane is None, existing.cluster is None
    if existing.network is not None:
        network = NetworkPiece.EXISTING
    elif control_plane:
        network = NetworkPiece.OWN
    else:
        network = NetworkPiece.IN_EXISTING_VPC if cluster else NetworkPiece.NONE
    there = existing.addon_names
    return Pieces(
        network=network,
        control_plane=control_plane,
        cluster=cluster,
        node_addons=tuple(addon.name for addon in NODE_ADDONS if addon.name not in there),
        operator=existing.operator is None and not spec.operator.adopt,
    )


def gpu_zone(spec: PlatformSpec) -> str | None:
    """The zone of the GPU nodes; None where nothing says it."""
    if spec.existing.network is not None:
        return spec.existing.network.zone
    return spec.network.zone if spec.network is not None else None
