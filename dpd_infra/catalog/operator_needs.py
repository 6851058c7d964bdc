"""What an operator release needs of the account or of its configuration that the one before did not."""

from __future__ import annotations

from dataclasses import dataclass

from dpd_infra.catalog.sources import CERTIFICATES_GUIDE, DATA_CAPTURE_GUIDE, GATEWAY_GUIDE, RELEASE_NOTES, Source


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that has to be there before an upgrade."""

    release: str
    """The operator release that brought it."""
    addon_version: str
    """The first add-on version that holds that release; for 3.1, whose add-on is not published, that of 3.1.2."""
    what: str
    fix: str
    source: Source
    only_for: str = ""
    """What uses it, where not every endpoint does."""


OPERATOR_NEEDS: tuple[Need, ...] = (
    Need(
        "3.0",
        "v1.0.0-eksbuild.1",
        "acm:AddTagsToCertificate and s3:PutObjectTagging in the execution role",
        "allow both (AmazonSageMakerHyperPodInferenceAccess holds them)",
        RELEASE_NOTES,
    ),
    Need(
        "3.1",
        "v1.2.0-eksbuild.1",
        "acm:DescribeCertificate and acm:GetCertificate in the execution role",
        "allow both on the certificates",
        CERTIFICATES_GUIDE,
        "custom certificates",
    ),
    Need(
        "3.1.2",
        "v1.2.0-eksbuild.1",
        "hyperpodClusterArn in the add-on's configuration",
        "set it",
        RELEASE_NOTES,
    ),
    Need(
        "3.1.2",
        "v1.2.0-eksbuild.1",
        "route53:GetHostedZone, route53:ListResourceRecordSets and route53:ChangeResourceRecordSets in the execution role",
        "allow them on the hosted zone",
        CERTIFICATES_GUIDE,
        "dnsConfig",
    ),
    Need(
        "3.1.2",
        "v1.2.0-eksbuild.1",
        "s3:PutObject and s3:AbortMultipartUpload in the S3 CSI driver's role",
        "allow both on the bucket",
        DATA_CAPTURE_GUIDE,
        "data capture by the model pod",
    ),
    Need(
        "gateway",
        "v2.0.0-eksbuild.2",
        "a role with AmazonSageMakerHyperPodInferenceGatewayAccess for the gateway's controller, which reads it when it starts",
        "make the role",
        GATEWAY_GUIDE,
        "the inference gateway",
    ),
)
"""By release, in order."""
