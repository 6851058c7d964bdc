"""The EKS add-ons a platform needs: names, minimum versions and what each is for."""

from __future__ import annotations

from dataclasses import dataclass

from dpd_infra.catalog.sources import EKS_PREREQUISITES_GUIDE, SETUP_GUIDE, Source


@dataclass(frozen=True, slots=True)
class Addon:
    """One EKS add-on."""

    name: str
    minimum: str | None
    """The lowest supported version, `vN.N.N` or `vN.N.N-eksbuild.N`; None where none is stated."""
    source: Source
    needs_nodes: bool = False
    """True where the add-on turns ACTIVE only once nodes can hold its pods."""


VPC_CNI = Addon("vpc-cni", "v1.18.3", EKS_PREREQUISITES_GUIDE)
KUBE_PROXY = Addon("kube-proxy", None, EKS_PREREQUISITES_GUIDE)
POD_IDENTITY_AGENT = Addon("eks-pod-identity-agent", None, EKS_PREREQUISITES_GUIDE)
COREDNS = Addon("coredns", None, EKS_PREREQUISITES_GUIDE, needs_nodes=True)
CERT_MANAGER = Addon("cert-manager", "v1.18.2-eksbuild.2", SETUP_GUIDE, needs_nodes=True)
S3_CSI = Addon("aws-mountpoint-s3-csi-driver", "v1.14.1-eksbuild.1", SETUP_GUIDE, needs_nodes=True)
FSX_CSI = Addon("aws-fsx-csi-driver", "v1.6.0-eksbuild.1", SETUP_GUIDE, needs_nodes=True)
METRICS_SERVER = Addon("metrics-server", "v0.7.2-eksbuild.4", SETUP_GUIDE, needs_nodes=True)

CONTROL_PLANE_ADDONS = (VPC_CNI, KUBE_PROXY, POD_IDENTITY_AGENT)
"""ACTIVE without nodes: made with the control plane."""

NODE_ADDONS = (COREDNS, CERT_MANAGER, S3_CSI, FSX_CSI, METRICS_SERVER)
"""Need nodes: made after the HyperPod cluster."""

OPERATOR_POD_SLOTS = 13
"""Free pod slots the operator's add-on needs (console troubleshooting)."""
