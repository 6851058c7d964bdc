"""The scripts that HyperPod runs on every new node, as text: they move container and pod storage to the node's additional volume."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

ENTRY_POINT: Final = "on_create.sh"
"""What HyperPod runs; it stands in one folder with the others."""

SCRIPT_NAMES: Final = (ENTRY_POINT, "on_create_main.sh")
"""Every script, the entry point first."""


def lifecycle_scripts() -> dict[str, str]:
    """The scripts by name, as they are uploaded. They hold no secrets and nothing of one platform: all nodes run the same."""
    return {name: files(__name__).joinpath(name).read_text(encoding="utf-8") for name in SCRIPT_NAMES}
