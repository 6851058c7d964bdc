"""The register of policies: the rules on endpoints, and rules of their own on what else a program registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from dpd_infra.catalog.sources import Source
from dpd_infra.policy.registration import Registration
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.operator import OperatorFacts

RULE_MODULES = ("cluster_policies", "endpoint_policies", "account_policies")
"""Every module of this package that holds policies of its own."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One violation of one policy."""

    what: str
    fix: str
    urn: str = ""
    """Of a stack that is judged as a whole: which resource; empty for the one that is judged, or for the stack."""

    def __str__(self) -> str:
        return f"{self.what}. Fix: {self.fix}."


@dataclass(frozen=True, slots=True)
class Context:
    """What a policy knows beside the resource."""

    operator: OperatorFacts | None = None
    """The inference operator that the same program registered, as far as it named a version."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The policy's own configuration, as the pack's user wrote it."""


OneCheck = Callable[[Registration, Context], Iterator[Breach]]
StackCheck = Callable[[Sequence[Registration], Context], Iterator[Breach]]


@dataclass(frozen=True, slots=True)
class ResourcePolicy:
    """One thing that must hold of each resource of some types."""

    id: str
    title: str
    severity: Severity
    why: str
    """What goes wrong otherwise."""
    sources: tuple[Source, ...]
    applies_to: Callable[[str], bool]
    """Whether a type token is one that it reads."""
    check: OneCheck
    """Raises `NotKnownYet` where a preview cannot say."""
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The JSON Schemas of what its user may set, by name."""


@dataclass(frozen=True, slots=True)
class StackPolicy:
    """One thing that must hold between the resources of a stack."""

    id: str
    title: str
    severity: Severity
    why: str
    sources: tuple[Source, ...]
    check: StackCheck


AnyPolicy = ResourcePolicy | StackPolicy

_POLICIES: dict[str, AnyPolicy] = {}


def resource_policy(
    policy_id: str,
    title: str,
    *,
    types: frozenset[str] | str,
    severity: Severity,
    why: str,
    sources: tuple[Source, ...],
    config: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[OneCheck], OneCheck]:
    """Register a function over one registration as a policy; `types` are the type tokens it reads. Raises `ValueError` for an id taken."""
    tokens = frozenset({types}) if isinstance(types, str) else types

    def register(check: OneCheck) -> OneCheck:
        _add(ResourcePolicy(policy_id, title, severity, why, sources, tokens.__contains__, check, config or {}))
        return check

    return register


def stack_policy(
    policy_id: str, title: str, *, severity: Severity, why: str, sources: tuple[Source, ...]
) -> Callable[[StackCheck], StackCheck]:
    """Register a function over all registrations of a stack as a policy. Raises `ValueError` for an id that is taken."""

    def register(check: StackCheck) -> StackCheck:
        _add(StackPolicy(policy_id, title, severity, why, sources, check))
        return check

    return register


def _add(policy: AnyPolicy) -> None:
    if policy.id in _POLICIES:
        message = f"two policies claim {policy.id}"
        raise ValueError(message)
    _POLICIES[policy.id] = policy


@cache
def own_policies() -> tuple[AnyPolicy, ...]:
    """The policies that are no rules of `dpd check`, in the order of the ids."""
    for module in RULE_MODULES:
        import_module(f"dpd_infra.policy.{module}")
    return tuple(_POLICIES[policy_id] for policy_id in sorted(_POLICIES))


@cache
def all_policies() -> tuple[AnyPolicy, ...]:
    """Every policy, in the order of the ids: the rules on endpoints among them."""
    from dpd_infra.policy.endpoint_rules import endpoint_policies  # noqa: PLC0415 - it makes policies of this module's class

    return tuple(sorted((*endpoint_policies(), *own_policies()), key=lambda policy: policy.id))
