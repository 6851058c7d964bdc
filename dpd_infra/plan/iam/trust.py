"""Who may take a role: AWS services, and Kubernetes service accounts through the cluster's OIDC provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dpd_infra.plan.iam.document import Document, Statement

AUDIENCE: Final = "sts.amazonaws.com"
"""The audience of a projected service account token, and the client id of the OIDC provider (setup guide)."""

SAGEMAKER: Final = "sagemaker.amazonaws.com"
EKS: Final = "eks.amazonaws.com"
FLOW_LOGS: Final = "vpc-flow-logs.amazonaws.com"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A Kubernetes service account."""

    namespace: str
    name: str

    @property
    def subject(self) -> str:
        """The `sub` claim of its token."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


# The names that the operator's EKS add-on gives; its Helm chart uses others for the first (setup guide and chart).
INFERENCE_CONTROLLER: Final = ServiceAccount("hyperpod-inference-system", "hyperpod-inference-controller-manager")
LOAD_BALANCER_CONTROLLER: Final = ServiceAccount("hyperpod-inference-system", "aws-load-balancer-controller")
KEDA_OPERATOR: Final = ServiceAccount("hyperpod-inference-system", "keda-operator")
GATEWAY_CONTROLLER: Final = ServiceAccount("hyperpod-inference-system", "inference-gateway-controller")

S3_CSI_NODE: Final = ServiceAccount("kube-system", "s3-csi-driver-sa")
S3_CSI_CONTROLLER: Final = ServiceAccount("kube-system", "s3-csi-driver-controller-sa")
S3_CSI_MOUNT_PODS: Final = ServiceAccount("mount-s3", "default")
FSX_CSI_CONTROLLER: Final = ServiceAccount("kube-system", "fsx-csi-controller-sa")

GATED_MODEL_ACCOUNT_PREFIX: Final = "hyperpod-inference-service-account"
"""How the names of the service accounts begin that the operator makes for gated JumpStart models; the rest is the operator's."""


def issuer_name(issuer: str) -> str:
    """The OIDC issuer as trust policies name it: without `https://` and a closing slash. Raises `ValueError` for an empty one."""
    name = issuer.removeprefix("https://").rstrip("/")
    if not name or "://" in name:
        message = f"{issuer!r} is not an OIDC issuer: expected the form oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"
        raise ValueError(message)
    return name


def trust(*statements: Statement) -> Document:
    """A trust policy."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def service(principal: str, *, source_account: str | None = None, source_arn: str | None = None) -> Statement:
    """An AWS service takes the role; with a source account or ARN, only on behalf of that account or resource (`*` allowed in the ARN)."""
    condition: dict[str, Any] = {}
    if source_account is not None:
        condition["StringEquals"] = {"aws:SourceAccount": source_account}
    if source_arn is not None:
        condition["ArnLike"] = {"aws:SourceArn": source_arn}
    statement: Statement = {"Effect": "Allow", "Principal": {"Service": principal}, "Action": "sts:AssumeRole"}
    if condition:
        statement["Condition"] = condition
    return statement


def web_identity(provider_arn: str, issuer: str, accounts: Iterable[ServiceAccount]) -> Statement:
    """Pods of exactly these service accounts take the role, through the OIDC provider of their cluster.

    Audience and subject are compared with StringEquals: a wildcard, as some guides have it, would admit any service account
    that happens to match. Raises `ValueError` for no service account.
    """
    subjects = [account.subject for account in accounts]
    if not subjects:
        message = "a web identity trust needs a service account"
        raise ValueError(message)
    name = issuer_name(issuer)
    equals = {f"{name}:aud": AUDIENCE, f"{name}:sub": subjects[0] if len(subjects) == 1 else subjects}
    return _federated(provider_arn, {"StringEquals": equals})


def gated_model_identity(provider_arn: str, issuer: str, namespaces: Iterable[str]) -> Statement:
    """The operator's service accounts for gated JumpStart models take the role, in these namespaces only.

    The one trust with a pattern: the operator gives each such account a suffix of its own, which is not published. The documented
    subject also leaves the namespace open; here it is closed. Raises `ValueError` for no namespace or one with a wildcard.
    """
    wanted = sorted(set(namespaces))
    if not wanted or any(set(namespace) & set("*?") for namespace in wanted):
        message = f"the namespaces of gated models must be named: {wanted}"
        raise ValueError(message)
    name = issuer_name(issuer)
    patterns = [ServiceAccount(namespace, f"{GATED_MODEL_ACCOUNT_PREFIX}*").subject for namespace in wanted]
    return _federated(provider_arn, {"StringEquals": {f"{name}:aud": AUDIENCE}, "StringLike": {f"{name}:sub": patterns}})


def _federated(provider_arn: str, condition: dict[str, Any]) -> Statement:
    return {
        "Effect": "Allow",
        "Principal": {"Federated": provider_arn},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": condition,
    }
