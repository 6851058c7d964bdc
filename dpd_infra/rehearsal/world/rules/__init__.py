"""Every rule of the simulated world by name."""

from __future__ import annotations

from dpd_infra.rehearsal.world.rule import WorldRule
from dpd_infra.rehearsal.world.rules import account, api_server, ec2, eks, hyperpod, kubernetes, names, providers

MODULES = (account, ec2, names, eks, hyperpod, kubernetes, api_server, providers)

RULES: dict[str, WorldRule] = {rule.name: rule for module in MODULES for rule in module.RULES}
"""By name."""

__all__ = ["MODULES", "RULES", "account", "api_server", "ec2", "eks", "hyperpod", "kubernetes", "names", "providers"]
