"""Rules on what stands beside a pdSpec and is documented for one kind of pod alone."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.sources import CRD_3_2, DATA_CAPTURE_GUIDE, DPD_GUIDE, LMCACHE, RELEASE_NOTES
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import mapping, text


@rule(
    "DPD034",
    "What roles make of it is tried first",
    severity=Severity.ADVICE,
    why="Model cache and data capture are documented for endpoints with one kind of pod; what they do beside a pdSpec is documented "
    "nowhere.",
    sources=(RELEASE_NOTES, DATA_CAPTURE_GUIDE, DPD_GUIDE),
    since="3.2",
)
def untried_beside_roles(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A modelCacheConfig or dataCapture of the pods that is switched on beside a pdSpec."""
    if not endpoint.reading.disaggregated:
        return
    for part, switches in (("modelCacheConfig", ("weightsCache", "imageCache")), ("dataCapture", ("modelPod",))):
        block = mapping(endpoint.reading.spec.get(part))
        used = [switch for switch in switches if mapping(block.get(switch)).get("enabled") is True]
        if used:
            what = f"{part}.{used[0]} is on beside pdSpec"
            yield Violation(endpoint.at("spec", part, used[0]), what, "see that it does what you want before you rely on it", value=True)


@rule(
    "DPD129",
    "One cache file is not for two roles",
    severity=Severity.WARNING,
    why="A cache configuration file overrides the other settings of the cache, and both roles read the one file: LMCache's role, peers and "
    "buffer differ by role, and the operator sets them.",
    sources=(CRD_3_2, LMCACHE),
    since="3.2",
)
def one_cache_file(endpoint: EndpointSubject) -> Iterator[Violation]:
    """kvCacheSpec.cacheConfigFile beside a pdSpec."""
    path = ("spec", "kvCacheSpec", "cacheConfigFile")
    if endpoint.reading.disaggregated and text(endpoint.get(*path)):
        fix = "leave it out: levels are said in kvCacheSpec, the rest in worker.environmentVariables"
        yield Violation(endpoint.at(*path), "cacheConfigFile is given beside pdSpec", fix, endpoint.get(*path))
