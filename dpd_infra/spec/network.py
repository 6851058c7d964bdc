"""What a person may ask of the network: one GPU zone, its address ranges and the way out."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from dpd_infra.spec.base import Spec


def _network_address(text: str) -> str:
    """A block must be written by its network address: AWS refuses 10.0.0.1/16."""
    try:
        IPv4Network(text)
    except ValueError as error:
        message = f"not an IPv4 block: {error}"
        raise ValueError(message) from error
    return text


CidrBlock = Annotated[str, AfterValidator(_network_address)]
"""An IPv4 block in CIDR form with no host bits set, `10.0.0.0/16`."""

Zone = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[a-z]+)+-\d[a-h]$")]
"""The name of an availability zone, `us-east-2a`. Local and wavelength zones do not hold HyperPod nodes."""


class NetworkSpec(Spec):
    """The VPC of a platform."""

    zone: Zone = Field(examples=["us-east-2a"])
    """The GPU zone. EFA traffic cannot cross zones, so every GPU group and its one subnet live here (HyperPod prerequisites)."""
    control_plane_zones: tuple[Zone, ...] = ()
    """The zones of the EKS subnets: two or more, the GPU zone among them (EKS needs two). Empty: the GPU zone and one other of its region."""
    cidr: CidrBlock = "10.0.0.0/16"
    """The VPC's block, /16 to /20. Its upper half is the GPU subnet, which can never be resized afterwards."""
    gpu_cidr: CidrBlock | None = None
    """A block of its own for the GPU subnet, associated with the VPC as a secondary one when it lies outside `cidr`. None: the upper half of `cidr`."""

    @property
    def region(self) -> str:
        """The region the zone belongs to."""
        return self.zone[:-1]

    @model_validator(mode="after")
    def _blocks_can_be_laid_out(self) -> Self:
        prefix = IPv4Network(self.cidr).prefixlen
        if not 16 <= prefix <= 20:
            message = f"cidr must be /16 (the largest a VPC takes) to /20 (the smallest whose upper half holds GPU nodes), not /{prefix}"
            raise ValueError(message)
        if self.control_plane_zones and len(set(self.control_plane_zones)) < 2:
            message = "controlPlaneZones needs two zones or more: EKS refuses a cluster with subnets in one"
            raise ValueError(message)
        return self
