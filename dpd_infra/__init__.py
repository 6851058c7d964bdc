"""Disaggregated prefill and decode on Amazon SageMaker HyperPod (EKS), as a Pulumi library.

Every name here is imported when it is first used: `import dpd_infra` loads neither Pulumi nor a provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpd_infra._lazy import lazy_names

if TYPE_CHECKING:
    from dpd_infra.components.account import Account
    from dpd_infra.components.control_plane import ControlPlane
    from dpd_infra.components.dependencies import HyperPodDependencies
    from dpd_infra.components.endpoint import Endpoint
    from dpd_infra.components.endpoint_clients import EndpointClients
    from dpd_infra.components.gpu_subnet import GpuSubnet
    from dpd_infra.components.handles import (
        AddonsHandle,
        ClusterHandle,
        ControlPlaneHandle,
        NetworkHandle,
        OperatorHandle,
    )
    from dpd_infra.components.hyperpod_cluster import HyperPodCluster
    from dpd_infra.components.inference_operator import InferenceOperator
    from dpd_infra.components.model_store import ModelStore
    from dpd_infra.components.network import Network
    from dpd_infra.components.node_addons import NodeAddons
    from dpd_infra.components.teams import Teams
    from dpd_infra.plan.names import Naming
    from dpd_infra.platform import Platform
    from dpd_infra.spec.addons import NodeAddonsSpec
    from dpd_infra.spec.aws import AwsSettings
    from dpd_infra.spec.cluster import ClusterSpec, InstanceGroupSpec
    from dpd_infra.spec.control_plane import ControlPlaneSpec
    from dpd_infra.spec.dependencies import DependenciesSpec
    from dpd_infra.spec.endpoint import EndpointSpec
    from dpd_infra.spec.existing import ControlPlaneValues, ExistingSpec
    from dpd_infra.spec.model_store import ModelStoreSpec
    from dpd_infra.spec.network import NetworkSpec
    from dpd_infra.spec.operator import OperatorFacts, OperatorSpec
    from dpd_infra.spec.platform import PlatformSpec
    from dpd_infra.spec.teams import TeamSpec
    from dpd_infra.stack import StackRefused, StackSpec

_HOMES = {
    "Account": "components.account",
    "AddonsHandle": "components.handles",
    "AwsSettings": "spec.aws",
    "ClusterHandle": "components.handles",
    "ClusterSpec": "spec.cluster",
    "ControlPlane": "components.control_plane",
    "ControlPlaneHandle": "components.handles",
    "ControlPlaneSpec": "spec.control_plane",
    "ControlPlaneValues": "spec.existing",
    "DependenciesSpec": "spec.dependencies",
    "Endpoint": "components.endpoint",
    "EndpointClients": "components.endpoint_clients",
    "EndpointSpec": "spec.endpoint",
    "ExistingSpec": "spec.existing",
    "GpuSubnet": "components.gpu_subnet",
    "HyperPodCluster": "components.hyperpod_cluster",
    "HyperPodDependencies": "components.dependencies",
    "InferenceOperator": "components.inference_operator",
    "InstanceGroupSpec": "spec.cluster",
    "ModelStore": "components.model_store",
    "ModelStoreSpec": "spec.model_store",
    "Naming": "plan.names",
    "Network": "components.network",
    "NetworkHandle": "components.handles",
    "NetworkSpec": "spec.network",
    "NodeAddons": "components.node_addons",
    "NodeAddonsSpec": "spec.addons",
    "OperatorFacts": "spec.operator",
    "OperatorHandle": "components.handles",
    "OperatorSpec": "spec.operator",
    "Platform": "platform",
    "PlatformSpec": "spec.platform",
    "StackRefused": "stack",
    "StackSpec": "stack",
    "TeamSpec": "spec.teams",
    "Teams": "components.teams",
}
"""Where each public name lives."""

__all__ = [
    "Account",
    "AddonsHandle",
    "AwsSettings",
    "ClusterHandle",
    "ClusterSpec",
    "ControlPlane",
    "ControlPlaneHandle",
    "ControlPlaneSpec",
    "ControlPlaneValues",
    "DependenciesSpec",
    "Endpoint",
    "EndpointClients",
    "EndpointSpec",
    "ExistingSpec",
    "GpuSubnet",
    "HyperPodCluster",
    "HyperPodDependencies",
    "InferenceOperator",
    "InstanceGroupSpec",
    "ModelStore",
    "ModelStoreSpec",
    "Naming",
    "Network",
    "NetworkHandle",
    "NetworkSpec",
    "NodeAddons",
    "NodeAddonsSpec",
    "OperatorFacts",
    "OperatorHandle",
    "OperatorSpec",
    "Platform",
    "PlatformSpec",
    "StackRefused",
    "StackSpec",
    "TeamSpec",
    "Teams",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
