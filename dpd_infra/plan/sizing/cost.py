"""What an endpoint costs by the hour and by the million output tokens, where prices are known."""

from __future__ import annotations

from dpd_infra.catalog.prices import PriceList
from dpd_infra.catalog.sources import Confidence, Source
from dpd_infra.plan.sizing.quantity import Quantity, Unit, at_least, formula

_ARITHMETIC = Source("Arithmetic", "price over throughput")


@formula("price_per_hour / (tokens_per_second * 3600) * 1e6", Unit.DOLLARS_PER_MILLION_TOKENS, Confidence.MODELLED, _ARITHMETIC)
def cost_per_million_tokens(price_per_hour: float, tokens_per_second: float) -> float:
    """Cost of a million output tokens at a throughput. Raises ValueError for a throughput of 0."""
    at_least(0, price_per_hour=price_per_hour)
    if tokens_per_second <= 0:
        raise ValueError(f"tokens_per_second is {tokens_per_second}, and must be above 0")
    return price_per_hour / (tokens_per_second * 3600) * 1e6


def hourly_cost(prices: PriceList, instance_type: str, gpus: int, gpus_per_node: int) -> Quantity | None:
    """Cost of `gpus` GPUs by the hour, as the share of their nodes; None where no price of the type is known."""
    price = prices.per_hour.get(instance_type)
    if price is None:
        return None
    at_least(1, gpus=gpus, gpus_per_node=gpus_per_node)
    return Quantity(
        "cost_per_hour",
        price * gpus / gpus_per_node,
        Unit.DOLLARS_PER_HOUR,
        Confidence.PUBLISHED,
        "price_per_hour * gpus / gpus_per_node",
        (prices.source,),
        {"price_per_hour": price, "gpus": gpus, "gpus_per_node": gpus_per_node},
        f"prices of {prices.date}",
    )
