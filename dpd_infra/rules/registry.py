"""The register of rules: each one function with an id, a severity, a reason and its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from dpd_infra.catalog.sources import Source
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.rules.wide_subjects import FileSubject, UpgradeSubject
from dpd_infra.spec.finding import Severity

PLATFORM_MODULES = (
    "network_rules",
    "control_plane_rules",
    "group_rules",
    "platform_rules",
    "estate_rules",
    "closed_rules",
    "team_rules",
    "upgrade_rules",
    "upgrade_endpoint_rules",
    "upgrade_generation_rules",
)
"""Those that say nothing of an endpoint whose operator and platform are not known: a raw manifest does without loading them."""

RULE_MODULES: tuple[str, ...] = (
    "dpd_rules",
    "role_rules",
    "placement_rules",
    "resource_rules",
    "flag_rules",
    "word_rules",
    "queue_rules",
    "fit_rules",
    "environment_rules",
    "buffer_rules",
    "cache_rules",
    "beside_rules",
    "memory_rules",
    "auto_rules",
    "routing_rules",
    "endpoint_rules",
    "account_rules",
    "server_rules",
    "probe_rules",
    "source_rules",
    "secret_rules",
    "pod_rules",
    "scaling_rules",
    *PLATFORM_MODULES,
    "schema_rules",
    "manifest_file",
)
"""Every module of this package that holds rules, in the order of their ids."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that must hold."""

    id: str
    title: str
    severity: Severity
    why: str
    """What goes wrong otherwise."""
    sources: tuple[Source, ...]
    since: str
    """The operator release from which it holds; empty where it does not depend on the operator."""
    scope: type[Any]
    """What it reads: a `StackSubject`, an `EndpointSubject`, a `FileSubject` or an `UpgradeSubject`."""
    check: Callable[[Any], Iterator[Violation]]


_SCOPES: dict[str, type[Any]] = {kind.__name__: kind for kind in (StackSubject, EndpointSubject, FileSubject, UpgradeSubject)}
_RULES: dict[str, Rule] = {}


def rule(
    rule_id: str, title: str, *, severity: Severity, why: str, sources: tuple[Source, ...], since: str = ""
) -> Callable[[Callable[[Any], Iterator[Violation]]], Callable[[Any], Iterator[Violation]]]:
    """Register a function as a rule; its parameter's annotation says what it reads.

    Raises `ValueError` for an id that is taken, and `KeyError` for a parameter that is no subject.
    """

    def register(check: Callable[[Any], Iterator[Violation]]) -> Callable[[Any], Iterator[Violation]]:
        if rule_id in _RULES:
            message = f"two rules claim {rule_id}"
            raise ValueError(message)
        annotation = next(iter(check.__annotations__.values()))
        scope = _SCOPES[annotation if isinstance(annotation, str) else annotation.__name__]
        _RULES[rule_id] = Rule(rule_id, title, severity, why, sources, since, scope, check)
        return check

    return register


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the ids."""
    for module in RULE_MODULES:
        import_module(f"dpd_infra.rules.{module}")
    return tuple(_RULES[rule_id] for rule_id in sorted(_RULES))


@cache
def manifest_rules() -> tuple[Rule, ...]:
    """The rules that speak of an endpoint by itself, in the order of the ids."""
    modules = {f"dpd_infra.rules.{module}" for module in RULE_MODULES if module not in PLATFORM_MODULES}
    for module in RULE_MODULES:
        if f"dpd_infra.rules.{module}" in modules:
            import_module(f"dpd_infra.rules.{module}")
    return tuple(_RULES[rule_id] for rule_id in sorted(_RULES) if _RULES[rule_id].check.__module__ in modules)


def find_rule(rule_id: str) -> Rule:
    """One rule by its id. Raises `KeyError` for an id that no rule has."""
    all_rules()
    return _RULES[rule_id]
