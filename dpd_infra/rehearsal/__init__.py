"""A complete `pulumi up` on the real engine against a simulated AWS account: no credentials, no network, no cost."""

from __future__ import annotations

from dpd_infra.rehearsal.account import Failure, OperatorBehaviour, SimulatedAccount
from dpd_infra.rehearsal.environment import PulumiNotFound, find_pulumi
from dpd_infra.rehearsal.runner import Rehearsal, RehearsalBusy, RehearsalFailed, RehearsalResult
from dpd_infra.rehearsal.workspace import ProjectNotFound

__all__ = [
    "Failure",
    "OperatorBehaviour",
    "ProjectNotFound",
    "PulumiNotFound",
    "Rehearsal",
    "RehearsalBusy",
    "RehearsalFailed",
    "RehearsalResult",
    "SimulatedAccount",
    "find_pulumi",
]
