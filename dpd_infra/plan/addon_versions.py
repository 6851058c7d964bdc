"""Comparing add-on versions: `v1.18.3` and `v1.18.3-eksbuild.2` by their numbers."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:-eksbuild\.(\d+))?")


def version_key(version: str) -> tuple[int, ...] | None:
    """The numbers of an add-on version, the build 0 where it has none; None for anything else."""
    match = _VERSION.fullmatch(version)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def below_minimum(version: str, minimum: str | None) -> str:
    """What is wrong with a version against a minimum, in words that follow the add-on's name; empty where nothing is."""
    key = version_key(version)
    if key is None:
        return f"{version!r} is not an add-on version (the form is v1.18.3-eksbuild.2)"
    floor = version_key(minimum) if minimum else None
    return f"{version} is below the minimum {minimum}" if floor and key < floor else ""
