"""Endpoints that were rendered and checked with their stack: their component need not do both again, for specs never change."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from dpd_infra.render.endpoint import EndpointContext, RenderedManifest
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Finding
from dpd_infra.spec.operator import OperatorFacts


@dataclass(frozen=True, slots=True)
class Accepted:
    """One endpoint without an error in it."""

    manifest: RenderedManifest
    findings: tuple[Finding, ...]
    """Warnings and advice."""
    operator: OperatorFacts | None


_ACCEPTED: dict[int, tuple[weakref.ref[EndpointSpec], Accepted]] = {}
"""By the identity of the spec, as long as it is there."""


def remember(subject: EndpointSubject, findings: list[Finding]) -> None:
    """Keep the verdict on an endpoint of a stack that has no errors."""
    spec = subject.spec
    if spec is not None:
        key = id(spec)
        reference = weakref.ref(spec, lambda _: _ACCEPTED.pop(key, None))
        _ACCEPTED[key] = reference, Accepted(subject.rendered, tuple(findings), subject.operator)


def accepted(spec: EndpointSpec, context: EndpointContext, operator: OperatorFacts) -> Accepted | None:
    """The verdict on this very spec, for this operator and with this context; None where there is none."""
    reference, verdict = _ACCEPTED.get(id(spec), (None, None))
    if verdict is None or reference is None or reference() is not spec:
        return None
    manifest = verdict.manifest
    # The context has the endpoint's own name; the manifest's carries its generation too.
    return verdict if (manifest.context, verdict.operator) == (context, operator) else None
