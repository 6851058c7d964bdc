"""What a person may ask of the inference operator, and what an endpoint must know of it beforehand."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from dpd_infra.catalog.operator_releases import DEFAULT_ADDON_VERSION
from dpd_infra.spec.base import Spec, StrictBool, StrictInt

ADDON_VERSION_PATTERN = r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$"

BucketName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
CertificateArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-fA-F0-9-]+$")]
HostedZoneId = Annotated[str, Field(pattern=r"^Z[A-Z0-9]+$")]
KeyArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$")]


class OperatorFacts(Spec):
    """What rules must know of an operator before anything is registered."""

    addon_version: str = Field(pattern=ADDON_VERSION_PATTERN, examples=["v1.4.0-eksbuild.1"])
    """The EKS add-on version that is installed, or at least expected."""
    closed_network: StrictBool = False
    """The nodes reach AWS's APIs alone (`network.egress: endpoints`): no public image, no Hugging Face hub."""
    image_mirrors: dict[str, str] = Field(default_factory=dict)
    """Where images are pulled from instead, by the beginning of their references."""

    @classmethod
    def key_elsewhere(cls, key: str) -> str:
        """What is said of an operator that a platform makes is said there."""
        if key not in {field.alias for field in OperatorSpec.model_fields.values()}:
            return ""
        return f"write operator.{key} under dpd-infra:platform, in the stack file that makes the operator"


class OperatorSpec(Spec):
    """The EKS add-on `amazon-sagemaker-hyperpod-inference`."""

    addon_version: str = Field(default=DEFAULT_ADDON_VERSION, pattern=ADDON_VERSION_PATTERN)
    """The add-on version, pinned. DPD needs v1.3.0-eksbuild.1 (operator 3.2); v1.4.0-eksbuild.1 (3.3) mends its routing Service."""
    adopt: StrictBool = False
    """Take the add-on that a new HyperPod cluster came with, and leave its life to whoever made it; its version is read and gated."""
    tls_bucket: BucketName | None = None
    """The bucket for the endpoints' TLS certificates. None: `hyperpod-tls-…`, the only names that AWS's managed policy covers."""
    load_balancer_controller: StrictBool = True
    """Install the AWS Load Balancer Controller with the add-on. False: one is in the cluster already."""
    keda: StrictBool = True
    """Install KEDA with the add-on. False: one is in the cluster already."""
    gated_model_role_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$")
    """A role that downloads gated JumpStart models. None: none."""
    certificate_arns: tuple[CertificateArn, ...] = ()
    """Certificates of your own in ACM that endpoints use (`tls.certificateArn`): the operator's role may read these."""
    hosted_zone_ids: tuple[HostedZoneId, ...] = ()
    """Route 53 zones in which endpoints have records (`dns.hostedZoneId`): the operator's role may change these."""
    data_capture_buckets: tuple[BucketName, ...] = ()
    """Buckets that captured data is written to, beside those named `hyperpod-tls…`: the operator's role may write to these."""
    data_capture_key_arns: tuple[KeyArn, ...] = ()
    """KMS keys of captured data: the operator's role may use these through S3."""
    configuration: dict[str, Any] = Field(default_factory=dict)
    """Further configuration values, merged over ours key by key (affinity, nodeSelector, tolerations, later keys)."""
    create_timeout_minutes: StrictInt = Field(default=40, ge=10)
    """How long the add-on may take. Its manager's start-up probe alone waits three minutes; 40 were seen on GPU-only clusters."""

    @property
    def facts(self) -> OperatorFacts:
        """What endpoint rules read."""
        return OperatorFacts(addon_version=self.addon_version)

    @model_validator(mode="after")
    def _adopted_is_not_configured(self) -> Self:
        fields = ("configuration", "tls_bucket", "certificate_arns", "hosted_zone_ids", "data_capture_buckets", "data_capture_key_arns")
        if self.adopt and (given := [type(self).model_fields[name].alias or name for name in fields if getattr(self, name)]):
            message = f"adopt takes the add-on and its role as they are: {', '.join(given)} would have no effect"
            raise ValueError(message)
        return self
