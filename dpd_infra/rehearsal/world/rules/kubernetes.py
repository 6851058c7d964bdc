"""What EKS add-ons, the Kubernetes API server and the inference operator enforce."""

from __future__ import annotations

from dpd_infra.catalog.sources import (
    CLI_TROUBLESHOOTING,
    CONSOLE_TROUBLESHOOTING,
    CRD_3_2,
    EKS_USER_GUIDE,
    INFERENCE_POLICY,
    OPERATOR_CHART,
    SETUP_GUIDE,
    Source,
    thread,
)
from dpd_infra.rehearsal.world.rule import WorldRule

_PULUMI_KUBERNETES = Source("pulumi-kubernetes provider", "pulumi/pulumi-kubernetes, v4, provider/pkg")
_API_SERVER = Source("Kubernetes API server", "kubernetes/apiextensions-apiserver, customresource_handler.go")
_TERRAFORM_README = Source("HyperPod inference: public endpoint with Terraform", "third-party README derived from AWS's Terraform modules")

NODES_FOR_ADDON = WorldRule(
    "addon-needs-nodes",
    "An add-on whose pods need a node stays DEGRADED until there is one.",
    "{addon}: InsufficientNumberOfReplicas: The add-on is unhealthy because it doesn't have the desired number of replicas.",
    thread("pulumi/pulumi-eks", 1525, 1819),
)
S3_DRIVER = WorldRule(
    "operator-s3-driver",
    "The S3 CSI driver is there before the operator.",
    "S3 CSI driver not installed (missing CSIDriver s3.csi.aws.com)",
    CLI_TROUBLESHOOTING,
)
FSX_DRIVER = WorldRule(
    "operator-fsx-driver",
    "The FSx CSI driver is there before the operator.",
    "FSx CSI driver not installed (missing CSIDriver fsx.csi.aws.com)",
    CLI_TROUBLESHOOTING,
)
CERT_MANAGER = WorldRule(
    "operator-cert-manager",
    "cert-manager's CRDs are there before the operator.",
    "Missing required CRD: certificaterequests.cert-manager.io",
    CLI_TROUBLESHOOTING,
)
LOAD_BALANCER_CONTROLLER = WorldRule(
    "operator-load-balancer-controller",
    "A load balancer controller runs: the add-on's own, or one that is there already.",
    "ALB Controller not installed (missing aws-load-balancer-controller pods)",
    CLI_TROUBLESHOOTING,
)
KEDA = WorldRule(
    "operator-keda",
    "KEDA runs: the add-on's own, or one that is there already.",
    "KEDA operator not installed (missing keda-operator pods)",
    CLI_TROUBLESHOOTING,
)
ROLE_PREFIX = WorldRule(
    "operator-role-prefix",
    "The execution role's name begins with SageMakerHyperPodInference: AWS's managed policy passes on no other.",
    "executionRoleArn must have a role name with prefix 'SageMakerHyperPodInference'",
    OPERATOR_CHART,
)
ROLE_SUBJECT = WorldRule(
    "operator-role-subject",
    "The execution role trusts the operator's service account, through the cluster's OIDC provider.",
    "UpdateClusterInference: Not authorized to perform sts:AssumeRoleWithWebIdentity",
    CLI_TROUBLESHOOTING,
)
TLS_BUCKET = WorldRule(
    "operator-tls-bucket",
    "The certificate bucket exists.",
    "NoSuchBucket: The specified bucket does not exist: {bucket}",
    SETUP_GUIDE,
    verbatim=False,
)
POD_SLOTS = WorldRule(
    "operator-pod-slots",
    "The operator, the load balancer controller and KEDA need 13 pods' room on amd64 nodes.",
    "InsufficientNumberOfReplicas: {free} of the 13 pods fit on the amd64 nodes of the cluster",
    CONSOLE_TROUBLESHOOTING,
    verbatim=False,
)
REQUIRED_VALUES = WorldRule(
    "operator-configuration",
    "The add-on's configuration names its execution role and its certificate bucket.",
    "ConfigurationValue provided in request is not supported: Json schema validation failed with error: {fields}",
    SETUP_GUIDE,
    verbatim=False,
)
REINSTALL = WorldRule(
    "operator-reinstall",
    "The operator is not installed again while its CRDs hang terminating.",
    "K8sResourceNotFound: the CRDs of {group} are terminating: {left} of them still exist and hold finalizers",
    CLI_TROUBLESHOOTING,
    verbatim=False,
)
KIND = WorldRule(
    "kubernetes-kind",
    "A custom resource's kind is known before the first object of it.",
    "creation of resource {key} failed because the Kubernetes API server reported that the apiVersion for this resource does not exist. "
    'Verify that any required CRDs have been created: no matches for kind "{kind}" in version "{version}"',
    thread("pulumi/pulumi-kubernetes", 1712, 1735),
)
TERMINATING = WorldRule(
    "crd-terminating",
    "Nothing is made of a kind whose CRD is being deleted.",
    "create not allowed while custom resource definition is terminating",
    _API_SERVER,
)
WEBHOOK = WorldRule(
    "conversion-webhook",
    "An installed operator that does not run answers no conversion: every write of its kinds fails.",
    'conversion webhook for {version}, Kind={kind} failed: Post "https://hyperpod-inference-conversion-webhook.hyperpod-inference-system.svc:443'
    '/convert?timeout=30s": no endpoints available for service "hyperpod-inference-conversion-webhook"',
    thread("daekeun-ml/aws-ai-infra-helper"),
)
DELETION_HANGS = WorldRule(
    "finalizers",
    "A custom resource goes when its operator has taken its finalizer away; without an operator the deletion hangs.",
    "timed out waiting for the condition",
    _PULUMI_KUBERNETES,
)
SCHEMA = WorldRule(
    "custom-resource-schema",
    "A custom resource satisfies the schema of its CRD.",
    '{kind}.{group} "{name}" is invalid: {problems}',
    CRD_3_2,
)
UNKNOWN_FIELD = WorldRule(
    "custom-resource-fields",
    "A custom resource has the fields that its CRD declares, and no others.",
    "failed to create typed patch object ({key}; {version}, Kind={kind}): {problems}",
    CRD_3_2,
)
ROUTING_FIXED = WorldRule(
    "endpoint-routing-fixed",
    "intelligentRoutingSpec cannot be added to a deployment, and its `enabled` cannot be changed.",
    "intelligentRoutingSpec cannot be added to or switched on an existing deployment",
    CRD_3_2,
    verbatim=False,
)
ENDPOINT_NAME = WorldRule(
    "endpoint-name",
    "A SageMaker endpoint's name is unique in its region.",
    'Cannot create already existing endpoint "{arn}".',
    Source("SageMaker CreateEndpoint", "botocore 1.44.8, sagemaker/2017-07-24 service-2"),
    verbatim=False,
)
ENDPOINT_NETWORK = WorldRule(
    "endpoint-network-permission",
    "The execution role may create the permission for a network interface, or no endpoint variant comes up in the VPC.",
    "Please ensure that the execution role for variant AllTraffic has sufficient permissions for creating an endpoint variant within a VPC",
    INFERENCE_POLICY,
)
CERTIFICATE_ROUTE = WorldRule(
    "endpoint-certificate-route",
    "The SageMaker endpoint fetches the load balancer's certificate from S3: its subnets have a way there.",
    "Error downloading CA certificate: Connect timeout on endpoint URL",
    SETUP_GUIDE,
)
TARGET_ZONE = WorldRule(
    "load-balancer-zone",
    "Where subnets carry the internal load balancer's tag, one of them is in the zone of the pods.",
    "targets of the load balancer stay unused: Target.NotInUse, no subnet with kubernetes.io/role/internal-elb is in {zone}",
    _TERRAFORM_README,
    verbatim=False,
)
LOAD_BALANCER_ROLE = WorldRule(
    "load-balancer-role",
    "The load balancer controller has a role that trusts its service account and lets it make security groups.",
    "ingress has no address: FailedBuildModel: not authorized to perform ec2:CreateSecurityGroup",
    _TERRAFORM_README,
    verbatim=False,
)
LOAD_BALANCER_ADDRESSES = WorldRule(
    "load-balancer-addresses",
    "A load balancer needs 8 free addresses in each of its subnets.",
    "InvalidSubnet: Not enough IP space available in {subnet}. ELB requires at least 8 free IP addresses in each subnet.",
    Source("Load balancer controller", "AWS knowledge center, ingress without an address"),
)
DRIVER_ROLE = WorldRule(
    "s3-driver-role",
    "The S3 driver mounts with a role that trusts its service account.",
    "MountVolume.SetUp failed: Not authorized to perform sts:AssumeRoleWithWebIdentity ({account} has no role that trusts it)",
    SETUP_GUIDE,
    verbatim=False,
)
DRIVER_PERMISSIONS = WorldRule(
    "s3-driver-permissions",
    "The S3 driver's role may read objects.",
    "MountVolume.SetUp failed: the role of {account} is not authorized to perform s3:GetObject",
    SETUP_GUIDE,
    verbatim=False,
)
CLUSTER_GONE = WorldRule(
    "kubernetes-unreachable",
    "What lives in a Kubernetes cluster cannot be read or deleted once the cluster is gone.",
    "failed to read resource state due to unreachable cluster. If the cluster was deleted, you can remove this resource from Pulumi state "
    'by rerunning the operation with the PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"',
    _PULUMI_KUBERNETES,
)
SUBNET_ZONES = WorldRule(
    "eks-two-zones",
    "A control plane has subnets in two availability zones.",
    "Subnets specified must be in at least two different AZs",
    EKS_USER_GUIDE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, WorldRule))
