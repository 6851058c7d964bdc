"""How long the KV cache of a prompt takes over EFA, and what share of the line a load needs."""

from __future__ import annotations

from dpd_infra.catalog.instance_types import InstanceType
from dpd_infra.catalog.models import KvFormat, ModelShape
from dpd_infra.catalog.sources import DPD_BLOG, HYPERPOD_CONSTANTS, Confidence
from dpd_infra.plan.sizing.kv_cache import kv_bytes
from dpd_infra.plan.sizing.quantity import Unit, at_least, formula


@formula(
    "tokens * kv_bytes_per_token / efa_bytes_per_second_per_gpu",
    Unit.SECONDS,
    Confidence.MODELLED,
    HYPERPOD_CONSTANTS,
    DPD_BLOG,
    note="at line rate; pushed layer by layer, so most of it hides behind the prefill. AWS: single-digit ms for 8,000 tokens",
    parts=lambda model, instance, tokens, tensor_parallel_size, kv_format=KvFormat.BF16: {
        "efa_bytes_per_second_per_gpu": instance.efa_bytes_per_second_per_gpu,
        "kv_bytes": kv_bytes(model, tokens, tensor_parallel_size, kv_format),
    },
)
def transfer_seconds(
    model: ModelShape, instance: InstanceType, tokens: int, tensor_parallel_size: int, kv_format: KvFormat = KvFormat.BF16
) -> float:
    """Time that the KV cache of `tokens` tokens takes from a prefiller's GPU to a decoder's, each rank on its own share of the EFA devices.

    8,000 tokens of Llama 70B at TP 8 and 50 GB/s a GPU: 6.55 ms. Raises ValueError for an instance type without EFA.
    """
    if instance.efa_bytes_per_second_per_gpu <= 0:
        raise ValueError(f"{instance.name} has no EFA: the KV cache cannot be moved")
    return kv_bytes(model, tokens, tensor_parallel_size, kv_format) / instance.efa_bytes_per_second_per_gpu


@formula("requests_per_second * transfer_seconds", Unit.RATIO, Confidence.MODELLED, HYPERPOD_CONSTANTS, note="of each GPU's EFA bandwidth")
def line_share(requests_per_second: float, transfer_seconds: float) -> float:
    """Share of each GPU's EFA bandwidth that a load needs; 1 is a full line."""
    at_least(0, requests_per_second=requests_per_second, transfer_seconds=transfer_seconds)
    return requests_per_second * transfer_seconds
