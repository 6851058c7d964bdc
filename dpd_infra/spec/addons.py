"""What a person may ask of the add-ons that need nodes."""

from __future__ import annotations

from pydantic import Field

from dpd_infra.catalog.addons import CERT_MANAGER, FSX_CSI, METRICS_SERVER, S3_CSI
from dpd_infra.spec.base import Spec, StrictBool, StrictInt


class NodeAddonsSpec(Spec):
    """coredns, cert-manager, the S3 and FSx CSI drivers and metrics-server."""

    coredns_version: str | None = None
    """None: what EKS installs by default for the Kubernetes version."""
    cert_manager_version: str = CERT_MANAGER.minimum or ""
    """The lowest version the operator takes unless raised (HyperPod model deployment setup)."""
    s3_csi_version: str = S3_CSI.minimum or ""
    """The lowest version the operator takes unless raised. From v2 on the driver uses three service accounts."""
    fsx_csi_version: str = FSX_CSI.minimum or ""
    """The lowest version the operator takes unless raised."""
    metrics_server_version: str = METRICS_SERVER.minimum or ""
    """The lowest version the operator takes unless raised."""
    s3_write: StrictBool = False
    """Let model pods write to `modelBuckets` through the S3 CSI driver (data capture by the model pod needs it)."""
    nodes_timeout_minutes: StrictInt = Field(default=60, ge=5)
    """How long coredns may take to turn ACTIVE: it waits for the first nodes, whose deep health checks take most of it."""
    addon_timeout_minutes: StrictInt = Field(default=20, ge=5)
    """How long each other add-on may take."""
