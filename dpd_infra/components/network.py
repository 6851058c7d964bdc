"""The network: one VPC with the GPU subnet, the EKS subnets, one way out, and the security groups of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from dpd_infra.components import tokens
from dpd_infra.components._base import Component
from dpd_infra.components._security_groups import ANYWHERE, NodeSecurityGroups, Way, node_security_groups
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.closed_network import flow_logs, interface_endpoints
from dpd_infra.components.handles import NetworkHandle
from dpd_infra.plan.subnets import SubnetKind, SubnetPlan, plan_subnets, secondary_cidr
from dpd_infra.rules.parts import check_part
from dpd_infra.spec.network import NetworkSpec
from dpd_infra.spec.vocabulary import Egress
from dpd_infra.stack import refuse_errors

INTERNAL_LOAD_BALANCER_TAG = "kubernetes.io/role/internal-elb"
"""Marks the subnets of internal load balancers (AWS Load Balancer Controller, subnet discovery)."""


class Network(Component):
    """A VPC whose GPU nodes live in one subnet of one zone, with a way to S3, and one out through NAT or to AWS's APIs alone."""

    __slots__ = ("handle",)
    token = tokens.NETWORK

    vpc_id: pulumi.Output[str]
    gpu_subnet_id: pulumi.Output[str]
    control_plane_subnet_ids: pulumi.Output[list[str]]
    """In the order of their zones."""
    public_subnet_id: pulumi.Output[str] | None
    """None where the network is closed."""
    efa_security_group_id: pulumi.Output[str]
    node_security_group_id: pulumi.Output[str]
    """The group with the way out."""
    nat_public_ip: pulumi.Output[str] | None
    """The address that the nodes' traffic comes from; None where the network is closed."""
    vpc: aws.ec2.Vpc
    handle: NetworkHandle

    def __init__(
        self, name: str, spec: NetworkSpec, *, account: Account, cluster_name: str | None = None, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`cluster_name` is the EKS cluster's: its load balancer controller finds the nodes' group by it. None: it opens no way in."""
        plans = plan_subnets(spec)
        refuse_errors(check_part(region=account.region, network=spec))
        super().__init__(name, {"zone": spec.zone}, opts)
        self._account, self._at, self._spec = account, name, spec

        self.vpc = self._vpc()
        subnets = self._subnets(plans)
        gpu = subnets["gpu"]
        private_table = self._route_table("private")
        associations = {
            plan.name: self._association(plan.name, subnets[plan.name], private_table)
            for plan in plans
            if plan.kind is not SubnetKind.PUBLIC
        }
        if spec.egress is Egress.NAT:
            s3, ways, groups = self._open(plans, subnets, private_table, cluster_name)
        else:
            s3, ways, groups = self._closed(plans, subnets, private_table, cluster_name)
        if spec.flow_logs is not None:
            flow_logs(self, name, spec.flow_logs, vpc_id=self.vpc.id, account=account)

        self.vpc_id, self.gpu_subnet_id = self.vpc.id, gpu.id
        self.control_plane_subnet_ids = pulumi.Output.all(
            *(subnets[plan.name].id for plan in plans if plan.kind is SubnetKind.CONTROL_PLANE)
        )
        self.efa_security_group_id, self.node_security_group_id = groups.efa.id, groups.nodes.id
        self.handle = NetworkHandle(
            zone=spec.zone,
            vpc_id=self.vpc_id,
            gpu_subnet_ids=pulumi.Output.all(gpu.id),
            control_plane_subnet_ids=self.control_plane_subnet_ids,
            node_security_group_ids=pulumi.Output.all(groups.efa.id, groups.nodes.id),
            resources=(*ways, s3, *groups.rules, associations["gpu"]),
        )
        self.register_outputs(
            {
                "vpcId": self.vpc_id,
                "gpuSubnetId": self.gpu_subnet_id,
                "controlPlaneSubnetIds": self.control_plane_subnet_ids,
                "publicSubnetId": self.public_subnet_id,
                "efaSecurityGroupId": self.efa_security_group_id,
                "nodeSecurityGroupId": self.node_security_group_id,
                "natPublicIp": self.nat_public_ip,
            }
        )

    def _vpc(self) -> aws.ec2.Vpc:
        vpc = aws.ec2.Vpc(
            f"{self._at}-vpc",
            cidr_block=self._spec.cidr,
            # EKS's private endpoint resolves only with both (EKS user guide, cluster endpoint access).
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=aws_tags(self._account, "vpc"),
            opts=self._child(),
        )
        # Without rules: what ends up in it by mistake reaches nothing.
        aws.ec2.DefaultSecurityGroup(
            f"{self._at}-default", vpc_id=vpc.id, ingress=[], egress=[], tags=aws_tags(self._account, "default"), opts=self._child()
        )
        return vpc

    def _subnets(self, plans: Sequence[SubnetPlan]) -> dict[str, aws.ec2.Subnet]:
        """Every subnet by the name of its plan."""
        blocks: list[pulumi.Resource] = []
        if block := secondary_cidr(self._spec):
            blocks.append(
                aws.ec2.VpcIpv4CidrBlockAssociation(f"{self._at}-gpu-cidr", vpc_id=self.vpc.id, cidr_block=block, opts=self._child())
            )
        return {
            plan.name: aws.ec2.Subnet(
                f"{self._at}-{plan.name}",
                vpc_id=self.vpc.id,
                availability_zone=plan.zone,
                cidr_block=plan.cidr,
                tags=aws_tags(self._account, plan.name, _load_balancer_tag(self._spec, plan)),
                # A new subnet with the same block cannot be made beside the old one (EC2: InvalidSubnet.Conflict); deleting first also lets
                # the engine see at once that the protected cluster would have to go.
                opts=self._child(depends_on=blocks if plan.kind is SubnetKind.GPU else (), delete_before_replace=True),
            )
            for plan in plans
        }

    def _open(
        self, plans: Sequence[SubnetPlan], subnets: Mapping[str, aws.ec2.Subnet], private: aws.ec2.RouteTable, cluster_name: str | None
    ) -> tuple[aws.ec2.VpcEndpoint, tuple[pulumi.Resource, ...], NodeSecurityGroups]:
        """The way to S3, the way out through NAT, and the nodes' groups."""
        public = next(subnets[plan.name] for plan in plans if plan.kind is SubnetKind.PUBLIC)
        public_table, public_side = self._public_side(public)
        nat_route, address = self._nat(public, public_side, private)
        self.public_subnet_id, self.nat_public_ip = public.id, address.public_ip
        s3 = self._s3_endpoint([public_table, private])
        return s3, (nat_route,), node_security_groups(self, self._at, vpc_id=self.vpc.id, account=self._account, cluster_name=cluster_name)

    def _closed(
        self, plans: Sequence[SubnetPlan], subnets: Mapping[str, aws.ec2.Subnet], private: aws.ec2.RouteTable, cluster_name: str | None
    ) -> tuple[aws.ec2.VpcEndpoint, tuple[pulumi.Resource, ...], NodeSecurityGroups]:
        """The way to S3, the interface endpoints, and the nodes' groups, whose way out ends in the VPC and at S3."""
        self.public_subnet_id = self.nat_public_ip = None
        s3 = self._s3_endpoint([private])
        blocks = {"vpc": self._spec.cidr}
        if secondary := secondary_cidr(self._spec):
            blocks["gpu"] = secondary
        in_gpu_zone = [plan.name for plan in plans if plan.kind is SubnetKind.CONTROL_PLANE and plan.zone == self._spec.zone]
        endpoints = interface_endpoints(
            self,
            self._at,
            vpc_id=self.vpc.id,
            # Not beside the nodes where there is another subnet: theirs can never be resized.
            subnet_id=subnets[next(iter(in_gpu_zone), "gpu")].id,
            blocks=blocks,
            more=self._spec.interface_endpoints,
            account=self._account,
        )
        ways = {suffix: Way(cidr=block) for suffix, block in blocks.items()} | {"s3": Way(prefix_list_id=s3.prefix_list_id)}
        groups = node_security_groups(self, self._at, vpc_id=self.vpc.id, account=self._account, cluster_name=cluster_name, ways_out=ways)
        return s3, endpoints, groups

    def _public_side(self, subnet: aws.ec2.Subnet) -> tuple[aws.ec2.RouteTable, tuple[aws.ec2.Route, aws.ec2.RouteTableAssociation]]:
        """The public route table, and what makes the subnet public: its route to the internet, and the subnet's place at it."""
        gateway = aws.ec2.InternetGateway(
            f"{self._at}-internet", vpc_id=self.vpc.id, tags=aws_tags(self._account, "internet"), opts=self._child()
        )
        table = self._route_table("public")
        route = aws.ec2.Route(
            f"{self._at}-public-default",
            route_table_id=table.id,
            destination_cidr_block=ANYWHERE,
            gateway_id=gateway.id,
            opts=self._child(),
        )
        return table, (route, self._association("public", subnet, table))

    def _nat(
        self, public: aws.ec2.Subnet, public_side: tuple[aws.ec2.Route, aws.ec2.RouteTableAssociation], private: aws.ec2.RouteTable
    ) -> tuple[aws.ec2.Route, aws.ec2.Eip]:
        """The private table's route to NAT, and NAT's address: one NAT gateway, in the GPU zone, because all nodes are there."""
        # Both need the internet gateway without naming it (EC2: Gateway.NotAttached), on the way up and on the way down.
        to_internet = public_side[:1]
        address = aws.ec2.Eip(
            f"{self._at}-nat-address", domain="vpc", tags=aws_tags(self._account, "nat"), opts=self._child(depends_on=to_internet)
        )
        nat = aws.ec2.NatGateway(
            f"{self._at}-nat",
            subnet_id=public.id,
            allocation_id=address.allocation_id,
            tags=aws_tags(self._account, "nat"),
            opts=self._child(depends_on=public_side),
        )
        route = aws.ec2.Route(
            f"{self._at}-private-default",
            route_table_id=private.id,
            destination_cidr_block=ANYWHERE,
            nat_gateway_id=nat.id,
            opts=self._child(),
        )
        return route, address

    def _route_table(self, suffix: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(f"{self._at}-{suffix}", vpc_id=self.vpc.id, tags=aws_tags(self._account, suffix), opts=self._child())

    def _association(self, suffix: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable) -> aws.ec2.RouteTableAssociation:
        return aws.ec2.RouteTableAssociation(
            f"{self._at}-{suffix}-routes", subnet_id=subnet.id, route_table_id=table.id, opts=self._child()
        )

    def _s3_endpoint(self, tables: Sequence[aws.ec2.RouteTable]) -> aws.ec2.VpcEndpoint:
        """S3 without NAT, from every subnet: models come this way, and SageMaker fetches the endpoint's certificate by it (setup guide)."""
        return aws.ec2.VpcEndpoint(
            f"{self._at}-s3",
            vpc_id=self.vpc.id,
            service_name=f"com.amazonaws.{self._account.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            tags=aws_tags(self._account, "s3"),
            opts=self._child(),
        )


def _load_balancer_tag(spec: NetworkSpec, plan: SubnetPlan) -> dict[str, str]:
    """One subnet a zone, two zones or more, as an ALB wants them; in the GPU zone the nodes' own, or its targets stay unused.

    Of two marked subnets in one zone the controller would take the one whose id sorts first (its guide to subnet discovery).
    """
    elsewhere = plan.kind is SubnetKind.CONTROL_PLANE and plan.zone != spec.zone
    return {INTERNAL_LOAD_BALANCER_TAG: "1"} if plan.kind is SubnetKind.GPU or elsewhere else {}
