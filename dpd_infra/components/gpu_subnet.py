"""The network beside an EKS cluster of somebody else's: one GPU subnet in that cluster's VPC, and the nodes' security groups."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of
from dpd_infra.components._security_groups import node_security_groups
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.handles import ControlPlaneHandle, NetworkHandle
from dpd_infra.components.network import INTERNAL_LOAD_BALANCER_TAG
from dpd_infra.plan.subnets import secondary_cidr
from dpd_infra.spec.network import NetworkSpec


class GpuSubnet(Component):
    """A private subnet of one zone, routed by a table of the VPC's owner.

    Nodes carry the EFA group, the group with the way out, and the EKS cluster's own group: by its rule to itself the control plane and
    the nodes reach each other, and by its tag the load balancer controller finds it. Nothing of the VPC's owner is changed but that a
    `gpuCidr` outside of the VPC's block is associated with the VPC.
    """

    __slots__ = ("handle",)
    token = tokens.GPU_SUBNET

    subnet_id: pulumi.Output[str]
    efa_security_group_id: pulumi.Output[str]
    node_security_group_id: pulumi.Output[str]
    """The group with the way out."""
    handle: NetworkHandle

    def __init__(
        self,
        name: str,
        spec: NetworkSpec,
        *,
        account: Account,
        control_plane: ControlPlaneHandle,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Raises `pulumi.RunError` for a spec of a VPC of our own, or a control plane whose VPC is not known."""
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        vpc_id = control_plane.vpc_id
        if not spec.in_existing_vpc or vpc_id is None:
            raise pulumi.RunError("a GPU subnet in an existing VPC needs routeTableId with gpuCidr, and a control plane that knows its VPC")
        super().__init__(name, {"zone": spec.zone, "cidr": spec.gpu_cidr}, opts)

        blocks = []
        if block := secondary_cidr(spec):
            blocks.append(aws.ec2.VpcIpv4CidrBlockAssociation(f"{name}-cidr", vpc_id=vpc_id, cidr_block=block, opts=self._child()))
        subnet = aws.ec2.Subnet(
            f"{name}-gpu",
            vpc_id=vpc_id,
            availability_zone=spec.zone,
            cidr_block=spec.gpu_cidr,
            tags=aws_tags(account, "gpu", {INTERNAL_LOAD_BALANCER_TAG: "1"}),
            # As in `Network`: a subnet with the same block cannot be made beside the old one.
            opts=self._child(depends_on=blocks, delete_before_replace=True),
        )
        association = aws.ec2.RouteTableAssociation(
            f"{name}-gpu-routes", subnet_id=subnet.id, route_table_id=spec.route_table_id, opts=self._child()
        )
        groups = node_security_groups(self, name, vpc_id=vpc_id, account=account, cluster_name=None)

        self.subnet_id, self.efa_security_group_id, self.node_security_group_id = subnet.id, groups.efa.id, groups.nodes.id
        handle = NetworkHandle(
            zone=spec.zone,
            vpc_id=vpc_id,
            gpu_subnet_ids=pulumi.Output.all(subnet.id),
            control_plane_subnet_ids=[],
            node_security_group_ids=pulumi.Output.all(groups.efa.id, groups.nodes.id),
            resources=(*groups.rules, association),
        )
        self.handle = handle.joined_to(control_plane)
        self.register_outputs(
            {
                "subnetId": self.subnet_id,
                "efaSecurityGroupId": self.efa_security_group_id,
                "nodeSecurityGroupId": self.node_security_group_id,
            }
        )
