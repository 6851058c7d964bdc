"""Figures that AWS published, with ours of the same set-up beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpd_infra.catalog.models import KvFormat, WeightFormat
from dpd_infra.catalog.sources import DPD_BLOG, DPD_GUIDE, Source
from dpd_infra.plan.sizing.buffer import DEFAULT_PD_BUFFER_BYTES, unpadded_requests
from dpd_infra.plan.sizing.kv_cache import kv_bytes_per_token
from dpd_infra.plan.sizing.outcome import Outcome, colocated, disaggregated
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.transfer import transfer_seconds
from dpd_infra.plan.sizing.workload import Lengths, Workload

_MEASURED_MODEL = "meta-llama/Llama-3.3-70B-Instruct"
_RANKS = 8
_CONCURRENCIES = (8, 16, 32)
_MEASURED: dict[str, tuple[tuple[float, float], float, tuple[float, float]]] = {
    "H100": ((0.22, 0.66), 0.35, (0.14, 0.32)),
    "H200": ((0.28, 0.48), 0.64, (0.29, 0.41)),
}
"""By GPU: TPOT better by, output throughput up by at most, end-to-end P50 better by (one prefiller and one decoder against one node)."""


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """One published figure and ours."""

    what: str
    published: str
    ours: str
    difference: str
    source: Source

    def to_dict(self) -> dict[str, Any]:
        """The point as plain data."""
        return {
            "what": self.what, "published": self.published, "ours": self.ours, "difference": self.difference, "source": str(self.source),
        }  # fmt: skip


def published_points(serving: Serving) -> tuple[PublishedPoint, ...]:
    """The published figures of this model, split and GPU; none for any other set-up, which nobody published."""
    model = serving.model
    is_measured = model.name == _MEASURED_MODEL and model.weight_format is WeightFormat.BF16
    if not is_measured or serving.tensor_parallel_size != _RANKS or serving.kv_format is not KvFormat.BF16:
        return ()
    per_token = kv_bytes_per_token(model, _RANKS)
    held = unpadded_requests(model, DEFAULT_PD_BUFFER_BYTES, 6000, _RANKS)
    points = [
        PublishedPoint("KV cache a token and rank", "about 40 KB", f"{per_token / 1024:.2f} KiB", "the same", DPD_GUIDE),
        PublishedPoint("prompts of 6,000 tokens in 8 GiB", "about 35", f"{held:.2f} unpadded, 34 guaranteed", "the same", DPD_GUIDE),
    ]
    if serving.instance.efa_bytes_per_second_per_gpu:
        moved = transfer_seconds(model, serving.instance, 8000, _RANKS)
        points.append(PublishedPoint("transfer of 8,000 tokens", "single-digit ms", f"{moved * 1000:.2f} ms", "within", DPD_BLOG))
    if serving.gpu.name in _MEASURED:
        points.extend(_benchmark(serving))
    return tuple(points)


def _benchmark(serving: Serving) -> list[PublishedPoint]:
    """AWS's benchmark: 4,096 tokens in, 256 out, 8 to 32 users, one prefiller and one decoder against one colocated node."""
    pairs: list[tuple[Outcome, Outcome]] = []
    for users in _CONCURRENCIES:
        load = Workload(Lengths.constant(4096), Lengths.constant(256), concurrency=users)
        one_each = Serving(serving.model, serving.instance, 16_384, serving.tensor_parallel_size)
        pairs.append((disaggregated(one_each, load), colocated(one_each, load, engines=1)))
    (tpot_low, tpot_high), most, (whole_low, whole_high) = _MEASURED[serving.gpu.name]
    tpot = [1 - apart.tpot_seconds / together.tpot_seconds for apart, together in pairs]
    rates = [apart.output_tokens_per_second / together.output_tokens_per_second - 1 for apart, together in pairs]
    whole = [1 - apart.request_seconds(256) / together.request_seconds(256) for apart, together in pairs]
    set_up = "4,096 in, 256 out, 8 to 32 users, 16 GPUs against 8"
    return [
        _range(f"TPOT better ({set_up})", tpot_low, tpot_high, tpot),
        _range("the same, output throughput up", 0.0, most, rates),
        _range("the same, end-to-end time better", whole_low, whole_high, whole),
        PublishedPoint(
            "the same, TTFT",
            "modestly worse",
            ", ".join(f"{apart.ttft_seconds - together.ttft_seconds:+.2f} s" for apart, together in pairs),
            "worse in all; at 32 users one prefiller is not enough and prompts queue",
            DPD_BLOG,
        ),
    ]


def _range(what: str, low: float, high: float, ours: list[float]) -> PublishedPoint:
    outside = [value for value in ours if not low <= value <= high]
    far = max((max(low - value, value - high) for value in outside), default=0.0)
    difference = "within" if not outside else f"{len(outside)} of {len(ours)} outside, by {far * 100:.0f} points at most"
    published = f"{low:.0%} to {high:.0%}" if low else f"up to {high:.0%}"
    return PublishedPoint(what, published, ", ".join(f"{value:+.0%}" for value in ours), difference, DPD_BLOG)
