"""Rules on where the model's files come from: bucket, file system, hub, volume."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator

from dpd_infra.catalog.addons import S3_CSI
from dpd_infra.catalog.regions import REGIONS, is_misspelt
from dpd_infra.catalog.sources import (
    AWS_REGIONS,
    CRD_3_2,
    DEPLOY_GUIDE,
    HUGGING_FACE_HUB,
    KUBERNETES_VOLUME_GUIDE,
    S3_CSI_CONFIGURATION,
    SETUP_GUIDE,
    thread,
)
from dpd_infra.plan.pieces import pieces
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.secret_text import MASK, masked
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Path, Severity
from dpd_infra.spec.values import entries, mapping, text
from dpd_infra.spec.vocabulary import RESERVED_VOLUME_NAMES

BLOCKS = {"s3": "s3Storage", "fsx": "fsxStorage", "huggingface": "huggingFaceModel"}
"""The block that each modelSourceType reads (CRD)."""

NEEDED = {"s3": ("bucketName", "region"), "fsx": ("fileSystemId",), "huggingface": ("modelId",)}

GATED_ORGANISATIONS = ("meta-llama/", "google/gemma", "CohereLabs/", "CohereForAI/")
"""Hub organisations and families whose models ask for a token (model cards)."""

_SOURCE: Path = ("spec", "modelSourceConfig")
_VOLUMES: Path = ("spec", "kubernetes", "volumes")


def _kind(endpoint: EndpointSubject) -> str:
    return text(mapping(endpoint.reading.spec.get("modelSourceConfig")).get("modelSourceType"))


@rule(
    "DPD420",
    "The source has the block it is read from",
    severity=Severity.ERROR,
    why="modelSourceType says which block the operator reads: without it there is nothing to mount or to download.",
    sources=(CRD_3_2, DEPLOY_GUIDE),
)
def source_block(endpoint: EndpointSubject) -> Iterator[Violation]:
    """s3 without s3Storage, fsx without fsxStorage, huggingface without huggingFaceModel, or one of them without what it needs."""
    kind = _kind(endpoint)
    if kind not in BLOCKS:
        return
    block = mapping(endpoint.get(*_SOURCE, BLOCKS[kind]))
    missing = [key for key in NEEDED[kind] if not text(block.get(key))]
    if missing:
        what = f"modelSourceType is {kind}, {BLOCKS[kind]} lacks {' and '.join(missing)}"
        yield Violation(endpoint.at(*_SOURCE, BLOCKS[kind]), what, f"add {BLOCKS[kind]}: {{{', '.join(f'{key}: …' for key in missing)}}}")


@rule(
    "DPD421",
    "One source",
    severity=Severity.WARNING,
    why="Only the block of modelSourceType is read: another one beside it looks as if it counted.",
    sources=(CRD_3_2,),
)
def one_source(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A block of another source than modelSourceType."""
    kind = _kind(endpoint)
    config = mapping(endpoint.reading.spec.get("modelSourceConfig"))
    for other, block in BLOCKS.items():
        if kind and other != kind and config.get(block) is not None:
            what = f"{block} is given, modelSourceType is {kind}"
            yield Violation(endpoint.at(*_SOURCE, block), what, f"remove {block}, or write modelSourceType: {other}")


@rule(
    "DPD422",
    "The model's bucket is near",
    severity=Severity.WARNING,
    why="Every pod loads the whole model from the bucket: across regions that costs time and transfer, and the platform's S3 gateway "
    "endpoint does not reach there.",
    sources=(SETUP_GUIDE, S3_CSI_CONFIGURATION),
)
def bucket_region(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A bucket of another region than the stack's."""
    path: Path = (*_SOURCE, "s3Storage", "region")
    region, asked = (endpoint.stack.region if endpoint.stack is not None else None), text(endpoint.get(*path))
    closed = endpoint.operator is not None and endpoint.operator.closed_network
    if region and asked and not closed and _kind(endpoint) == "s3" and asked != region:
        yield Violation(
            endpoint.at(*path), f"the bucket is in {asked}, the stack in {region}", f"copy the model to a bucket in {region}", asked
        )


@rule(
    "DPD423",
    "Model pods may read the bucket",
    severity=Severity.ERROR,
    why="The S3 CSI driver's role reaches the platform's modelBuckets only: any other bucket's mount ends in access denied.",
    sources=(SETUP_GUIDE, S3_CSI_CONFIGURATION),
)
def bucket_is_granted(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A bucket that is neither among the platform's modelBuckets nor its model store."""
    stack = endpoint.stack
    path: Path = (*_SOURCE, "s3Storage", "bucketName")
    bucket = text(endpoint.get(*path))
    if stack is None or stack.platform is None or not bucket or _kind(endpoint) != "s3" or bucket in stack.platform.model_buckets:
        return
    store = stack.platform.model_store
    if S3_CSI.name not in pieces(stack.platform).node_addons or (store is not None and store.bucket in {None, bucket}):
        # A driver that was there already has its maker's role; a store without a name is named when it is made.
        return
    granted = ", ".join(stack.platform.model_buckets) or "none"
    yield Violation(
        endpoint.at(*path),
        f"the bucket {bucket} is not among the platform's modelBuckets ({granted})",
        f"add {bucket} to modelBuckets",
        value=bucket,
        related=(stack.at("modelBuckets"),),
    )


@rule(
    "DPD424",
    "A gated model comes with a token",
    severity=Severity.ERROR,
    why="The hub hands out the files of gated models only to an account that accepted their licence: the download fails with 401. The "
    "token reaches the init container alone, so a variable of the worker does not help.",
    sources=(HUGGING_FACE_HUB, DEPLOY_GUIDE),
    since="3.1.2",
)
def gated_model_token(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A model of a gated organisation from the hub without tokenSecretRef."""
    block: Path = (*_SOURCE, "huggingFaceModel")
    model = text(endpoint.get(*block, "modelId"))
    if _kind(endpoint) == "huggingface" and model.startswith(GATED_ORGANISATIONS) and endpoint.get(*block, "tokenSecretRef") is None:
        short = "model.huggingFace.token: {secretName: …, key: token}"
        fix = short if endpoint.spec is not None else "tokenSecretRef: {name: <secret in the same namespace>, key: token}"
        yield Violation(endpoint.at(*block, "modelId"), f"{model} is gated and no token is given", f"add {fix}", model)


@rule(
    "DPD425",
    "The hub's revision is pinned",
    severity=Severity.ADVICE,
    why="Without a commit each pod takes what `main` is when it starts: two roles, or a new pod, may load different files.",
    sources=(CRD_3_2, DEPLOY_GUIDE),
    since="3.1.2",
)
def revision_is_pinned(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A model from the hub without commitSHA."""
    block: Path = (*_SOURCE, "huggingFaceModel")
    if _kind(endpoint) == "huggingface" and endpoint.get(*block, "modelId") and not endpoint.get(*block, "commitSHA"):
        name = "model.huggingFace.revision" if endpoint.spec is not None else "huggingFaceModel.commitSHA"
        yield Violation(endpoint.at(*block, "modelId"), "no revision is given", f"set {name} to the commit, all 40 characters")


@rule(
    "DPD426",
    "A volume of the cluster is the one that is mounted",
    severity=Severity.ERROR,
    why="With the source kubernetesVolume the operator mounts the volume whose name is modelVolumeMount.name.",
    sources=(KUBERNETES_VOLUME_GUIDE,),
    since="3.1.2",
)
def volume_is_mounted(endpoint: EndpointSubject) -> Iterator[Violation]:
    """No volume of the model volume mount's name."""
    mount: Path = ("spec", "worker", "modelVolumeMount", "name")
    wanted = text(endpoint.get(*mount))
    if _kind(endpoint) != "kubernetesVolume" or not wanted:
        return
    names = [text(mapping(volume).get("name")) for volume in entries(endpoint.get(*_VOLUMES))]
    if wanted not in names:
        patch = set_value(endpoint, (*_VOLUMES, 0, "name"), wanted) if len(names) == 1 else None
        what = f"the model is mounted from volume {wanted!r}, kubernetes.volumes has {', '.join(map(repr, names)) or 'none'}"
        yield Violation(
            endpoint.at(*_VOLUMES, *((0, "name") if names else ())), what, f"name a volume {wanted}", names[0] if names else None, patch
        )


@rule(
    "DPD427",
    "Volumes leave the operator's names alone",
    severity=Severity.ERROR,
    why="The operator makes volumes of these names itself: a second one of a name is refused.",
    sources=(KUBERNETES_VOLUME_GUIDE,),
    since="3.1",
)
def volume_names(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A volume, or a model volume mount, with a reserved name."""
    places: list[tuple[Path, object]] = [
        ((*_VOLUMES, index, "name"), mapping(volume).get("name")) for index, volume in enumerate(entries(endpoint.get(*_VOLUMES)))
    ]
    places.append((("spec", "worker", "modelVolumeMount", "name"), endpoint.get("spec", "worker", "modelVolumeMount", "name")))
    for path, name in places:
        if isinstance(name, str) and name in RESERVED_VOLUME_NAMES:
            yield Violation(
                endpoint.at(*path), f"{name} is a volume of the operator's own", "choose another name, model-weights for example", name
            )


@rule(
    "DPD428",
    "/dev/infiniband is left to the device plugin",
    severity=Severity.WARNING,
    why="Mounting the whole folder shows the pod devices that are not EFA's (mlx5 on ml.p6-b200): the transport picks them and all "
    "traffic goes over TCP.",
    sources=(thread("aws-samples/aws-do-eks", 63),),
)
def no_infiniband_mount(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A hostPath volume of /dev/infiniband."""
    for index, volume in enumerate(entries(endpoint.get(*_VOLUMES))):
        path = text(mapping(mapping(volume).get("hostPath")).get("path")).rstrip("/")
        if path == "/dev/infiniband":
            place: Path = (*_VOLUMES, index, "hostPath", "path")
            yield Violation(endpoint.at(*place), "/dev/infiniband is mounted", "remove it and request vpc.amazonaws.com/efa", path)


@rule(
    "DPD429",
    "What names the source has its form",
    severity=Severity.ERROR,
    why="The CRD takes any text here, and AWS knows buckets by their names, file systems as fs-…, regions by their codes, and a model's "
    "folder by its path in the bucket or file system: anything else mounts nothing.",
    sources=(CRD_3_2, DEPLOY_GUIDE, S3_CSI_CONFIGURATION, AWS_REGIONS),
)
def source_has_its_form(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A bucket or a folder written as a URI or an ARN, a file system's id that is none, or a region that is none."""
    kind, source = _kind(endpoint), mapping(endpoint.reading.spec.get("modelSourceConfig"))
    folder, place = masked(text(source.get("modelLocation"))), (*_SOURCE, "modelLocation")
    if "://" in folder:
        path = re.split(rf"[?#{MASK}]", folder.partition("://")[2].partition("/")[2])[0][:80] or "models/llama"
        what = f"the model's folder is {folder[:80]}"
        yield Violation(endpoint.at(*place), what, f"write its path in the source alone: {path}", folder[:80])
    block = mapping(source.get(BLOCKS.get(kind, "")))
    for key, is_right, what, fix in _FORMS.get(kind, ()):
        asked = masked(text(block.get(key)))
        if asked and not is_right(asked):
            yield Violation(endpoint.at(*_SOURCE, BLOCKS[kind], key), f"{asked[:80]} is no {what}", fix(asked[:80]), asked[:80])


_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ACCESS_POINT = re.compile(r"arn:aws[a-z-]*:s3[a-z-]*:[a-z0-9-]*:[0-9]{12}:[a-z0-9/-]*accesspoint/[a-zA-Z0-9.-]+")
"""The driver mounts an access point by its ARN too (Mountpoint S3 CSI driver, docs/CONFIGURATION.md)."""
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}")
_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,17}")
"""FSx's own form (botocore, fsx/2018-03-01, FileSystemId)."""


def _is_bucket(name: str) -> bool:
    return _BUCKET.fullmatch(name) is not None or _ACCESS_POINT.fullmatch(name) is not None


def _is_region(name: str) -> bool:
    return name in REGIONS or (_REGION.fullmatch(name) is not None and not is_misspelt(name))


def _bucket_meant(asked: str) -> str:
    name = re.sub(r"^(s3://|arn:aws[a-z-]*:s3:::)", "", asked).partition("/")[0]
    return f"write {name}" if _BUCKET.fullmatch(name) else "write the bucket's name: lower-case letters, digits, dots and hyphens"


def _region_meant(asked: str) -> str:
    near = difflib.get_close_matches(asked, REGIONS, n=1)
    return f"write {near[0] if near else 'a region, as in us-east-2'}"


_FORMS: dict[str, tuple[tuple[str, Callable[[str], object], str, Callable[[str], str]], ...]] = {
    "s3": (
        ("bucketName", _is_bucket, "bucket's name", _bucket_meant),
        ("region", _is_region, "region", _region_meant),
    ),
    "fsx": (("fileSystemId", _FILE_SYSTEM.fullmatch, "file system's id", lambda _: "write it as fs-0123456789abcdef0"),),
}
"""The keys of a source's block that have a form of their own: whether they have it, what they are, and what to write."""
