"""One rule as plain data, for `--explain` and for the pages of the rules."""

from __future__ import annotations

import difflib
from typing import Any

from dpd_infra.rules.registry import all_rules, find_rule
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.shape_rule import SHAPE_FINDS, SHAPE_RULE, SHAPE_TITLE, SHAPE_WHY


def explained(rule_id: str) -> dict[str, Any]:
    """A rule's id, title, severity, first operator release, what it finds, why, and its sources. Raises `KeyError` with a hint."""
    wanted = rule_id.strip().upper()
    if wanted == SHAPE_RULE:
        title, finds, why, since, severity, sources = SHAPE_TITLE, SHAPE_FINDS, SHAPE_WHY, "", Severity.ERROR, ()
    else:
        ids = [SHAPE_RULE, *(rule.id for rule in all_rules())]
        if wanted not in ids:
            near = ", ".join(difflib.get_close_matches(wanted, ids, n=3))
            hint = f"near it are {near}" if near else f"they go from {ids[0]} to {ids[-1]}"
            raise KeyError(f"there is no rule {rule_id!r}: {hint}; docs/rules/README.md lists them all")
        rule = find_rule(wanted)
        title, why, since, severity, sources = rule.title, rule.why, rule.since, rule.severity, rule.sources
        finds = " ".join((rule.check.__doc__ or "").split())
    return {
        "id": wanted,
        "title": title,
        "severity": str(severity),
        "since": since,
        "finds": finds,
        "why": why,
        "sources": [str(source) for source in sources],
    }
