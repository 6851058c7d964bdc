"""Registrations made by hand and at random, as a plan reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Made:
    """As much of a registration as a plan looks at."""

    type: str
    name: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    custom: bool = True
    parent: str = ""
    provider: str = ""
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protect: bool | None = None
    read: bool = False

    @property
    def urn(self) -> str:
        return f"urn:pulumi:dev::shop::{self.type}::{self.name}"

    @property
    def kind(self) -> str:
        return self.type.rsplit(":", 1)[-1]


names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
"""Names with anything in them that a person can type, and much that nobody does."""


@st.composite
def programs(draw: st.DrawFn, most: int = 14) -> list[Made]:
    """The registrations of a program: each waits only for earlier ones and is in an earlier component."""
    made: list[Made] = []
    for index in range(draw(st.integers(1, most))):
        components = [each.urn for each in made if not each.custom]
        custom = draw(st.booleans()) or index == most - 1
        earlier = [each.urn for each in made]
        needed = draw(st.lists(st.sampled_from(earlier), max_size=4, unique=True)) if earlier and custom else []
        half = len(needed) // 2
        made.append(
            Made(
                type="test:index:Thing" if custom else "test:index:Box",
                name=f"{draw(names)}-{index}",
                custom=custom,
                parent=draw(st.sampled_from(["", *components])),
                dependencies=tuple(needed[:half]),
                property_dependencies={"input": tuple(needed[half:])} if needed[half:] else {},
            )
        )
    return made
