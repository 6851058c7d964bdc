"""The recording monitor of the test kit, under the name that the graph tests know it by."""

from __future__ import annotations

from dpd_infra.testing import UNKNOWN, Recorded, Recording, run_program

__all__ = ["UNKNOWN", "Recorded", "Recording", "run_program"]
