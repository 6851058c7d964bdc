"""The rules for one part of a platform by itself: a single component that is imported into a program of somebody's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dpd_infra.rules.check import check
from dpd_infra.rules.subject import StackSubject
from dpd_infra.spec.cluster import InstanceGroupSpec
from dpd_infra.spec.control_plane import ControlPlaneSpec
from dpd_infra.spec.finding import Finding, Path
from dpd_infra.spec.network import NetworkSpec
from dpd_infra.spec.platform import PlatformSpec

_WHOLE_IS_CHECKED: ContextVar[bool] = ContextVar("dpd_infra_whole_is_checked", default=False)


@contextmanager
def whole_is_checked() -> Iterator[None]:
    """Within the block parts need no check of their own: the platform that they make up was checked."""
    token = _WHOLE_IS_CHECKED.set(True)
    try:
        yield
    finally:
        _WHOLE_IS_CHECKED.reset(token)


def check_part(*, region: str, zone: str | None = None, **given: Any) -> list[Finding]:
    """What the platform's rules say of some of its parts, by `PlatformSpec` field name (`instance_groups=…, cluster=…`).

    The other parts are neutral stand-ins, and nothing is said of them or of what rests on them. `zone` is the GPU zone, as far as the
    parts are not the network itself. Paths begin at the part: `instanceGroups.prefill.zone`.
    """
    if _WHOLE_IS_CHECKED.get():
        return []
    stand_ins: dict[str, Any] = {
        "name": "part",
        "network": NetworkSpec(zone=zone or f"{region}a"),
        "control_plane": ControlPlaneSpec(private=True),
        "instance_groups": {"system": InstanceGroupSpec(instance_type="ml.c5.4xlarge", count=2)},
    }
    platform = PlatformSpec(**{**stand_ins, **given})
    about = {PlatformSpec.model_fields[name].alias or name for name in given}
    # The GPU zone is a fact here and no stand-in: what a group says of its own zone is judged by it, though nothing is said of the network.
    facts = {("network", "zone")} if zone is not None else set[Path]()
    findings = check(StackSubject(region=region, platform=platform, operator=platform.operator.facts, platform_path=()))
    return [
        finding
        for finding in findings
        if _head(finding.path) in about and all(_head(path) in about or path in facts for path in finding.related)
    ]


def _head(path: Path) -> str:
    return str(path[0]) if path else ""
