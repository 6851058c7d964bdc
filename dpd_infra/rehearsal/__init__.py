"""A complete `pulumi up` on the real engine against a simulated AWS account: no credentials, no network, no cost.

Every name here is imported when it is first used: whoever needs only a project's program does not load the simulated services.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpd_infra._lazy import lazy_names

if TYPE_CHECKING:
    from dpd_infra.rehearsal.account import SimulatedAccount
    from dpd_infra.rehearsal.environment import PulumiNotFound, find_pulumi
    from dpd_infra.rehearsal.journal import Failure, OperatorBehaviour
    from dpd_infra.rehearsal.runner import Rehearsal, RehearsalBusy, RehearsalFailed, RehearsalResult
    from dpd_infra.rehearsal.workspace import ProjectNotFound

_HOMES = {
    "Failure": "journal",
    "OperatorBehaviour": "journal",
    "ProjectNotFound": "workspace",
    "PulumiNotFound": "environment",
    "Rehearsal": "runner",
    "RehearsalBusy": "runner",
    "RehearsalFailed": "runner",
    "RehearsalResult": "runner",
    "SimulatedAccount": "account",
    "find_pulumi": "environment",
}
"""Where each public name lives."""

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

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
