"""The world file: quotas, capacity by zone, and what exists already. What it does not name has room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from dpd_infra.rehearsal.world.contradictions import contradictions
from dpd_infra.rules.report import report
from dpd_infra.spec.base import Spec, StrictBool, StrictInt, section
from dpd_infra.spec.finding import Finding, Severity
from dpd_infra.spec.network import CidrBlock
from dpd_infra.spec.operator import ADDON_VERSION_PATTERN
from dpd_infra.spec.shape import build
from dpd_infra.spec.shape_rule import SHAPE_RULE, SHAPE_WHY, unreadable
from dpd_infra.spec.yaml_source import Document, YamlProblem, load_document

Count = Annotated[StrictInt, Field(ge=0, examples=[2])]
InstanceType = Annotated[str, StringConstraints(pattern=r"^ml\.[a-z0-9-]+\.[a-z0-9]+$"), Field(examples=["ml.p5.48xlarge"])]
Zone = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$"), Field(examples=["us-east-2a"])]
Name = Annotated[str, StringConstraints(min_length=1)]


class WorldRefused(Exception):
    """A world file with mistakes in it; the text is the whole report."""

    def __init__(self, findings: Sequence[Finding], documents: Mapping[str, Document] | None = None) -> None:
        super().__init__(report(findings, documents))
        self.findings = tuple(findings)
        self.documents = dict(documents or {})


class Quotas(Spec):
    """Service Quotas of the account, the same in every region."""

    cluster_instances: dict[InstanceType, Count] = Field(default_factory=dict)
    """`ml.<type> for cluster usage`, by type."""
    cluster_spot_instances: dict[InstanceType, Count] = Field(default_factory=dict)
    """`ml.<type> for cluster spot instance usage`, by type."""
    instances_per_cluster: Count | None = None
    """Maximum number instances allowed per SageMaker HyperPod cluster (L-2CE978FC)."""
    instances_of_all_clusters: Count | None = None
    """Total number of instances allowed across SageMaker HyperPod clusters (L-3308CCC7)."""
    volume_gb: Count | None = None
    """Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance (L-E13DF72A)."""
    network_interfaces: Count | None = None
    """Network interfaces per Region (L-DF5E4CA3)."""
    vpcs: Count | None = None
    """VPCs per Region."""
    internet_gateways: Count | None = None
    """Internet gateways per Region."""
    elastic_addresses: Count | None = None
    """EC2-VPC Elastic IPs."""


class ExistingSubnet(Spec):
    """A subnet of somebody else's VPC."""

    id: Name = Field(examples=["subnet-0a"])
    """Its id."""
    zone: Zone
    """Its availability zone."""
    cidr: CidrBlock
    """Its addresses."""
    way_out: Literal["nat", "internet", "none"] = "nat"
    """Where its default route leads."""
    addresses_in_use: Count = 0
    """How many of its addresses others have."""


class ExistingSecurityGroup(Spec):
    """A security group of somebody else's VPC."""

    id: Name = Field(examples=["sg-0a"])
    """Its id."""
    open_to_itself: StrictBool = True
    """Whether it lets all traffic in from itself and out to itself, as EFA needs. It lets everything out to the internet either way."""


class ExistingRouteTable(Spec):
    """A route table of somebody else's VPC that no subnet of theirs has, for subnets to be made."""

    id: Name = Field(examples=["rtb-0a"])
    """Its id."""
    way_out: Literal["nat", "internet", "none"] = "nat"
    """Where its default route leads."""


class ExistingVpc(Spec):
    """Somebody else's VPC."""

    id: Name = Field(examples=["vpc-0a"])
    """Its id."""
    cidr: CidrBlock
    """Its addresses."""
    subnets: list[ExistingSubnet] = Field(default_factory=list)
    """Its subnets."""
    security_groups: list[ExistingSecurityGroup] = Field(default_factory=list)
    """Its security groups, beside the default one."""
    route_tables: list[ExistingRouteTable] = Field(default_factory=list)
    """Route tables beside those of its subnets."""


class ExistingCluster(Spec):
    """Somebody else's EKS cluster, with the deployer as its administrator and with its OIDC provider."""

    name: Name = Field(examples=["shared-eks"])
    """Its name."""
    version: str = Field("1.33", pattern=r"^1\.\d+$")
    """Its Kubernetes version."""
    vpc: str = Field(examples=["vpc-0a"])
    """The id of its VPC, one of those below `vpcs`."""
    authentication_mode: Literal["API", "API_AND_CONFIG_MAP", "CONFIG_MAP"] = "API"
    """How it knows who calls."""
    subnets: list[str] = Field(default_factory=list, examples=[["subnet-0a", "subnet-0b"]])
    """Its subnets. Empty: all of its VPC."""
    addons: list[str] = Field(default_factory=lambda: ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"])
    """Its add-ons, all ACTIVE."""
    addon_versions: dict[str, str] = Field(default_factory=dict, examples=[{"vpc-cni": "v1.20.4-eksbuild.1"}])
    """Their versions. An add-on that is not named here has the lowest that is documented to work."""
    dependencies_chart: StrictBool = False
    """Whether HyperPod's dependency chart is installed."""
    oidc_provider: StrictBool = True
    """Whether the account has the IAM OIDC provider of its issuer."""
    endpoint: str | None = Field(default=None, examples=["https://0123456789ABCDEF.gr7.us-east-2.eks.amazonaws.com"])
    """The address of its Kubernetes API. None: one of the rehearsal's own making."""
    certificate_authority: str | None = Field(default=None, examples=["LS0tLS1CRUdJTg=="])
    """Its API's certificate authority, base64."""
    oidc_issuer: str | None = Field(default=None, examples=["oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF"])
    """Its OIDC issuer, without `https://`."""
    cluster_security_group: str | None = Field(default=None, examples=["sg-0c"])
    """The group that EKS made."""


class ExistingGroup(Spec):
    """An instance group of somebody else's HyperPod cluster."""

    instance_type: InstanceType
    """Its instance type."""
    count: Count = 1
    """How many nodes it has."""


class ExistingHyperPod(Spec):
    """Somebody else's HyperPod cluster, in service."""

    arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:cluster/[a-z0-9]+$",
        examples=["arn:aws:sagemaker:us-east-2:123456789012:cluster/abcdefghij12"],
    )
    """Its ARN."""
    name: str | None = Field(default=None, examples=["shared-hyperpod"])
    """Its name. None: the id at the end of the ARN."""
    eks_cluster: str = Field(examples=["shared-eks"])
    """The name of the EKS cluster that orchestrates it."""
    subnets: list[str] = Field(default_factory=list, examples=[["subnet-0a"]])
    """The subnets of its nodes. Empty: not known, and then their addresses are not counted."""
    security_groups: list[str] = Field(default_factory=list, examples=[["sg-0a"]])
    """What its nodes carry."""
    instance_groups: dict[str, ExistingGroup] = Field(default_factory=dict)
    """Its groups by name."""


class Existing(Spec):
    """What is there before the first rehearsal and belongs to nobody's program."""

    region: str = Field("us-east-2", pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", examples=["us-east-2"])
    """Where it stands."""
    buckets: list[Name] = Field(default_factory=list)
    """Bucket names that are taken, with something in each."""
    roles: list[Name] = Field(default_factory=list)
    """Role names that are taken."""
    log_groups: list[Name] = Field(default_factory=list)
    """Log groups that are there, such as `/aws/eks/inference/cluster` of a cluster that went."""
    vpcs: list[ExistingVpc] = Field(default_factory=list)
    """VPCs, with their subnets and security groups."""
    eks_clusters: list[ExistingCluster] = Field(default_factory=list)
    """EKS clusters."""
    hyper_pod_clusters: list[ExistingHyperPod] = Field(default_factory=list)
    """HyperPod clusters."""
    operator_version: str | None = Field(default=None, pattern=ADDON_VERSION_PATTERN, examples=["v1.4.0-eksbuild.1"])
    """The version of the inference operator that a new HyperPod cluster brings. None: the one that this library installs."""
    instances: dict[InstanceType, Count] = Field(default_factory=dict)
    """Instances that other HyperPod clusters use, by type: they count against the quotas."""

    @model_validator(mode="after")
    def _clusters_stand_somewhere(self) -> Self:
        known = {vpc.id for vpc in self.vpcs}
        for cluster in self.eks_clusters:
            if cluster.vpc not in known:
                message = (
                    f"EKS cluster {cluster.name} stands in {cluster.vpc}, which is not among vpcs ({', '.join(sorted(known)) or 'none'})"
                )
                raise ValueError(message)
        return self


class World(Spec):
    """What a rehearsal may use and what it finds."""

    quotas: Quotas = section()
    """Service Quotas; a quota that is not named is never reached."""
    capacity: dict[Zone, dict[InstanceType, Count]] = Field(default_factory=dict)
    """Instances to be had, by availability zone and type. A type that no zone names is to be had everywhere; one that a zone names, there
    alone."""
    existing: Existing = section()
    """What is there already."""
    suppose: StrictBool = True
    """Whether what a stack file's `existing` names is there though this file does not name it. False: only what this file names is."""

    @classmethod
    def default(cls) -> World:
        """A world with room for everything, and with nothing in it."""
        return _default()

    @classmethod
    def read(cls, path: str | Path) -> World:
        """Read a world file. Raises `WorldRefused` with one report on everything that is wrong with it."""
        file = str(path)
        try:
            document = load_document(Path(path).read_bytes(), file)
        except OSError as error:
            raise WorldRefused([_shape(file, f"the file cannot be read: {error.strerror or error}", "name a file that is there")]) from None
        except YamlProblem as problem:
            raise WorldRefused([unreadable(problem, file)]) from None
        if not isinstance(document.data, dict | None):
            fix = "write the keys that it may have: quotas, capacity, existing"
            raise WorldRefused([_shape(file, "a world file is a mapping", fix, line=1, column=1)], {file: document})
        world, findings = build(cls, document.data or {}, (), "world")
        if findings or world is None:
            raise WorldRefused([document.placed(finding) for finding in findings], {file: document})
        if contrary := [document.placed(finding) for finding in contradictions(world)]:
            raise WorldRefused(contrary, {file: document})
        return world

    def capacity_of(self, zone: str, instance_type: str) -> int | None:
        """How many instances of a type a zone has; None where there is no limit."""
        if not any(instance_type in types for types in self.capacity.values()):
            return None
        return self.capacity.get(zone, {}).get(instance_type, 0)


@cache
def _default() -> World:
    return World.model_validate({})


def _shape(file: str, what: str, fix: str, **place: Any) -> Finding:
    return Finding(SHAPE_RULE, Severity.ERROR, (), what, SHAPE_WHY, fix, file=file, **place)
