"""Rules on the custom resource as a whole: names, nodes, certificate, labels, data capture, and the operator release behind every field."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from dpd_infra.catalog.crd.releases import fields_by_release, is_before
from dpd_infra.catalog.operator_releases import RELEASES, AddonVersion, release_of
from dpd_infra.catalog.sources import (
    CERTIFICATES_GUIDE,
    CRD_3_2,
    DATA_CAPTURE_GUIDE,
    DESIGN_NOTE,
    DPD_GUIDE,
    KUBERNETES_DOCS,
    RELEASE_NOTES,
    thread,
)
from dpd_infra.plan.endpoint_names import routing_service_name
from dpd_infra.rules.dpd_rules import version_place
from dpd_infra.rules.patches import remove
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, StackSubject, Violation
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.silence_annotation import SILENCE_ANNOTATION, read_silences
from dpd_infra.spec.values import mapping, text

_SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@rule(
    "DPD401",
    "One way to the nodes",
    severity=Severity.ERROR,
    why="instanceType and instanceTypes exclude each other and nodeAffinity excludes both; without any of them the operator does not "
    "know where to put the pods.",
    sources=(CRD_3_2,),
)
def one_way_to_nodes(endpoint: EndpointSubject) -> Iterator[Violation]:
    """None of the three, or more than one."""
    spec = endpoint.reading.spec
    given = [key for key in ("instanceType", "instanceTypes", "nodeAffinity") if spec.get(key) not in (None, "", [], {})]
    if len(given) > 1:
        yield Violation(endpoint.at("spec", given[1]), f"{' and '.join(given)} are given", f"keep one: {given[0]}")
    elif not given and spec:
        yield Violation(
            endpoint.at("spec"), "no instance type is given", "add instanceType: ml.p5.48xlarge, or instanceTypes, or nodeAffinity"
        )


@rule(
    "DPD412",
    "A DNS record needs the certificate of its domain",
    severity=Severity.ERROR,
    why="The operator takes the record's name from the custom certificate's domain: dnsConfig without one has no name.",
    sources=(CRD_3_2, CERTIFICATES_GUIDE),
    since="3.1.2",
)
def dns_needs_certificate(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A dnsConfig without a whole tlsConfig.customCertificateConfig, or a certificate without its domain."""
    certificate = mapping(mapping(endpoint.reading.spec.get("tlsConfig")).get("customCertificateConfig"))
    short = {"acmArn": "tls.certificateArn", "domainName": "tls.domainName"}
    missing = [key for key in ("acmArn", "domainName") if not text(certificate.get(key))]
    path: Path = ("spec", "tlsConfig", "customCertificateConfig")
    names = " and ".join(short[key] if endpoint.spec is not None else f"customCertificateConfig.{key}" for key in missing)
    if endpoint.reading.spec.get("dnsConfig") is not None and missing:
        yield Violation(endpoint.at("spec", "dnsConfig"), "dnsConfig is given without a certificate of its domain", f"add {names}")
    elif certificate and missing:
        yield Violation(endpoint.at(*path), f"the certificate lacks {' and '.join(missing)}", f"add {names}: the two go together")


@rule(
    "DPD413",
    "The certificate is of the stack's region",
    severity=Severity.ERROR,
    why="A load balancer takes ACM certificates of its own region only.",
    sources=(CERTIFICATES_GUIDE,),
    since="3.1",
)
def certificate_region(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A certificate ARN of another region than the stack's."""
    path: Path = ("spec", "tlsConfig", "customCertificateConfig", "acmArn")
    parts = text(endpoint.get(*path)).split(":")
    region = endpoint.stack.region if endpoint.stack is not None else None
    if region and len(parts) > 3 and parts[3] != region:
        yield Violation(
            endpoint.at(*path), f"the certificate is of {parts[3]}, the stack is in {region}", f"name one of {region}", ":".join(parts)
        )


@rule(
    "DPD432",
    "InitialReplicaCount does nothing",
    severity=Severity.WARNING,
    why="The field is deprecated and has no effect: spec.replicas and autoScalingSpec.minReplicaCount are what counts.",
    sources=(CRD_3_2, thread("aws/sagemaker-hyperpod-cli", 430)),
)
def initial_replicas(endpoint: EndpointSubject) -> Iterator[Violation]:
    """InitialReplicaCount in the spec."""
    path: Path = ("spec", "InitialReplicaCount")
    if (value := endpoint.get(*path)) is not None:
        instead = "the roles' replicas count" if endpoint.reading.disaggregated else f"write replicas: {value} if that is meant"
        yield Violation(endpoint.at(*path), "InitialReplicaCount is given", f"remove it; {instead}", value, remove(endpoint, path))


@rule(
    "DPD440",
    "The operator knows every field that is used",
    severity=Severity.ERROR,
    why="An older operator's CRD has no such field: the API server drops it silently, or refuses the resource.",
    sources=(RELEASE_NOTES, CRD_3_2),
)
def fields_are_known(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A field, or a value of one, that a later operator release brought (pdSpec has a rule of its own)."""
    if endpoint.operator is None or not _later(endpoint.operator.addon_version):
        return
    version = endpoint.operator.addon_version
    held = release_of(version)
    for path, brought in fields_by_release(endpoint.manifest):
        first = _later(version).get(brought.release)
        if first is None or path[:2] == ("spec", "pdSpec"):
            continue
        field = ".".join(str(step) for step in path)
        needed = "the release with the gateway" if brought.release == "gateway" else f"operator {brought.release}"
        yield Violation(
            endpoint.at(*path),
            f"{field} came with {needed}; add-on {version} holds {'operator ' + held.operator if held else 'an older one'}",
            f"raise operator.addonVersion to {first} or later, or leave {field} out",
            value=version,
            related=(version_place(endpoint, endpoint.at(*path)),),
        )


@cache
def _later(version: str) -> dict[str, str]:
    """The operator releases that an add-on version does not hold, each with the first add-on version known to hold it."""
    found: dict[str, str] = {}
    for release in RELEASES:
        first = next(
            (known.addon_version for known in RELEASES if known.addon_version and not is_before(known.operator, release.operator)), None
        )
        if first is not None and AddonVersion.parse(version) < AddonVersion.parse(first):
            found[release.operator] = first
    return found


@rule(
    "DPD441",
    "Names are ones that Services can have",
    severity=Severity.ERROR,
    why="The operator names Services and Deployments after the resource: its name must be a DNS label that begins with a letter (RFC "
    "1035), though Kubernetes takes more for the resource itself.",
    sources=(DPD_GUIDE, KUBERNETES_DOCS),
)
def names_are_labels(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A metadata.name with dots or a digit in front, or a namespace that is no label."""
    name, namespace = endpoint.get("metadata", "name"), endpoint.get("metadata", "namespace")
    if isinstance(name, str) and not _SERVICE_NAME.fullmatch(name):
        fix = "use lower-case letters, digits and hyphens, a letter first"
        yield Violation(endpoint.at("metadata", "name"), f"{name!r} cannot begin the name of a Service", fix, name)
    if isinstance(namespace, str) and not _NAMESPACE.fullmatch(namespace):
        fix = "use lower-case letters, digits and hyphens"
        yield Violation(endpoint.at("metadata", "namespace"), f"{namespace!r} is no namespace's name", fix, namespace)


@rule(
    "DPD442",
    "Endpoints do not take each other's names",
    severity=Severity.ERROR,
    why="A SageMaker endpoint's name is one of a kind in account and region, and so is <name>-<namespace>-routing-service in the "
    "operator's namespace: two resources with one of them fight over it.",
    sources=(DPD_GUIDE, CRD_3_2),
)
def names_differ(stack: StackSubject) -> Iterator[Violation]:
    """Two endpoints with one endpointName, or whose routing Services have one name."""
    by_name: defaultdict[tuple[str, str], list[tuple[EndpointSubject, Path]]] = defaultdict(list)
    for endpoint in stack.endpoints.values():
        name, namespace = text(endpoint.get("metadata", "name")), text(endpoint.get("metadata", "namespace")) or "default"
        if sagemaker := text(endpoint.get("spec", "endpointName")):
            by_name["SageMaker endpoint", sagemaker].append((endpoint, ("spec", "endpointName")))
        if endpoint.reading.is_routed:
            by_name["routing Service", routing_service_name(name, namespace)].append((endpoint, ("metadata", "name")))
    for (kind, name), holders in by_name.items():
        for endpoint, path in holders[1:]:
            what = f"{holders[0][0].name} and {endpoint.name} have one {kind}, {name}"
            yield Violation(endpoint.at(*path), what, "give one of them another name", name, related=(holders[0][0].at(*holders[0][1]),))


@rule(
    "DPD443",
    "A silenced rule exists, and the reason is given",
    severity=Severity.WARNING,
    why="A rule is silenced by its id with a reason that the next reader can judge: an entry without one, or with an id that no rule "
    "on an endpoint has, silences nothing.",
    sources=(DESIGN_NOTE,),
)
def silences_exist(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An entry of `silence` or a line of the annotation dpd-infra/silence that names no rule on an endpoint, or gives no reason."""
    spec = endpoint.spec
    annotations = spec.annotations if spec is not None else mapping(endpoint.get("metadata", "annotations"))
    if SILENCE_ANNOTATION in annotations:
        place = endpoint.at("metadata", "annotations", SILENCE_ANNOTATION)
        for entry in read_silences(annotations[SILENCE_ANNOTATION]):
            if not entry.reason:
                what = f"{entry.rule} is given no reason" if entry.rule else f"{entry.text!r} is no rule with a reason"
                yield Violation(place, what, f"write {entry.rule or 'DPD106'}: why it does not apply to this endpoint", entry.text)
            elif what := _not_silenced(entry.rule):
                yield Violation(place, what, "remove the line", entry.rule)
    for index, silence in enumerate(spec.silence if spec is not None else ()):
        if what := _not_silenced(silence.rule):
            yield Violation((*endpoint.rendered.context.path, "silence", index, "rule"), what, "remove the entry", silence.rule)


def _not_silenced(rule_id: str) -> str:
    """Why an id silences nothing; empty for a rule on an endpoint."""
    from dpd_infra.rules.registry import all_rules  # noqa: PLC0415 - the register is whole only once every module is read

    scope = next((known.scope for known in all_rules() if known.id == rule_id), None)
    if scope is None:
        return f"there is no rule {rule_id}"
    return "" if scope is EndpointSubject else f"{rule_id} is on more than one endpoint and cannot be silenced for one"


@rule(
    "DPD444",
    "SageMaker captures what goes through SageMaker",
    severity=Severity.ERROR,
    why="dataCapture.sagemakerEndpoint captures at the SageMaker endpoint: with an empty endpointName there is none.",
    sources=(DATA_CAPTURE_GUIDE, CRD_3_2),
    since="3.1.2",
)
def capture_needs_endpoint(endpoint: EndpointSubject) -> Iterator[Violation]:
    """dataCapture.sagemakerEndpoint enabled and no endpointName."""
    path: Path = ("spec", "dataCapture", "sagemakerEndpoint", "enabled")
    if endpoint.get(*path) is True and not text(endpoint.get("spec", "endpointName")):
        what = "sagemakerEndpoint capture is on, endpointName is empty"
        yield Violation(endpoint.at(*path), what, "name the endpoint, or capture at the load balancer or in the pod", value=True)


@rule(
    "DPD455",
    "Data capture says where it captures",
    severity=Severity.ADVICE,
    why="Each of the three places is off unless it is written with enabled: true, so a dataCapture without any captures nothing.",
    sources=(DATA_CAPTURE_GUIDE, CRD_3_2),
    since="3.1.2",
)
def capture_captures(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A dataCapture with none of sagemakerEndpoint, loadBalancer and modelPod; one that is written and off is taken to be meant so."""
    path: Path = ("spec", "dataCapture")
    capture = endpoint.get(*path)
    if isinstance(capture, dict) and not any(capture.get(place) for place in ("sagemakerEndpoint", "loadBalancer", "modelPod")):
        what = "dataCapture names none of sagemakerEndpoint, loadBalancer and modelPod: nothing is captured"
        fix = "switch one on, for example sagemakerEndpoint: {enabled: true}, or remove dataCapture"
        yield Violation(_common(endpoint, path, capture), what, fix)


def _common(endpoint: EndpointSubject, path: Path, section: dict[str, object]) -> Path:
    """Where a section of the manifest stands in the user's file: above the first of its values."""
    first = next(iter(section), None)
    place = endpoint.at(*path) if first is None else endpoint.at(*path, first)
    return place[:-1] if first is not None and place[-1:] == (first,) else place


@rule(
    "DPD445",
    "Capture in the pod may write",
    severity=Severity.WARNING,
    why="Capture by the model pod writes through the S3 CSI driver, whose role may only read unless told otherwise. The sources differ "
    "on what it needs: AWS's Terraform grants reading only.",
    sources=(DATA_CAPTURE_GUIDE,),
    since="3.1.2",
)
def pod_capture_writes(endpoint: EndpointSubject) -> Iterator[Violation]:
    """dataCapture.modelPod on a platform without `addons.s3Write`."""
    stack = endpoint.stack
    path: Path = ("spec", "dataCapture", "modelPod", "enabled")
    if stack is None or stack.platform is None or stack.platform.addons.s3_write or endpoint.get(*path) is not True:
        return
    what = "modelPod capture is on, the platform's S3 driver may not write"
    yield Violation(endpoint.at(*path), what, "set addons.s3Write: true", value=True, related=(stack.at("addons", "s3Write"),))
