"""A fix calls a setting as the user's own file does."""

from __future__ import annotations

import pytest

from tests.pure.rules.kit import Raw, Stack, endpoint, env, flag, put, raw, stack

LOW_BUFFER = 536870912


@pytest.mark.parametrize(
    ("given", "rule", "names"),
    [
        (raw(put("spec|pdSpec|routingThreshold", 20000)), "DPD303", "routingThreshold below"),
        (stack(endpoint("routing|threshold", 20000)), "DPD303", "routing.threshold below"),
        (stack(endpoint("overrides|spec|pdSpec|routingThreshold", 20000)), "DPD303", "routingThreshold below"),
        (raw(env("PD_BUFFER_SIZE", str(LOW_BUFFER))), "DPD104", "PD_BUFFER_SIZE to"),
        (stack(endpoint("cache|pdBufferBytes", LOW_BUFFER)), "DPD104", "cache.pdBufferBytes to"),
        (raw(flag("--max-model-len", "200000")), "DPD207", "--max-model-len 131072"),
        (stack(endpoint("worker|maxModelLen", 200000)), "DPD207", "worker.maxModelLen: 131072"),
        (stack(endpoint("worker|args", ["--max-model-len", "200000"])), "DPD207", "--max-model-len 131072"),
        (stack(endpoint("worker|tensorParallelSize", 4)), "DPD010", "worker.tensorParallelSize: 8"),
        (stack(endpoint("cache|pdBufferBytes", 17179869184)), "DPD205", "worker.gpuMemoryUtilization: 0.73"),
        (raw(), "DPD404", "metrics.modelMetrics.port to 8000"),
        (stack(), "DPD404", "metrics.port to 8000"),
    ],
)
def test_a_fix_names_the_setting_as_the_file_does(given: Raw | Stack, rule: str, names: str) -> None:
    assert [finding.fix for finding in given.findings if finding.rule == rule and names in finding.fix]
