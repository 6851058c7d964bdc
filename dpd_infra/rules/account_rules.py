"""Rules on what an endpoint asks of the AWS account: the operator's permissions beyond AWS's policy, and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpd_infra.catalog.sources import CERTIFICATES_GUIDE, CRD_3_2, DATA_CAPTURE_GUIDE, IAM_USER_GUIDE, INFERENCE_POLICY
from dpd_infra.plan.names import TLS_BUCKET_PREFIX
from dpd_infra.plan.pieces import pieces
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.values import entries, mapping, text
from dpd_infra.spec.finding import Path, Severity

MOST_TAGS = 50
"""Tags of one resource (SageMaker AddTags)."""

_CERTIFICATE: Path = ("spec", "tlsConfig", "customCertificateConfig", "acmArn")


@rule(
    "DPD446",
    "The operator's role may do what the endpoint asks",
    severity=Severity.WARNING,
    why="AWS's managed policy for the operator has no permission to read certificates of your own or to change DNS records, and reaches "
    "buckets named hyperpod-tls* alone; the role that this platform makes has that policy and its own certificate bucket.",
    sources=(INFERENCE_POLICY, CERTIFICATES_GUIDE, DATA_CAPTURE_GUIDE),
    since="3.1",
)
def operator_may(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A certificate of one's own, a DNS record, or a bucket for certificates or captures, where the platform makes the operator's role."""
    stack = endpoint.stack
    if stack is None or stack.platform is None or not pieces(stack.platform).operator or stack.platform.operator.adopt:
        return
    role = "the operator's role (its name begins with SageMakerHyperPodInference)"
    if text(endpoint.get(*_CERTIFICATE)):
        fix = f"give {role} acm:DescribeCertificate and acm:GetCertificate on it before the endpoint is made"
        yield Violation(endpoint.at(*_CERTIFICATE), "a certificate of your own, which the operator may not read", fix)
    zone: Path = ("spec", "dnsConfig", "hostedZoneId")
    if name := text(endpoint.get(*zone)):
        fix = f"give {role} route53:GetHostedZone, ListResourceRecordSets and ChangeResourceRecordSets on it before the endpoint is made"
        yield Violation(endpoint.at(*zone), f"hosted zone {name}, whose records the operator may not change", fix, name)
    for path, actions in (
        (("spec", "tlsConfig", "tlsCertificateOutputS3Uri"), "s3:PutObject, s3:PutObjectTagging, s3:GetObject and s3:DeleteObject"),
        (("spec", "dataCapture", "s3Uri"), "s3:PutObject and s3:AbortMultipartUpload"),
    ):
        uri = text(endpoint.get(*path))
        bucket = uri.removeprefix("s3://").partition("/")[0]
        if bucket and not bucket.startswith(TLS_BUCKET_PREFIX) and bucket != stack.platform.operator.tls_bucket:
            fix = f"name a bucket {TLS_BUCKET_PREFIX}…, or give {role} {actions} on {bucket} before the endpoint is made"
            yield Violation(endpoint.at(*path), f"the bucket {bucket}, to which the operator may not write", fix, uri)


@rule(
    "DPD449",
    "Tags are ones that AWS takes",
    severity=Severity.ERROR,
    why="AWS refuses the SageMaker endpoint with tags whose keys begin with aws:, stand twice or are too long, and with more than 50.",
    sources=(IAM_USER_GUIDE, CRD_3_2),
)
def tags_can_be(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A tag with a reserved or doubled key, a key over 128 or a value over 256 characters, or more than 50 tags."""
    tags = entries(endpoint.reading.spec.get("tags"))
    if not tags:
        return
    names = Counter(text(mapping(tag).get("name")) for tag in tags)
    for index, tag in enumerate(tags):
        name, value = text(mapping(tag).get("name")), text(mapping(tag).get("value"))
        path: Path = ("spec", "tags", index)
        if name.lower().startswith("aws:"):
            yield Violation(endpoint.at(*path, "name"), f"the tag {name} begins with aws:, which is AWS's own", "name it otherwise", name)
        elif names[name] > 1 and any(text(mapping(other).get("name")) == name for other in tags[:index]):
            yield Violation(endpoint.at(*path, "name"), f"the tag {name} stands twice", "keep one of the two", name)
        elif not 1 <= len(name) <= 128 or len(value) > 256:
            what = f"the tag {name[:40]} has a key of {len(name)} and a value of {len(value)} characters"
            yield Violation(endpoint.at(*path), what, "keep the key to 128 characters and the value to 256")
    if len(tags) > MOST_TAGS:
        yield Violation(endpoint.at("spec", "tags"), f"there are {len(tags)} tags", f"keep {MOST_TAGS} at most")
