"""Rules on endpoints on the way from one stack to another: routing, names and disaggregation stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpd_infra.catalog.sources import (
    CRD_3_2,
    DPD_GUIDE,
)
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.wide_subjects import UpgradeSubject, both_endpoints, is_made_anew, keeps_sagemaker_name
from dpd_infra.spec.endpoint.change import ChangeSpec
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import hashable, mapping


@rule(
    "DPD605",
    "Routing is neither added to nor taken from a live endpoint",
    severity=Severity.ERROR,
    why="The operator refuses an intelligentRoutingSpec for an endpoint that was made without one, and its `enabled` cannot be changed "
    "once it is set.",
    sources=(CRD_3_2,),
    since="2.1",
)
def routing_stays(change: UpgradeSubject) -> Iterator[Violation]:
    """Another answer to whether there is a router of the endpoint's own."""
    for before, after in both_endpoints(change):
        had, has = (bool(endpoint.get("spec", "intelligentRoutingSpec", "enabled")) for endpoint in (before, after))
        if had != has and not is_made_anew(before, after):
            yield Violation(
                (*after.rendered.context.path, "routing", "enabled"),
                f"endpoint {after.name}: routing is {'switched on' if has else 'switched off'}",
                f"keep routing.enabled: {str(had).lower()}; or {_anew(after)}",
                value=has,
            )


@rule(
    "DPD606",
    "Endpoints keep their names",
    severity=Severity.WARNING,
    why="Name and namespace are an endpoint's identity: under others it is a new one, with a new load balancer and new pods, which need "
    "nodes beside the old one's; "
    "another endpointName is another SageMaker endpoint, which callers must be told.",
    sources=(DPD_GUIDE, CRD_3_2),
)
def endpoints_keep_names(change: UpgradeSubject) -> Iterator[Violation]:
    """An endpoint renamed, moved to another namespace or under another SageMaker name."""
    gone = [name for name in change.old.endpoints if name not in change.new.endpoints]
    added = [name for name in change.new.endpoints if name not in change.old.endpoints]
    twins: dict[Any, str] = {}
    for name in added if gone else ():
        twins.setdefault(_all_but_its_name(change.new.endpoints[name]), name)
    for name in gone if twins else ():
        twin = twins.get(body) if (body := _all_but_its_name(change.old.endpoints[name])) else None
        if twin:
            yield Violation(
                (*change.new.endpoints_path, twin),
                f"endpoint {name} is renamed {twin}: it is taken down and made anew",
                f"keep the name {name}",
                value=twin,
            )
    for before, after in both_endpoints(change):
        for path, what in ((("metadata", "namespace"), "its namespace"), (("spec", "endpointName"), "the name of its SageMaker endpoint")):
            was, will = before.get(*path), after.get(*path)
            # Under one SageMaker name the move is refused by a rule of its own.
            told = is_made_anew(before, after) if path[-1] == "endpointName" else keeps_sagemaker_name(before, after)
            if was != will and not told:
                yield Violation(
                    after.at(*path),
                    f"endpoint {after.name}: {what} changes from {was or 'none'} to {will or 'none'}",
                    f"keep {was or 'it empty'}",
                    value=will,
                )


@rule(
    "DPD610",
    "A live endpoint is not turned into its twin",
    severity=Severity.ADVICE,
    why="Going back from disaggregation is documented as applying a new InferenceEndpointConfig without pdSpec; whether pdSpec may come "
    "and go on one that lives is not.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def disaggregation_stays(change: UpgradeSubject) -> Iterator[Violation]:
    """A pdSpec that is added or removed."""
    for before, after in both_endpoints(change):
        had, has = (endpoint.get("spec", "pdSpec") is not None for endpoint in (before, after))
        if had != has and not is_made_anew(before, after):
            yield Violation(
                (*after.rendered.context.path, "disaggregated"),
                f"endpoint {after.name} is {'disaggregated now' if has else 'no longer disaggregated'}",
                _anew(after),
                value=has,
            )


def _anew(after: EndpointSubject) -> str:
    """How an endpoint is made anew, for a fix."""
    change = after.spec.change if after.spec is not None else ChangeSpec()
    return (
        f"have it made anew in the same edit: change: {{mode: blueGreen, generation: {change.generation + 1}}}, or "
        f"change: {{mode: recreate, recreations: {change.recreations + 1}}} with an outage"
    )


def _all_but_its_name(endpoint: EndpointSubject) -> Any:
    """What an endpoint is, to be looked up; None where it is nothing."""
    body = {key: value for key, value in mapping(endpoint.get("spec")).items() if key != "endpointName"}
    return hashable(body) if body else None
