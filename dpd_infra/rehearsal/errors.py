"""What the simulated AWS account and Kubernetes API answer when they refuse a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpd_infra.rehearsal.world.rule import Said, WorldRule


class SimulatedError(Exception):
    """A request that the real service would refuse; the text is the message a user would read.

    Raises `TypeError` for a message without a rule of the world: what has no rule has no source, and is refused by nobody.
    """

    rule: WorldRule
    """The rule of the world that was broken."""

    def __init__(self, message: Said) -> None:
        super().__init__(message)
        self.rule = _rule(message)


class AwsError(SimulatedError):
    """An AWS API error in the form the AWS provider prints it."""

    def __init__(self, service: str, operation: str, code: str, message: Said, *, status: int = 400) -> None:
        head = f"operation error {service}: {operation}, https response error StatusCode: {status}"
        _rule(message)
        super().__init__(message.within(f"{head}, api error {code}: {message}"))
        self.code = code


class KubernetesError(SimulatedError):
    """A refusal by the simulated Kubernetes API server."""


class InitError(SimulatedError):
    """The resource exists but did not become ready: the engine keeps it in the state and tries again at the next update."""

    def __init__(self, reasons: Sequence[Said], *, id: str, outputs: Mapping[str, Any]) -> None:
        super().__init__(Said("; ".join(reasons), _rule(reasons[0])))
        self.reasons = list(reasons)
        self.id = id
        self.outputs = dict(outputs)


def _rule(message: object) -> WorldRule:
    # Whoever raises an error of these in code that nobody type-checks learns it here.
    if not isinstance(message, Said):
        raise TypeError(f"a refusal without a rule of the world: {message}")
    return message.rule
