"""Recorded programs as Pulumi hands them to policies: in this process, and on the wire to a running policy pack."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import unknown_checking_proxy

from dpd_infra.policy.policies import policies
from dpd_infra.policy.recorded import registration_of
from dpd_infra.testing import Recorded, Recording, run_project
from dpd_infra.testing.wire import wire_value
from tests.conftest import ROOT

STACKS = ("dev", "prod")
HYPERPOD = "aws-native:sagemaker:Cluster"
EKS = "aws:eks/cluster:Cluster"
ENDPOINT = "kubernetes:inference.sagemaker.aws.amazon.com/v1:InferenceEndpointConfig"


@cache
def recording(stack: str, *, preview: bool = False) -> Recording:
    """One of this repository's own stacks."""
    return run_project(stack, ROOT, preview=preview)


def edited(original: Recording, change: Callable[[Recorded], Recorded | None]) -> Recording:
    """The same recording with each resource as `change` has it; None takes it away."""
    other = Recording(original.preview)
    for resource in original:
        changed = change(replace(resource, inputs=copy.deepcopy(resource.inputs)))
        if changed is not None:
            other.add(changed)
    return other


@dataclass(frozen=True)
class Told:
    """What Pulumi was told: which policy, how strictly it is meant, of which resource."""

    policy: str
    level: str
    urn: str
    message: str


def analyze(recorded: Recording, config: Mapping[str, Mapping[str, Any]] | None = None) -> list[Told]:
    """Hold the pack's policies against a recording, by the objects that Pulumi would call."""
    told: list[Told] = []
    made = policies()
    given = config or {}
    for resource in recorded.custom:
        for policy in made:
            if isinstance(policy, ResourceValidationPolicy):
                _hear(policy, told, validation_args(resource, recorded, given.get(policy.name)), resource.urn)
    for policy in made:
        if isinstance(policy, StackValidationPolicy):
            _hear(policy, told, stack_args(recorded), "")
    return told


def _hear(policy: Any, told: list[Told], args: Any, urn: str) -> None:
    try:
        policy.validate(
            args, lambda message, about=None: told.append(Told(policy.name, policy.enforcement_level.value, about or urn, message))
        )
    except Exception as error:
        if type(error).__name__ != "_NotApplicableError":
            raise


def validation_args(resource: Recorded, recorded: Recording, config: Mapping[str, Any] | None = None) -> ResourceValidationArgs:
    """A recorded resource as a resource policy gets it."""
    return ResourceValidationArgs(
        resource.type, _props(resource), resource.urn, resource.name, _options(resource, recorded), _provider(resource, recorded), config
    )


def stack_args(recorded: Recording) -> StackValidationArgs:
    """A recording as a stack policy gets it."""
    resources = {
        resource.urn: PolicyResource(
            resource.type,
            _props(resource),
            resource.urn,
            resource.name,
            _options(resource, recorded),
            _provider(resource, recorded),
            None,
            [],
            {},
        )
        for resource in recorded.custom
    }
    for resource in recorded.custom:
        for key, urns in resource.property_dependencies.items():
            resources[resource.urn].property_dependencies[key] = [resources[urn] for urn in urns if urn in resources]
    return StackValidationArgs(list(resources.values()))


def _props(resource: Recorded) -> Any:
    return unknown_checking_proxy(_floats(wire_value(resource.inputs)))


def _floats(value: Any) -> Any:
    """Every number a float, as protobuf hands them on."""
    if isinstance(value, dict):
        return {key: _floats(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_floats(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _options(resource: Recorded, recorded: Recording) -> PolicyResourceOptions:
    timeouts = registration_of(resource, recorded).timeouts
    return PolicyResourceOptions(
        bool(resource.protect), [], None, [], PolicyCustomTimeouts(timeouts.create, timeouts.update, timeouts.delete), [], resource.parent
    )


def _provider(resource: Recorded, recorded: Recording) -> PolicyProviderResource | None:
    if resource.provider not in recorded:
        return None
    provider = recorded[resource.provider]
    return PolicyProviderResource(provider.type, _props(provider), provider.urn, provider.name)


def analyze_request(resource: Recorded, recorded: Recording) -> analyzer_pb2.AnalyzeRequest:
    """A recorded resource as the engine sends it."""
    request = analyzer_pb2.AnalyzeRequest(
        type=resource.type, urn=resource.urn, name=resource.name, options=_wire_options(resource, recorded)
    )
    request.properties.update(wire_value(resource.inputs))
    if resource.provider in recorded:
        _put_provider(request, recorded[resource.provider])
    return request


def analyzer_resource(resource: Recorded, recorded: Recording) -> analyzer_pb2.AnalyzerResource:
    """A recorded resource as the engine sends it among all of a stack."""
    message = analyzer_pb2.AnalyzerResource(
        type=resource.type,
        urn=resource.urn,
        name=resource.name,
        parent=resource.parent,
        dependencies=resource.dependencies,
        options=_wire_options(resource, recorded),
    )
    message.properties.update(wire_value(resource.inputs))
    for key, urns in resource.property_dependencies.items():
        message.propertyDependencies[key].urns.extend(urns)
    if resource.provider in recorded:
        _put_provider(message, recorded[resource.provider])
    return message


def _put_provider(message: Any, provider: Recorded) -> None:
    message.provider.type, message.provider.urn, message.provider.name = provider.type, provider.urn, provider.name
    message.provider.properties.update(wire_value(provider.inputs))


def _wire_options(resource: Recorded, recorded: Recording) -> analyzer_pb2.AnalyzerResourceOptions:
    timeouts = registration_of(resource, recorded).timeouts
    times = analyzer_pb2.AnalyzerResourceOptions.CustomTimeouts(create=timeouts.create, update=timeouts.update, delete=timeouts.delete)
    return analyzer_pb2.AnalyzerResourceOptions(
        protect=bool(resource.protect), parent=resource.parent, customTimeouts=times if resource.timeouts else None
    )
