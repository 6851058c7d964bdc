"""Every rule of the simulated world by name."""

from __future__ import annotations

from dpd_infra.rehearsal.world.rule import WorldRule
from dpd_infra.rehearsal.world.rules import account, hyperpod, kubernetes

RULES: dict[str, WorldRule] = {rule.name: rule for module in (account, hyperpod, kubernetes) for rule in module.RULES}
"""By name."""

__all__ = ["RULES", "account", "hyperpod", "kubernetes"]
