"""The type tokens of every component. They are state identity: a changed token deletes and makes anew everything below it."""

from __future__ import annotations

NETWORK = "dpd:index:Network"
CONTROL_PLANE = "dpd:index:ControlPlane"
HYPERPOD_DEPENDENCIES = "dpd:index:HyperPodDependencies"
HYPERPOD_CLUSTER = "dpd:index:HyperPodCluster"
NODE_ADDONS = "dpd:index:NodeAddons"
INFERENCE_OPERATOR = "dpd:index:InferenceOperator"
GPU_SUBNET = "dpd:index:GpuSubnet"
ENDPOINT_CLIENTS = "dpd:index:EndpointClients"
TEAMS = "dpd:index:Teams"
MODEL_STORE = "dpd:index:ModelStore"
PLATFORM = "dpd:index:Platform"
