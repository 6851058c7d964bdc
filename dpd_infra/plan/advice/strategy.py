"""How the router should pick a prefiller: by their number, the endpoint's path and what prompts share, with the sources' contradictions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpd_infra.catalog.sources import CACHING_ROUTING_GUIDE, DPD_BLOG, DPD_GUIDE, DPD_TROUBLESHOOTING, thread
from dpd_infra.plan.sizing.quantity import at_least

_KVAWARE_CHAT = thread("vllm-project/production-stack", 1045)

PREFIX_AWARE, KV_AWARE, SESSION, ROUND_ROBIN = "prefixaware", "kvaware", "session", "roundrobin"
"""`routingStrategy` (CRD)."""

MUCH_SHARED = 0.25
"""Share of a mean prompt that is common to many requests from which on it pays to send them to where it is cached."""


_SEVERAL = (
    f"for several prefillers {DPD_GUIDE.reference} names {ROUND_ROBIN}, {DPD_TROUBLESHOOTING.reference} {ROUND_ROBIN} or {KV_AWARE}, "
    f"{DPD_BLOG.reference} {KV_AWARE} or {SESSION}"
)
_CHAT_PATH = (
    f"{CACHING_ROUTING_GUIDE.reference} allows {KV_AWARE} for /completions only, while AWS's own DPD benchmark used it and the DPD example "
    "serves v1/chat/completions"
)


@dataclass(frozen=True, slots=True)
class StrategyAdvice:
    """A recommended routing strategy."""

    recommended: str
    reasons: tuple[str, ...]
    contradictions: tuple[str, ...]
    """Where the sources disagree about it."""

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain data."""
        return asdict(self)


def advise_strategy(
    prefillers: int, invocation_endpoint: str, shared_prefix_tokens: int, mean_prompt_tokens: float, *, sessions: bool = False
) -> StrategyAdvice:
    """Recommend how a prefiller is picked.

    `sessions`: requests of one conversation follow each other and carry a session id. The strategy picks the prefiller only: there is one
    decode deployment.
    """
    at_least(1, prefillers=prefillers, mean_prompt_tokens=mean_prompt_tokens)
    at_least(0, shared_prefix_tokens=shared_prefix_tokens)
    completions = invocation_endpoint.strip("/").endswith("completions") and "chat" not in invocation_endpoint
    shared = shared_prefix_tokens / mean_prompt_tokens
    if prefillers == 1:
        return StrategyAdvice(
            PREFIX_AWARE, (f"with one prefiller every strategy picks it; {PREFIX_AWARE} is the default ({DPD_GUIDE.reference})",), ()
        )
    contradictions = (_SEVERAL, _CHAT_PATH)
    if shared >= MUCH_SHARED and completions:
        reasons = (
            f"{shared:.0%} of a mean prompt is shared: its KV cache is worth going to",
            f"{KV_AWARE} works on {invocation_endpoint} ({CACHING_ROUTING_GUIDE.reference})",
        )
        return StrategyAdvice(KV_AWARE, reasons, contradictions)
    if sessions:
        reasons = (f"a conversation returns to the prefiller that knows its beginning ({DPD_BLOG.reference})",)
        return StrategyAdvice(SESSION, reasons, contradictions)
    reasons = [f"{ROUND_ROBIN} is what the guide names for several prefillers ({DPD_GUIDE.reference}) and spreads the load evenly"]
    if shared >= MUCH_SHARED:
        reasons.append(
            f"{shared:.0%} of a mean prompt is shared, but {KV_AWARE} never matches on {invocation_endpoint}: the body is tokenised "
            f"without the chat template ({_KVAWARE_CHAT}); {SESSION} keeps conversations together where clients send a session id"
        )
    return StrategyAdvice(ROUND_ROBIN, tuple(reasons), contradictions)
