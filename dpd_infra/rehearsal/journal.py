"""What is done to a simulated account, what it refuses, and what is to go wrong in it."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import Literal

from dpd_infra.rehearsal.urn import name_of

Action = Literal["create", "update", "delete"]


@dataclass(frozen=True)
class Operation:
    """One call that changed the account, in the order it was made."""

    action: Action
    type: str
    urn: str
    id: str

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return name_of(self.urn)


@dataclass(frozen=True)
class Refusal:
    """One call that the account refused, with the rule of the world behind it."""

    action: Action
    type: str
    urn: str
    message: str
    rule: str = ""
    """The rule's name; empty for an injected fault."""
    source: str = ""
    """Where the rule was read."""


@dataclass
class Failure:
    """A fault to inject: the matching calls fail with `message`.

    `match` is a shell pattern against the URN, the resource's name in the program or its type token. The first `skip` matching calls
    go through, the next `times` fail.
    """

    match: str = "*"
    action: Action = "create"
    message: str = "operation error: https response error StatusCode: 500, api error InternalFailure: An internal failure occurred"
    times: int = 1
    skip: int = 0
    half_made: bool = False
    """For a create: the resource comes to exist all the same, but does not become ready."""
    seen: int = field(default=0, init=False)

    def strikes(self, action: Action, token: str, urn: str) -> bool:
        """Whether this call is one of those that fail; counts the call if it matches."""
        if action != self.action:
            return False
        name = name_of(urn)
        if not any(fnmatch.fnmatchcase(text, self.match) for text in (urn, name, token)):
            return False
        self.seen += 1
        return self.skip < self.seen <= self.skip + self.times


@dataclass
class OperatorBehaviour:
    """What the inference operator does with an InferenceEndpointConfig.

    `seconds` is simulated time, compared with the resource's timeout; nothing really waits. With `failure` the endpoint ends in
    `DeploymentFailed` with that text.
    """

    seconds: float = 420
    failure: str | None = None
