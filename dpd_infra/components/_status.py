"""A custom resource whose status is an output: the SDK's own class hands on what a program gave, and not what a controller wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes


class CustomResourceWithStatus(kubernetes.apiextensions.CustomResource):
    """As `kubernetes.apiextensions.CustomResource`, with `status` as it was when the resource was ready."""

    status: pulumi.Output[Mapping[str, Any] | None]

    def _internal_init(
        self,
        resource_name: str,
        api_version: str,
        kind: str,
        opts: pulumi.ResourceOptions | None = None,
        metadata: Any = None,
        spec: Any = None,
        __props__: Any = None,
    ) -> None:
        del __props__
        # An input that is None is not sent, and makes an output of what comes back under its name.
        properties = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": None}
        pulumi.CustomResource.__init__(self, f"kubernetes:{api_version}:{kind}", resource_name, properties, opts)
