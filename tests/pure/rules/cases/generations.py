"""DPD612 and DPD614: endpoints that are changed blue/green."""

from __future__ import annotations

from tests.pure.rules.kit import Case, endpoint, platform, stack

SECOND = {"mode": "blueGreen", "generation": 2}
ROOM = platform("instanceGroups|gpu|count", 4)

CASES = (
    # Two pods of eight GPUs, twice: four nodes.
    Case("DPD612", stack(endpoint("change", SECOND), platform("instanceGroups|gpu|count", 3)), stack(endpoint("change", SECOND), ROOM)),
    Case(
        "DPD614",
        stack(ROOM, endpoint("change", SECOND), endpoint("overrides", {"spec": {"endpointName": "llama"}})),
        stack(ROOM, endpoint("change", SECOND), endpoint("endpointName", "llama")),
    ),
)
