"""Where a spec may say `auto`; what a number is worked out with is loaded only where one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint import EndpointSpec

AUTO = "auto"

PLACES: dict[str, tuple[str, ...]] = {
    "pd_buffer": ("cache", "pd_buffer_bytes"),
    "gpu_memory_utilization": ("worker", "gpu_memory_utilization"),
    "prefill_max_num_seqs": ("prefill", "max_num_seqs"),
    "decode_max_num_seqs": ("decode", "max_num_seqs"),
    "prefillers": ("prefill", "replicas"),
    "decoders": ("decode", "replicas"),
}
"""Where in the spec each of the numbers stands, by the names of `dpd_infra.plan.sizing.auto.Autos`."""


def says_auto(spec: EndpointSpec) -> bool:
    """Whether any of the numbers is to be worked out."""
    return any(getattr(getattr(spec, section), key) == AUTO for section, key in PLACES.values())
