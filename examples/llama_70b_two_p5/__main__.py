"""Llama 3.3 70B with prefill and decode apart: an empty account becomes the published example."""

from __future__ import annotations

import pulumi

import dpd_infra as dpd

stack = dpd.StackSpec.from_config()
if stack.platform is None:
    raise SystemExit("this program makes a platform: the stack file has no dpd-infra:platform")
platform = dpd.Platform("inference", stack.platform, aws_settings=stack.aws)
endpoint = dpd.Endpoint("dpd-test", stack.endpoints["dpd-test"], operator=platform.operator)

pulumi.export("url", endpoint.url)
pulumi.export("endpointName", endpoint.endpoint_name)
