"""Parts of a raw manifest, of which nothing is sure: looked up, copied, and read as what they should be."""

from __future__ import annotations

import copy
import re
from typing import Any

from dpd_infra.render.endpoint_roles import GPU_RESOURCE
from dpd_infra.spec.finding import Path

_DIGITS = re.compile(r"[0-9]{1,18}")


def gpus_of(resources: dict[str, Any]) -> int | None:
    """The whole GPUs of a pod by its requests, else by its limits; None where neither says."""
    for part in ("requests", "limits"):
        value = as_object(resources.get(part)).get(GPU_RESOURCE)
        if isinstance(value, (str, int)) and _DIGITS.fullmatch(str(value)):
            return int(value)
    return None


def more_resources(resources: dict[str, Any], worked_out: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Requests and limits beside those that follow from the rest of the entry."""
    more: dict[str, dict[str, Any]] = {}
    for part in ("requests", "limits"):
        amounts = {key: value for key, value in as_object(resources.get(part)).items() if worked_out.get(key) != value}
        if amounts:
            more[part] = amounts
    return more


def as_object(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def part_at(data: Any, path: Path) -> Any:
    """The part that a path leads to; None where a step of it is missing."""
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def take(target: dict[str, Any], place: Path, source: dict[str, Any], steps: Path) -> None:
    """Copy a part of the source, where it has it, to a place in the target."""
    value = part_at(source, steps)
    if value is None:
        return
    for step in place[:-1]:
        target = target.setdefault(str(step), {})
    target[str(place[-1])] = copy.deepcopy(value)
