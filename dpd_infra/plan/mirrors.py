"""Image mirrors: which registry an image is really pulled from, and which image a mirrored one is a copy of."""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT_REGISTRY = "docker.io"
"""The registry of a reference that names none (Docker's reference grammar)."""

_PRIVATE_ECR = re.compile(r"\d{12}\.dkr(?:\.ecr|-ecr)\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|on\.aws)")


def registry(reference: str) -> str:
    """The registry of an image reference; Docker Hub's where the first part is no host (it has neither a dot nor a port)."""
    first, slash, _ = reference.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else DEFAULT_REGISTRY


def mirrored(reference: str, mirrors: Mapping[str, str]) -> str:
    """The reference to pull: where a mirror's source begins it, the longest such source is replaced; else as it is.

    `mirrors` maps the beginning of references to another, by whole path parts: `public.ecr.aws` to
    `111122223333.dkr.ecr.us-east-2.amazonaws.com/public`.
    """
    for source in sorted(mirrors, key=len, reverse=True):
        for whole in (reference, f"{DEFAULT_REGISTRY}/{reference}" if registry(reference) == DEFAULT_REGISTRY else reference):
            if whole.startswith(f"{source.rstrip('/')}/"):
                return f"{mirrors[source].rstrip('/')}{whole[len(source.rstrip('/')) :]}"
    return reference


def original(reference: str, mirrors: Mapping[str, str]) -> str:
    """The image that a mirrored reference is a copy of; the reference itself where it is none."""
    for source, mirror in sorted(mirrors.items(), key=lambda pair: len(pair[1]), reverse=True):
        if reference.startswith(f"{mirror.rstrip('/')}/"):
            found = f"{source.rstrip('/')}{reference[len(mirror.rstrip('/')) :]}"
            return found.removeprefix(f"{DEFAULT_REGISTRY}/")
    return reference


def is_reachable_closed(reference: str, region: str) -> bool:
    """Whether a closed network can pull an image: interface endpoints reach private ECR registries of their own region alone."""
    match = _PRIVATE_ECR.fullmatch(registry(reference))
    return match is not None and match.group(1) == region
