"""What a person may ask of the EKS control plane: version, who reaches its API and who may do what there."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dpd_infra.catalog.kubernetes_versions import DEFAULT_VERSION
from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.network import CidrBlock
from dpd_infra.spec.vocabulary import AccessPolicy

IamPrincipalArn = Annotated[
    str, Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+$", examples=["arn:aws:iam::111122223333:role/ci"])
]
"""The ARN of an IAM role or user."""

KmsKeyArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$")]
"""The ARN of a KMS key."""


class ControlPlaneLog(StrEnum):
    """The logs an EKS control plane can write to CloudWatch."""

    API = "api"
    AUDIT = "audit"
    AUTHENTICATOR = "authenticator"
    CONTROLLER_MANAGER = "controllerManager"
    SCHEDULER = "scheduler"


class AccessGrant(Spec):
    """One IAM principal and what it may do in the cluster."""

    principal_arn: IamPrincipalArn
    """An IAM role or user; for an SSO or assumed session the role behind it."""
    policy: AccessPolicy = AccessPolicy.VIEW
    """What it may do."""
    namespaces: tuple[str, ...] = ()
    """Only in these namespaces. Empty: in the whole cluster."""


class ControlPlaneSpec(Spec):
    """The EKS cluster that orchestrates the HyperPod cluster."""

    name: str | None = Field(default=None, pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$")
    """The EKS cluster's name. None: the platform's name. A new name is a new cluster."""
    version: str = Field(default=DEFAULT_VERSION, pattern=r"^[0-9]+\.[0-9]+$")
    """The Kubernetes version, in quotes (YAML reads 1.30 as the number 1.3)."""
    public_access_cidrs: tuple[CidrBlock, ...] = Field(default=(), examples=[["203.0.113.0/24"]])
    """Who reaches the API endpoint from outside the VPC. Empty: nobody, which needs `private: true`."""
    private: StrictBool = False
    """Say that whoever deploys reaches the VPC's private endpoint (VPN, peering, a runner in the VPC). Without it and without
    `publicAccessCidrs` a stack is refused: `pulumi up` would hang at its first Kubernetes resource."""
    access: dict[str, AccessGrant] = Field(default_factory=dict)
    """Who else may use the Kubernetes API, by a name of your choice."""
    deployer_access: StrictBool = True
    """Give whoever runs `pulumi up` the cluster-admin policy; without it another grant must."""
    secrets_key_arn: KmsKeyArn | None = None
    """The KMS key that encrypts Kubernetes Secrets. None: a key of the platform's own."""
    logs: tuple[ControlPlaneLog, ...] = tuple(ControlPlaneLog)
    """The control-plane logs to keep."""
    log_retention_days: StrictInt = Field(default=90, ge=1)
    """How long CloudWatch keeps them, in days (one of the values CloudWatch takes: 1, 3, 5, 7, 14, 30, 60, 90, …)."""
    addon_versions: dict[str, str] = Field(default_factory=dict)
    """Pins for `vpc-cni`, `kube-proxy` and `eks-pod-identity-agent`. Unset: what EKS installs by default for the Kubernetes version."""
    deletion_protection: StrictBool = True
    """Have EKS itself refuse to delete the cluster, beside Pulumi's `protect`."""
    protect: StrictBool = True
    """Have Pulumi refuse to delete or replace the cluster."""
    generation: StrictInt = Field(default=0, ge=0)
    """Raise it when the cluster was rebuilt behind Pulumi's back: every Kubernetes resource is then made anew."""
