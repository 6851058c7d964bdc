"""Policies on how an endpoint is registered, beside what its manifest says: that Pulumi waits for it, and long enough."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, Source
from dpd_infra.policy.registration import ENDPOINT_TYPES, Registration, mapping
from dpd_infra.policy.registry import Breach, Context, resource_policy
from dpd_infra.spec.finding import Severity

PULUMI_KUBERNETES_AWAIT = Source(
    "pulumi-kubernetes: await logic and annotations", "pulumi-kubernetes 4.34, provider/pkg/await and metadata"
)

WAIT_FOR = "pulumi.com/waitFor"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT = "pulumi.com/timeoutSeconds"


@resource_policy(
    "DPD714",
    "Pulumi waits until an endpoint serves",
    types=ENDPOINT_TYPES,
    severity=Severity.ERROR,
    why="Without `pulumi.com/waitFor` a custom resource counts as ready as soon as the API server has taken it, so `up` ends well before "
    "the model is loaded; and without a timeout of its own it is given up after ten minutes, which no 70B model is loaded in.",
    sources=(PULUMI_KUBERNETES_AWAIT, CRD_3_2),
)
def endpoint_is_waited_for(endpoint: Registration, _context: Context) -> Iterator[Breach]:
    """An endpoint without `pulumi.com/waitFor`, or without a timeout for create and for update."""
    annotations = mapping(endpoint.get("metadata", "annotations"))
    if not annotations.get(WAIT_FOR):
        value = "jsonpath={.status.state}=DeploymentComplete"
        yield Breach(f"the annotation {WAIT_FOR} is missing", f"set it to {value}, the operator's own word that the endpoint serves")
    missing = [name for name in ("create", "update") if not getattr(endpoint.timeouts, name)]
    if missing and not annotations.get(TIMEOUT):
        yield Breach(f"no timeout is set for {' and '.join(missing)}", "set customTimeouts to what loading the model takes, 70 minutes say")


@resource_policy(
    "DPD715",
    "Nobody skips the wait for an endpoint",
    types=ENDPOINT_TYPES,
    severity=Severity.ERROR,
    why="`pulumi.com/skipAwait` wins over waitFor: what follows starts against an endpoint that does not serve.",
    sources=(PULUMI_KUBERNETES_AWAIT,),
)
def endpoint_wait_is_not_skipped(endpoint: Registration, _context: Context) -> Iterator[Breach]:
    """An endpoint with `pulumi.com/skipAwait: "true"`."""
    annotations = mapping(endpoint.get("metadata", "annotations"))
    if str(annotations.get(SKIP_AWAIT, "")).lower() == "true":
        yield Breach(f"the annotation {SKIP_AWAIT} is true", "take it away")
