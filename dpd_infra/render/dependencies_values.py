"""The Helm values of the HyperPod dependencies chart: which of its subcharts a platform for inference needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dpd_infra.plan.mirrors import mirrored

PLUGIN_REPOSITORIES: Final[Mapping[str, str]] = {
    "nvidia-device-plugin": "nvcr.io/nvidia/k8s-device-plugin",
    "aws-efa-k8s-device-plugin": "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin",
}
"""Where the device plugins' images come from unless said otherwise (values of NVIDIA/k8s-device-plugin and of aws/eks-charts). The health
agent's image comes from ECR in the region that it is told."""

_NEEDED = (
    ("nvidia-device-plugin", "devicePlugin", "enabled"),
    ("aws-efa-k8s-device-plugin", "devicePlugin", "enabled"),
    ("health-monitoring-agent", "enabled"),
    ("deep-health-check", "enabled"),
    ("job-auto-restart", "enabled"),
    ("hyperpod-patching", "enabled"),
)
"""The device plugins and HyperPod's resiliency (chart values; HyperPod on EKS prerequisites)."""

_NOT_NEEDED = (
    # Operators for training jobs, and the plugin for Trainium and Inferentia.
    ("trainingOperators", "enabled"),
    ("mpi-operator", "enabled"),
    ("mlflow", "enabled"),
    ("kuberay", "enabled"),
    ("hyperpod-ray-endpoint-operator", "enabled"),
    ("neuron-device-plugin", "devicePlugin", "enabled"),
    # EKS add-ons of their own bring these.
    ("cert-manager", "enabled"),
    ("inferenceOperators", "enabled"),
    # It brings a device plugin beside the one above.
    ("gpu-operator", "enabled"),
    ("storage", "enabled"),
    # Roles for people. The chart's own values say `enable` where its condition reads `enabled`, and a condition without a value is true.
    ("cluster-role-and-bindings", "enabled"),
    ("namespaced-role-and-bindings", "enabled"),
    ("team-role-and-bindings", "enabled"),
)


def dependencies_values(
    region: str, overrides: Mapping[str, Any] | None = None, image_mirrors: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The values for a region, with the user's merged over them key by key (a list replaces a list).

    Every subchart is switched on or off by name: what the chart itself leaves out would be on (Helm, conditions of dependencies).
    """
    values: dict[str, Any] = {}
    for paths, enabled in ((_NEEDED, True), (_NOT_NEEDED, False)):
        for path in paths:
            _put(values, path, value=enabled)
    # Without it the agent guesses the region its image comes from (health-monitoring-agent chart).
    _put(values, ("health-monitoring-agent", "region"), value=region)
    for chart, repository in PLUGIN_REPOSITORIES.items():
        mirror = mirrored(repository, image_mirrors or {})
        if mirror != repository:
            _put(values, (chart, "image", "repository"), value=mirror)
    return _merged(values, overrides or {})


def plugin_images(overrides: Mapping[str, Any], image_mirrors: Mapping[str, str]) -> dict[str, str]:
    """The repository that each device plugin comes from, by its chart."""
    values = dependencies_values("", overrides, image_mirrors)
    found = {}
    for chart, repository in PLUGIN_REPOSITORIES.items():
        image = values[chart].get("image") if isinstance(values[chart], Mapping) else None
        named = image.get("repository") if isinstance(image, Mapping) else None
        found[chart] = named if isinstance(named, str) else repository
    return found


def _put(values: dict[str, Any], path: tuple[str, ...], *, value: Any) -> None:
    *parents, last = path
    for key in parents:
        values = values.setdefault(key, {})
    values[last] = value


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        lower = merged.get(key)
        merged[key] = _merged(lower, value) if isinstance(lower, Mapping) and isinstance(value, Mapping) else value
    return merged
