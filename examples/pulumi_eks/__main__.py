"""A pulumi_eks.Cluster of the user's own gets HyperPod nodes, the inference operator and an endpoint, piece by piece."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

import dpd_infra as dpd

stack = dpd.StackSpec.from_config()
region = stack.aws.region
account = dpd.Account(
    account_id=aws.get_caller_identity().account_id,
    region=region,
    naming=dpd.Naming("own-eks", pulumi.get_stack(), region),
    tags={"team": "inference"},
)

# The nodes carry the EKS cluster's own group, which EKS has marked for the load balancer controller: no name is given here.
network = dpd.Network("net", dpd.NetworkSpec(zone=f"{region}a"), account=account)

cluster = eks.Cluster(
    "own",
    version="1.33",
    vpc_id=network.vpc_id,
    private_subnet_ids=network.control_plane_subnet_ids,
    endpoint_private_access=True,
    endpoint_public_access=True,
    public_access_cidrs=["203.0.113.0/24"],  # the addresses you deploy from
    # What HyperPod and the operator need of it: access entries, an OIDC provider, and no nodes of its own.
    authentication_mode=eks.AuthenticationMode.API,
    create_oidc_provider=True,
    skip_default_node_group=True,
    opts=pulumi.ResourceOptions(depends_on=list(network.handle.resources)),
)
control_plane = dpd.ControlPlaneHandle.from_pulumi_eks(cluster)
nodes_network = network.handle.joined_to(control_plane)

chart = dpd.HyperPodDependencies("dependencies", dpd.DependenciesSpec(), account=account, control_plane=control_plane)
hyperpod = dpd.HyperPodCluster(
    "hyperpod",
    dpd.ClusterSpec(
        instance_groups={
            "gpu": dpd.InstanceGroupSpec(instance_type="ml.p5.48xlarge", count=2),
            "system": dpd.InstanceGroupSpec(instance_type="ml.c5.4xlarge", count=2),
        }
    ),
    account=account,
    network=nodes_network,
    control_plane=control_plane,
    dependencies=chart.resources,
    default_name="own-eks",
)
# coredns too: without a node group pulumi-eks leaves it to the cluster, and the add-on takes it over.
addons = dpd.NodeAddons(
    "addons", dpd.NodeAddonsSpec(), account=account, control_plane=control_plane, cluster=hyperpod.handle, model_buckets=["my-models"]
)
operator = dpd.InferenceOperator(
    "operator",
    dpd.OperatorSpec(),
    account=account,
    network=nodes_network,
    control_plane=control_plane,
    cluster=hyperpod.handle,
    addons=addons.handle,
)
endpoint = dpd.Endpoint("llama-70b", stack.endpoints["llama-70b"], operator=operator.handle)

pulumi.export("url", endpoint.url)
pulumi.export("hyperPodClusterArn", hyperpod.cluster_arn)
