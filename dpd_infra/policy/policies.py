"""The policies for a pack of Pulumi's: `PolicyPack(name=..., policies=policies())`.

Each is a plain function over the arguments that Pulumi hands it, so that it runs without an engine too. Needs `dpd-infra[policy]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import Severity as PulumiSeverity
from pulumi_policy.proxy import UnknownValueError

from dpd_infra.policy.addon import operator_in
from dpd_infra.policy.registration import EKS_ADDONS, NotKnownYet, Registration, Timeouts
from dpd_infra.policy.registry import AnyPolicy, Context, ResourcePolicy, StackPolicy, all_policies
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.testing.recording import UNKNOWN

_LEVELS = {
    Severity.ERROR: EnforcementLevel.MANDATORY,
    Severity.WARNING: EnforcementLevel.ADVISORY,
    Severity.ADVICE: EnforcementLevel.ADVISORY,
}
_SEVERITIES = {
    Severity.ERROR: PulumiSeverity.HIGH,
    Severity.WARNING: PulumiSeverity.MEDIUM,
    Severity.ADVICE: PulumiSeverity.LOW,
}


@dataclass
class Seen:
    """What one run of a program has told so far: a resource comes after what it depends on."""

    operator: OperatorFacts | None = None

    def note(self, args: ResourceValidationArgs) -> None:
        """Keep the inference operator's version where this is its add-on."""
        if args.resource_type in EKS_ADDONS:
            self.operator = operator_in(registration_of(args)) or self.operator


def policies() -> list[Policy]:
    """Every policy, in the order of the ids: an error stops an update, a warning and advice are shown."""
    seen = Seen()
    return [_pulumi_policy(policy, seen) for policy in all_policies()]


def validate_resource(policy: ResourcePolicy, args: ResourceValidationArgs, report: ReportViolation, seen: Seen | None = None) -> None:
    """Hold one policy against one resource. Where a preview does not know enough, the policy is not applicable."""
    if seen is not None:
        seen.note(args)
    if not policy.applies_to(args.resource_type):
        return
    context = Context(seen.operator if seen is not None else None, args.get_config())
    try:
        for breach in policy.check(registration_of(args), context):
            report(str(breach), None)
    except NotKnownYet as missing:
        args.not_applicable(f"{missing} is not known in this preview")


def validate_stack(policy: StackPolicy, args: StackValidationArgs, report: ReportViolation) -> None:
    """Hold one policy against a whole stack."""
    stack = [registration_of(resource) for resource in args.resources]
    try:
        for breach in policy.check(stack, Context(config=args.get_config())):
            report(str(breach), breach.urn or None)
    except NotKnownYet as missing:
        args.not_applicable(f"{missing} is not known in this preview")


def registration_of(args: Any) -> Registration:
    """What Pulumi tells of a resource (`ResourceValidationArgs`, `PolicyResource`) as policies read it."""
    timeouts = args.opts.custom_timeouts
    return Registration(
        type=args.resource_type,
        name=args.name,
        urn=args.urn,
        props=_plain(args.props),
        protect=bool(args.opts.protect),
        timeouts=Timeouts(timeouts.create_seconds, timeouts.update_seconds, timeouts.delete_seconds),
        provider=_plain(args.provider.props) if args.provider is not None else {},
        property_dependencies={
            key: tuple(resource.urn for resource in resources) for key, resources in getattr(args, "property_dependencies", {}).items()
        },
    )


def _pulumi_policy(policy: AnyPolicy, seen: Seen) -> Policy:
    told: dict[str, Any] = {
        "name": policy.id,
        "display_name": policy.title,
        "description": f"{policy.title}. {policy.why}",
        "enforcement_level": _LEVELS[policy.severity],
        "severity": _SEVERITIES[policy.severity],
    }
    if isinstance(policy, StackPolicy):
        return StackValidationPolicy(**told, validate=lambda args, report: validate_stack(policy, args, report))
    schema = PolicyConfigSchema({name: dict(part) for name, part in policy.config.items()}) if policy.config else None
    return ResourceValidationPolicy(
        **told, config_schema=schema, validate=lambda args, report: validate_resource(policy, args, report, seen)
    )


def _plain(value: Any) -> Any:
    """Pulumi's read-only views as plain data: what raises when it is read becomes `UNKNOWN`, a whole number an int."""
    if isinstance(value, Mapping):
        return {key: _part(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_part(value, index) for index in range(len(value))]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _part(container: Any, key: Any) -> Any:
    try:
        part = container[key]
    except UnknownValueError:
        return UNKNOWN
    return _plain(part)
