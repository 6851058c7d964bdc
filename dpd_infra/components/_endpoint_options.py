"""The options of an endpoint: what its custom resource needs under what the caller asks for, and the token's Secret beside it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, cast

import pulumi
import pulumi_kubernetes as kubernetes

from dpd_infra.components._base import minutes
from dpd_infra.components.handles import OperatorHandle
from dpd_infra.plan.endpoint_names import TOKEN_SECRET_KEY, token_secret_name
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.endpoint.change import ChangeMode

_GRACE_MINUTES = 10
"""Pulumi waits longer than the operator does, so that a failure is told in the operator's words and not as a timeout."""

RECREATIONS = "dpd-infra/recreations"
"""The annotation whose change replaces the resource: how often it was made anew under its name."""

_BESIDE = "kubernetes:core/v1:Secret"
"""The type of what stands beside an endpoint."""


def refuse_options(name: str, opts: pulumi.ResourceOptions | None, operator: OperatorHandle) -> None:
    """An endpoint goes where its operator is. Providers of other packages are what is handed to every component: nothing to say of."""
    if opts is None:
        return
    if not isinstance(opts, pulumi.ResourceOptions):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's program may hold anything
        raise pulumi.RunError(f"endpoint {name}: opts takes a pulumi.ResourceOptions, not {type(opts).__name__}")
    bag = opts.providers or ()
    several = bag.values() if isinstance(bag, Mapping) else [bag] if isinstance(bag, pulumi.ProviderResource) else bag
    given = [opts.provider, *several]
    if any(one is not None and one.package == "kubernetes" and one is not operator.kubernetes_provider for one in given):
        message = (
            f"endpoint {name}: opts name a Kubernetes provider that is not the operator's, and an endpoint goes where its operator is: "
            "leave it out, or take the handle of the operator in that cluster"
        )
        raise pulumi.RunError(message)


def token_secret(
    name: str, spec: EndpointSpec, operator: OperatorHandle, token: pulumi.Input[str] | None, opts: pulumi.ResourceOptions | None
) -> kubernetes.core.v1.Secret:
    """The token's Secret: beside the endpoint, which waits for it.

    An endpoint that stays, or goes with its cluster, needs that of its token too, and one that moves takes it along.
    """
    own = pulumi.ResourceOptions(
        depends_on=list(operator.resources), provider=operator.kubernetes_provider, additional_secret_outputs=["data", "stringData"]
    )
    asked = opts or pulumi.ResourceOptions()
    shared = pulumi.ResourceOptions(
        parent=asked.parent,
        depends_on=asked.depends_on,
        protect=asked.protect,
        retain_on_delete=asked.retain_on_delete,
        deleted_with=asked.deleted_with,
        aliases=[_alias_beside(alias) for alias in asked.aliases or ()],
    )
    return kubernetes.core.v1.Secret(
        token_secret_name(name),
        metadata={"name": token_secret_name(name), "namespace": spec.namespace},
        string_data={TOKEN_SECRET_KEY: pulumi.Output.secret(token or "")},
        opts=pulumi.ResourceOptions.merge(own, shared),
    )


def _alias_beside(alias: Any) -> Any:
    """Where the token's Secret was while the endpoint was at `alias`: a URN, an `Alias`, or an output of one."""
    if isinstance(alias, str):
        return _urn_beside(alias)
    if not isinstance(alias, pulumi.Alias):
        return pulumi.Output.from_input(alias).apply(_alias_beside)
    before = copy(alias)
    before.type_ = cast("str", ...)  # as the SDK marks what an alias does not say
    if isinstance(alias.name, str):
        before.name = token_secret_name(alias.name)
    return before


def _urn_beside(urn: str) -> str:
    place, _, name = urn.rpartition("::")
    place, _, types = place.rpartition("::")
    above = types.rpartition("$")[0]
    return "::".join((place, f"{above}${_BESIDE}" if above else _BESIDE, token_secret_name(name)))


def endpoint_options(
    body: Mapping[str, Any],
    spec: EndpointSpec,
    operator: OperatorHandle,
    before: tuple[pulumi.Resource, ...],
    opts: pulumi.ResourceOptions | None,
) -> pulumi.ResourceOptions:
    """What the custom resource needs, under what the caller asks for."""
    deploy, delete = minutes(spec.timeouts.deploy_minutes + _GRACE_MINUTES), minutes(spec.timeouts.delete_minutes)
    own = pulumi.ResourceOptions(
        depends_on=[*operator.resources, *before],
        provider=operator.kubernetes_provider,
        ignore_changes=_autoscaled(body),
        # Not replacement_trigger: with it the Python SDK fails in every stack that has a transform (measured, pulumi 3.272).
        replace_on_changes=[f'metadata.annotations["{RECREATIONS}"]'],
        # Another name replaces it too, and then the new one is made first: its name is free.
        delete_before_replace=True if spec.change.mode is ChangeMode.RECREATE else None,
    )
    own.custom_timeouts = pulumi.CustomTimeouts(create=deploy, update=deploy, delete=delete)
    if opts is None:
        return own
    asked = copy(opts)
    asked.provider = asked.providers = None
    asked.custom_timeouts = _timeouts(own.custom_timeouts, opts.custom_timeouts)
    return pulumi.ResourceOptions.merge(own, asked)


def _timeouts(own: pulumi.CustomTimeouts, asked: pulumi.CustomTimeouts | Mapping[str, str] | None) -> pulumi.CustomTimeouts:
    """Each timeout that is asked for, and ours where none is. A mapping is what the SDK takes too."""
    given = asked if isinstance(asked, Mapping) else {} if asked is None else vars(asked)
    return pulumi.CustomTimeouts(**{key: given.get(key) or value for key, value in vars(own).items()})


def _autoscaled(body: Mapping[str, Any]) -> list[str] | None:
    """The replica counts that an autoscaler has in its hands: the file says with how many it begins, and no update sets them back."""
    scaling = body.get("pdSpec", {}).get("autoScalingSpec", {})
    roles = (("prefillSpec", "prefillAutoScaling"), ("decodingSpec", "decodingAutoScaling"))
    paths = [f"spec.pdSpec.{role}.replicas" for role, key in roles if key in scaling]
    return [*paths, *(["spec.replicas"] if "autoScalingSpec" in body else [])] or None
