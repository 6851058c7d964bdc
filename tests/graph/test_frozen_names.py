"""Names that state and other people's programs hold on to: changed on purpose, or not at all."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import pulumi
import pulumi_kubernetes

import dpd_infra as dpd
from dpd_infra import components
from dpd_infra.components import tokens
from dpd_infra.components._base import Component

# Design, public names: `dpd:index:<Class>`. A changed token deletes and makes anew everything below the component.
FROZEN_TOKENS = {
    "CONTROL_PLANE": "dpd:index:ControlPlane",
    "ENDPOINT_CLIENTS": "dpd:index:EndpointClients",
    "GPU_SUBNET": "dpd:index:GpuSubnet",
    "HYPERPOD_CLUSTER": "dpd:index:HyperPodCluster",
    "HYPERPOD_DEPENDENCIES": "dpd:index:HyperPodDependencies",
    "INFERENCE_OPERATOR": "dpd:index:InferenceOperator",
    "MODEL_STORE": "dpd:index:ModelStore",
    "NETWORK": "dpd:index:Network",
    "NODE_ADDONS": "dpd:index:NodeAddons",
    "PLATFORM": "dpd:index:Platform",
    "TEAMS": "dpd:index:Teams",
}


def all_components() -> set[type[Component]]:
    import_module("dpd_infra.platform")
    for module in pkgutil.iter_modules(components.__path__):
        import_module(f"dpd_infra.components.{module.name}")
    return set(Component.__subclasses__())


def test_an_endpoint_is_the_custom_resource_and_its_type_the_cluster_s_own() -> None:
    # An endpoint is one object of the cluster (DPD guide); a component around it would double what the engine keeps of a thousand.
    assert issubclass(dpd.Endpoint, pulumi_kubernetes.apiextensions.CustomResource)
    assert not issubclass(dpd.Endpoint, pulumi.ComponentResource)


def test_type_tokens_are_frozen() -> None:
    assert {name: value for name, value in vars(tokens).items() if name.isupper()} == FROZEN_TOKENS


def test_every_component_has_the_token_of_its_own_name() -> None:
    found = all_components()
    assert {component.token for component in found} == set(FROZEN_TOKENS.values())
    assert all(component.token == f"dpd:index:{component.__name__}" for component in found)


def test_every_public_name_is_there_and_lives_where_it_says() -> None:
    for name in dpd.__all__:
        assert getattr(dpd, name).__name__ == name
    assert list(dpd.__all__) == sorted(dpd.__all__)
    assert set(dpd.__all__) <= set(dir(dpd))


def test_the_designs_public_names_are_public() -> None:
    # Design, section 5.
    wanted = {
        "ClusterSpec",
        "ControlPlane",
        "ControlPlaneHandle",
        "ControlPlaneSpec",
        "Endpoint",
        "HyperPodCluster",
        "InferenceOperator",
        "Network",
        "NetworkSpec",
        "NodeAddons",
        "NodeAddonsSpec",
        "OperatorFacts",
        "OperatorHandle",
        "OperatorSpec",
        "Platform",
        "StackSpec",
    }
    assert wanted <= set(dpd.__all__)


def test_every_component_takes_its_name_and_spec_first_and_the_rest_by_keyword() -> None:
    for component in {*all_components(), dpd.Endpoint}:
        parameters = list(inspect.signature(component.__init__).parameters.values())
        assert [parameter.name for parameter in parameters[:2]] == ["self", "name"], component
        assert parameters[-1].name == "opts", component
        assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters[3:]), component
