"""The version of an add-on that nobody pinned: the lowest that is documented to work, because the real default moves with the service."""

from __future__ import annotations

from dpd_infra.catalog.addons import CONTROL_PLANE_ADDONS, NODE_ADDONS
from dpd_infra.catalog.operator_releases import ADDON_NAME, DEFAULT_ADDON_VERSION


def lowest_version(addon: str) -> str:
    """The version of an add-on of which nothing is said; the operator's is the one that this library installs."""
    if addon == ADDON_NAME:
        return DEFAULT_ADDON_VERSION
    minimum = next((known.minimum for known in (*CONTROL_PLANE_ADDONS, *NODE_ADDONS) if known.name == addon), None) or "v1.0.0"
    return minimum if "-eksbuild." in minimum else f"{minimum}-eksbuild.1"
