"""Where a fact was read: each number, name and limit in this package points at one of these documents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Source:
    """One document, named as a reader would look it up."""

    title: str
    reference: str
    """A documentation page, a repository with its path, or a package with its version."""
    read: str = ""
    """When it was read (ISO date), where the document is known to change."""

    def __str__(self) -> str:
        when = f", read {self.read}" if self.read else ""
        return f"{self.title} ({self.reference}{when})"


class Confidence(StrEnum):
    """How far a number can be trusted."""

    EXACT = "exact"
    MODELLED = "modelled"
    PUBLISHED = "published"


_DOCS = "SageMaker AI developer guide"

DPD_GUIDE = Source("HyperPod: disaggregated prefill and decode", f"{_DOCS}, sagemaker-hyperpod-model-deployment-dpd")
DPD_TROUBLESHOOTING = Source("HyperPod: DPD troubleshooting", f"{_DOCS}, sagemaker-hyperpod-model-deployment-ts-dpd")
CLI_TROUBLESHOOTING = Source("HyperPod: add-on troubleshooting", f"{_DOCS}, sagemaker-hyperpod-model-deployment-ts-cli")
CONSOLE_TROUBLESHOOTING = Source(
    "HyperPod: console and CloudFormation failures", f"{_DOCS}, sagemaker-hyperpod-model-deployment-ts-console-cfn-failures"
)
RELEASE_NOTES = Source("HyperPod inference operator release notes", f"{_DOCS}, sagemaker-hyperpod-inference-release-notes", "2026-08-21")
SETUP_GUIDE = Source("HyperPod: setting up model deployment", f"{_DOCS}, sagemaker-hyperpod-model-deployment-setup")
CACHING_ROUTING_GUIDE = Source(
    "HyperPod: KV caching and intelligent routing", f"{_DOCS}, sagemaker-hyperpod-model-deployment caching and routing"
)
GATEWAY_GUIDE = Source("HyperPod: inference gateway", f"{_DOCS}, sagemaker-hyperpod inference gateway")
CERTIFICATES_GUIDE = Source("HyperPod: custom certificates and DNS", f"{_DOCS}, sagemaker-hyperpod custom certificates")
DATA_CAPTURE_GUIDE = Source("HyperPod: data capture", f"{_DOCS}, sagemaker-hyperpod data capture")
TASK_GOVERNANCE_GUIDE = Source("HyperPod: task governance for inference", f"{_DOCS}, sagemaker-hyperpod task governance")
PREREQUISITES_GUIDE = Source("HyperPod prerequisites", f"{_DOCS}, sagemaker-hyperpod-prerequisites")
EKS_PREREQUISITES_GUIDE = Source("HyperPod on EKS prerequisites", f"{_DOCS}, sagemaker-hyperpod-eks-prerequisites")
INFERENCE_POLICY = Source("AmazonSageMakerHyperPodInferenceAccess", "AWS managed policy reference, version v4", "2026-07-20")
DPD_BLOG = Source("Disaggregated prefill and decode for LLM inference on SageMaker HyperPod", "AWS machine learning blog, 10 July 2026")
CRD_3_2 = Source("InferenceEndpointConfig CRD, operator 3.2", "aws/sagemaker-hyperpod-cli, inference-operator chart 2.2.2", "2026-06-22")
CRD_3_3 = Source("InferenceEndpointConfig CRD, operator 3.3", "aws/sagemaker-hyperpod-cli, inference-operator chart 2.3.0")
OPERATOR_CHART = Source("Inference operator chart", "aws/sagemaker-hyperpod-cli, HyperPodHelmChart/charts/inference-operator", "2026-06-22")
HYPERPOD_CHART = Source("HyperPod dependencies chart", "aws/sagemaker-hyperpod-cli, helm_chart/HyperPodHelmChart")
HYPERPOD_CONSTANTS = Source("HyperPod CLI instance table", "aws/sagemaker-hyperpod-cli, src/sagemaker/hyperpod/training/constants.py")
HYPERPOD_TERRAFORM = Source(
    "HyperPod EKS Terraform modules",
    "awslabs/awsome-distributed-ai, 1.architectures/7.sagemaker-hyperpod-eks/terraform-modules",
    "2026-07-23",
)
CUSTOMER_KEYS_GUIDE = Source("HyperPod: customer managed keys for volumes", f"{_DOCS}, smcluster-cmk")
CREATE_CLUSTER_API = Source("SageMaker CreateCluster", "botocore 1.44.8, sagemaker/2017-07-24 service-2")
AI_CONFIGURATOR = Source("AIConfigurator", "aiconfigurator 0.12, vLLM tables")
LMCACHE = Source("LMCache 0.4.3", "LMCache/LMCache, v0.4.3, pd_backend.py and kv_shape")
OPERATOR_NOTES = Source("Read-only CLI output of a live account", "third-party engineer's notes", "2026-10-04")
VLLM = Source("vLLM", "vllm-project/vllm, v0.19 (the version in both supported DPD images)")
LOAD_BALANCER_CONTROLLER_POLICY = Source(
    "AWS Load Balancer Controller IAM policy", "kubernetes-sigs/aws-load-balancer-controller, v2.13.0, docs/install/iam_policy.json"
)
S3_CSI_CONFIGURATION = Source(
    "Mountpoint for Amazon S3 CSI driver", "awslabs/mountpoint-s3-csi-driver, docs/CONFIGURATION.md and issue 677"
)
FSX_CSI_INSTALL = Source("FSx for Lustre CSI driver", "kubernetes-sigs/aws-fsx-csi-driver, docs/install.md and pkg/driver/controller.go")
EKS_CONFUSED_DEPUTY = Source("EKS: cross-service confused deputy prevention", "EKS user guide", "2025-08-19")
SAGEMAKER_CONFUSED_DEPUTY = Source(
    "SageMaker AI: cross-service confused deputy prevention", f"{_DOCS}, security-confused-deputy-prevention"
)
EKS_TERRAFORM_MODULE = Source("EKS Terraform module: encryption", "terraform-aws-modules/terraform-aws-eks, v21, cluster encryption policy")
FLOW_LOGS_GUIDE = Source("IAM role for publishing flow logs to CloudWatch Logs", "VPC user guide, flow-logs-iam-role")
IAM_QUOTAS = Source("IAM quotas and name requirements", "IAM user guide, reference_iam-quotas")
EKS_USER_GUIDE = Source("Amazon EKS user guide", "docs.aws.amazon.com/eks/latest/userguide")
EC2_ERRORS = Source("EC2 API error codes", "docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview")
S3_ERRORS = Source("S3 API error codes", "docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses")
VPC_USER_GUIDE = Source("Amazon VPC user guide", "docs.aws.amazon.com/vpc/latest/userguide")
AWS_REGIONS = Source("AWS regions", "botocore 1.44.8, endpoints.json")
ADDRESS_BLOCKS = Source("Private and shared IPv4 address space", "RFC 1918 and RFC 6598")
CLOUDWATCH_LOGS_API = Source("CloudWatch Logs PutRetentionPolicy", "botocore 1.44.8, logs/2014-03-28 service-2")
DESIGN_NOTE = Source("How this library works", "docs/design.md of this project")
IAM_USER_GUIDE = Source("AWS IAM user guide", "docs.aws.amazon.com/IAM/latest/UserGuide")
KUBERNETES_DOCS = Source("Kubernetes documentation", "kubernetes.io/docs")
VPC_CNI_LIMITS = Source("Addresses and pods of each instance type", "aws/amazon-vpc-cni-k8s, misc/eni-max-pods.txt")
DJL_SERVING = Source("DJL Serving: global configuration", "docs.djl.ai, serving/docs/configurations_global")
TGI_CONTAINER = Source("Hugging Face text generation inference container", "huggingface/text-generation-inference, sagemaker-entrypoint.sh")
DEPLOY_GUIDE = Source("HyperPod: deploying models from S3, FSx or Hugging Face", f"{_DOCS}, sagemaker-hyperpod-model-deployment-deploy-ftm")
KUBERNETES_VOLUME_GUIDE = Source("HyperPod: models on Kubernetes volumes", f"{_DOCS}, sagemaker-hyperpod model deployment")
HUGGING_FACE_HUB = Source("Hugging Face hub: gated models", "huggingface.co/docs/hub/models-gated")
KEDA_DOCS = Source("KEDA 2.17", "keda.sh/docs/2.17, ScaledObject specification and scalers")
KUEUE_DOCS = Source("Kueue", "kueue.sigs.k8s.io/docs, run workloads and cluster queues")
PYTHON_DOCS = Source("Python: PYTHONHASHSEED", "docs.python.org/3/using/cmdline.html")
LIBFABRIC_EFA = Source("libfabric EFA provider", "ofiwg/libfabric, man/fi_efa.7.md")
PUBLIC_SAMPLES = Source("Public samples that never turn healthy", "AWS's S3 example and aws-samples/sagemaker-genai-hosting-examples")


def thread(repository: str, *numbers: int) -> Source:
    """Issues or pull requests of a public repository in which people report what a rule is about."""
    return Source(" ".join([repository, ", ".join(f"#{number}" for number in numbers)]).strip(), "GitHub")


AWS_NATIVE_CLUSTER = Source("pulumi-aws-native sagemaker.Cluster: properties that replace it", "pulumi-aws-native 1.84, sagemaker/cluster")
UPDATE_CLUSTER_GUIDE = Source(
    "HyperPod on EKS: updating a cluster's configuration", f"{_DOCS}, sagemaker-hyperpod-eks-operate-cli-command-update-cluster"
)
TIERED_CACHE_BLOG = Source("Managed tiered KV cache on SageMaker HyperPod", "AWS machine learning blog", "2026-11-30")
