"""The worker images that are known to hold all of DPD: what was read in them, and when. A tag may move: facts here are dated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpd_infra.catalog.sources import DPD_GUIDE, Source


class ImagePart(StrEnum):
    """What a DPD worker image must hold (DPD guide): the server, the KV cache layer, the transport, and the network provider."""

    VLLM = "vllm"
    LMCACHE = "lmcache"
    NIXL = "nixl"
    EFA = "efa"
    """The EFA libfabric provider."""


DPD_IMAGE_PARTS = frozenset(ImagePart)
"""Everything a worker image must hold for DPD (DPD guide)."""


@dataclass(frozen=True, slots=True)
class WorkerImage:
    """One image reference with what it was known to hold on a day."""

    reference: str
    vllm: str
    lmcache: str
    nixl: str
    known_on: str
    """ISO date of the document that says so."""
    source: Source

    @property
    def holds(self) -> frozenset[ImagePart]:
        """Both documented images hold all four parts."""
        return DPD_IMAGE_PARTS


HYPERPOD_VLLM = WorkerImage(
    "public.ecr.aws/deep-learning-containers/vllm:server-hyperpod-cuda-v1.1",
    vllm="0.19.0",
    lmcache="0.4.3",
    nixl="1.0.0",
    known_on="2026-07-10",
    source=DPD_GUIDE,
)
"""The Deep Learning Container that the published example runs."""

LMCACHE_VLLM = WorkerImage(
    "lmcache/vllm-openai:v0.4.3",
    vllm="0.19.0",
    lmcache="0.4.3",
    nixl="1.0.0",
    known_on="2026-07-10",
    source=DPD_GUIDE,
)
"""LMCache's own image; Docker Hub, so nodes need a way out."""

WORKER_IMAGES: dict[str, WorkerImage] = {image.reference: image for image in (HYPERPOD_VLLM, LMCACHE_VLLM)}
"""By reference. An image that is not here is not known, which does not make it wrong."""


def worker_image(reference: str) -> WorkerImage | None:
    """The facts of one image, or None for one that this catalog does not hold."""
    return WORKER_IMAGES.get(reference)
