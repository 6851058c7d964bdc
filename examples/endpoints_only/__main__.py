"""Endpoints alone: the platform is another stack's, and this one knows it by what that stack exports."""

from __future__ import annotations

import pulumi

import dpd_infra as dpd

stack = dpd.StackSpec.from_config()
if stack.operator is None:
    raise SystemExit("this program makes endpoints: the stack file says nothing of the operator they are for, dpd-infra:operator")

operator = dpd.OperatorHandle.from_stack("platform", pulumi.Config().require("platformStack"), expects=stack.operator)
endpoints = {
    name: dpd.Endpoint(name, spec, operator=operator, hugging_face_token=stack.hugging_face_token(name))
    for name, spec in stack.endpoints.items()
}
pulumi.export("endpoints", {name: endpoint.outputs for name, endpoint in endpoints.items()})
