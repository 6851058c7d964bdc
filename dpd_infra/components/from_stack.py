"""An operator of another stack: what that stack exports, held against what is needed and what was promised, before any manifest is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from dpd_infra.catalog.operator_releases import ADDON_NAME, AddonVersion
from dpd_infra.components._cluster_access import provider_of
from dpd_infra.components._live import live_settings, made_options
from dpd_infra.components.handles import OperatorHandle
from dpd_infra.spec.aws import AwsSettings
from dpd_infra.spec.operator import OperatorFacts

NEEDED: Mapping[str, type] = {
    "region": str,
    "eksClusterName": str,
    "eksEndpoint": str,
    "eksCertificateAuthority": str,
    "kubernetesIdentifier": str,
    "hyperPodClusterName": str,
    "operatorAddonVersion": str,
    "closedNetwork": bool,
}
"""What is needed of the other stack, with its type: the names are those of `Platform.outputs`."""

_TYPE_NAMES = {str: "text", bool: "true or false"}


def operator(
    name: str, stack: str, *, expects: OperatorFacts, aws_settings: AwsSettings | None, opts: pulumi.ResourceOptions | None
) -> OperatorHandle:
    """See `OperatorHandle.from_stack`."""
    reference = pulumi.StackReference(name, stack_name=stack, opts=made_options(opts))
    outputs = reference.outputs.apply(lambda exported: checked_outputs(exported, stack))
    settings = _settings(aws_settings, stack)
    provider = provider_of(
        f"{name}-kubernetes",
        cluster_name=outputs.apply(lambda known: known["eksClusterName"]),
        endpoint=outputs.apply(lambda known: known["eksEndpoint"]),
        certificate_authority=outputs.apply(lambda known: known["eksCertificateAuthority"]),
        identifier=outputs.apply(lambda known: known["kubernetesIdentifier"]),
        settings=settings,
        opts=made_options(opts),
    )
    return OperatorHandle(
        facts=expects,
        addon_version=outputs.apply(lambda known: promised_version(known, expects, settings.region, stack)),
        kubernetes_provider=provider,
        cluster_name=outputs.apply(lambda known: known["hyperPodClusterName"]),
        region=settings.region,
        resources=(provider,),
    )


def checked_outputs(exported: Mapping[str, Any] | None, stack: str) -> Mapping[str, Any]:
    """The outputs, or `pulumi.RunError` naming the stack and every output that is missing or of another type."""
    found = exported or {}
    problems = [f"{key} is missing" for key in NEEDED if found.get(key) is None]
    problems += [
        f"{key} is {found[key]!r}, not {_TYPE_NAMES[kind]}"
        for key, kind in NEEDED.items()
        if found.get(key) is not None and not isinstance(found[key], kind)
    ]
    if problems:
        raise pulumi.RunError(
            f"the stack {stack} does not export what endpoints need: {'; '.join(problems)}. Export every output of its platform: "
            "`for key, output in platform.outputs.items(): pulumi.export(key, output)`"
        )
    return found


def promised_version(known: Mapping[str, Any], expects: OperatorFacts, region: str, stack: str) -> str:
    """The add-on version that the other stack has, or `pulumi.RunError` where the stack is not what the rules went by."""
    problems = []
    if known["region"] != region:
        problems.append(f"it is in {known['region']}, this stack in {region}")
    try:
        older = AddonVersion.parse(known["operatorAddonVersion"]) < AddonVersion.parse(expects.addon_version)
    except ValueError as error:
        problems.append(f"operatorAddonVersion: {error}")
    else:
        if older:
            problems.append(f"its add-on {ADDON_NAME} is at {known['operatorAddonVersion']}, older than {expects.addon_version}")
    if known["closedNetwork"] and not expects.closed_network:
        problems.append("its network is closed, and this stack was checked for one with a way out (closedNetwork)")
    if problems:
        raise pulumi.RunError(f"the stack {stack} is not what its endpoints were checked for: {'; '.join(problems)}")
    return known["operatorAddonVersion"]


def _settings(given: AwsSettings | None, stack: str) -> AwsSettings:
    region = given.region if given is not None else pulumi.Config("aws").get("region")
    if region is None:
        raise pulumi.RunError(f"set aws:region to the region of the stack {stack}: manifests are made for it")
    return live_settings(given, region)
