"""The load of a stack file as the workload that sizing and advice take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpd_infra.plan.sizing.workload import Lengths, Workload

if TYPE_CHECKING:
    from dpd_infra.spec.endpoint.load import LengthsSpec, LoadSpec


def workload_of(load: LoadSpec) -> Workload:
    """The workload of an endpoint's `load`."""
    return Workload(
        _lengths(load.input_tokens),
        _lengths(load.output_tokens),
        requests_per_second=load.requests_per_second,
        concurrency=load.concurrency,
        arrivals=load.arrivals,
        streaming=load.streaming,
        offline=load.offline,
        ttft_first=load.ttft_first,
        shared_prefix_tokens=load.shared_prefix_tokens,
    )


def _lengths(said: float | LengthsSpec) -> Lengths:
    if isinstance(said, int | float):
        return Lengths.of_mean(said)
    if said.percentiles is not None:
        return Lengths.of_percentiles({float(name[1:]): tokens for name, tokens in said.percentiles.items()})
    return Lengths.of_mean(said.mean or 1, said.variation)
