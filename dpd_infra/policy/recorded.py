"""The policies held against a recording of the test kit: no engine, no account, and no need of `dpd-infra[policy]`.

from dpd_infra.policy.recorded import violations
from dpd_infra.testing import run_project

def test_the_policy_pack_lets_the_stack_pass() -> None:
    assert [violation for violation in violations(run_project("prod")) if violation.stops] == []
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpd_infra.policy.addon import operator_in
from dpd_infra.policy.registration import EKS_ADDONS, NotKnownYet, Registration, Timeouts
from dpd_infra.policy.registry import AnyPolicy, Breach, Context, StackPolicy, all_policies
from dpd_infra.spec.finding import Severity
from dpd_infra.testing.recording import Recorded, Recording

_DURATION = re.compile(r"([0-9.]+)(h|m|s)")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """One violation of one policy in a recording."""

    policy: str
    """The policy's id."""
    severity: Severity
    urn: str
    """The resource; empty where the stack as a whole is meant."""
    message: str

    @property
    def stops(self) -> bool:
        """Whether the pack would stop an update for it."""
        return self.severity is Severity.ERROR


def violations(recording: Recording, config: Mapping[str, Mapping[str, Any]] | None = None) -> list[PolicyViolation]:
    """Everything that the pack would report of a recorded program, in the order of its resources, then of the stack.

    `config` is what the pack's user sets, by policy: `{"DPD716": {"keys": ["team"]}}`. What a recorded preview does not know is not judged.
    """
    given = config or {}
    return list(_violations([registration_of(resource, recording) for resource in recording.custom if not resource.read], given))


def registration_of(resource: Recorded, recording: Recording) -> Registration:
    """A recorded resource as policies read it."""
    return Registration(
        type=resource.type,
        name=resource.name,
        urn=resource.urn,
        props=resource.inputs,
        protect=bool(resource.protect),
        timeouts=Timeouts(**{name: _seconds(resource.timeouts.get(name, "")) for name in ("create", "update", "delete")}),
        provider=recording[resource.provider].inputs if resource.provider in recording else {},
        property_dependencies=resource.property_dependencies,
    )


def _violations(stack: list[Registration], config: Mapping[str, Mapping[str, Any]]) -> Iterator[PolicyViolation]:
    operator = None
    for registration in stack:
        if registration.type in EKS_ADDONS:
            operator = operator_in(registration) or operator
        for policy in all_policies():
            if not isinstance(policy, StackPolicy) and policy.applies_to(registration.type):
                context = Context(operator, config.get(policy.id, {}))
                yield from _told(policy, policy.check(registration, context), registration.urn)
    for policy in all_policies():
        if isinstance(policy, StackPolicy):
            yield from _told(policy, policy.check(stack, Context(config=config.get(policy.id, {}))), "")


def _told(policy: AnyPolicy, breaches: Iterator[Breach], urn: str) -> Iterator[PolicyViolation]:
    try:
        for breach in breaches:
            yield PolicyViolation(policy.id, policy.severity, breach.urn or urn, str(breach))
    except NotKnownYet:
        return


def _seconds(duration: str) -> float:
    """Go's `1h10m` in seconds."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(duration))
