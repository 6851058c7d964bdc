"""The test kit: run a Pulumi program without an engine and an account, and look at everything it asked for.

    from dpd_infra.testing import assert_manifest, run_project

    def test_the_cluster_is_protected() -> None:
        recording = run_project("dev")
        assert recording.one("aws-native:sagemaker:Cluster").protect

Every name here is imported when it is first used. With pytest the fixtures `dpd_run`, `dpd_project`, `dpd_preview`, `dpd_hermetic` and
`dpd_snapshot` are there without an import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpd_infra._lazy import lazy_names

if TYPE_CHECKING:
    from dpd_infra.testing.answers import Answers, secret
    from dpd_infra.testing.estate import platform_exports
    from dpd_infra.testing.manifests import assert_manifest
    from dpd_infra.testing.mocks import PlatformMocks
    from dpd_infra.testing.order import assert_order, assert_platform_order
    from dpd_infra.testing.program import run_program
    from dpd_infra.testing.project import run_project
    from dpd_infra.testing.recording import UNKNOWN, Recorded, Recording
    from dpd_infra.testing.snapshot import assert_snapshot

_HOMES = {
    "UNKNOWN": "recording",
    "Answers": "answers",
    "PlatformMocks": "mocks",
    "Recorded": "recording",
    "Recording": "recording",
    "assert_manifest": "manifests",
    "assert_order": "order",
    "assert_platform_order": "order",
    "assert_snapshot": "snapshot",
    "platform_exports": "estate",
    "run_program": "program",
    "run_project": "project",
    "secret": "answers",
}
"""Where each public name lives."""

__all__ = [
    "UNKNOWN",
    "Answers",
    "PlatformMocks",
    "Recorded",
    "Recording",
    "assert_manifest",
    "assert_order",
    "assert_platform_order",
    "assert_snapshot",
    "platform_exports",
    "run_program",
    "run_project",
    "secret",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
