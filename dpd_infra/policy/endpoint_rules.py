"""The rules on endpoints as policies: the properties of an InferenceEndpointConfig are its manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from dpd_infra.policy.registration import ENDPOINT_TYPES, NotKnownYet, Registration, unknown_places
from dpd_infra.policy.registry import Breach, Context, OneCheck, ResourcePolicy
from dpd_infra.rules.check import check_endpoint
from dpd_infra.rules.manifest_file import manifest_subject
from dpd_infra.rules.registry import all_rules
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.finding import Finding, pointer
from dpd_infra.spec.operator import OperatorFacts

BEYOND_THE_MANIFEST = frozenset(
    {
        *("DPD005", "DPD021", "DPD023", "DPD122", "DPD123", "DPD128", "DPD210", "DPD413", "DPD422", "DPD423", "DPD443"),
        *("DPD445", "DPD446", "DPD454", "DPD550", "DPD551", "DPD553", "DPD571", "DPD580", "DPD612", "DPD614"),
    }
)
"""Rules on an endpoint that read the stack file around it: its platform, its region, what it silences, what is to be worked out, how it is
to change. A registration has none of that; `dpd check` and the components hold them."""

_MANIFEST_KEYS = ("apiVersion", "kind", "metadata", "spec")


def endpoint_policies() -> Iterator[ResourcePolicy]:
    """One policy for each rule that a manifest alone is enough for, under the rule's own id."""
    for rule in all_rules():
        if rule.scope is EndpointSubject and rule.id not in BEYOND_THE_MANIFEST:
            yield ResourcePolicy(rule.id, rule.title, rule.severity, rule.why, rule.sources, ENDPOINT_TYPES.__contains__, _check(rule.id))


def _check(rule_id: str) -> OneCheck:
    def check(registration: Registration, context: Context) -> Iterator[Breach]:
        for finding in findings(registration, context.operator):
            if finding.rule == rule_id:
                place = f"{pointer(finding.path)}: " if finding.path else ""
                yield Breach(f"{place}{finding.what}", finding.fix)

    return check


def findings(registration: Registration, operator: OperatorFacts | None) -> tuple[Finding, ...]:
    """Everything the rules find on a registered endpoint. Raises `NotKnownYet` where a preview does not know all of its manifest.

    What an endpoint's entry in a stack file silences is not silenced here: it is the pack's user who sets a policy's enforcement level.
    """
    manifest = {key: registration.props[key] for key in _MANIFEST_KEYS if registration.props.get(key) is not None}
    unknown = next(unknown_places(manifest), None)
    if unknown is not None:
        raise NotKnownYet(unknown)
    return _findings(json.dumps(manifest), operator.addon_version if operator is not None else "")


@lru_cache(maxsize=64)
def _findings(manifest: str, addon_version: str) -> tuple[Finding, ...]:
    """Each policy asks for its own findings: the rules run once a manifest, together."""
    document: dict[str, Any] = json.loads(manifest)
    operator = OperatorFacts(addon_version=addon_version) if addon_version else None
    return tuple(check_endpoint(manifest_subject(document, operator=operator), heeds_silences=False))
