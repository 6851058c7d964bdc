"""Rules on what an endpoint asks of the AWS account: the operator's permissions beyond AWS's policy, and tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from dpd_infra.catalog.sources import CERTIFICATES_GUIDE, CRD_3_2, DATA_CAPTURE_GUIDE, IAM_USER_GUIDE, INFERENCE_POLICY
from dpd_infra.plan.names import TLS_BUCKET_PREFIX
from dpd_infra.plan.pieces import pieces
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation, once_a_stack
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import entries, mapping, text

MOST_TAGS = 50
"""Tags of one resource (SageMaker AddTags)."""

_CERTIFICATE: Path = ("spec", "tlsConfig", "customCertificateConfig", "acmArn")
_ZONE: Path = ("spec", "dnsConfig", "hostedZoneId")
_CERTIFICATES_GO_TO: Path = ("spec", "tlsConfig", "tlsCertificateOutputS3Uri")
_CAPTURES_GO_TO: Path = ("spec", "dataCapture", "s3Uri")
_KEYS: tuple[Path, ...] = (("spec", "dataCapture", "sagemakerEndpoint", "kmsKeyId"), ("spec", "dataCapture", "modelPod", "kmsKeyId"))

_READ_CERTIFICATES = "acm:DescribeCertificate, acm:GetCertificate"
_CHANGE_RECORDS = "route53:ChangeResourceRecordSets, route53:GetHostedZone, route53:ListResourceRecordSets"
_KEEP_CERTIFICATES = "s3:ListBucket, s3:GetObject, s3:PutObject, s3:PutObjectTagging, s3:DeleteObject"
_SHOWN, _MOST_SHOWN = 120, 5
"""How much of a name advice repeats, and how many permissions."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """Something that an endpoint uses and AWS's policy for the operator does not reach."""

    path: Path
    what: str
    """What it is: `certificate`."""
    name: str
    """Which one."""
    written: str
    """What the endpoint says: the bucket's URI, or the name."""
    field: str
    """The key of a platform's operator for it."""
    lacks: str
    actions: str
    """What the role must be allowed."""


def _asks(endpoint: EndpointSubject) -> Iterator[_Ask]:
    """What an endpoint uses beyond AWS's policy."""
    keys = [path for path in _KEYS if _is_on(endpoint, path[:-1])]
    for path, what, field, lacks, actions in (
        (_CERTIFICATE, "certificate", "certificateArns", "which the operator may not read", _READ_CERTIFICATES),
        (_ZONE, "hosted zone", "hostedZoneIds", "which the operator may not change the records of", _CHANGE_RECORDS),
        *((path, "key", "dataCaptureKeyArns", "which the operator may not use", "kms:Decrypt, kms:GenerateDataKey") for path in keys),
    ):
        name = text(endpoint.get(*path))
        # AWS's own key needs no permission.
        if name and not (what == "key" and "alias/aws/" in name):
            yield _Ask(path, what, name, name, field, lacks, actions)
    buckets = [(_CERTIFICATES_GO_TO, "tlsBucket", _KEEP_CERTIFICATES)]
    if any(_is_on(endpoint, (*_CAPTURES_GO_TO[:-1], part)) for part in mapping(endpoint.get(*_CAPTURES_GO_TO[:-1]))):
        buckets.append((_CAPTURES_GO_TO, "dataCaptureBuckets", "s3:PutObject, s3:AbortMultipartUpload"))
    for path, field, actions in buckets:
        uri = text(endpoint.get(*path))
        bucket = uri.removeprefix("s3://").partition("/")[0]
        if bucket and not bucket.startswith(TLS_BUCKET_PREFIX):
            yield _Ask(path, "bucket", bucket, uri, field, "to which the operator may not write", actions)


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
    if stack is None or stack.platform is None or not _makes_role(stack):
        return
    operator = stack.platform.operator
    given: dict[str, tuple[str | None, ...]] = {
        "certificateArns": operator.certificate_arns,
        "hostedZoneIds": operator.hosted_zone_ids,
        "dataCaptureKeyArns": operator.data_capture_key_arns,
        "tlsBucket": (operator.tls_bucket,),
        "dataCaptureBuckets": (operator.tls_bucket, *operator.data_capture_buckets),
    }
    for ask in _asks(endpoint):
        if ask.name in given[ask.field] or (ask.what == "key" and _is_reached(ask.name, operator.data_capture_key_arns)):
            continue
        # A stack file has a key dpd-infra:operator too, which is for another stack's.
        place = f"{stack.platform_path[-1]}.operator.{ask.field}"
        fix = f"add {ask.name} to {place}"
        if ask.what == "key" and ":key/" not in ask.name:
            # A policy names keys by their ARNs alone.
            fix = f"name it by its ARN, here and in {place}"
        elif ask.field == "tlsBucket":
            fix = f"name a bucket hyperpod-tls…, or {place}"
        related = stack.at("operator") if ask.what == "bucket" else stack.at("operator", ask.field)
        yield Violation(endpoint.at(*ask.path), f"the {ask.what} {ask.name}, {ask.lacks}", fix, ask.written, related=(related,))


@rule(
    "DPD454",
    "The operator's role is somebody else's to extend",
    severity=Severity.ADVICE,
    why="AWS's managed policy for the operator has no permission to read certificates of your own or to change DNS records, and reaches "
    "buckets named hyperpod-tls* alone. What the role of an operator that this stack does not make may do is not seen from here.",
    sources=(INFERENCE_POLICY, CERTIFICATES_GUIDE, DATA_CAPTURE_GUIDE),
    since="3.1",
)
def owner_allows(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A certificate, a DNS zone, a bucket or a key of your own, where the operator is another stack's or somebody else's; once a stack."""
    stack = endpoint.stack
    if stack is None or _makes_role(stack) or (stack.platform is None and stack.operator is None):
        return
    asking = _asked_of_owner(stack)
    if next(iter(asking), None) != endpoint.name:
        return
    # Each permission once, however many endpoints need it.
    needed = {(ask.actions, ask.name): ask.field for asks in asking.values() for ask in asks}
    shown = [f"{actions} on {name[:_SHOWN]}" for actions, name in list(needed)[:_MOST_SHOWN]]
    more = f"; and on {len(needed) - _MOST_SHOWN} more" if len(needed) > _MOST_SHOWN else ""
    others = len(asking) - 1
    also = f" (here and in {others} other endpoint{'s' if others > 1 else ''})" if others else ""
    fields = ", ".join(dict.fromkeys(needed.values()))
    yield Violation(
        endpoint.at(*asking[endpoint.name][0].path),
        f"the operator's role, which this stack does not make, must be allowed: {'; '.join(shown)}{more}{also}",
        f"name them in the stack that makes the operator, under dpd-infra:platform.operator ({fields}), or have the role's owner allow it",
    )


def _makes_role(stack: StackSubject) -> bool:
    """Whether the stack's platform makes the operator's role."""
    return stack.platform is not None and pieces(stack.platform).operator and not stack.platform.operator.adopt


@once_a_stack
def _asked_of_owner(stack: StackSubject) -> dict[str, list[_Ask]]:
    """What each endpoint asks that does not silence the advice on it."""
    asked = {name: list(_asks(each)) for name, each in stack.endpoints.items() if "DPD454" not in each.silences}
    return {name: asks for name, asks in asked.items() if asks}


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
        # A stack file has them by name: where they all stand is what their places have in common.
        places = zip(*(endpoint.at("spec", "tags", index) for index in range(len(tags))), strict=False)
        at = tuple(steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, places))
        yield Violation(at, f"there are {len(tags)} tags", f"keep {MOST_TAGS} at most")
