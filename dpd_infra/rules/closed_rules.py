"""Rules on closed networks: what cannot be reached where AWS's own APIs are the only way out."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import (
    CERTIFICATES_GUIDE,
    CLOUDWATCH_LOGS_API,
    DEPLOY_GUIDE,
    HYPERPOD_CHART,
    HYPERPOD_TERRAFORM,
    INFERENCE_POLICY,
    VPC_USER_GUIDE,
)
from dpd_infra.plan.mirrors import is_reachable_closed, registry
from dpd_infra.plan.pieces import pieces
from dpd_infra.render.dependencies_values import plugin_images
from dpd_infra.rules.control_plane_rules import LOG_RETENTION_DAYS
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.vocabulary import Egress


def _is_closed(endpoint: EndpointSubject) -> bool:
    return endpoint.operator is not None and endpoint.operator.closed_network


@rule(
    "DPD550",
    "A closed network can pull the worker image",
    severity=Severity.ERROR,
    why="Without a way out nodes reach private ECR registries of their own region, through interface endpoints, and no public registry.",
    sources=(DEPLOY_GUIDE, HYPERPOD_TERRAFORM),
)
def worker_image_is_reachable(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An image of a public registry, or of another region."""
    image = endpoint.get("spec", "worker", "image")
    region = endpoint.rendered.context.region
    if _is_closed(endpoint) and isinstance(image, str) and image and not is_reachable_closed(image, region):
        yield Violation(
            endpoint.at("spec", "worker", "image"),
            f"{registry(image)} is not reached from a closed network in {region}",
            f"copy the image into an ECR repository in {region} and name it under imageMirrors, "
            f"{registry(image)}: <account>.dkr.ecr.{region}.amazonaws.com/<prefix>",
            value=image,
        )


@rule(
    "DPD551",
    "A closed network has no Hugging Face hub",
    severity=Severity.ERROR,
    why="The hub (huggingface.co, hf.co) is reached through NAT only: the download container fails and the endpoint never gets ready.",
    sources=(DEPLOY_GUIDE,),
)
def model_is_reachable(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`modelSourceType: huggingface`."""
    path = ("spec", "modelSourceConfig", "modelSourceType")
    if _is_closed(endpoint) and endpoint.get(*path) == "huggingface":
        yield Violation(
            endpoint.at(*path),
            "the model comes from the Hugging Face hub",
            "copy the model into an S3 bucket of the region and use model.s3",
            value="huggingface",
        )


@rule(
    "DPD552",
    "A closed network can pull the device plugins",
    severity=Severity.ERROR,
    why="The dependencies chart takes the NVIDIA plugin from nvcr.io and the EFA plugin from ECR in us-west-2: without them no pod gets a "
    "GPU or an EFA device.",
    sources=(HYPERPOD_CHART, HYPERPOD_TERRAFORM),
)
def plugins_are_reachable(stack: StackSubject) -> Iterator[Violation]:
    """A plugin's repository that interface endpoints do not reach."""
    platform = stack.platform
    if platform is None or stack.region is None or not platform.operator_facts.closed_network:
        return
    if not pieces(platform).cluster or platform.dependencies.preinstalled:
        return
    for chart, repository in plugin_images(platform.dependencies.values, platform.image_mirrors).items():
        if not is_reachable_closed(repository, stack.region):
            yield Violation(
                stack.at("dependencies"),
                f"{chart} comes from {registry(repository)}, which is not reached from a closed network in {stack.region}",
                f"copy its image into an ECR repository in {stack.region} and name it under imageMirrors, or under dependencies.values",
                value=repository,
                related=(stack.at("imageMirrors"),),
            )


@rule(
    "DPD553",
    "A closed network reads model buckets of its own region",
    severity=Severity.ERROR,
    why="The gateway endpoint leads to S3 of its own region alone.",
    sources=(VPC_USER_GUIDE,),
)
def bucket_is_in_region(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A bucket of another region."""
    path = ("spec", "modelSourceConfig", "s3Storage", "region")
    region, own = endpoint.get(*path), endpoint.rendered.context.region
    if _is_closed(endpoint) and isinstance(region, str) and own and region != own:
        yield Violation(
            endpoint.at(*path), f"the bucket is in {region}, the network in {own}", f"copy the model into a bucket in {own}", value=region
        )


@rule(
    "DPD554",
    "Models are staged from a network with a way out",
    severity=Severity.ERROR,
    why="The staging job runs on the platform's nodes and reads the Hugging Face hub.",
    sources=(DEPLOY_GUIDE,),
)
def staging_has_a_way_out(stack: StackSubject) -> Iterator[Violation]:
    """Models to stage, in a closed network."""
    platform = stack.platform
    if platform is None or not platform.operator_facts.closed_network or platform.model_store is None:
        return
    for name in platform.model_store.models:
        yield Violation(
            stack.at("modelStore", "models", name),
            f"{name} would be read from the Hugging Face hub",
            "leave models out here, and fill the bucket from a stack with a way out",
            related=(stack.at("network", "egress"),),
        )


@rule(
    "DPD555",
    "What is known of closed networks is said",
    severity=Severity.ADVICE,
    why="The published list of interface endpoints is that of AWS's Terraform modules, for nodes; the operator also imports certificates "
    "into ACM. Which services have an interface endpoint in a region is AWS's to say.",
    sources=(HYPERPOD_TERRAFORM, INFERENCE_POLICY, CERTIFICATES_GUIDE),
)
def closed_network_is_proven(stack: StackSubject) -> Iterator[Violation]:
    """A closed network of our own without `acm` among its endpoints."""
    network = stack.network
    if network is None or network.egress is not Egress.ENDPOINTS or network.in_existing_vpc or "acm" in network.interface_endpoints:
        return
    yield Violation(
        stack.at("network", "egress"),
        "the operator imports each endpoint's certificate into ACM, and no interface endpoint for ACM is made",
        "look whether the region has one (aws ec2 describe-vpc-endpoint-services), and add interfaceEndpoints: [acm]",
        value="endpoints",
    )


@rule(
    "DPD556",
    "The flow logs' retention is one that CloudWatch takes",
    severity=Severity.ERROR,
    why="CloudWatch Logs takes certain numbers of days only and refuses the log group otherwise.",
    sources=(CLOUDWATCH_LOGS_API,),
)
def flow_log_retention(stack: StackSubject) -> Iterator[Violation]:
    """A number of days CloudWatch refuses."""
    logs = stack.network.flow_logs if stack.network else None
    if logs is not None and logs.retention_days not in LOG_RETENTION_DAYS:
        nearest = min((known for known in LOG_RETENTION_DAYS if known >= logs.retention_days), default=LOG_RETENTION_DAYS[-1])
        yield Violation(
            stack.at("network", "flowLogs", "retentionDays"),
            f"CloudWatch does not take {logs.retention_days} days",
            f"write {nearest}",
            value=logs.retention_days,
        )
