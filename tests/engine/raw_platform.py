"""A whole inference platform from raw provider resources, each part optional, so that a test can leave one out and see what refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as native
import pulumi_kubernetes as k8s


def trust(*services: str) -> str:
    """A trust policy for services."""
    statement = {"Effect": "Allow", "Principal": {"Service": list(services)}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


TRUST = trust("ec2.amazonaws.com")


def allowing(action: str) -> str:
    """A policy for one action on everything."""
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]})


POLICY = allowing("logs:PutLogEvents")
OPERATOR_ACCESS = "arn:aws:iam::aws:policy/AmazonSageMakerHyperPodInferenceAccess"
DEPLOYER = "arn:aws:iam::123456789012:role/rehearsal-deployer"
CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
REGION = "us-east-2"


@dataclass
class RawPlatform:
    """What to build; every field is a switch or a value that a test may turn."""

    cidr: str = "10.0.0.0/16"
    default_route: bool = True
    authentication_mode: str = "API"
    version: str = "1.33"
    spot: bool = False
    deployer_access: bool = True
    deployer_policy: bool = True
    dependencies: bool = True
    dependencies_wait: bool = False
    lifecycle_script: bool = True
    node_policy: bool = True
    hyperpod: bool = True
    groups: Mapping[str, int] = field(default_factory=lambda: {"decode": 1, "prefill": 1, "system": 2})
    group_order: tuple[str, ...] = ()
    node_addons: tuple[str, ...] = ("coredns", "cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server")
    addons_after_nodes: bool = True
    operator: bool = True
    operator_role: str = "SageMakerHyperPodInference-test"
    operator_configuration: tuple[str, ...] = ("executionRoleArn", "tlsCertificateS3Bucket", "alb")
    operator_subject: str = "hyperpod-inference-system:hyperpod-inference-controller-manager"
    operator_policy: bool = True
    load_balancer_subject: str = "hyperpod-inference-system:aws-load-balancer-controller"
    driver_action: str = "s3:Get*"
    load_balancer_action: str = "ec2:*"
    driver_subject: str = "kube-system:s3-csi-driver-sa"
    eks_service: str = "eks.amazonaws.com"
    node_service: str = "sagemaker.amazonaws.com"
    efa_rules: tuple[str, ...] = ("in", "out")
    way_out: bool = True
    continuous: bool = True
    group_options: Mapping[str, Any] = field(default_factory=dict)
    endpoint_spec: Mapping[str, Any] = field(default_factory=dict)
    subnet_size: int = 19
    tagged_zones: str = ""
    oidc_provider: bool = True
    endpoint: bool = True
    endpoint_after_operator: bool = True
    prefill_replicas: int = 1
    endpoint_timeout: str | None = None
    tls_force_destroy: bool = True

    def __call__(self) -> None:
        """The Pulumi program."""
        self._network()
        self._control_plane()
        if self.hyperpod:
            self._hyperpod()
        self._addons()
        if self.endpoint:
            self._endpoint()

    def _network(self) -> None:
        self.vpc = aws.ec2.Vpc("vpc", cidr_block=self.cidr, tags={"Name": "test"})
        prefix = self.cidr.rsplit(".", 2)[0]
        gateway = aws.ec2.InternetGateway("igw", vpc_id=self.vpc.id)
        public = aws.ec2.Subnet("public", vpc_id=self.vpc.id, cidr_block=f"{prefix}.0.0/24", availability_zone=f"{REGION}a")
        eip = aws.ec2.Eip("eip", domain="vpc", opts=pulumi.ResourceOptions(depends_on=[gateway]))
        nat = aws.ec2.NatGateway("nat", subnet_id=public.id, allocation_id=eip.id, opts=pulumi.ResourceOptions(depends_on=[gateway]))
        # NAT leads somewhere when its own subnet does.
        way_out = aws.ec2.RouteTable("public", vpc_id=self.vpc.id)
        association = aws.ec2.RouteTableAssociation("public", subnet_id=public.id, route_table_id=way_out.id)
        default = aws.ec2.Route("public", route_table_id=way_out.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id)
        self.subnets = []
        self.routes: list[pulumi.Resource] = [association, default]
        for index, zone in enumerate("ab"):
            block = f"{prefix}.{64 * (index + 1)}.0/{self.subnet_size}"
            tags = {"kubernetes.io/role/internal-elb": "1"} if zone in self.tagged_zones else None
            where = {"availability_zone": f"{REGION}{zone}", "tags": tags}
            subnet = aws.ec2.Subnet(f"private-{zone}", vpc_id=self.vpc.id, cidr_block=block, **where)
            table = aws.ec2.RouteTable(f"private-{zone}", vpc_id=self.vpc.id)
            association = aws.ec2.RouteTableAssociation(f"private-{zone}", subnet_id=subnet.id, route_table_id=table.id)
            self.routes.append(association)
            if self.default_route:
                target = {"destination_cidr_block": "0.0.0.0/0", "nat_gateway_id": nat.id}
                self.routes.append(aws.ec2.Route(f"private-{zone}", route_table_id=table.id, **target))
            self.subnets.append(subnet)
        self.group = aws.ec2.SecurityGroup("nodes", vpc_id=self.vpc.id, description="nodes")
        itself = {"security_group_id": self.group.id, "referenced_security_group_id": self.group.id, "ip_protocol": "-1"}
        if "in" in self.efa_rules:
            self.routes.append(aws.vpc.SecurityGroupIngressRule("efa", **itself))
        if self.way_out:
            anywhere = "0.0.0.0/0"
            rule = aws.vpc.SecurityGroupEgressRule("anywhere", security_group_id=self.group.id, cidr_ipv4=anywhere, ip_protocol="-1")
            self.routes.append(rule)
        if "out" in self.efa_rules:
            self.routes.append(aws.vpc.SecurityGroupEgressRule("efa", **itself))

    def _control_plane(self) -> None:
        role = aws.iam.Role("eks", assume_role_policy=trust(self.eks_service))
        policy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
        attached = aws.iam.RolePolicyAttachment("eks", role=role.name, policy_arn=policy)
        self.eks = aws.eks.Cluster(
            "eks",
            name="test",
            role_arn=role.arn,
            version=self.version,
            bootstrap_self_managed_addons=False,
            access_config={"authentication_mode": self.authentication_mode, "bootstrap_cluster_creator_admin_permissions": False},
            vpc_config={"subnet_ids": [subnet.id for subnet in self.subnets], "endpoint_private_access": True},
            opts=pulumi.ResourceOptions(depends_on=[attached]),
        )
        ready: list[pulumi.Resource] = []
        if self.deployer_access:
            entry = aws.eks.AccessEntry("deployer", cluster_name=self.eks.name, principal_arn=DEPLOYER)
            ready.append(entry)
            if self.deployer_policy:
                association = aws.eks.AccessPolicyAssociation(
                    "deployer",
                    cluster_name=self.eks.name,
                    principal_arn=DEPLOYER,
                    policy_arn=CLUSTER_ADMIN,
                    access_scope={"type": "cluster"},
                    opts=pulumi.ResourceOptions(depends_on=[entry]),
                )
                ready.append(association)
        self.issuer = self.eks.identities[0].oidcs[0].issuer
        self.oidc = None
        if self.oidc_provider:
            self.oidc = aws.iam.OpenIdConnectProvider("oidc", url=self.issuer, client_id_lists=["sts.amazonaws.com"])
        self.cni = aws.eks.Addon("vpc-cni", cluster_name=self.eks.name, addon_name="vpc-cni", addon_version="v1.20.4-eksbuild.1")
        self.kubernetes = k8s.Provider(
            "eks", kubeconfig=kubeconfig(self.eks), cluster_identifier="test", opts=pulumi.ResourceOptions(depends_on=ready)
        )

    def _in_cluster(self, *depends_on: pulumi.Resource, timeout: str | None = None) -> pulumi.ResourceOptions:
        timeouts = pulumi.CustomTimeouts(create=timeout, update=timeout) if timeout else None
        return pulumi.ResourceOptions(provider=self.kubernetes, depends_on=list(depends_on), custom_timeouts=timeouts)

    def _hyperpod(self) -> None:
        bucket = aws.s3.Bucket("lifecycle", bucket="sagemaker-test-lifecycle")
        needs: list[pulumi.Resource] = [self.cni, *self.routes]
        if self.lifecycle_script:
            script = pulumi.StringAsset("#!/bin/bash\n")
            needs.append(aws.s3.BucketObjectv2("on_create.sh", bucket=bucket.bucket, key="scripts/on_create.sh", source=script))
        role = aws.iam.Role("node", assume_role_policy=trust(self.node_service))
        if self.node_policy:
            needs.append(aws.iam.RolePolicy("node", role=role.name, policy=POLICY))
        if self.dependencies:
            release = k8s.helm.v3.Release(
                "hyperpod-dependencies",
                chart="./charts/hyperpod-dependencies-9f496a6.tgz",
                name="hyperpod-dependencies",
                namespace="kube-system",
                skip_await=not self.dependencies_wait,
                opts=self._in_cluster(self.cni),
            )
            needs.append(release)
        self.cluster = native.sagemaker.Cluster(
            "hyperpod",
            cluster_name="test",
            orchestrator={"eks": {"cluster_arn": self.eks.arn}},
            vpc_config={"subnets": [self.subnets[0].id], "security_group_ids": [self.group.id]},
            node_provisioning_mode=native.sagemaker.ClusterNodeProvisioningMode.CONTINUOUS if self.continuous else None,
            instance_groups=[self._group(name, role.arn) for name in self.group_order or sorted(self.groups)],  # pyright: ignore[reportArgumentType]
            opts=pulumi.ResourceOptions(depends_on=needs),
        )

    def _group(self, name: str, role: pulumi.Output[str]) -> dict[str, Any]:
        return {
            "instance_group_name": name,
            "instance_count": self.groups[name],
            "instance_type": "ml.c5.4xlarge" if name == "system" else "ml.p5.48xlarge",
            "execution_role": role,
            **({"capacity_requirements": {"spot": {}}} if self.spot else {}),
            **self.group_options,
            "life_cycle_config": {"source_s3_uri": "s3://sagemaker-test-lifecycle/scripts/", "on_create": "on_create.sh"},
        }

    def _addons(self) -> None:
        after: list[pulumi.Resource] = [self.cluster] if self.hyperpod and self.addons_after_nodes else []
        driver = self._web_role("s3-csi", self.driver_subject)
        may_read = [aws.iam.RolePolicy("s3-csi", role=driver.name, policy=allowing(self.driver_action))]
        after = [*after, *may_read]
        addons = [self._addon(name, after, role=driver if "s3" in name else None) for name in self.node_addons]
        self.operator_addon = None
        if not self.operator:
            return
        tls = aws.s3.Bucket("tls", bucket="hyperpod-tls-test", force_destroy=self.tls_force_destroy)
        role = self._web_role("operator", self.operator_subject, name=self.operator_role)
        attached: list[pulumi.Resource] = []
        if self.operator_policy:
            attached.append(aws.iam.RolePolicyAttachment("operator", role=role.name, policy_arn=OPERATOR_ACCESS))
        balancer = self._web_role("alb", self.load_balancer_subject)
        attached.append(aws.iam.RolePolicy("alb", role=balancer.name, policy=allowing(self.load_balancer_action)))
        values = {
            "executionRoleArn": role.arn,
            "tlsCertificateS3Bucket": tls.bucket,
            "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": balancer.arn}},
            "albOff": {"enabled": False},
            "kedaOff": {"enabled": False},
        }
        given = {key.removesuffix("Off"): values[key] for key in self.operator_configuration}
        configuration = pulumi.Output.json_dumps(given)
        needs = [*addons, *after, *attached, *([self.oidc] if self.oidc else [])]
        self.operator_addon = self._addon("amazon-sagemaker-hyperpod-inference", needs, configuration)

    def _addon(
        self, name: str, after: list[pulumi.Resource], configuration: pulumi.Input[str] | None = None, role: aws.iam.Role | None = None
    ) -> aws.eks.Addon:
        return aws.eks.Addon(
            name,
            cluster_name=self.eks.name,
            addon_name=name,
            configuration_values=configuration,
            service_account_role_arn=role.arn if role else None,
            opts=pulumi.ResourceOptions(depends_on=after),
        )

    def _web_role(self, label: str, subject: str, **options: Any) -> aws.iam.Role:
        """A role for a service account of the cluster."""

        def document(issuer: str) -> str:
            host = issuer.removeprefix("https://")
            wanted = {f"{host}:aud": "sts.amazonaws.com", f"{host}:sub": f"system:serviceaccount:{subject}"}
            statement = {
                "Effect": "Allow",
                "Principal": {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{host}"},
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Condition": {"StringEquals": wanted},
            }
            return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

        return aws.iam.Role(label, assume_role_policy=self.issuer.apply(document), **options)

    def _endpoint(self) -> None:
        after = [self.operator_addon] if self.operator_addon and self.endpoint_after_operator else []
        k8s.apiextensions.CustomResource(
            "endpoint",
            api_version="inference.sagemaker.aws.amazon.com/v1",
            kind="InferenceEndpointConfig",
            metadata={
                "name": "dpd-test",
                "namespace": "default",
                "annotations": {"pulumi.com/waitFor": "jsonpath={.status.state}=DeploymentComplete"},
            },
            spec={
                "modelName": "llama",
                "endpointName": "dpd-test",
                "instanceType": "ml.p5.48xlarge",
                "modelSourceConfig": {"modelSourceType": "s3", "s3Storage": {"bucketName": "models", "region": REGION}},
                "pdSpec": {
                    "prefillSpec": role_spec(self.prefill_replicas, "prefill"),
                    "decodingSpec": role_spec(1, "decode"),
                },
                "worker": {
                    "image": "x",
                    "modelInvocationPort": {"containerPort": 8000},
                    "modelVolumeMount": {"name": "model"},
                    "resources": {},
                },
                **self.endpoint_spec,
            },
            opts=self._in_cluster(*after, timeout=self.endpoint_timeout),
        )


def role_spec(replicas: int, group: str) -> dict[str, Any]:
    """One role of a DPD endpoint, on a group of its own."""
    return {
        "replicas": replicas,
        "nodeSelector": {"sagemaker.amazonaws.com/instance-group-name": group},
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }


def kubeconfig(cluster: aws.eks.Cluster) -> pulumi.Output[str]:
    """A kubeconfig of an EKS cluster, with the AWS CLI as credential plugin."""
    return pulumi.Output.json_dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "eks",
                    "cluster": {"server": cluster.endpoint, "certificate-authority-data": cluster.certificate_authority.data},
                }
            ],
            "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "eks"}}],
            "current-context": "eks",
            "users": [
                {
                    "name": "eks",
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "aws",
                            "args": ["eks", "get-token", "--cluster-name", cluster.name],
                        }
                    },
                }
            ],
        }
    )
