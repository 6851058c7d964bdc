"""The simulated AWS provider (pulumi-aws)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import addons, eks, functions, identity, network, routing, storage
from dpd_infra.rehearsal.aws.base import GenericType
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.known_types import is_type_of
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.simulation import Call, ResourceType
from dpd_infra.rehearsal.wire import overlay
from dpd_infra.rehearsal.world.rules import providers as rules

_TYPES = (*network.TYPES, *routing.TYPES, *identity.TYPES, *storage.TYPES, *eks.TYPES, *addons.TYPES)


class AwsProvider(SimulatedProvider):
    """Every type of pulumi-aws: those with a model check what AWS checks, the others get an id and an ARN."""

    package = "aws"
    distribution = "pulumi-aws"

    def __init__(self, account: SimulatedAccount) -> None:
        super().__init__(account, _TYPES, functions.FUNCTIONS)

    def type_for(self, token: str) -> ResourceType:
        if token not in self.types:
            if not is_type_of("pulumi_aws", token):
                raise SimulatedError(rules.TYPE(token=token))
            self.types[token] = GenericType(token)
        return self.types[token]

    def configure(self, settings: dict[str, Any]) -> dict[str, Any]:
        if not settings.get("region"):
            raise SimulatedError(rules.REGION())
        tags = settings.get("defaultTags") or {}
        return {**settings, "defaultTags": json.loads(tags) if isinstance(tags, str) else tags}

    def finish(self, call: Call, outputs: dict[str, Any]) -> dict[str, Any]:
        default: Mapping[str, Any] = (call.settings.get("defaultTags") or {}).get("tags") or {}
        if "tags" in call.inputs or default:
            outputs = {**outputs, "tagsAll": overlay(default, outputs.get("tags") or {})}
        if "region" not in outputs:
            outputs = {**outputs, "region": call.region}
        return outputs
