"""The endpoint's manifest: a short spec becomes the InferenceEndpointConfig that the operator takes, and every value's origin is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dpd_infra.catalog.crd import API_VERSION, KIND
from dpd_infra.catalog.sources import CRD_3_2
from dpd_infra.plan.endpoint_names import TOKEN_SECRET_KEY, generation_name, token_secret_name
from dpd_infra.plan.endpoint_pods import colocated_replicas
from dpd_infra.render.auto_places import says_auto
from dpd_infra.render.draft import Draft, SpecReader
from dpd_infra.render.endpoint_roles import put_colocated_nodes, put_roles, role_selectors
from dpd_infra.render.endpoint_worker import put_worker
from dpd_infra.render.overrides import merge_with_provenance
from dpd_infra.render.provenance import Origin, OriginKind, Provenance
from dpd_infra.spec.finding import Path
from dpd_infra.spec.silence_annotation import SILENCE_ANNOTATION, write_silences

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint import EndpointSpec
    from dpd_infra.spec.endpoint.model import HuggingFaceToken

KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"


@dataclass(frozen=True, slots=True)
class EndpointContext:
    """What an endpoint's manifest takes from around it."""

    region: str
    """The stack's AWS region: the default of a model bucket's region."""
    addon_version: str
    """The operator's add-on version; rules compare the manifest's fields with it."""
    path: Path
    """Where the endpoint stands in the user's file: `("config", "dpd-infra:endpoints", name)`."""
    region_path: Path = ("config", "aws:region")
    """Where the region stands in the user's file."""
    image_mirrors: Mapping[str, str] = field(default_factory=dict)
    """Where images are pulled from instead, by the beginning of their references."""


@dataclass(frozen=True, slots=True)
class RenderedManifest:
    """One custom resource as plain data, and where each of its values comes from."""

    document: dict[str, Any]
    """Dicts, lists and scalars; the order of keys depends on nothing but the spec's fields."""
    provenance: Provenance
    context: EndpointContext
    not_worked_out: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """Where the spec says `auto` and there is no number, by attribute names: why. The DPD guide's number stands in the document."""

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.document["metadata"]["name"]

    @property
    def namespace(self) -> str:
        """metadata.namespace."""
        return self.document["metadata"]["namespace"]


def endpoint_context(name: str, *, region: str, addon_version: str, image_mirrors: Mapping[str, str] | None = None) -> EndpointContext:
    """The context of an endpoint of a stack file."""
    return EndpointContext(region, addon_version, ("config", "dpd-infra:endpoints", name), image_mirrors=image_mirrors or {})


def render_endpoint(name: str, spec: EndpointSpec, context: EndpointContext) -> RenderedManifest:
    """The manifest of one endpoint. Pure; raises nothing for a spec that was built.

    Where the spec says `auto` the manifest has a number, with what it was worked out from as its source; where it cannot be worked out
    there is the DPD guide's number, and a rule refuses that.
    """
    if not says_auto(spec):
        return _rendered(name, spec, context, {})
    from dpd_infra.render.auto import autos_of, resolve, stand_ins  # noqa: PLC0415 - what a number is worked out with is loaded for `auto` alone

    autos = autos_of(spec)
    resolved = resolve(spec, autos, _rendered(name, stand_ins(spec, autos), context, {}).document)
    manifest = _rendered(name, resolved.spec, context, resolved.how)
    return replace(manifest, not_worked_out=resolved.why_not)


def _rendered(name: str, spec: EndpointSpec, context: EndpointContext, how: Mapping[tuple[str, ...], str]) -> RenderedManifest:
    draft, said = Draft(), SpecReader(spec, context.path, how)
    _put_head(draft, said, name, spec, context)
    _put_nodes(draft, said, spec)
    _put_names(draft, said, name, spec, context)
    _put_model(draft, said, name, spec, context)
    _put_traffic(draft, said, spec)
    if spec.disaggregated:
        put_roles(draft, said, spec)
    else:
        replicas, origin = said.read("colocated", "replicas")
        if replicas is None:
            origin = said.derived("prefill and decode replicas together: the same number of GPUs", "colocated", "replicas")
        draft.put(("spec", "replicas"), colocated_replicas(spec), origin)
        _put_if_set(draft, said, ("spec", "autoScalingSpec"), "colocated", "autoscaling")
    put_worker(draft, said, spec, context.image_mirrors)
    _put_extras(draft, said, spec)
    if not spec.overrides:
        return RenderedManifest(draft.document, draft.provenance, context)
    document, provenance = merge_with_provenance(draft.document, draft.provenance, spec.overrides, (*context.path, "overrides"))
    return RenderedManifest(document, provenance, context)


def _put_if_set(draft: Draft, said: SpecReader, path: Path, *names: str) -> None:
    """Put a value that mirrors the custom resource's own shape, where the spec has one."""
    value, origin = said.read(*names)
    if value is not None:
        draft.put(path, value, origin, same_shape=True)


def _put_head(draft: Draft, said: SpecReader, name: str, spec: EndpointSpec, context: EndpointContext) -> None:
    kind = Origin(OriginKind.DEFAULT, context.path, context.path, str(CRD_3_2))
    draft.put(("apiVersion",), API_VERSION, kind)
    draft.put(("kind",), KIND, kind)
    draft.put(("metadata", "name"), generation_name(name, spec.change.generation), Origin(OriginKind.FILE, context.path, context.path))
    draft.put(("metadata", "namespace"), *said.read("namespace"))
    for key in ("labels", "annotations"):
        value, origin = said.read(key)
        if value:
            draft.put(("metadata", key), value, origin, same_shape=True)
    if spec.silence:
        # The object in the cluster says for itself what was silenced and why.
        written = spec.annotations.get(SILENCE_ANNOTATION, "")
        text = write_silences((entry.rule, entry.reason) for entry in spec.silence)
        draft.put(("metadata", "annotations", SILENCE_ANNOTATION), f"{written}\n{text}" if written else text, said.read("silence")[1])
    if spec.kueue is not None:
        draft.put(("metadata", "labels", KUEUE_QUEUE_LABEL), *said.read("kueue", "queue_name"))
        if spec.kueue.priority_class is not None:
            draft.put(("metadata", "labels", KUEUE_PRIORITY_LABEL), *said.read("kueue", "priority_class"))


def _put_nodes(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    if not spec.disaggregated and role_selectors(spec):
        put_colocated_nodes(draft, said, spec)
        return
    _put_if_set(draft, said, ("spec", "instanceType"), "instance_type")
    _put_if_set(draft, said, ("spec", "instanceTypes"), "instance_types")
    _put_if_set(draft, said, ("spec", "nodeAffinity"), "node_affinity")


def _put_names(draft: Draft, said: SpecReader, name: str, spec: EndpointSpec, context: EndpointContext) -> None:
    draft.put(("spec", "invocationEndpoint"), *said.read("invocation_endpoint"))
    draft.put(("spec", "modelName"), *said.read("model", "name"))
    _put_if_set(draft, said, ("spec", "modelVersion"), "model", "version")
    generation = spec.change.generation
    if spec.endpoint_name is not None:
        _, origin = said.read("endpoint_name")
        draft.put(("spec", "endpointName"), generation_name(spec.endpoint_name, generation), origin)
    else:
        setting = (*context.path, "endpointName")
        origin = Origin(OriginKind.DEFAULT, context.path, setting, "the endpoint's own name")
        draft.put(("spec", "endpointName"), generation_name(name, generation), origin)


def _put_model(draft: Draft, said: SpecReader, name: str, spec: EndpointSpec, context: EndpointContext) -> None:
    root: Path = ("spec", "modelSourceConfig")
    model = spec.model

    def head(kind: str, field: str) -> None:
        draft.put((*root, "modelSourceType"), kind, said.read("model", field)[1])
        _put_if_set(draft, said, (*root, "modelLocation"), "model", "location")
        _put_if_set(draft, said, (*root, "prefetchEnabled"), "model", "prefetch")

    if model.s3 is not None:
        head("s3", "s3")
        _put_if_set(draft, said, (*root, "modelLocation"), "model", "s3", "prefix")
        draft.put((*root, "s3Storage", "bucketName"), *said.read("model", "s3", "bucket"))
        region, origin = said.read("model", "s3", "region")
        if region is None:
            region, origin = context.region, Origin(OriginKind.FILE, context.region_path, origin.setting)
        draft.put((*root, "s3Storage", "region"), region, origin)
    elif model.fsx is not None:
        head("fsx", "fsx")
        draft.put((*root, "fsxStorage", "fileSystemId"), *said.read("model", "fsx", "file_system_id"))
        _put_if_set(draft, said, (*root, "fsxStorage", "dnsName"), "model", "fsx", "dns_name")
        _put_if_set(draft, said, (*root, "fsxStorage", "mountName"), "model", "fsx", "mount_name")
    elif model.hugging_face is not None:
        head("huggingface", "hugging_face")
        source = (*root, "huggingFaceModel")
        draft.put((*source, "modelId"), *said.read("model", "hugging_face", "model_id"))
        _put_if_set(draft, said, (*source, "commitSHA"), "model", "hugging_face", "revision")
        if model.hugging_face.token is not None:
            _put_token(draft, said, (*source, "tokenSecretRef"), name, model.hugging_face.token)
    else:
        head("kubernetesVolume", "kubernetes_volume")
        volume, origin = said.read("model", "kubernetes_volume", "volume")
        draft.append(("spec", "kubernetes", "volumes"), {"name": spec.worker.volume_name, **volume}, origin, same_shape=True)
        place: Path = ("spec", "kubernetes", "volumes", 0, "name")
        # AWS's documentation of this source: the volume's name must equal the model volume mount's.
        draft.provenance.origins[place] = said.read("worker", "volume_name")[1]


def _put_token(draft: Draft, said: SpecReader, path: Path, name: str, token: HuggingFaceToken) -> None:
    where = ("model", "hugging_face", "token")
    if token.config_key is None:
        draft.put((*path, "name"), *said.read(*where, "secret_name"))
        draft.put((*path, "key"), *said.read(*where, "key"))
    else:
        origin = said.read(*where, "config_key")[1]
        draft.put((*path, "name"), token_secret_name(name), origin)
        draft.put((*path, "key"), TOKEN_SECRET_KEY, origin)


def _put_traffic(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    draft.put(("spec", "loadBalancer", "healthCheckPath"), *said.read("load_balancer", "health_check_path"))
    _put_if_set(draft, said, ("spec", "loadBalancer", "routingAlgorithm"), "load_balancer", "algorithm")
    _put_if_set(draft, said, ("spec", "loadBalancer", "idleTimeoutSeconds"), "load_balancer", "idle_timeout_seconds")
    metrics: Path = ("spec", "metrics")
    draft.put((*metrics, "enabled"), *said.read("metrics", "enabled"))
    _put_if_set(draft, said, (*metrics, "metricsScrapeIntervalSeconds"), "metrics", "scrape_interval_seconds")
    _put_if_set(draft, said, (*metrics, "modelMetrics", "path"), "metrics", "path")
    _put_if_set(draft, said, (*metrics, "modelMetrics", "port"), "metrics", "port")
    cache: Path = ("spec", "kvCacheSpec")
    draft.put((*cache, "enableL1Cache"), *said.read("cache", "l1"))
    if spec.cache.l2 is not None:
        draft.put((*cache, "enableL2Cache"), value=True, origin=said.read("cache", "l2")[1])
        draft.put((*cache, "l2CacheSpec", "l2CacheBackend"), *said.read("cache", "l2", "backend"))
        _put_if_set(draft, said, (*cache, "l2CacheSpec", "l2CacheLocalUrl"), "cache", "l2", "url")
    _put_if_set(draft, said, (*cache, "cacheConfigFile"), "cache", "config_file")
    if spec.routing.enabled:
        routing: Path = ("spec", "intelligentRoutingSpec")
        draft.put((*routing, "enabled"), *said.read("routing", "enabled"))
        draft.put((*routing, "routingStrategy"), *said.read("routing", "strategy"))
        _put_if_set(draft, said, (*routing, "autoScalingSpec"), "routing", "autoscaling")


def _put_extras(draft: Draft, said: SpecReader, spec: EndpointSpec) -> None:
    _put_if_set(draft, said, ("spec", "kubernetes", "serviceAccountName"), "service_account")
    if spec.tls is not None:
        certificate: Path = ("spec", "tlsConfig", "customCertificateConfig")
        _put_if_set(draft, said, (*certificate, "acmArn"), "tls", "certificate_arn")
        _put_if_set(draft, said, (*certificate, "domainName"), "tls", "domain_name")
        _put_if_set(draft, said, ("spec", "tlsConfig", "tlsCertificateOutputS3Uri"), "tls", "output_s3_uri")
    if spec.dns is not None:
        draft.put(("spec", "dnsConfig", "hostedZoneId"), *said.read("dns", "hosted_zone_id"))
    _put_if_set(draft, said, ("spec", "dataCapture"), "data_capture")
    for key, value in spec.tags.items():
        draft.append(("spec", "tags"), {"name": key, "value": value}, said.read("tags")[1].below((key,)))
    minutes, origin = said.read("timeouts", "deploy_minutes")
    if origin.kind is OriginKind.FILE:
        # Left out otherwise, as in the published example: the CRD's own default is the same hour.
        draft.put(("spec", "maxDeployTimeInSeconds"), minutes * 60, origin)
