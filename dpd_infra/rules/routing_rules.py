"""Rules on the router: what is disaggregated, who picks the prefiller, and what excludes what."""

from __future__ import annotations

from collections.abc import Iterator

from dpd_infra.catalog.images import worker_image
from dpd_infra.catalog.operator_releases import AddonVersion
from dpd_infra.catalog.sources import CACHING_ROUTING_GUIDE, CRD_3_2, DPD_BLOG, DPD_GUIDE, DPD_TROUBLESHOOTING, GATEWAY_GUIDE, thread
from dpd_infra.rules.patches import set_value
from dpd_infra.rules.registry import rule
from dpd_infra.rules.subject import EndpointSubject, Violation
from dpd_infra.rules.wording import named
from dpd_infra.spec.finding import Severity
from dpd_infra.spec.values import count, mapping, text

PAYS_FROM_TOKENS = 4000
"""Inputs from this length on benefit (DPD guide)."""

KVAWARE_ADDON = AddonVersion.parse("v1.2.1-eksbuild.1")
"""The first add-on with KV-aware routing for LMCache 0.4.3 (KV caching guide)."""

KVAWARE_VLLM = "0.19.1"
"""The vLLM that KV-aware routing asks for (KV caching guide)."""

_ROUTING = ("spec", "intelligentRoutingSpec")
_THRESHOLD = ("spec", "pdSpec", "routingThreshold")


def _strategy(endpoint: EndpointSubject) -> str:
    """The strategy in force; prefixaware is the CRD's default, for the router that pdSpec makes too."""
    routing = mapping(endpoint.reading.spec.get("intelligentRoutingSpec"))
    if not endpoint.reading.is_routed:
        return ""
    return text(routing.get("routingStrategy")) or "prefixaware"


def _strategy_name(endpoint: EndpointSubject) -> str:
    return named(endpoint, "routingStrategy", "routing.strategy", (*_ROUTING, "routingStrategy"))


def _threshold_name(endpoint: EndpointSubject) -> str:
    return named(endpoint, "routingThreshold", "routing.threshold", _THRESHOLD)


@rule(
    "DPD301",
    "KV-aware routing and chat do not meet",
    severity=Severity.WARNING,
    why="AWS's caching guide takes kvaware with /completions only: the router tokenises the request's text without the chat template, so "
    "its picture of a pod's cache never matches. AWS's DPD blog measured with kvaware all the same.",
    sources=(CACHING_ROUTING_GUIDE, thread("vllm-project/production-stack", 1045), DPD_BLOG),
    since="2.1",
)
def kvaware_without_chat(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Strategy kvaware with an invocation endpoint other than completions."""
    path = text(endpoint.get("spec", "invocationEndpoint")).strip("/") or "invocations"
    if _strategy(endpoint) == "kvaware" and path not in {"v1/completions", "completions"}:
        yield Violation(
            endpoint.at(*_ROUTING, "routingStrategy"),
            f"routingStrategy is kvaware, invocationEndpoint is {path}",
            f"set {_strategy_name(endpoint)} to prefixaware (one prefiller) or roundrobin (several), or serve v1/completions",
            value="kvaware",
        )


@rule(
    "DPD302",
    "Several prefillers want a strategy that spreads",
    severity=Severity.WARNING,
    why="The strategy picks the prefiller. For several of them the DPD guide says roundrobin, its troubleshooting roundrobin or kvaware, "
    "AWS's blog kvaware or session: none of them says prefixaware, which the guide keeps for one.",
    sources=(DPD_GUIDE, DPD_TROUBLESHOOTING, DPD_BLOG),
    since="3.2",
)
def strategy_for_several(endpoint: EndpointSubject) -> Iterator[Violation]:
    """prefixaware, also by default, with more than one prefiller at most."""
    reading = endpoint.reading
    if not reading.disaggregated or reading.prefill.most_replicas <= 1 or _strategy(endpoint) != "prefixaware":
        return
    path = (*_ROUTING, "routingStrategy")
    scaled = " by autoscaling" if reading.prefill.scaling is not None else ""
    yield Violation(
        endpoint.at(*path),
        f"routingStrategy is prefixaware, there are up to {reading.prefill.most_replicas} prefillers{scaled}",
        f"set {_strategy_name(endpoint)} to roundrobin",
        value="prefixaware",
        patch=set_value(endpoint, path, "roundrobin", ("routing", "strategy")),
    )


@rule(
    "DPD303",
    "Some requests are disaggregated",
    severity=Severity.ERROR,
    why="A prompt is disaggregated from routingThreshold tokens on, and no prompt has max-model-len tokens or more: the prefillers would "
    "never get one.",
    sources=(CRD_3_2, DPD_GUIDE),
    since="3.2",
)
def threshold_is_reached(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A threshold at or above max-model-len."""
    reading = endpoint.reading
    threshold = count(endpoint.get(*_THRESHOLD)) if endpoint.get(*_THRESHOLD) is not None else 4096
    longest = reading.max_model_len(reading.decode)
    if not reading.disaggregated or threshold is None or longest is None or threshold < longest:
        return
    lower = f"lower {_threshold_name(endpoint)} below {longest} ({PAYS_FROM_TOKENS} is where it begins to pay)"
    yield Violation(
        endpoint.at(*_THRESHOLD),
        f"routingThreshold is {threshold:,}, --max-model-len {longest:,}: nothing is ever disaggregated",
        lower if longest > PAYS_FROM_TOKENS else "raise --max-model-len, or turn disaggregation off (disaggregated: false)",
        value=threshold,
        related=(endpoint.at(*reading.max_model_len_flag.path),) if reading.max_model_len_flag else (),
    )


@rule(
    "DPD304",
    "Short prompts stay on the decoder",
    severity=Severity.ADVICE,
    why="0 sends every prompt through prefiller and transfer, however short: each pays for a hop that it does not need. Prompts shorter "
    "than a cache block were seen to skip disaggregation even so.",
    sources=(CRD_3_2, DPD_GUIDE, thread("llm-d/llm-d-router", 867)),
    since="3.2",
)
def threshold_is_not_zero(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A threshold of 0."""
    if endpoint.get(*_THRESHOLD) == 0 and endpoint.get(*_THRESHOLD) is not False:
        patch = set_value(endpoint, _THRESHOLD, 4096)
        what = "routingThreshold is 0: every prompt is disaggregated"
        yield Violation(endpoint.at(*_THRESHOLD), what, f"set {_threshold_name(endpoint)} to 4096, the default", 0, patch)


@rule(
    "DPD305",
    "The threshold is where disaggregation pays",
    severity=Severity.ADVICE,
    why=f"AWS's guide sees a benefit for inputs of {PAYS_FROM_TOKENS:,} tokens and more. The router counts by an estimate of its own, "
    "about 12 % high in AWS's sample.",
    sources=(DPD_GUIDE,),
    since="3.2",
)
def threshold_pays(endpoint: EndpointSubject) -> Iterator[Violation]:
    """A threshold above 0 and below 4,000 tokens."""
    threshold = count(endpoint.get(*_THRESHOLD))
    if threshold is not None and 0 < threshold < PAYS_FROM_TOKENS:
        what = f"routingThreshold is {threshold:,}"
        yield Violation(
            endpoint.at(*_THRESHOLD), what, f"raise {_threshold_name(endpoint)} to {PAYS_FROM_TOKENS}, or measure below", threshold
        )


@rule(
    "DPD306",
    "One router: gateway or intelligent routing",
    severity=Severity.ERROR,
    why="The inference gateway and intelligent routing exclude each other.",
    sources=(GATEWAY_GUIDE,),
)
def one_router(endpoint: EndpointSubject) -> Iterator[Violation]:
    """The gateway and intelligentRoutingSpec both enabled."""
    if endpoint.get("spec", "inferenceGateway", "enabled") is True and endpoint.get(*_ROUTING, "enabled") is True:
        what = "inferenceGateway and intelligentRoutingSpec are both enabled"
        yield Violation(endpoint.at("spec", "inferenceGateway", "enabled"), what, "disable one of them", value=True)


@rule(
    "DPD307",
    "Disaggregation has a router of its own",
    severity=Severity.WARNING,
    why="The operator makes a router for pdSpec; how it goes together with the inference gateway is documented nowhere.",
    sources=(GATEWAY_GUIDE, DPD_GUIDE),
    since="3.2",
)
def gateway_beside_roles(endpoint: EndpointSubject) -> Iterator[Violation]:
    """The gateway enabled beside a pdSpec."""
    if endpoint.reading.disaggregated and endpoint.get("spec", "inferenceGateway", "enabled") is True:
        what = "inferenceGateway is enabled beside pdSpec"
        yield Violation(endpoint.at("spec", "inferenceGateway", "enabled"), what, "leave it out until you have seen it work", value=True)


@rule(
    "DPD308",
    "KV-aware routing has the versions it asks for",
    severity=Severity.WARNING,
    why=f"AWS's caching guide asks for add-on {KVAWARE_ADDON} and, with LMCache 0.4.3, vLLM {KVAWARE_VLLM}; the images that the DPD guide "
    "names hold vLLM 0.19.0. The two guides contradict each other.",
    sources=(CACHING_ROUTING_GUIDE, DPD_GUIDE),
    since="2.1",
)
def kvaware_versions(endpoint: EndpointSubject) -> Iterator[Violation]:
    """Strategy kvaware with an older add-on, or with an image that holds an older vLLM."""
    if _strategy(endpoint) != "kvaware":
        return
    known = worker_image(endpoint.reading.image)
    older = []
    if known is not None and _numbers(known.vllm) < _numbers(KVAWARE_VLLM):
        older.append(f"{known.reference} held vLLM {known.vllm} on {known.known_on}")
    if endpoint.operator is not None and AddonVersion.parse(endpoint.operator.addon_version) < KVAWARE_ADDON:
        older.append(f"the add-on is {endpoint.operator.addon_version}")
    if older:
        fix = "verify that requests follow the cache, or use prefixaware or roundrobin"
        yield Violation(endpoint.at(*_ROUTING, "routingStrategy"), f"routingStrategy is kvaware, {' and '.join(older)}", fix, "kvaware")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@rule(
    "DPD309",
    "A router that is described is switched on",
    severity=Severity.WARNING,
    why="intelligentRoutingSpec.enabled is false by default, and it can be neither added nor changed once the endpoint exists: what "
    "stands beside it has no effect.",
    sources=(CRD_3_2,),
    since="2.1",
)
def router_is_on(endpoint: EndpointSubject) -> Iterator[Violation]:
    """An intelligentRoutingSpec with a strategy or autoscaling and without `enabled: true`."""
    routing = mapping(endpoint.reading.spec.get("intelligentRoutingSpec"))
    described = [key for key in ("routingStrategy", "autoScalingSpec") if key in routing]
    if described and routing.get("enabled") is not True:
        path = (*_ROUTING, "enabled")
        what = f"{' and '.join(described)} {'is' if len(described) == 1 else 'are'} given, enabled is not true"
        yield Violation(endpoint.at(*path), what, "set enabled: true", patch=set_value(endpoint, path, value=True))
