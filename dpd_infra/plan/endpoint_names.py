"""The names that the operator gives to an endpoint's objects, and the limit that they set on an endpoint's own name.

Source of all of them: the DPD guide (objects, log lines, the Service's address).
"""

from __future__ import annotations

from dataclasses import dataclass

from dpd_infra.catalog.operator_releases import NAMESPACE
from dpd_infra.plan.names import DNS_LABEL_LIMIT

ROUTING_SERVICE_PORT = 443
"""The routing Service's port. It speaks plain HTTP there (DPD guide): `https://` ends in SSL: WRONG_VERSION_NUMBER."""

TOKEN_SECRET_KEY = "token"  # noqa: S105 - the key's name in the Secret
"""The key under which a Hugging Face token made from a configuration value is stored."""

_SERVICE_SUFFIX = "-routing-service"

NAME_AND_NAMESPACE_LIMIT = DNS_LABEL_LIMIT - len(_SERVICE_SUFFIX) - 1
"""46: `<name>-<namespace>-routing-service` is one DNS label of 63 characters at most."""


def generation_name(name: str, generation: int) -> str:
    """A name as a generation has it: `llama-70b`, from the second on `llama-70b-g2`. An empty name stays empty."""
    return f"{name}-g{generation}" if name and generation > 1 else name


@dataclass(frozen=True, slots=True)
class RoleDeployments:
    """The two Deployments of a DPD endpoint, in the endpoint's own namespace."""

    prefill: str
    decode: str


def role_deployment_names(name: str) -> RoleDeployments:
    """`prefill-<name>` and `decode-<name>`: also the names of the worker containers in their pods."""
    return RoleDeployments(f"prefill-{name}", f"decode-{name}")


def router_deployment_name(name: str, namespace: str) -> str:
    """The router's Deployment in hyperpod-inference-system (DPD guide's own commands and the blog; its listing shows a shorter name)."""
    return f"{name}-{namespace}-router"


def routing_service_name(name: str, namespace: str) -> str:
    """The routing Service in hyperpod-inference-system."""
    return f"{name}-{namespace}{_SERVICE_SUFFIX}"


def routing_service_url(name: str, namespace: str, invocation_endpoint: str = "") -> str:
    """Where pods of the cluster reach the endpoint: plain HTTP on port 443, with the invocation path where one is given."""
    host = f"{routing_service_name(name, namespace)}.{NAMESPACE}.svc.cluster.local"
    path = f"/{invocation_endpoint.lstrip('/')}" if invocation_endpoint else ""
    return f"http://{host}:{ROUTING_SERVICE_PORT}{path}"


def ingress_names(name: str, namespace: str) -> tuple[str, str]:
    """`<namespace>/<name>` of the endpoint's Ingress: with intelligent routing in the operator's namespace, without in its own.

    Source: the custom certificates guide; which of the two a DPD endpoint has is not said, so both are looked for.
    """
    return f"{NAMESPACE}/alb-{name}-{namespace}", f"{namespace}/alb-{name}"


def token_secret_name(name: str) -> str:
    """The Kubernetes Secret that is made for an endpoint's Hugging Face token, in the endpoint's namespace."""
    return f"{name}-hugging-face-token"
