"""A sizing report as people read it: a table, the short form of a preview, and the working of every number."""

from __future__ import annotations

from dpd_infra.plan.sizing.quantity import Unit, human
from dpd_infra.plan.sizing.report import SizingReport
from dpd_infra.plan.sizing.step import PARTS

_NAME, _VALUE = 58, 22


def report_text(name: str, report: SizingReport, *, explain: bool = False) -> str:
    """The report of one endpoint, with the working of every number where it is wanted."""
    lines = [_title(name, report)]
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


def short_form(name: str, report: SizingReport) -> str:
    """Three lines: the KV cache and the buffer, the memory of a decode GPU, and what does not fit."""
    serving, budget = report.serving, report.serving.decode_budget
    held = next((each for section in report.sections for each in section.quantities if each.name == "guaranteed_requests"), None)
    room = human(budget.kv_pool_bytes, Unit.BYTES) if budget.kv_pool_bytes > 0 else "no room"
    cache = (
        f"  KV cache {human(serving.chunk_bytes // serving.chunk_tokens, Unit.BYTES)} a token and rank; the PD buffer of "
        f"{human(serving.pd_buffer_bytes, Unit.BYTES)} holds {held.value if held else 0:,} prompts of {serving.max_model_len:,} tokens"
    )
    memory = (
        f"  a decode GPU: weights {human(budget.weights_bytes, Unit.BYTES)}, KV pool {room} ({budget.kv_pool_tokens:,} tokens), "
        f"{human(budget.headroom_bytes, Unit.BYTES)} free beside the buffer"
    )
    lines = [_title(name, report), cache, memory]
    return "\n".join([*lines, *(f"  {problem}" for problem in report.problems)])


def _title(name: str, report: SizingReport) -> str:
    serving = report.serving
    nodes = "node" if serving.nodes == 1 else "nodes"
    return (
        f"{name}: {serving.model.name} on {serving.instance.name}, TP {serving.tensor_parallel_size}, {serving.prefillers} prefill + "
        f"{serving.decoders} decode = {serving.gpus} GPUs, {serving.nodes} {nodes}"
    )
