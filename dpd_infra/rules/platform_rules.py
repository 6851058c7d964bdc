"""Rules on what a platform's parts ask of each other: add-ons, pod slots, the EFA plugin, the operator's roles, keys, and the region."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.catalog.addons import CERT_MANAGER, CONTROL_PLANE_ADDONS, FSX_CSI, METRICS_SERVER, OPERATOR_POD_SLOTS, S3_CSI
from dpd_infra.catalog.node_sizes import node_size
from dpd_infra.catalog.operator_regions import OPERATOR_REGIONS
from dpd_infra.catalog.regions import REGIONS, is_misspelt, near_region
from dpd_infra.catalog.sources import (
    AWS_REGIONS,
    CLI_TROUBLESHOOTING,
    CONSOLE_TROUBLESHOOTING,
    CUSTOMER_KEYS_GUIDE,
    HYPERPOD_TERRAFORM,
    INFERENCE_POLICY,
    OPERATOR_CHART,
    OPERATOR_NOTES,
    RELEASE_NOTES,
    SETUP_GUIDE,
    VPC_CNI_LIMITS,
    thread,
)
from dpd_infra.plan.addon_versions import below_minimum
from dpd_infra.plan.names import TLS_BUCKET_PREFIX
from dpd_infra.plan.pieces import pieces
from dpd_infra.render.addon_values import render_operator_configuration
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import StackSubject, Violation
from dpd_infra.spec.finding import Path, Severity

NODE_DAEMONS = len(CONTROL_PLANE_ADDONS) + 2
"""Pods on every node: vpc-cni, kube-proxy, pod identity agent, and the node parts of both CSI drivers."""

CLUSTER_PODS = 2 + 3 + 2
"""Pods beside them: coredns 2, cert-manager 3, metrics-server 2 (the add-ons' own defaults)."""

EFA_PLUGIN = "aws-efa-k8s-device-plugin"
EFA_PLUGIN_FOR_P6 = (0, 5, 6)
"""The first version that counts the devices of ml.p6 types right (terraform-aws-eks-data-addons #53)."""

_OWN = "of our own"
_REGION: Path = ("config", "aws:region")


@rule(
    "DPD512",
    "The region has the operator's images",
    severity=Severity.WARNING,
    why="The operator's chart knows registries of 17 regions and fails with Unsupported AWS Region in any other; the release notes say "
    "every region with HyperPod. The sources contradict each other.",
    sources=(OPERATOR_CHART, RELEASE_NOTES),
)
def region_has_operator(stack: StackSubject) -> Iterator[Violation]:
    """A region that the chart does not list."""
    if stack.platform is not None and stack.region in REGIONS and stack.region not in OPERATOR_REGIONS and pieces(stack.platform).operator:
        what = f"the operator's chart lists no registry in {stack.region}"
        yield Violation(
            _REGION,
            what,
            f"see whether the add-on is offered there, or use one of {', '.join(OPERATOR_REGIONS)}",
            stack.region,
        )


@rule(
    "DPD513",
    "The region is one that AWS has",
    severity=Severity.ERROR,
    why="Every call to AWS goes to an address with the region's name in it: with a misspelt one the first of them finds no host.",
    sources=(AWS_REGIONS,),
)
def region_is_spelt_right(stack: StackSubject) -> Iterator[Violation]:
    """An `aws:region` with a word in it that no region's name has, near one that exists."""
    if stack.region is not None and is_misspelt(stack.region):
        near = near_region(stack.region)
        yield Violation(_REGION, f"there is no AWS region {stack.region}", f"did you mean {near}?", stack.region)


@rule(
    "DPD514",
    "The region is a known one",
    severity=Severity.WARNING,
    why="AWS opens regions faster than lists of them are renewed; a region that does not exist stops the deployment at its first call.",
    sources=(AWS_REGIONS,),
)
def region_is_known(stack: StackSubject) -> Iterator[Violation]:
    """An `aws:region` that is not in the list of the SDK of AWS, and no plain misspelling."""
    if stack.region is not None and stack.region not in REGIONS and not is_misspelt(stack.region):
        near = near_region(stack.region)
        fix = f"see that it exists{f'; did you mean {near}?' if near else ''}"
        yield Violation(_REGION, f"no AWS region {stack.region} is known here", fix, stack.region)


@rule(
    "DPD533",
    "The operator's pods find free slots",
    severity=Severity.ERROR,
    why=f"The add-on needs {OPERATOR_POD_SLOTS} free pod slots. HyperPod gives a node one network interface, so a small type holds few "
    "pods, of which daemons and the other add-ons take their part first: the add-on then ends CREATE_FAILED or DEGRADED.",
    sources=(CONSOLE_TROUBLESHOOTING, VPC_CNI_LIMITS, OPERATOR_NOTES, thread("awslabs/ai-on-sagemaker-hyperpod", 142)),
)
def operator_pod_slots(stack: StackSubject) -> Iterator[Violation]:
    """Fewer than 13 slots free on the groups that can carry the operator, where their types' slots are known."""
    carriers = [group for group in stack.groups if group.carries_operator]
    sizes = [node_size(group.spec.instance_type) for group in carriers]
    if not carriers or any(size is None or size.pods is None for size in sizes):
        return
    slots = sum(group.spec.count * ((size.pods or 0) if size else 0) for group, size in zip(carriers, sizes, strict=True))
    taken = NODE_DAEMONS * sum(group.spec.count for group in carriers) + CLUSTER_PODS
    if slots - taken < OPERATOR_POD_SLOTS:
        names = " and ".join(group.name for group in carriers)
        yield Violation(
            stack.at("instanceGroups", carriers[0].name),
            f"{names}: {slots} pod slots, of which daemons and add-ons take {taken}: {max(slots - taken, 0)} are left for the operator's "
            f"{OPERATOR_POD_SLOTS}",
            "use ml.c5.4xlarge (29 slots a node) or larger, or more nodes",
            value=carriers[0].spec.instance_type,
        )


@rule(
    "DPD534",
    "The EFA plugin knows the nodes",
    severity=Severity.ERROR,
    why="EFA device plugins before 0.5.6 count the devices of ml.p6 types wrong: pods ask for devices that are never there.",
    sources=(thread("aws-ia/terraform-aws-eks-data-addons", 53),),
)
def efa_plugin_version(stack: StackSubject) -> Iterator[Violation]:
    """A pinned plugin image before 0.5.6 beside ml.p6 groups."""
    if stack.platform is None:
        return
    path = ("dependencies", "values", EFA_PLUGIN, "image", "tag")
    tag = _inside(stack.platform.dependencies.values, path[2:])
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", tag) if isinstance(tag, str) else None
    groups = [group.name for group in stack.groups if group.spec.instance_type.startswith("ml.p6")]
    if match and groups and tuple(int(part) for part in match.groups()) < EFA_PLUGIN_FOR_P6:
        what = f"the EFA plugin is {tag}, {' and '.join(groups)} {'has' if len(groups) == 1 else 'have'} ml.p6 nodes"
        yield Violation(stack.at(*path), what, "remove the pin (the chart's own is 0.5.20), or write v0.5.6 or later", tag)


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


@rule(
    "DPD535",
    "The operator's controllers keep their roles",
    severity=Severity.ERROR,
    why="A controller that the add-on installs without a role of its own gets a placeholder: the ingress stays without an address "
    "(FailedBuildModel, ec2:CreateSecurityGroup), and autoscaling reads no metric.",
    sources=(HYPERPOD_TERRAFORM, SETUP_GUIDE),
)
def controllers_have_roles(stack: StackSubject) -> Iterator[Violation]:
    """`operator.configuration` that switches alb or keda on, or replaces them, without a role."""
    operator = stack.platform.operator if stack.platform is not None else None
    if operator is None or not operator.configuration:
        return
    values = render_operator_configuration(
        operator,
        execution_role_arn=_OWN,
        tls_bucket=_OWN,
        cluster_arn=_OWN,
        load_balancer_role_arn=_OWN if operator.load_balancer_controller else None,
        keda_role_arn=_OWN if operator.keda else None,
    )
    for name, role in (("alb", ("serviceAccount", "roleArn")), ("keda", ("auth", "aws", "irsa", "roleArn"))):
        block = values.get(name)
        enabled = isinstance(block, Mapping) and block.get("enabled", True) is not False
        if name in operator.configuration and (not isinstance(block, Mapping) or (enabled and not _inside(block, role))):
            switch = "loadBalancerController" if name == "alb" else "keda"
            yield Violation(
                stack.at("operator", "configuration", name),
                f"{name} would be installed without {'.'.join(role)}",
                f"remove {name} from configuration (operator.{switch} switches it on with its role), or add {'.'.join(role)}",
            )


@rule(
    "DPD538",
    "A controller that is left out is there already",
    severity=Severity.WARNING,
    why="Without the add-on's own load balancer controller or KEDA there must be another one, or it fails to install (ALB Controller not "
    "installed, KEDA operator not installed): in an EKS cluster that this platform makes there is none.",
    sources=(CLI_TROUBLESHOOTING,),
)
def controllers_are_there(stack: StackSubject) -> Iterator[Violation]:
    """`operator.loadBalancerController` or `operator.keda` false, or the same by `operator.configuration`, in a new EKS cluster."""
    if stack.platform is None or stack.control_plane is None or not pieces(stack.platform).operator or stack.platform.operator.adopt:
        return
    operator = stack.platform.operator
    for name, key, is_on in (("alb", "loadBalancerController", operator.load_balancer_controller), ("keda", "keda", operator.keda)):
        off = _inside(operator.configuration, (name, "enabled")) is False
        if not is_on or off:
            yield Violation(
                stack.at("operator", "configuration", name, "enabled") if off else stack.at("operator", key),
                f"{key} is off, and nothing else puts one into a cluster that is new",
                f"remove {f'{name}.enabled' if off else key}, or see that one is installed before the add-on",
                value=False,
            )


@rule(
    "DPD536",
    "The operator's configuration leaves what the platform works out",
    severity=Severity.WARNING,
    why="The platform makes role, bucket and cluster and hands their names to the add-on; another value in their place points the "
    "operator at something that the platform does not look after.",
    sources=(SETUP_GUIDE,),
)
def configuration_is_further(stack: StackSubject) -> Iterator[Violation]:
    """executionRoleArn, tlsCertificateS3Bucket or hyperpodClusterArn in `operator.configuration`."""
    if stack.platform is None:
        return
    instead = {
        "tlsCertificateS3Bucket": "write operator.tlsBucket",
        "jumpstartGatedModelDownloadRoleArn": "write operator.gatedModelRoleArn",
    }
    for key in ("executionRoleArn", "tlsCertificateS3Bucket", "hyperpodClusterArn", "jumpstartGatedModelDownloadRoleArn"):
        if key in stack.platform.operator.configuration:
            path: Path = stack.at("operator", "configuration", key)
            yield Violation(path, f"{key} is the platform's to say", instead.get(key, "remove it"))


@rule(
    "DPD537",
    "Keys of volumes need continuous provisioning",
    severity=Severity.ERROR,
    why="HyperPod takes a customer managed key for volumes only in clusters with continuous provisioning.",
    sources=(CUSTOMER_KEYS_GUIDE,),
)
def volume_keys_are_continuous(stack: StackSubject) -> Iterator[Violation]:
    """A volumeKeyArn without `cluster.continuousProvisioning`."""
    if stack.platform is None or not pieces(stack.platform).cluster or stack.platform.cluster.continuous_provisioning:
        return
    for group in stack.groups:
        if group.spec.volume_key_arn is not None:
            yield Violation(
                stack.at("instanceGroups", group.name, "volumeKeyArn"),
                f"group {group.name} has a key of its own, the cluster is not provisioned continuously",
                "remove cluster.continuousProvisioning: false",
                value=group.spec.volume_key_arn,
                related=(stack.at("cluster", "continuousProvisioning"),),
            )


@rule(
    "DPD530",
    "The add-ons the operator needs meet their minimums",
    severity=Severity.ERROR,
    why="The operator's init container tests for the CSI drivers and cert-manager and its add-on fails to install on older ones.",
    sources=(SETUP_GUIDE,),
)
def node_addon_versions(stack: StackSubject) -> Iterator[Violation]:
    """A version below the minimum."""
    if stack.platform is None:
        return
    addons = stack.platform.addons
    for key, version, addon in (
        ("certManagerVersion", addons.cert_manager_version, CERT_MANAGER),
        ("s3CsiVersion", addons.s3_csi_version, S3_CSI),
        ("fsxCsiVersion", addons.fsx_csi_version, FSX_CSI),
        ("metricsServerVersion", addons.metrics_server_version, METRICS_SERVER),
    ):
        if problem := below_minimum(version, addon.minimum):
            yield Violation(stack.at("addons", key), f"{addon.name} {problem}", f"write {addon.minimum} or later", value=version)


@rule(
    "DPD531",
    "The certificate bucket has the name AWS's policy covers",
    severity=Severity.WARNING,
    why="AmazonSageMakerHyperPodInferenceAccess reaches hyperpod-tls* only; this library adds what another name needs, but AWS's own "
    "updates of that policy will not.",
    sources=(INFERENCE_POLICY,),
)
def tls_bucket_name(stack: StackSubject) -> Iterator[Violation]:
    """A bucket without the prefix."""
    if stack.platform and (name := stack.platform.operator.tls_bucket) and not name.startswith(TLS_BUCKET_PREFIX):
        yield Violation(
            stack.at("operator", "tlsBucket"),
            f"{name} does not begin with {TLS_BUCKET_PREFIX}",
            f"rename it {TLS_BUCKET_PREFIX}…, or leave it out",
            value=name,
        )
