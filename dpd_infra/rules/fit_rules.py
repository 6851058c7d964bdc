"""Rules on whether disaggregation is the right tool: the model, the load, and the image that is to hold all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpd_infra.catalog.images import DPD_IMAGE_PARTS, HYPERPOD_VLLM, LMCACHE_VLLM, WORKER_IMAGES, worker_image
from dpd_infra.catalog.sources import DPD_BLOG, DPD_GUIDE, DPD_TROUBLESHOOTING
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import count, mapping

LEAST_BILLIONS = 70
"""Dense models from this size on benefit (DPD guide)."""

VALIDATED_REQUESTS = 64
"""Concurrent requests up to which DPD was validated, on ml.p5.48xlarge with Llama 3.3 70B (DPD guide)."""

_MIXTURE = re.compile(r"(^|[-_])(\d+x\d+(\.\d+)?b|a\d+(\.\d+)?b)(?![a-z0-9])", re.IGNORECASE)
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)


@rule(
    "DPD040",
    "Disaggregation pays for large dense models",
    severity=Severity.ADVICE,
    why="AWS's guide: best for dense models of 70B and more with inputs of 4,000 tokens and more; smaller ones and mixtures of experts "
    "typically do not benefit, and two roles take twice the GPUs.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def model_benefits(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A model under 70B parameters or a mixture of experts, by the catalog or by its name."""
    reading = endpoint.reading
    if not reading.disaggregated or not reading.model_names:
        return
    name, path = reading.model_names[-1]
    what = ""
    if reading.model is not None:
        billions = reading.model.parameters / 10**9
        if reading.model.is_mixture:
            what = f"{reading.model.name} is a mixture of experts"
        elif billions < LEAST_BILLIONS - 1:
            what = f"{reading.model.name} has {billions:.0f}B parameters"
    elif any(_MIXTURE.search(other) for other, _ in reading.model_names):
        what = f"{name} is a mixture of experts by its name"
    elif (match := _SIZE.search(name)) and float(match.group(1)) < LEAST_BILLIONS - 1:
        what = f"{name} has {match.group(1)}B parameters by its name"
    if what:
        yield Violation(endpoint.at(*path), what, "measure it against its colocated twin first (disaggregated: false)", value=name)


@rule(
    "DPD041",
    "DPD was validated to 64 concurrent requests",
    severity=Severity.ADVICE,
    why="AWS validated up to 64 concurrent requests, on ml.p5.48xlarge with Llama 3.3 70B; beyond that buffer and queues are untested.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def validated_load(endpoint: EndpointSubject) -> Iterator[Violation]:
    """More than 64 sequences on the decoder, or more than 64 requests let through to a pod."""
    reading = endpoint.reading
    if not reading.disaggregated:
        return
    flag = reading.decode.args.last("max-num-seqs")
    if flag is not None and flag.integer is not None and flag.integer > VALIDATED_REQUESTS:
        what = f"the decoder takes {flag.integer} sequences at a time"
        yield Violation(endpoint.at(*flag.path), what, f"write --max-num-seqs {VALIDATED_REQUESTS} or less, or test it", value=flag.integer)
    path = ("spec", "worker", "requestLimits", "maxConcurrentRequests")
    limit = count(mapping(reading.worker.get("requestLimits")).get("maxConcurrentRequests"))
    if limit is not None and limit > VALIDATED_REQUESTS:
        what = f"{limit} requests at a time are let through to a pod"
        yield Violation(endpoint.at(*path), what, f"set it to {VALIDATED_REQUESTS} or less, or test it", value=limit)


@rule(
    "DPD042",
    "The worker image is known to hold vLLM, LMCache, NIXL and EFA",
    severity=Severity.WARNING,
    why="Without all four a pod starts and serves, and moves the KV cache over TCP or not at all. What an image tag holds is known for "
    "the day on which it was read; another tag is not known, which does not make it wrong.",
    sources=(DPD_GUIDE, DPD_BLOG),
    since="3.2",
)
def image_is_known(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An image that the catalog does not hold, without a statement (`worker.imageHolds`) that it holds all four."""
    image = endpoint.reading.image
    if not endpoint.reading.disaggregated or not image or worker_image(image) is not None:
        return
    stated = frozenset(endpoint.spec.worker.image_holds) if endpoint.spec is not None else frozenset()
    missing = sorted(DPD_IMAGE_PARTS - stated)
    if not missing:
        return
    repository = _repository(image)
    kin = next((known for reference, known in WORKER_IMAGES.items() if _repository(reference) == repository), None)
    if kin is not None:
        what = f"what {image} holds is not known; {kin.reference} was read on {kin.known_on}"
    elif stated:
        what = f"{image} is stated to hold {', '.join(sorted(stated))}, not {', '.join(missing)}"
    else:
        what = f"what {image} holds is not known"
    state = "" if endpoint.spec is None else f"; or state what it holds: imageHolds: [{', '.join(sorted(DPD_IMAGE_PARTS))}]"
    fix = f"use {HYPERPOD_VLLM.reference} or {LMCACHE_VLLM.reference}{state}"
    yield Violation(endpoint.at("spec", "worker", "image"), what, fix, value=image)


@rule(
    "DPD043",
    "The worker image is pinned",
    severity=Severity.WARNING,
    why="Both roles must run the same image: a tag that moves, or none (latest), gives pods that start on different days different "
    "servers.",
    sources=(DPD_TROUBLESHOOTING,),
)
def image_is_pinned(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An image without tag or digest, or with a tag such as `latest`."""
    image = endpoint.reading.image
    if not image or "@" in image:
        return
    tag = image[len(_repository(image)) :].removeprefix(":")
    if tag in {"", "latest", "nightly", "main", "dev", "stable"}:
        patch = (
            set_value(endpoint, ("spec", "worker", "image"), HYPERPOD_VLLM.reference)
            if _repository(HYPERPOD_VLLM.reference) == image
            else None
        )
        what = f"{image} has the moving tag {tag!r}" if tag else f"{image} has no tag"
        yield Violation(
            endpoint.at("spec", "worker", "image"), what, "name a version, or a digest: image@sha256:…", value=image, patch=patch
        )


def _repository(image: str) -> str:
    """The reference without tag and digest; a port in the registry's name stays."""
    name = image.partition("@")[0]
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name
