"""The inference operator among a program's registrations: its EKS add-on."""

from __future__ import annotations

from dpd_infra.catalog.operator_releases import ADDON_NAME
from dpd_infra.policy.registration import Registration
from dpd_infra.spec.operator import OperatorFacts


def operator_in(addon: Registration) -> OperatorFacts | None:
    """The inference operator that an EKS add-on is, where its version is named."""
    version = addon.props.get("addonVersion")
    if addon.props.get("addonName") != ADDON_NAME or not isinstance(version, str):
        return None
    try:
        return OperatorFacts(addon_version=version)
    except ValueError:
        return None
