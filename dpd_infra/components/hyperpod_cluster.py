"""The HyperPod cluster: the nodes' role, their lifecycle scripts, and the instance groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as aws_native

from dpd_infra.components import tokens
from dpd_infra.components._base import Component, handle_of
from dpd_infra.components._buckets import MadeBucket, make_bucket
from dpd_infra.components._group_counts import RECORD, GroupCounts, group_counts
from dpd_infra.components._roles import MadeRole, make_role
from dpd_infra.components._tags import aws_tags
from dpd_infra.components.account import Account
from dpd_infra.components.handles import ClusterHandle, ControlPlaneHandle, NetworkHandle
from dpd_infra.plan.group_counts import SentGroups
from dpd_infra.plan.groups import plan_groups
from dpd_infra.plan.iam import NODE_MANAGED_POLICIES, node_role
from dpd_infra.render.hyperpod_cluster import native_arguments, planned_groups, render_cluster
from dpd_infra.render.lifecycle import lifecycle_scripts
from dpd_infra.rules.parts import check_part
from dpd_infra.spec.cluster import ClusterSettings, ClusterSpec
from dpd_infra.stack import refuse_errors

_SCRIPT_FOLDER = "lifecycle"
"""The folder of the scripts. It never changes: a changed script is a new version of its object and leaves the cluster alone."""

_ROLE = "hyperpod-node"
"""What the nodes' role is called, within the platform."""


class HyperPodCluster(Component):
    """A SageMaker HyperPod cluster that is orchestrated by EKS.

    Its name, its network and its EKS cluster cannot be changed: aws-native deletes the old cluster before it makes the new one, so the
    cluster is protected unless the spec says otherwise. aws-native honours no custom timeouts: it waits as long as the service does (12
    hours at most) and as the caller's credentials live.
    """

    __slots__ = ("handle",)
    token = tokens.HYPERPOD_CLUSTER

    cluster_name: pulumi.Output[str]
    cluster_arn: pulumi.Output[str]
    execution_role_arn: pulumi.Output[str]
    """The role of the nodes."""
    lifecycle_uri: pulumi.Output[str]
    """Where the nodes' scripts are."""
    cluster: aws_native.sagemaker.Cluster
    handle: ClusterHandle

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        *,
        account: Account,
        network: NetworkHandle,
        control_plane: ControlPlaneHandle,
        dependencies: Sequence[pulumi.Resource],
        default_name: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the cluster and what it needs.

        `dependencies` is what HyperPod needs in the EKS cluster before it is made, `HyperPodDependencies.resources`; an empty list says
        that it is there already. `default_name` is the cluster's name where the spec has none. Without an aws-native provider among the
        caller's options one is made for the account's region.
        """
        network = handle_of(network, NetworkHandle, "network")
        control_plane = handle_of(control_plane, ControlPlaneHandle, "control_plane")
        cluster_name = spec.name or default_name
        groups = {group.name: group.spec.instance_type for group in plan_groups(spec.instance_groups)}
        bucket_name = account.naming.lifecycle_bucket(account.account_id)
        refuse_errors(check_part(region=account.region, zone=network.zone, **_parts(spec)))
        super().__init__(name, {"clusterName": cluster_name}, opts)

        bucket = make_bucket(
            self, f"{name}-lifecycle", bucket_name=bucket_name, versioned=True, account=account, suffix="lifecycle-scripts"
        )
        scripts = self._scripts(name, bucket)
        role = self._role(name, spec, account, network, control_plane, bucket)
        lifecycle_uri = f"s3://{bucket_name}/{_SCRIPT_FOLDER}"
        native = self._native_provider(name, account)
        sent = SentGroups.of(planned_groups(spec, account.naming.role(_ROLE), lifecycle_uri))
        counts = GroupCounts()
        if spec.keep_outside_counts:
            counts = group_counts(sent, bucket=bucket_name, region=account.region, parent=self, native=native)
        request = render_cluster(
            spec,
            name=cluster_name,
            eks_cluster_arn=control_plane.arn,
            execution_role_arn=role.arn,
            lifecycle_uri=lifecycle_uri,
            security_group_ids=network.node_security_group_ids,
            subnet_ids=network.gpu_subnet_ids,
            tags=aws_tags(account, "hyperpod"),
            counts=counts.kept,
        )
        before = (*role.resources, *bucket.resources, *scripts, *dependencies, *network.resources, *control_plane.resources)
        self.cluster = aws_native.sagemaker.Cluster(
            f"{name}-cluster",
            opts=self._child(
                depends_on=before,
                protect=spec.protect,
                provider=native,
                # Not even after a refresh, which puts AWS's counts into the state.
                ignore_changes=["instanceGroups"] if counts.is_unchanged else None,
            ),
            **native_arguments(request),
        )
        self._object(f"{name}-lifecycle-groups", bucket, RECORD, self.cluster.cluster_arn.apply(sent.written), "application/json")

        self.cluster_name = pulumi.Output.from_input(cluster_name)
        self.cluster_arn = self.cluster.cluster_arn
        self.execution_role_arn = role.arn
        self.lifecycle_uri = pulumi.Output.from_input(lifecycle_uri)
        self.handle = ClusterHandle(
            name=cluster_name,
            arn=self.cluster_arn,
            execution_role_arn=self.execution_role_arn,
            instance_groups=groups,
            resources=(self.cluster,),
        )
        self.register_outputs(
            {
                "clusterName": self.cluster_name,
                "clusterArn": self.cluster_arn,
                "executionRoleArn": self.execution_role_arn,
                "lifecycleUri": self.lifecycle_uri,
            }
        )

    def _native_provider(self, name: str, account: Account) -> pulumi.ProviderResource | None:
        """A provider of our own where none is inherited: aws-native's default one knows no region from `aws:region`."""
        if self.get_provider("aws-native:sagemaker:Cluster") is not None:
            return None
        return aws_native.Provider(f"{name}-native", region=account.region, opts=self._child())

    def _scripts(self, name: str, bucket: MadeBucket) -> tuple[aws.s3.BucketObjectv2, ...]:
        """One object a script."""
        return tuple(
            self._object(f"{name}-lifecycle-{script}", bucket, f"{_SCRIPT_FOLDER}/{script}", content, "text/x-shellscript")
            for script, content in lifecycle_scripts().items()
        )

    def _object(self, name: str, bucket: MadeBucket, key: str, content: pulumi.Input[str], kind: str) -> aws.s3.BucketObjectv2:
        """Objects carry no tags: S3 allows ten on an object, and a stack may have fifty."""
        return aws.s3.BucketObjectv2(
            name,
            bucket=bucket.bucket.bucket,
            key=key,
            content=content,
            content_type=kind,
            override_provider={"default_tags": {"tags": {}}},
            opts=self._child(depends_on=bucket.resources),
        )

    def _role(
        self, name: str, spec: ClusterSpec, account: Account, network: NetworkHandle, control_plane: ControlPlaneHandle, bucket: MadeBucket
    ) -> MadeRole:
        keys = sorted({group.volume_key_arn for group in spec.instance_groups.values() if group.volume_key_arn})
        plan = pulumi.Output.all(
            vpc_id=network.vpc_id,
            subnet_ids=network.gpu_subnet_ids,
            security_group_ids=network.node_security_group_ids,
            cluster_arn=control_plane.arn,
            lifecycle_bucket_arn=bucket.bucket.arn,
        ).apply(
            lambda known: node_role(
                region=account.region, account_id=account.account_id, partition=account.partition, volume_key_arns=keys, **known
            )
        )
        return make_role(
            self,
            f"{name}-execution",
            plan,
            role_name=account.naming.role(_ROLE),
            managed_policies=NODE_MANAGED_POLICIES,
            account=account,
            suffix="hyperpod-node-role",
        )


def _parts(spec: ClusterSpec) -> dict[str, Any]:
    """The cluster's spec as a platform's has it: the groups, and what is said of the cluster apart from them."""
    settings = {name: getattr(spec, name) for name in ClusterSettings.model_fields}
    return {"instance_groups": spec.instance_groups, "cluster": ClusterSettings(**settings)}
