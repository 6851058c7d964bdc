"""What a person may ask of the network: one GPU zone, its address ranges and the way out."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from dpd_infra.spec.base import Spec, StrictInt
from dpd_infra.spec.vocabulary import Egress


def _network_address(text: str) -> str:
    """A block must be written by its network address: AWS refuses 10.0.0.1/16."""
    try:
        IPv4Network(text)
    except ValueError as error:
        message = f"not an IPv4 block: {error}"
        raise ValueError(message) from error
    return text


CidrBlock = Annotated[str, AfterValidator(_network_address), Field(examples=["10.0.0.0/16"])]
"""An IPv4 block in CIDR form with no host bits set, `10.0.0.0/16`."""

Zone = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[a-z]+)+-[0-9][a-h]$", examples=["us-east-2a"])]
"""The name of an availability zone, `us-east-2a`. Local and wavelength zones do not hold HyperPod nodes."""


ServiceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)*$"), Field(examples=["aps-workspaces"])]
"""The end of an endpoint service's name, `ecr.api` for com.amazonaws.us-east-2.ecr.api."""

RouteTableId = Annotated[str, StringConstraints(pattern=r"^rtb-[0-9a-f]+$"), Field(examples=["rtb-0123456789abcdef0"])]
"""The id of a route table."""


class FlowLogTraffic(StrEnum):
    """Which traffic a flow log keeps (EC2 CreateFlowLogs)."""

    ALL = "ALL"
    ACCEPT = "ACCEPT"
    REJECT = "REJECT"


class FlowLogsSpec(Spec):
    """A record of the VPC's traffic in CloudWatch Logs."""

    traffic: FlowLogTraffic = FlowLogTraffic.ALL
    """What is kept."""
    retention_days: StrictInt = Field(default=90, ge=1)
    """How long, in days (one of the values CloudWatch takes: 1, 3, 5, 7, 14, 30, 60, 90, …)."""


class NetworkSpec(Spec):
    """The network of a platform: a VPC of its own, or, with `routeTableId`, one GPU subnet in the VPC of an existing EKS cluster."""

    zone: Zone = Field(examples=["us-east-2a"])
    """The GPU zone. EFA traffic cannot cross zones, so every GPU group and its one subnet live here (HyperPod prerequisites)."""
    control_plane_zones: tuple[Zone, ...] = Field(default=(), examples=[["us-east-2a", "us-east-2b"]])
    """The zones of the EKS subnets: two or more, the GPU zone among them (EKS needs two). Empty: the GPU zone and one other of its
    region."""
    cidr: CidrBlock = "10.0.0.0/16"
    """The VPC's block, /16 to /20. Its upper half is the GPU subnet, which can never be resized afterwards. With `routeTableId` the block
    that the existing VPC has, which must then be written."""
    gpu_cidr: CidrBlock | None = Field(default=None, examples=["10.1.0.0/16"])
    """A block of its own for the GPU subnet, associated with the VPC as a secondary one when it lies outside `cidr`. None: the upper half
    of `cidr`."""
    route_table_id: RouteTableId | None = None
    """Only beside an existing EKS cluster: a private route table of its VPC, whose way out the GPU subnet takes. `gpuCidr` must then be
    written too. None: a VPC of the platform's own."""
    egress: Egress = Egress.NAT
    """The way out: `nat`, or `endpoints` for a network that is closed but for AWS's own APIs. With `routeTableId` nothing is made for it:
    it says where that table leads."""
    interface_endpoints: tuple[ServiceName, ...] = ()
    """With `egress: endpoints`: services beside those that nodes, operator and load balancer controller need, `aps-workspaces` for one."""
    flow_logs: FlowLogsSpec | None = None
    """Keep flow logs of the VPC. None: none."""

    @property
    def in_existing_vpc(self) -> bool:
        """Whether only a GPU subnet is made, in the VPC of an existing EKS cluster."""
        return self.route_table_id is not None

    @property
    def region(self) -> str:
        """The region the zone belongs to."""
        return self.zone[:-1]

    @model_validator(mode="after")
    def _blocks_can_be_laid_out(self) -> Self:
        if self.in_existing_vpc:
            return self
        prefix = IPv4Network(self.cidr).prefixlen
        if not 16 <= prefix <= 20:
            message = f"cidr must be /16 (the largest a VPC takes) to /20 (the smallest whose upper half holds GPU nodes), not /{prefix}"
            raise ValueError(message)
        if self.control_plane_zones and len(set(self.control_plane_zones)) < 2:
            message = "controlPlaneZones needs two zones or more: EKS refuses a cluster with subnets in one"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _one_kind_of_network(self) -> Self:
        if self.interface_endpoints and self.egress is not Egress.ENDPOINTS:
            message = "interfaceEndpoints go with egress: endpoints; beside a NAT gateway nothing here needs them"
            raise ValueError(message)
        if self.in_existing_vpc:
            if self.gpu_cidr is None:
                message = "routeTableId puts the GPU subnet into an existing VPC: write its block, gpuCidr"
                raise ValueError(message)
            if self.control_plane_zones or self.interface_endpoints or self.flow_logs is not None:
                message = "controlPlaneZones, interfaceEndpoints and flowLogs need a VPC of our own: beside routeTableId they do nothing"
                raise ValueError(message)
        return self
