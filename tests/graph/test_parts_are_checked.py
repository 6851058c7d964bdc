"""A component that is imported by itself goes through the platform's rules for its part, before anything of it is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

import dpd_infra as dpd
from dpd_infra.stack import StackRefused
from tests.graph.kit import ACCOUNT_FACTS, network_handle
from tests.graph.recorder import run_program


def control_plane() -> dpd.ControlPlaneHandle:
    return dpd.ControlPlaneHandle(
        name="eks-given",
        arn="arn:aws:eks:us-east-2:123456789012:cluster/eks-given",
        version="1.33",
        oidc_provider_arn="arn:aws:iam::123456789012:oidc-provider/given",
        oidc_issuer="oidc.eks.us-east-2.amazonaws.com/id/GIVEN",
        cluster_security_group_id="sg-given",
        kubernetes_provider=kubernetes.Provider("eks", kubeconfig="{}"),
    )


def cluster() -> dpd.ClusterHandle:
    return dpd.ClusterHandle(name="given", arn="arn:aws:sagemaker:us-east-2:123456789012:cluster/given")


def group(**settings: Any) -> dpd.InstanceGroupSpec:
    return dpd.InstanceGroupSpec(**{"instance_type": "ml.p5.48xlarge", "count": 1, **settings})


def network() -> Any:
    return dpd.Network("part", dpd.NetworkSpec(zone="us-west-2a"), account=ACCOUNT_FACTS)


def unreachable() -> Any:
    return dpd.ControlPlane("part", dpd.ControlPlaneSpec(), account=ACCOUNT_FACTS, network=network_handle(), default_name="eks")


def too_old() -> Any:
    spec = dpd.ControlPlaneSpec(version="1.31", private=True)
    return dpd.ControlPlane("part", spec, account=ACCOUNT_FACTS, network=network_handle(), default_name="eks")


def other_zone() -> Any:
    spec = dpd.ClusterSpec(instance_groups={"gpu": group(zone="us-east-2c"), "system": group(instance_type="ml.c5.4xlarge")})
    return dpd.HyperPodCluster(
        "part",
        spec,
        account=ACCOUNT_FACTS,
        network=network_handle(),
        control_plane=control_plane(),
        dependencies=[],
        default_name="hyperpod",
    )


def old_driver() -> Any:
    spec = dpd.NodeAddonsSpec(cert_manager_version="v1.10.0-eksbuild.1")
    return dpd.NodeAddons("part", spec, account=ACCOUNT_FACTS, control_plane=control_plane(), cluster=cluster())


def no_platform() -> None:
    dpd.Platform("inference", None)


BROKEN: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a stack without a platform": (no_platform, "DPD000", "dpd-infra:platform"),
    "a zone of another region": (network, "DPD503", "network.zone"),
    "an API nobody reaches": (unreachable, "DPD501", "controlPlane"),
    "a Kubernetes version that is too old": (too_old, "DPD502", "controlPlane.version"),
    "a group in another zone": (other_zone, "DPD521", "instanceGroups.gpu.zone"),
    "an add-on below its minimum": (old_driver, "DPD530", "addons.certManagerVersion"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_part_is_refused_and_registers_nothing(case: str, preview: bool) -> None:
    program, rule, path = BROKEN[case]
    recording = run_program(program, preview=preview, expect=StackRefused)
    assert isinstance(recording.error, StackRefused)
    assert isinstance(recording.error, pulumi.RunError)
    assert {finding.rule for finding in recording.error.findings if finding.severity == "error"} == {rule}
    assert path in str(recording.error)
    assert not [resource for resource in recording.resources if resource.type.startswith(("dpd:", "aws"))]


def test_nothing_is_said_of_the_parts_that_are_somebody_elses(preview: bool) -> None:
    # The stand-ins for the other parts break no rule and are never spoken of.
    recording = run_program(lambda: dpd.Network("part", dpd.NetworkSpec(zone="us-east-2a"), account=ACCOUNT_FACTS), preview=preview)
    assert recording.error is None
    assert recording.logs == []
