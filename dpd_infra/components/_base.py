"""What every component shares: how children are parented and how they wait for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import pulumi

HandleT = TypeVar("HandleT")


class Unevaluated:
    """A resource class whose annotations the SDK does not take for properties: it would evaluate them each time that one is made."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Leave the annotations to type checkers."""
        super().__init_subclass__(**options)
        cls.__annotations__ = {}


class Component(Unevaluated, pulumi.ComponentResource):
    """A component of this library: one noun, typed outputs, children below it and nothing of the caller's options on them.

    What a component is to the rest of the program and no output, its handle, stands in a slot: `pulumi.export` of a whole component takes
    its `__dict__`, and refuses what is no plain data.
    """

    token: ClassVar[str]
    """The type token, from `tokens`."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None) -> None:
        # Inputs are identity only: the engine counts a component whose inputs change as one more update beside the resource that changed.
        super().__init__(self.token, name, dict(inputs), opts)

    def _child(
        self,
        *,
        depends_on: Iterable[pulumi.Resource] = (),
        protect: bool | None = None,
        timeouts: pulumi.CustomTimeouts | None = None,
        provider: pulumi.ProviderResource | None = None,
        **options: Any,
    ) -> pulumi.ResourceOptions:
        """The options of a child. `protect`, timeouts and ignored changes are not inherited, so they are said here."""
        return pulumi.ResourceOptions(
            parent=self, depends_on=list(depends_on), protect=protect, custom_timeouts=timeouts, provider=provider, **options
        )


def handle_of(value: Any, kind: type[HandleT], parameter: str) -> HandleT:
    """The handle that a component was given, or the one of the component that was given in its place.

    Raises `pulumi.RunError` for anything else: a wrong wire shows as a missing attribute deep inside of a component otherwise.
    """
    if isinstance(value, kind):
        return value
    handle = getattr(value, "handle", None)
    if isinstance(handle, kind):
        return handle
    raise pulumi.RunError(f"{parameter} takes a {kind.__name__}, the `.handle` of the component it comes from, not {type(value).__name__}")


def minutes(count: int) -> str:
    """A Pulumi timeout of so many minutes."""
    return f"{count}m"
