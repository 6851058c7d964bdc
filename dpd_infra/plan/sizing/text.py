"""A sizing report as people read it: a table, the short form of a preview, and the working of every number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpd_infra.plan.sizing.memory import MemoryBudget
from dpd_infra.plan.sizing.outcome import colocated as as_one
from dpd_infra.plan.sizing.outcome import disaggregated
from dpd_infra.plan.sizing.quantity import Unit, human
from dpd_infra.plan.sizing.report import SizingReport, problems
from dpd_infra.plan.sizing.serving import Serving
from dpd_infra.plan.sizing.step import PARTS
from dpd_infra.plan.sizing.workload import Workload

_NAME, _VALUE = 58, 22


def report_text(name: str, report: SizingReport, *, explain: bool = False) -> str:
    """The report of one endpoint, with the working of every number where it is wanted."""
    lines = [_title(name, report.serving)]
    for section in report.sections:
        lines += ["", section.title]
        for each in section.quantities:
            if explain:
                lines += [f"  {line}" for line in each.explain().splitlines()]
            else:
                lines.append(f"  {each.heading:<{_NAME}} {each.text:>{_VALUE}}  {each.confidence}")
        if explain and section.title.startswith("Times"):
            lines += [f"  {part} = {text}" for part, text in PARTS.items()]
    if report.published:
        lines += ["", "Published figures beside ours"]
        for point in report.published:
            lines.append(f"  {point.what}")
            lines.append(f"    published {point.published}; ours {point.ours}: {point.difference} [{point.source.reference}]")
    if report.problems:
        lines += ["", "What does not fit", *(f"  {problem}" for problem in report.problems)]
    if report.not_modelled:
        lines += ["", "Not shown", *(f"  {reason}" for reason in report.not_modelled)]
    return "\n".join(lines)


def short_form(name: str, serving: Serving, workload: Workload | None = None, *, pods: int | None = None) -> str:
    """A few lines: the KV cache and the buffer, the memory of a decode GPU, what a load gets, and what does not fit.

    `pods`: of an endpoint where one kind of pod does both, and there is no buffer.
    """
    budget = _budget(serving, pods)
    room = human(budget.kv_pool_bytes, Unit.BYTES) if budget.kv_pool_bytes > 0 else "no room"
    token = human(serving.chunk_bytes // serving.chunk_tokens, Unit.BYTES)
    weights = f"weights {human(budget.weights_bytes, Unit.BYTES)}, KV pool {room} ({budget.kv_pool_tokens:,} tokens)"
    if pods is not None:
        lines = [_title(name, serving, pods), f"  KV cache {token} a token and rank; a GPU: {weights}"]
    else:
        buffer = f"the PD buffer of {human(serving.pd_buffer_bytes, Unit.BYTES)} holds {serving.held_prompts:,} prompts"
        lines = [
            _title(name, serving),
            f"  KV cache {token} a token and rank; {buffer} of {serving.max_model_len:,} tokens",
            f"  a decode GPU: {weights}, {human(budget.headroom_bytes, Unit.BYTES)} free beside the buffer",
        ]
    if workload is not None:
        lines.append(f"  {_under(serving, workload, pods)}")
    return "\n".join([*lines, *(f"  {problem}" for problem in problems(serving, workload, colocated=pods is not None))])


def short_data(serving: Serving, workload: Workload | None = None, *, pods: int | None = None) -> dict[str, Any]:
    """The short form as plain data with camelCase keys, each number with its unit in its name: what a stack exports."""
    budget = _budget(serving, pods)
    data: dict[str, Any] = {
        "model": serving.model.name,
        "instanceType": serving.instance.name,
        "gpus": _gpus(serving, pods),
        "nodes": _nodes(serving, pods),
        "kvBytesPerTokenPerRank": serving.chunk_bytes // serving.chunk_tokens,
        "weightsBytesPerRank": budget.weights_bytes,
        "kvPoolTokens": budget.kv_pool_tokens,
    }
    if pods is None:
        data |= {
            "pdBufferBytes": serving.pd_buffer_bytes,
            "promptsInBuffer": serving.held_prompts,
            "freeBytesBesideBuffer": budget.headroom_bytes,
        }
    return data | {"problems": list(problems(serving, workload, colocated=pods is not None))}


def _budget(serving: Serving, pods: int | None) -> MemoryBudget:
    """The memory of a GPU that decodes; without the PD buffer where one kind of pod does both."""
    return serving.decode_budget if pods is None else replace(serving, pd_buffer_bytes=0).decode_budget


def _gpus(serving: Serving, pods: int | None) -> int:
    return serving.gpus if pods is None else pods * serving.tensor_parallel_size


def _nodes(serving: Serving, pods: int | None) -> int:
    return -(-_gpus(serving, pods) // serving.instance.gpus)


def _under(serving: Serving, workload: Workload, pods: int | None) -> str:
    """What a load gets, in one line."""
    try:
        found = disaggregated(serving, workload) if pods is None else as_one(serving, workload, max(1, pods))
    except ValueError as error:
        return f"under its load: not modelled, {error}"
    if not found.keeps_up:
        return f"under its load: does not keep up, {found.limited_by} gives way at {found.requests_per_second:,.2f} requests a second"
    return (
        f"under its load: TTFT {human(found.ttft_seconds, Unit.SECONDS)} and TPOT {human(found.tpot_seconds, Unit.SECONDS)} in the mean, "
        f"{found.output_tokens_per_second:,.0f} output tokens a second (modelled)"
    )


def _title(name: str, serving: Serving, pods: int | None = None) -> str:
    what = f"{serving.prefillers} prefill + {serving.decoders} decode" if pods is None else f"{pods} colocated"
    gpus, nodes = _gpus(serving, pods), _nodes(serving, pods)
    return (
        f"{name}: {serving.model.name} on {serving.instance.name}, TP {serving.tensor_parallel_size}, {what} = {gpus} GPUs, "
        f"{nodes} {'node' if nodes == 1 else 'nodes'}"
    )
