"""The policy pack: Pulumi runs this folder, and the constructor serves until Pulumi is done."""

from __future__ import annotations

from pulumi_policy import PolicyPack

from dpd_infra.policy.policies import policies

PolicyPack(
    name="dpd-infra",
    policies=policies(),
    display_name="dpd-infra",
    description="HyperPod clusters and DPD endpoints as dpd-infra's rules have them.",
    provider="AWS",
)
