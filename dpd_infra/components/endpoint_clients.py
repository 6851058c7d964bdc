"""Who may reach an endpoint's load balancer: a security group for clients, whose only way leads there."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.endpoint import Endpoint
from dpd_infra.components.handles import ControlPlaneHandle
from dpd_infra.plan.endpoint_names import ingress_names

HTTPS = 443
"""Where the load balancer listens (HyperPod custom certificates guide)."""

MANAGED_GROUP = "ManagedLBSecurityGroup"
"""How the AWS Load Balancer Controller marks the group that it makes for a load balancer, in the tag ingress.k8s.aws/resource."""


class EndpointClients(Component):
    """A security group for those who call an endpoint through its load balancer, and the load balancer's own group.

    The load balancer's group is the controller's: it takes back any rule that others add to it, and which blocks it lets in is not a
    field of the custom resource. What can be held is the other side: whoever carries this group reaches that load balancer and nothing
    else.
    """

    token = tokens.ENDPOINT_CLIENTS

    security_group_id: pulumi.Output[str]
    """What clients carry."""
    load_balancer_group_id: pulumi.Output[str]
    """The load balancer's own group, once the endpoint is ready."""

    def __init__(
        self,
        name: str,
        *,
        endpoint: Endpoint,
        control_plane: ControlPlaneHandle,
        account: Account,
        vpc_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`vpc_id` None: the control plane's. Raises `pulumi.RunError` where neither is known."""
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        vpc = vpc_id if vpc_id is not None else control_plane.vpc_id
        if vpc is None:
            raise pulumi.RunError("a security group for clients needs a VPC: give vpc_id, or a control plane that knows its VPC")
        manifest = endpoint.manifest
        super().__init__(name, {"endpoint": f"{manifest.namespace}/{manifest.name}"}, opts)

        ingresses = ingress_names(manifest.name, manifest.namespace)
        marks = {"ingress.k8s.aws/resource": [MANAGED_GROUP], "ingress.k8s.aws/stack": list(ingresses)}
        filters = pulumi.Output.from_input(control_plane.name).apply(
            lambda cluster: [
                aws.ec2.GetSecurityGroupsFilterArgs(name=f"tag:{tag}", values=values)
                for tag, values in ({"elbv2.k8s.aws/cluster": [cluster]} | marks).items()
            ]
        )
        found = aws.ec2.get_security_groups_output(filters=filters, opts=pulumi.InvokeOutputOptions(parent=self, depends_on=[endpoint]))
        self.load_balancer_group_id = found.apply(lambda groups: _only(groups.ids, ingresses))
        group = aws.ec2.SecurityGroup(
            f"{name}-clients",
            description=f"Clients of the endpoint {manifest.name}",
            vpc_id=vpc,
            tags=aws_tags(account, f"{manifest.name}-clients"),
            opts=self._child(),
        )
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-load-balancer",
            description="HTTPS to the endpoint's load balancer",
            security_group_id=group.id,
            referenced_security_group_id=self.load_balancer_group_id,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            tags=aws_tags(account, f"{manifest.name}-to-load-balancer"),
            opts=self._child(),
        )
        self.security_group_id = group.id
        self.register_outputs({"securityGroupId": self.security_group_id, "loadBalancerGroupId": self.load_balancer_group_id})


def _only(ids: Sequence[str], ingresses: tuple[str, ...]) -> str:
    if len(ids) != 1:
        raise pulumi.RunError(
            f"{len(ids)} security groups are marked as a load balancer's of {' or '.join(ingresses)}, where one was looked for: the "
            "AWS Load Balancer Controller makes none where an annotation gives it groups of yours"
        )
    return ids[0]
