"""What the simulated AWS account and Kubernetes API answer when they refuse a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpd_infra.rehearsal.world.rule import Said, WorldRule


class SimulatedError(Exception):
    """A request that the real service would refuse; the text is the message a user would read."""

    rule: WorldRule | None = None
    """The rule of the world that was broken; None for what needs no explanation, such as a name that is taken."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.rule = message.rule if isinstance(message, Said) else None


class AwsError(SimulatedError):
    """An AWS API error in the form the AWS provider prints it."""

    def __init__(self, service: str, operation: str, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(f"operation error {service}: {operation}, https response error StatusCode: {status}, api error {code}: {message}")
        self.code = code
        self.rule = message.rule if isinstance(message, Said) else None


class KubernetesError(SimulatedError):
    """A refusal by the simulated Kubernetes API server."""


class InitError(SimulatedError):
    """The resource exists but did not become ready: the engine keeps it in the state and tries again at the next update."""

    def __init__(self, reasons: Sequence[str], *, id: str, outputs: Mapping[str, Any]) -> None:
        super().__init__("; ".join(reasons))
        self.rule = next((reason.rule for reason in reasons if isinstance(reason, Said)), None)
        self.reasons = list(reasons)
        self.id = id
        self.outputs = dict(outputs)
