"""What a person may say of what is there already: each step of a platform can be somebody else's, and is then read and never changed."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, StringConstraints, model_validator

from dpd_infra.catalog.operator_releases import DEFAULT_ADDON_VERSION
from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.cluster import ClusterName, InstanceGroupSpec
from dpd_infra.spec.network import Zone
from dpd_infra.spec.operator import ADDON_VERSION_PATTERN

VpcId = Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]+$"), Field(examples=["vpc-0123456789abcdef0"])]
"""The id of a VPC."""

SubnetId = Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]+$"), Field(examples=["subnet-0123456789abcdef0"])]
"""The id of a subnet."""

SecurityGroupId = Annotated[str, StringConstraints(pattern=r"^sg-[0-9a-f]+$"), Field(examples=["sg-0123456789abcdef0"])]
"""The id of a security group."""

ClusterArn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:cluster/[a-z0-9]+$")]
"""The ARN of a HyperPod cluster. It ends in an id that SageMaker gives, not in the cluster's name (SageMaker DescribeCluster)."""

EksClusterName = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$")]
"""The name of an EKS cluster (EKS CreateCluster)."""

NodeAddonName = Literal["coredns", "cert-manager", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver", "metrics-server"]
"""The add-ons that the operator needs and that need nodes (HyperPod model deployment setup)."""

NODE_ADDON_NAMES: tuple[str, ...] = get_args(NodeAddonName)


class ExistingNetwork(Spec):
    """A VPC of somebody else's, by ids. What of it is needed follows from what is made in it."""

    vpc_id: VpcId = Field(examples=["vpc-0123456789abcdef0"])
    """The VPC."""
    zone: Zone = Field(examples=["us-east-2a"])
    """The zone of the GPU subnets: EFA traffic cannot cross zones."""
    gpu_subnet_ids: tuple[SubnetId, ...] = Field(default=(), max_length=16)
    """The private subnets of the HyperPod nodes, all in `zone` (SageMaker CreateCluster: 16 at most). Needed for a HyperPod cluster of
    ours."""
    control_plane_subnet_ids: tuple[SubnetId, ...] = ()
    """Private subnets in two zones or more. Needed for an EKS cluster of ours."""
    node_security_group_ids: tuple[SecurityGroupId, ...] = Field(default=(), max_length=5)
    """What the nodes carry (SageMaker CreateCluster: 5 at most): one group with all traffic from and to itself, which EFA needs, and a
    way out. An EKS cluster of ours carries them too; for one of somebody else's, name its cluster security group among them."""
    closed: StrictBool = False
    """Its only way out are interface endpoints: no public image and no Hugging Face hub is reached."""


class ControlPlaneValues(Spec):
    """What there is to know of an EKS cluster, where whoever deploys may not describe it: nothing is then looked up."""

    version: str = Field(pattern=r"^[0-9]+\.[0-9]+$", examples=["1.33"])
    """The Kubernetes version, in quotes."""
    endpoint: str = Field(pattern=r"^https://\S+$", examples=["https://0123456789ABCDEF.gr7.us-east-2.eks.amazonaws.com"])
    """The address of the Kubernetes API."""
    certificate_authority: str = Field(min_length=1, examples=["LS0tLS1CRUdJTg=="])
    """The API's certificate authority, base64, as EKS gives it."""
    oidc_issuer: str = Field(
        pattern=r"^(https://)?[A-Za-z0-9_.-]+/id/[0-9A-F]+$", examples=["oidc.eks.us-east-2.amazonaws.com/id/0123456789ABCDEF"]
    )
    """The cluster's OIDC issuer."""
    cluster_security_group_id: SecurityGroupId = Field(examples=["sg-0123456789abcdef0"])
    """The group that EKS made."""
    vpc_id: VpcId = Field(examples=["vpc-0123456789abcdef0"])
    """The cluster's VPC."""


class ExistingControlPlane(Spec):
    """An EKS cluster of somebody else's. Whoever deploys must already have cluster-admin access to it; access is its owner's to give."""

    name: EksClusterName = Field(examples=["my-eks"])
    """The cluster's name; the rest is looked up."""
    make_oidc_provider: StrictBool = False
    """Make the IAM OIDC provider of its issuer, where the account has none: the operator's roles are taken through it."""
    self_managed_cni: StrictBool = False
    """Its VPC CNI is not an EKS add-on: the version is not read, and that it is v1.18.3 or later is yours to see to."""
    generation: StrictInt = Field(default=0, ge=0)
    """Raise it when the cluster was rebuilt under its name: every Kubernetes resource is then made anew."""
    values: ControlPlaneValues | None = None
    """What is known of it. None: looked up."""


class ExistingCluster(Spec):
    """A HyperPod cluster of somebody else's."""

    arn: ClusterArn = Field(examples=["arn:aws:sagemaker:us-east-2:111122223333:cluster/abcdefghij12"])
    """Its ARN."""
    name: ClusterName | None = None
    """Its name, for outputs: the ARN does not hold it. None: the id at the end of the ARN."""
    instance_groups: dict[ClusterName, InstanceGroupSpec] = Field(default_factory=dict, max_length=100)
    """What is known of its groups, so that endpoints are checked against them. Empty: not known, and not checked."""

    @property
    def label(self) -> str:
        """The name, or what stands for it."""
        return self.name or self.arn.rsplit("/", 1)[-1]


class ExistingOperator(Spec):
    """An inference operator that is installed already: the EKS add-on, read and never changed."""

    addon_version: str = Field(default=DEFAULT_ADDON_VERSION, pattern=ADDON_VERSION_PATTERN)
    """The version that endpoints may count on; an older one that is really there stops the deployment."""


class ExistingSpec(Spec):
    """What is there already. A step that is not named here is made by the platform."""

    network: ExistingNetwork | None = None
    """The network by ids."""
    control_plane: ExistingControlPlane | None = None
    """The EKS cluster by name."""
    cluster: ExistingCluster | None = None
    """The HyperPod cluster by ARN."""
    addons: StrictBool | tuple[NodeAddonName, ...] = False
    """The add-ons that need nodes: true where all five are there, else the names of those that are."""
    self_managed_addons: tuple[NodeAddonName, ...] = ()
    """Those of `addons` that are not EKS add-ons (a Helm chart, for one): their versions are not read."""
    operator: ExistingOperator | None = None
    """The inference operator."""

    @property
    def addon_names(self) -> tuple[str, ...]:
        """The add-ons that are there, in the order of the catalog."""
        if isinstance(self.addons, bool):
            return NODE_ADDON_NAMES if self.addons else ()
        return tuple(name for name in NODE_ADDON_NAMES if name in self.addons)

    @model_validator(mode="after")
    def _self_managed_are_there(self) -> Self:
        if missing := [name for name in self.self_managed_addons if name not in self.addon_names]:
            message = f"selfManagedAddons names {', '.join(missing)}, which addons does not: what is managed elsewhere is there already"
            raise ValueError(message)
        return self
