"""An endpoint: one InferenceEndpointConfig, a resource of its own, ready when the operator says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pulumi

from dpd_infra.catalog.operator_releases import AddonVersion
from dpd_infra.components._base import handle_of
from dpd_infra.components._endpoint_options import RECREATIONS, endpoint_options, refuse_options, token_secret
from dpd_infra.components._status import SETTLED, CustomResourceWithStatus, refuse_failed
from dpd_infra.components.handles import OperatorHandle
from dpd_infra.plan.endpoint_names import (
    role_deployment_names,
    router_deployment_name,
    routing_service_url,
)
from dpd_infra.render.endpoint import RenderedManifest, endpoint_context, render_endpoint
from dpd_infra.rules.accepted import accepted
from dpd_infra.rules.check import check_endpoint
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.stack import refuse_errors

if TYPE_CHECKING:
    from dpd_infra.sizing import ShortSizing


class Endpoint(CustomResourceWithStatus):
    """A model served with prefill and decode apart, or by its colocated twin.

    It is the custom resource itself and no component around it: an endpoint is one object of the cluster, so the caller's options (parent,
    `protect`, aliases, timeouts, hooks) are those of that object, and a thousand endpoints are a thousand resources.
    """

    __slots__ = ("manifest",)  # no output: see `Component`

    manifest: RenderedManifest
    """What was rendered, with where each value comes from."""

    def __init__(
        self,
        name: str,
        spec: EndpointSpec,
        *,
        operator: OperatorHandle,
        hugging_face_token: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`name` is the resource's own name in the cluster, followed by its generation from the second on.

        `hugging_face_token` is the secret behind the spec's `token.configKey`. `opts` go before what is set here, but for the provider:
        that is the operator's, and each timeout that `opts` leave open. The secret stands beside the endpoint, and from `opts` it has what
        says where it belongs and how long it stays: parent, aliases, dependencies, `protect`, `retain_on_delete` and `deleted_with`.

        Raises `StackRefused` for a spec that breaks a rule, before anything is registered, and `pulumi.RunError` where the spec names a
        token's configuration key and no token is given, or where `opts` name another cluster's provider or are none.
        """
        operator = handle_of(operator, OperatorHandle, "operator")
        facts = operator.facts
        context = endpoint_context(name, region=operator.region, addon_version=facts.addon_version, image_mirrors=facts.image_mirrors)
        known = accepted(spec, context, facts)
        self.manifest = known.manifest if known else render_endpoint(name, spec, context)
        refuse_errors(known.findings if known else check_endpoint(EndpointSubject(name, self.manifest, spec, None, facts)))
        config_key = _token_config_key(spec)
        if config_key is not None and hugging_face_token is None:
            message = f"endpoint {name}: model.huggingFace.token.configKey names {config_key}: pass its secret as hugging_face_token"
            raise pulumi.RunError(message)
        refuse_options(name, opts, operator)
        self._spec = spec
        # Plain, because the engine need not wait for them; an output of each would be half of what registering an endpoint costs.
        self._names = _names(self.manifest, spec)

        before = () if config_key is None else (token_secret(name, spec, operator, hugging_face_token, opts),)
        document = self.manifest.document
        gate, version = _gated(document["spec"], facts, name), operator.addon_version
        super().__init__(
            name,
            api_version=document["apiVersion"],
            kind=document["kind"],
            metadata=_metadata(document["metadata"], spec),
            # A version that is known is looked at here: an output would have the SDK walk the whole manifest once more.
            spec=gate(version) if isinstance(version, str) else pulumi.Output.from_input(version).apply(gate),
            opts=endpoint_options(document["spec"], spec, operator, before, opts),
        )
        if pulumi.runtime.is_dry_run():
            # A preview tells what the numbers come to; `up` has had its preview, or wants none. As a message of the stack: the SDK sends
            # that at once, in the order of the endpoints, and one of a resource only where the program lives long enough.
            pulumi.log.info(self._short_sizing().text)
        else:
            _ = self.certificate  # it ends the program where the operator gave the endpoint up

    @cached_property
    def certificate(self) -> pulumi.Output[dict[str, Any] | None]:
        """Where the certificate of the CA is that clients of the load balancer trust, as the operator's status says.

        `bucket`, `keys`, `arn` in ACM and `domains`; None where the status says nothing of one.
        """
        return self.status.apply(self._certificate_when_ready)

    @cached_property
    def endpoint_name(self) -> pulumi.Output[str | None]:
        """The SageMaker endpoint; None where there is none."""
        return self._after("endpointName")

    @cached_property
    def url(self) -> pulumi.Output[str]:
        """Where pods of the cluster reach it: plain HTTP."""
        return self._after("url")

    @cached_property
    def prefill_deployment(self) -> pulumi.Output[str | None]:
        """The prefill role's Deployment, in the endpoint's namespace; None while it is not disaggregated."""
        return self._after("prefillDeployment")

    @cached_property
    def decode_deployment(self) -> pulumi.Output[str | None]:
        """The decode role's Deployment; None while it is not disaggregated."""
        return self._after("decodeDeployment")

    @cached_property
    def router_deployment(self) -> pulumi.Output[str | None]:
        """The router's Deployment in the operator's namespace; None without a router."""
        return self._after("routerDeployment")

    @cached_property
    def outputs(self) -> dict[str, pulumi.Output[Any]]:
        """All of these by camelCase name: what a stack exports."""
        return {
            "endpointName": self.endpoint_name,
            "url": self.url,
            "prefillDeployment": self.prefill_deployment,
            "decodeDeployment": self.decode_deployment,
            "routerDeployment": self.router_deployment,
            "certificate": self.certificate,
        }

    def _after(self, name: str) -> pulumi.Output[Any]:
        """A name once the resource is ready: whatever takes it waits for that. A preview has no status to go by."""
        ready: pulumi.Output[Any] = self.urn if pulumi.runtime.is_dry_run() else self.certificate
        return ready.apply(lambda _: self._names[name])

    def _certificate_when_ready(self, status: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if not pulumi.runtime.is_dry_run():
            refuse_failed(self.manifest.name, status)
        return _certificate(status)

    @property
    def sizing(self) -> dict[str, Any]:
        """KV cache, PD buffer and memory of the endpoint in plain numbers, for `pulumi.export`.

        `notSized` with the reason where the catalog does not hold its model or its GPU. `dpd size` has the rest.
        """
        return dict(self._short_sizing().data)

    def _short_sizing(self) -> ShortSizing:
        from dpd_infra.plan.sizing.load import workload_of  # noqa: PLC0415 - a program that asks for no sizes does not pay for them
        from dpd_infra.sizing import short_sizing  # noqa: PLC0415 - the same

        load = workload_of(self._spec.load) if self._spec.load is not None else None
        return short_sizing(self.manifest.name, self.manifest.document, load)


def _metadata(rendered: Mapping[str, Any], spec: EndpointSpec) -> dict[str, Any]:
    annotations = {**rendered.get("annotations", {}), "pulumi.com/waitFor": SETTLED}
    if spec.change.recreations:
        annotations[RECREATIONS] = str(spec.change.recreations)
    return {**rendered, "annotations": annotations}


def _names(manifest: RenderedManifest, spec: EndpointSpec) -> dict[str, str | None]:
    """What an endpoint is called and where it is reached, all known from its manifest."""
    name, metadata, body = manifest.name, manifest.document["metadata"], manifest.document["spec"]
    disaggregated = "pdSpec" in body
    routed = disaggregated or body.get("intelligentRoutingSpec", {}).get("enabled") is True
    roles = role_deployment_names(name)
    return {
        "endpointName": body.get("endpointName") or None,
        "url": routing_service_url(name, metadata["namespace"], body.get("invocationEndpoint", "")),
        "prefillDeployment": roles.prefill if disaggregated else None,
        "decodeDeployment": roles.decode if disaggregated else None,
        "routerDeployment": router_deployment_name(name, spec.namespace) if routed else None,
    }


def _token_config_key(spec: EndpointSpec) -> str | None:
    source = spec.model.hugging_face
    return source.token.config_key if source is not None and source.token is not None else None


def _certificate(status: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the status says of the certificate (CRD: status.tlsCertificate)."""
    report = (status or {}).get("tlsCertificate") or {}
    found = {
        "bucket": report.get("tlsCertificateOutputS3Bucket"),
        "keys": report.get("tlsCertificateS3Keys"),
        "arn": report.get("certificateARN"),
        "domains": report.get("certificateDomainNames"),
    }
    return {key: value for key, value in found.items() if value is not None} or None


def _gated(body: dict[str, Any], facts: OperatorFacts, name: str) -> Callable[[str], dict[str, Any]]:
    """The manifest's spec, let through only where the operator that is there is no older than the one the rules went by."""

    def gate(actual: str) -> dict[str, Any]:
        if AddonVersion.parse(actual) < AddonVersion.parse(facts.addon_version):
            message = (
                f"endpoint {name} was checked for inference add-on {facts.addon_version}, the cluster has {actual}: raise it there, "
                "or check for the version that is there (OperatorFacts)"
            )
            raise pulumi.RunError(message)
        return body

    return gate
