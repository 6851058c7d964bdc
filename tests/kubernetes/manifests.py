"""Every manifest that an example, a stack or a rule's test holds, and generated ones, the same at every run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from dpd_infra.catalog.crd.releases import LATER_FIELDS
from dpd_infra.stack import _load, load_file
from tests.conftest import ROOT
from tests.pure.crd.documents import documents
from tests.pure.crd.fuzz_documents import Broken, broken
from tests.pure.endpoint.specs import endpoints
from tests.pure.endpoint.test_published_example import PUBLISHED
from tests.pure.endpoint.test_render import rendered
from tests.pure.rules.kit import Raw, Stack
from tests.pure.rules.test_every_rule import CASES

T = TypeVar("T")

UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


class Manifest(NamedTuple):
    """A custom resource and where it is from."""

    origin: str
    document: dict[str, Any]

    def __str__(self) -> str:
        return self.origin


@cache
def of_files() -> tuple[Manifest, ...]:
    """What the endpoints of every stack file of this repository become, and the example of AWS's own guide."""
    found = [Manifest("published", PUBLISHED)]
    files = sorted([*(ROOT / "stacks").glob("Pulumi.*.yaml"), *(ROOT / "examples").glob("*/Pulumi.*.yaml")])
    for file in files:
        subjects = load_file(file).subject.endpoints
        found += [Manifest(f"{file.relative_to(ROOT)} {name}", one.rendered.document) for name, one in subjects.items()]
    return tuple(found)


@cache
def of_rules() -> tuple[Manifest, ...]:
    """What every rule is tried on: the input that breaks it, and the one that nearly does."""
    return tuple(
        Manifest(f"{case.rule} {which} {name}", document)
        for case in CASES
        for which, what in (("trip", case.trip), ("near", case.near))
        for name, document in _documents(what)
    )


def _documents(what: Raw | Stack) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(what, Raw):
        yield "", what.data
    else:
        for name, one in _load(what.data, None).subject.endpoints.items():
            yield name, one.rendered.document


def drawn(strategy: st.SearchStrategy[T], count: int, number: int) -> list[T]:
    """So many values of a strategy, the same at every run with the same `number`."""
    found: list[T] = []

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=UNHURRIED)
    @given(strategy)
    def take(value: T) -> None:
        found.append(value)

    take()
    return found


def of_short_form(count: int) -> list[Manifest]:
    """What generated endpoints of stack files become."""
    return [Manifest(json.dumps(data), rendered(data).document) for data in drawn(endpoints(), count, 1)]


def of_crd(count: int) -> list[Manifest]:
    """Generated documents that the CRD's text allows."""
    return [Manifest(f"generated {at}", document) for at, document in enumerate(drawn(documents(), count, 2))]


def broken_in_one_field(count: int, number: int = 3) -> list[Broken]:
    """Generated documents, each broken in one field in one way; some breaks are harmless."""
    found: list[Broken] = []
    while len(found) < count:
        found += [case for cases in drawn(broken(), count // 6 + 1, number) for case in cases]
        number += 1
    return found[:count]


def without_later_fields(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what came after the release whose CRD is at hand (3.2)."""
    document = json.loads(json.dumps(document))
    for field in LATER_FIELDS:
        *way, last = field.path.split(".")
        place: Any = document
        for step in way:
            place = place.get(step, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place.pop(last, None)
    return document
