"""The model servers that worker images hold: the port each listens on by itself, and the paths it answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dpd_infra.catalog.images import WORKER_IMAGES
from dpd_infra.catalog.sources import DJL_SERVING, TGI_CONTAINER, VLLM, Source


@dataclass(frozen=True, slots=True)
class ModelServer:
    """One server."""

    name: str
    port: int
    """Where it listens unless told otherwise."""
    port_flag: str | None
    """The flag that moves it; None where the image's arguments do not."""
    health_paths: tuple[str, ...]
    """What answers a health check with 200; empty where no document lists them."""
    invocation_paths: tuple[str, ...]
    """What takes requests, without the leading slash; empty where no document lists them."""
    source: Source


VLLM_SERVER = ModelServer(
    "vLLM",
    8000,
    "port",
    ("/health", "/ping", "/version", "/v1/models", "/metrics", "/load"),
    (
        "v1/chat/completions",
        "v1/completions",
        "v1/responses",
        "v1/messages",
        "v1/embeddings",
        "v1/score",
        "v1/rerank",
        "v2/rerank",
        "v1/audio/transcriptions",
        "v1/audio/translations",
        "invocations",
        "pooling",
        "classify",
        "score",
        "rerank",
        "tokenize",
    ),
    VLLM,
)
"""vLLM's OpenAI-compatible server; `/ping` and `/invocations` are its SageMaker routes."""

DJL_SERVER = ModelServer("DJL Serving", 8080, None, (), (), DJL_SERVING)
"""What the LMI containers run; the port is in a configuration file or in SERVING_* variables, not in the arguments."""

TGI_SERVER = ModelServer("Text Generation Inference", 8080, "port", (), (), TGI_CONTAINER)
"""AWS's container of it starts the server as SageMaker wants it: port 8080."""

_DJL = re.compile(r"(^|/)djl-(inference|serving)(:|@|$)")
_TGI = re.compile(r"(^|/)(huggingface-pytorch-)?tgi-inference(:|@|$)")
_VLLM = re.compile(r"(^|/)[^/:@]*vllm[^/:@]*(/[^/:@]+)*(:|@|$)")


def model_server(image: str, words: Iterable[str] = ()) -> ModelServer | None:
    """The server of an image, known by its name or by the words that start it; None where neither says.

    AWS's SageMaker variants of the vLLM image start the server on 8080 themselves, so nothing is said of those.
    """
    if _DJL.search(image):
        return DJL_SERVER
    if _TGI.search(image):
        return TGI_SERVER
    if image in WORKER_IMAGES:
        return VLLM_SERVER
    said = list(words)
    if any(word.rpartition("/")[2] == "vllm" or word.startswith("vllm.entrypoints") for word in said):
        return VLLM_SERVER
    is_sagemaker = "sagemaker" in image.rpartition(":")[2]
    return VLLM_SERVER if _VLLM.search(image) and not is_sagemaker else None
