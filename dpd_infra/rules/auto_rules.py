"""The rule on `auto`: every number that a spec leaves open can be worked out."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import AI_CONFIGURATOR, DPD_GUIDE
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Path, Severity

_GUIDE = {
    ("cache", "pd_buffer_bytes"): "8589934592 (8 GiB)",
    ("worker", "gpu_memory_utilization"): "0.75",
    ("prefill", "max_num_seqs"): "16",
    ("decode", "max_num_seqs"): "32",
}
"""The DPD guide's tuning table."""

_LOAD: Path = ("load",)


@rule(
    "DPD210",
    "What is `auto` can be worked out",
    severity=Severity.ERROR,
    why="A number that is left open is worked out from the model's shape, the GPU and, for replicas, the load. Where one of them is not "
    "known there is no number, and none is guessed.",
    sources=(DPD_GUIDE, AI_CONFIGURATOR),
)
def auto_is_worked_out(endpoint: EndpointSubject) -> Iterator[Violation]:
    """`auto` without a load for replicas, for a model or GPU that the catalog does not hold, or under a load that nothing keeps up with."""
    path = endpoint.rendered.context.path
    for (section, name), reason in endpoint.rendered.not_worked_out.items():
        key = name.split("_")[0] + "".join(word.capitalize() for word in name.split("_")[1:])
        guide = _GUIDE.get((section, name))
        if guide is not None:
            fix = f"write a number, {guide} by the DPD guide"
        elif endpoint.spec is not None and endpoint.spec.load is None:
            fix = "write a number, or say what is to be served: load: {requestsPerSecond: 2, inputTokens: 6000, outputTokens: 400}"
        else:
            fix = "write a number, or correct the load"
        related = ((*path, *_LOAD),) if guide is None else ()
        yield Violation((*path, section, key), f"{section}.{key}: auto cannot be worked out: {reason}", fix, value="auto", related=related)
