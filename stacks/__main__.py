"""One program for every stack: the platform and the endpoints of the stack's own file."""

from __future__ import annotations

import pulumi

import dpd_infra as dpd

stack = dpd.StackSpec.from_config()
if stack.platform is None:
    raise SystemExit("this program makes a platform: the stack file has no dpd-infra:platform")

platform = dpd.Platform("inference", stack.platform, aws_settings=stack.aws, hugging_face_tokens=stack.hugging_face_tokens())
endpoints = {
    name: dpd.Endpoint(name, spec, operator=platform.operator, hugging_face_token=stack.hugging_face_token(name))
    for name, spec in stack.endpoints.items()
}

for key, output in platform.outputs.items():
    pulumi.export(key, output)
pulumi.export("endpoints", {name: endpoint.outputs for name, endpoint in endpoints.items()})
pulumi.export("sizing", {name: endpoint.sizing for name, endpoint in endpoints.items()})
