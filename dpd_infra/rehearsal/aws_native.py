"""The simulated AWS Cloud Control provider (pulumi-aws-native): the HyperPod cluster, and a generic resource for all else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpd_infra.rehearsal.account import SimulatedAccount
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.errors import SimulatedError
from dpd_infra.rehearsal.hyperpod import HyperPodCluster
from dpd_infra.rehearsal.known_types import is_type_of
from dpd_infra.rehearsal.provider import SimulatedProvider
from dpd_infra.rehearsal.simulation import Call, ResourceType
from dpd_infra.rehearsal.world.replacements import sdk_replacements
from dpd_infra.rehearsal.world.rules import providers as rules


class CloudControlType(base.GenericType):
    """Any type of Cloud Control without a model of its own; what replaces it is what the SDK says."""

    def extra_replaces(self, call: Call, old: Mapping[str, Any]) -> tuple[str, ...]:
        return sdk_replacements("pulumi_aws_native", self.token)


def _described_cluster(account: SimulatedAccount, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    arn = str(arguments["clusterArn"])
    found = next((item for item in account.all(base.HYPERPOD_CLUSTER) if item.outputs.get("clusterArn") == arn), None)
    if found is None:
        raise SimulatedError(rules.HYPERPOD_IS_THERE(arn=arn))
    # What can only be set when a cluster is made, its name and its network, is not in the answer (pulumi-aws-native, getCluster).
    return {key: value for key, value in found.outputs.items() if key not in ("clusterName", "vpcConfig")}


class AwsNativeProvider(SimulatedProvider):
    """Every type of pulumi-aws-native; only the HyperPod cluster has a model of its own."""

    package = "aws-native"
    distribution = "pulumi-aws-native"

    def __init__(self, account: SimulatedAccount) -> None:
        super().__init__(account, (HyperPodCluster(),), {"aws-native:sagemaker:getCluster": _described_cluster})

    def type_for(self, token: str) -> ResourceType:
        if token not in self.types:
            if not is_type_of("pulumi_aws_native", token):
                raise SimulatedError(rules.TYPE(token=token))
            self.types[token] = CloudControlType(token)
        return self.types[token]

    def configure(self, settings: dict[str, Any]) -> dict[str, Any]:
        if not settings.get("region"):
            raise SimulatedError(rules.NATIVE_REGION())
        return settings
