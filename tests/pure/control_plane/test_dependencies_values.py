"""The chart's values: every subchart is said on or off, and the user's word comes last."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.render.dependencies_values import dependencies_values

CONDITIONS = (
    "cert-manager.enabled",
    "trainingOperators.enabled",
    "mlflow.enabled",
    "nvidia-device-plugin.devicePlugin.enabled",
    "aws-efa-k8s-device-plugin.devicePlugin.enabled",
    "neuron-device-plugin.devicePlugin.enabled",
    "storage.enabled",
    "health-monitoring-agent.enabled",
    "mpi-operator.enabled",
    "deep-health-check.enabled",
    "job-auto-restart.enabled",
    "cluster-role-and-bindings.enabled",
    "namespaced-role-and-bindings.enabled",
    "team-role-and-bindings.enabled",
    "inferenceOperators.enabled",
    "hyperpod-patching.enabled",
    "gpu-operator.enabled",
    "hyperpod-ray-endpoint-operator.enabled",
)
"""The conditions of the chart's dependencies (aws/sagemaker-hyperpod-cli, helm_chart/HyperPodHelmChart/Chart.yaml, commit 067d658)."""

plain = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2)),
    lambda inner: st.dictionaries(st.sampled_from(["enabled", "region", "storage", "x"]), inner, max_size=3),
    max_leaves=6,
)


def at(values: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


def test_every_condition_of_the_chart_has_a_value() -> None:
    values = dependencies_values("us-east-2")
    on = {path for path in CONDITIONS if at(values, path) is True}
    assert {path for path in CONDITIONS if at(values, path) is False} == set(CONDITIONS) - on
    assert on == {
        "nvidia-device-plugin.devicePlugin.enabled",
        "aws-efa-k8s-device-plugin.devicePlugin.enabled",
        "health-monitoring-agent.enabled",
        "deep-health-check.enabled",
        "job-auto-restart.enabled",
        "hyperpod-patching.enabled",
    }


def test_the_health_agent_knows_its_region() -> None:
    assert at(dependencies_values("eu-north-1"), "health-monitoring-agent.region") == "eu-north-1"


@given(st.dictionaries(st.sampled_from(["storage", "health-monitoring-agent", "new"]), plain, max_size=3))
def test_what_the_user_says_holds_and_what_is_not_said_stays(overrides: dict[str, Any]) -> None:
    ours, merged = dependencies_values("us-east-2"), dependencies_values("us-east-2", overrides)
    assert _within(overrides, merged)
    assert all(merged[key] == ours[key] for key in ours.keys() - overrides.keys())


def test_a_list_replaces_a_list() -> None:
    assert dependencies_values("x", {"a": {"b": [1]}})["a"] == {"b": [1]}


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _within(value, whole[key]) for key, value in part.items())
    return part == whole
