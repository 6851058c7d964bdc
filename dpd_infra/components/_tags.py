"""The AWS tags that every taggable resource carries."""

from __future__ import annotations

from collections.abc import Mapping

from dpd_infra.components.account import Account


def aws_tags(account: Account, suffix: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The stack's tags and a `Name` of platform, stack and suffix; `extra` is what a controller or a service reads."""
    return {**account.tags, "Name": f"{account.naming.scope}-{suffix}", **(extra or {})}
