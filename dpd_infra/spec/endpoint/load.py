"""The load of an endpoint, as far as its owner knows it: how often requests come, and how long prompts and answers are."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, Strict, StringConstraints, model_validator

from dpd_infra.spec.base import Spec, StrictBool, StrictInt
from dpd_infra.spec.vocabulary import ArrivalProcess

TokenCount = Annotated[float, Strict(), Field(ge=1, le=100_000_000, allow_inf_nan=False)]
"""A number of tokens; a mean need not be whole."""

Percentile = Annotated[str, StringConstraints(pattern=r"^p([0-9]{1,2}(\.[0-9]{1,4})?|100)$")]
"""A percentile's name: `p50`, `p99`, `p99.9`."""


class LengthsSpec(Spec):
    """A distribution of token counts: by its mean, or by percentiles."""

    mean: TokenCount | None = Field(default=None, examples=[6000])
    """The mean, tokens."""
    variation: Annotated[float, Strict(), Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Beside a mean: standard deviation over mean, log-normal. 0: all the same length."""
    percentiles: dict[Percentile, TokenCount] | None = Field(default=None, min_length=1, examples=[{"p50": 2000, "p90": 8000}])
    """Tokens by percentile, `{p50: 2000, p90: 8000}`: straight lines between them, flat outside."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.mean is None) == (self.percentiles is None):
            message = "lengths are given by either mean or percentiles"
            raise ValueError(message)
        if self.percentiles is None:
            return self
        if self.variation:
            message = "variation stands beside a mean; percentiles say it themselves"
            raise ValueError(message)
        points = sorted((float(name[1:]), tokens) for name, tokens in self.percentiles.items())
        if any(high < low for (_, low), (_, high) in pairwise(points)):
            message = "percentiles: a higher percentile cannot be shorter"
            raise ValueError(message)
        return self


class LoadSpec(Spec):
    """What the endpoint has to serve. Nothing of it reaches the cluster: `auto`, `dpd size`, `dpd advise` and the preview work with it."""

    requests_per_second: Annotated[float, Strict(), Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """Requests come at this rate, whatever becomes of earlier ones. Exactly one of this and `concurrency`."""
    concurrency: StrictInt | None = Field(default=None, ge=1, le=1_000_000)
    """So many users, each of whom sends the next request when the answer is complete."""
    input_tokens: TokenCount | LengthsSpec = Field(examples=[6000])
    """Tokens of prompts: a mean, or a distribution."""
    output_tokens: TokenCount | LengthsSpec = Field(examples=[400])
    """Tokens of answers: a mean, or a distribution."""
    arrivals: ArrivalProcess = ArrivalProcess.POISSON
    """How requests come: `poisson`, `uniform` or `bursty`."""
    shared_prefix_tokens: StrictInt = Field(default=0, ge=0, le=100_000_000)
    """Tokens that all prompts begin with: the prefix cache has them."""
    streaming: StrictBool = True
    """Somebody reads the tokens as they come."""
    offline: StrictBool = False
    """A batch job: only throughput counts."""
    ttft_first: StrictBool = False
    """The first token matters more than the even flow after it."""

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.requests_per_second is None) == (self.concurrency is None):
            message = "a load has either requestsPerSecond or concurrency"
            raise ValueError(message)
        return self
