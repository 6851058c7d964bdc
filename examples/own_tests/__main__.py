"""A platform, an endpoint, and the way of an application to it: both VPCs are peered."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

import dpd_infra as dpd

stack = dpd.StackSpec.from_config()
if stack.platform is None:
    raise SystemExit("this program makes a platform: the stack file has no dpd-infra:platform")
platform = dpd.Platform("chat", stack.platform, aws_settings=stack.aws)
endpoint = dpd.Endpoint("llama-70b", stack.endpoints["llama-70b"], operator=platform.operator)

application = pulumi.Config().require_object("application")
peering = aws.ec2.VpcPeeringConnection(
    "chat-application",
    vpc_id=platform.outputs["vpcId"],
    peer_vpc_id=application["vpcId"],
    auto_accept=True,
    tags={**stack.platform.tags, "Name": "chat-application"},
    opts=pulumi.ResourceOptions(parent=platform),
)

pulumi.export("url", endpoint.url)
pulumi.export("peeringId", peering.id)
