"""An endpoint's status: as an output of its resource, and as what lets a deployment go on or ends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.components._base import Unevaluated
from dpd_infra.spec.inference_endpoint_config.status import DeploymentState

SETTLED = f"jsonpath={{.status[?(@=='{DeploymentState.DEPLOYMENT_COMPLETE}'||@=='{DeploymentState.DEPLOYMENT_FAILED}')]}}"
"""A `pulumi.com/waitFor` that ends at either end. The provider knows no condition for failure: it would go on waiting for the good end
until its timeout, and then say only that (pulumi-kubernetes, provider/pkg/await/internal/awaiter.go). It waits for
`status.observedGeneration` by itself, so an end that was reached before an update is none (condition/jsonpath.go)."""


class CustomResourceWithStatus(Unevaluated, kubernetes.apiextensions.CustomResource):
    """As `kubernetes.apiextensions.CustomResource`, with `status` as it was when the wait ended.

    The SDK's own class hands on what a program gave, and not what a controller wrote.
    """

    status: pulumi.Output[Mapping[str, Any] | None]

    @property
    def api_version(self) -> pulumi.Output[str]:
        """As the SDK's own class has it."""
        return vars(self)["apiVersion"]

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


def refuse_failed(name: str, status: Mapping[str, Any] | None) -> None:
    """End the program where the operator gave an endpoint up, and warn where it is not done. Raises `pulumi.RunError`."""
    state = (status or {}).get("state")
    if state == DeploymentState.DEPLOYMENT_FAILED:
        raise pulumi.RunError(
            f"endpoint {name}: the operator says {state}: {_said(status or {}) or 'no more than that'}. The resource is made and "
            "in the state: change the endpoint, or mend what is named here and run `pulumi up --refresh`, which looks at it again"
        )
    if state not in {None, DeploymentState.DEPLOYMENT_COMPLETE}:
        pulumi.log.warn(f"endpoint {name}: the operator says {state}, it does not serve yet")


def _said(status: Mapping[str, Any]) -> str:
    """The operator's own words, newest first: of the deployment, and of conditions that do not hold."""
    deployment = status.get("deploymentStatus") or {}
    words = [deployment.get("message") or deployment.get("reason")]
    words += [one.get("message") or one.get("reason") for one in status.get("conditions") or () if one.get("status") != "True"]
    return "; ".join(dict.fromkeys(word for word in words if word))
