"""Rules on what an endpoint asks of the AWS account: the operator's permissions beyond AWS's policy, and tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
_ZONE: Path = ("spec", "dnsConfig", "hostedZoneId")
_CERTIFICATES_GO_TO: Path = ("spec", "tlsConfig", "tlsCertificateOutputS3Uri")
_CAPTURES_GO_TO: Path = ("spec", "dataCapture", "s3Uri")
_KEYS: tuple[Path, ...] = (("spec", "dataCapture", "sagemakerEndpoint", "kmsKeyId"), ("spec", "dataCapture", "modelPod", "kmsKeyId"))


@rule(
    "DPD446",
    "The operator's role may do what the endpoint asks",
    severity=Severity.ERROR,
    why="AWS's managed policy for the operator has no permission to read certificates of your own or to change DNS records, and reaches "
    "buckets named hyperpod-tls* alone; the role that this platform makes has that policy and what the platform's operator section names.",
    sources=(INFERENCE_POLICY, CERTIFICATES_GUIDE, DATA_CAPTURE_GUIDE),
    since="3.1",
)
def operator_may(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A certificate, a DNS zone, a bucket or a key that is not among the platform's, where the platform makes the operator's role."""
    stack = endpoint.stack
    if stack is None or stack.platform is None or not pieces(stack.platform).operator or stack.platform.operator.adopt:
        return
    operator = stack.platform.operator
    # A stack file has a key dpd-infra:operator too, which is for another stack's.
    owner = f"{stack.platform_path[-1]}." if stack.platform_path else "the platform's "
    asked = (
        (_CERTIFICATE, "certificate", operator.certificate_arns, "certificateArns", "may not read"),
        (_ZONE, "hosted zone", operator.hosted_zone_ids, "hostedZoneIds", "may not change the records of"),
        *(
            (path, "key", operator.data_capture_key_arns, "dataCaptureKeyArns", "may not use")
            for path in _KEYS
            if _is_on(endpoint, path[:-1])
        ),
    )
    for path, what, given, field, lacks in asked:
        name = text(endpoint.get(*path))
        if name and name not in given and not (what == "key" and _is_reached(name, given)):
            # A policy names keys by their ARNs alone.
            fix = (
                f"add {name} to {owner}operator.{field}"
                if what != "key" or ":key/" in name
                else f"name it by its ARN, here and in {owner}operator.{field}"
            )
            yield Violation(
                endpoint.at(*path), f"the {what} {name}, which the operator {lacks}", fix, name, related=(stack.at("operator", field),)
            )
    for path, given, fix in (
        (_CERTIFICATES_GO_TO, (operator.tls_bucket,), f"name a bucket hyperpod-tls…, or {owner}operator.tlsBucket"),
        (_CAPTURES_GO_TO, (operator.tls_bucket, *operator.data_capture_buckets), f"add {{}} to {owner}operator.dataCaptureBuckets"),
    ):
        if path == _CAPTURES_GO_TO and not any(_is_on(endpoint, (*path[:-1], part)) for part in mapping(endpoint.get(*path[:-1]))):
            continue
        uri = text(endpoint.get(*path))
        bucket = uri.removeprefix("s3://").partition("/")[0]
        if bucket and not bucket.startswith(TLS_BUCKET_PREFIX) and bucket not in given:
            what = f"the bucket {bucket}, to which the operator may not write"
            yield Violation(endpoint.at(*path), what, fix.format(bucket), uri, related=(stack.at("operator"),))


def _is_on(endpoint: EndpointSubject, capture: Path) -> bool:
    return endpoint.get(*capture, "enabled") is True


def _is_reached(key: str, given: Sequence[str]) -> bool:
    """Whether a key that is named by its id or an alias may be one of those given by ARN; AWS's own key needs no permission."""
    if "alias/" in key:
        return "alias/aws/" in key or bool(given)
    return ":" not in key and any(arn.endswith(f":key/{key}") for arn in given)


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
    seen: set[str] = set()
    for index, tag in enumerate(tags):
        name, value = text(mapping(tag).get("name")), text(mapping(tag).get("value"))
        path: Path = ("spec", "tags", index)
        if name.lower().startswith("aws:"):
            yield Violation(endpoint.at(*path, "name"), f"the tag {name} begins with aws:, which is AWS's own", "name it otherwise", name)
        elif name in seen:
            yield Violation(endpoint.at(*path, "name"), f"the tag {name} stands twice", "keep one of the two", name)
        elif not 1 <= len(name) <= 128 or len(value) > 256:
            what = f"the tag {name[:40]} has a key of {len(name)} and a value of {len(value)} characters"
            yield Violation(endpoint.at(*path), what, "keep the key to 128 characters and the value to 256")
        seen.add(name)
    if len(tags) > MOST_TAGS:
        yield Violation(endpoint.at("spec", "tags"), f"there are {len(tags)} tags", f"keep {MOST_TAGS} at most")
