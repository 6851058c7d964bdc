"""Which resource types a Pulumi package really has, read from its Python SDK without importing it."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path


@cache
def _index(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).read_text(encoding="utf-8")


def is_type_of(module: str, token: str) -> bool:
    """Whether the SDK registers that type token; True when the SDK is not installed and nothing can be said."""
    text = _index(module)
    return text is None or f'"{token}"' in text
