"""Every field of a stack file does on the real engine what docs/changes.md says.

Here every field of endpoints and of instance groups by itself, and the platform's own together, with each that replaces or is refused;
`FAULTS=all` plans the change of every field by itself (`make faults`).
"""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpd_infra.catalog.changes import Outcome, field_changes
from dpd_infra.rehearsal.aws import base
from dpd_infra.rehearsal.engine import Step
from tests.engine.change_table import (
    FIELDS,
    Family,
    Standing,
    differences,
    endpoints_program,
    families,
    kinds,
    said,
    stacks_of,
)

ALL = os.environ.get("FAULTS") == "all"
GROUP = "platform.instanceGroups.*."
GROUPS = [field for field in FIELDS if field.startswith(GROUP)]
ENDPOINTS = [field for field in FIELDS if field.startswith("endpoints.")]
OPERATOR = [field for field in FIELDS if field.startswith("operator.")]
PLATFORM = [field for field in FIELDS if field not in ENDPOINTS and field not in OPERATOR]
OWN = families(PLATFORM)[0]
"""The platform's own fields: the stack that most samples begin with."""
CLUSTERS = ("aws-native:sagemaker:Cluster", "aws:eks/cluster:Cluster")
KNOWN_AFTERWARDS = {"platform.existing.controlPlane.makeOidcProvider": base.OIDC_PROVIDER}
"""Fields that make a resource whose outputs others had from AWS before: a preview does not know that they stay. With what goes first."""


def test_the_fields_are_those_of_the_table() -> None:
    assert set(ENDPOINTS) | set(OPERATOR) | set(PLATFORM) == set(field_changes())
    assert len(OWN.new) > 50


@dataclass
class Everything:
    """One stack with an endpoint for each field of endpoints and a group for each field of groups."""

    standing: Standing
    old: dict[str, Any]
    new: dict[str, Any]
    endpoints: dict[str, str]
    """The endpoint's name by field."""

    def steps(self, config: dict[str, Any]) -> list[Step]:
        """What the engine would do, without what stays."""
        self.standing.project.config = config
        return [step for step in self.standing.project.preview().outcome.steps if step.op != "same"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Everything:
    old, new, endpoints = _together()
    return Everything(Standing(tmp_path_factory.mktemp("everything"), old), old, new, endpoints)


def _together() -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    old = copy.deepcopy(OWN.old)
    platform = old["dpd-infra:platform"]
    # Room for all, and what some samples of endpoints ask of their platform.
    platform["instanceGroups"] = {"system": platform["instanceGroups"]["system"], "gpu": {"instanceType": "ml.p5.48xlarge", "count": 300}}
    platform["modelBuckets"] = ["my-models", "more-models"]
    platform["cluster"] = {"tieredStorage": {"memoryPercent": 20}}
    certificate = "arn:aws:acm:us-east-2:111122223333:certificate/{}2345678-1234-1234-1234-123456789012"
    platform["operator"] = {
        **platform.get("operator", {}),
        "certificateArns": [certificate.format(digit) for digit in (1, 2)],
        "hostedZoneIds": ["Z1111111111", "Z2222222222"],
    }
    old["dpd-infra:endpoints"] = {}
    new = copy.deepcopy(old)
    endpoints: dict[str, str] = {}
    for number, field in enumerate(ENDPOINTS):
        name = endpoints[field] = f"e{number:03}"
        for config, stack in zip((old, new), stacks_of(field), strict=True):
            [config["dpd-infra:endpoints"][name]] = stack["dpd-infra:endpoints"].values()
    for field in GROUPS:
        name = field.removeprefix(GROUP).replace("[].", "-").lower()
        for config, stack in zip((old, new), stacks_of(field), strict=True):
            config["dpd-infra:platform"]["instanceGroups"][name] = stack["dpd-infra:platform"]["instanceGroups"]["gpu"]
    return old, new, endpoints


def _names(step: Step) -> set[str]:
    """The endpoint that a step may be of: it has its name, and what is beside it has that name with a word behind it."""
    return {step.name, step.name.partition("-")[0]}


@pytest.mark.timeout(300)
def test_every_field_of_endpoints_and_groups_does_what_the_table_says(everything: Everything) -> None:
    steps = everything.steps(everything.new)
    told = {"update"}
    for field, name in everything.endpoints.items():
        mine = [step for step in steps if name in _names(step)]
        assert kinds(mine) == said(field_changes()[field]), field
    others = [step for step in steps if not _names(step) & set(everything.endpoints.values())]
    expected = {kind: op for field in GROUPS for kind, op in said(field_changes()[field]).items()}
    assert kinds(others) == expected
    assert set(expected.values()) == told, "no field of a group replaces anything"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20 if ALL else 2))
def test_no_change_of_endpoints_or_of_a_groups_size_replaces_a_cluster(everything: Everything, seed: int) -> None:
    draw = random.Random(seed)
    config = copy.deepcopy(everything.old)
    for name in everything.endpoints.values():
        choice = draw.random()
        if choice < 0.3:
            config["dpd-infra:endpoints"][name] = everything.new["dpd-infra:endpoints"][name]
        elif choice < 0.4:
            del config["dpd-infra:endpoints"][name]
    groups = config["dpd-infra:platform"]["instanceGroups"]
    # Endpoints of another type have a group of it.
    groups["instancetype"] = everything.new["dpd-infra:platform"]["instanceGroups"]["instancetype"]
    for name in [name for name in groups if name not in {"gpu", "system", "instancetype"}]:
        if draw.random() < 0.2:
            del groups[name]
        elif draw.random() < 0.6:
            count = draw.choice([0, 1, 2, 4, 7])
            groups[name] = {key: value for key, value in groups[name].items() if key != "minCount"} | {"count": count}
            groups[name] |= {"minCount": draw.randint(0, count)} if count and draw.random() < 0.5 else {}
            groups[name] |= {"storageGib": draw.choice([100, 1000])} if draw.random() < 0.3 else {}
    groups |= {f"more-{number}": {"instanceType": "ml.p5.48xlarge", "count": draw.randint(0, 9)} for number in range(draw.randint(0, 3))}
    touched = {step.type: step.op for step in everything.steps(config) if step.type in CLUSTERS}
    assert touched == {CLUSTERS[0]: "update"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Standing:
    """The platform of most samples, up."""
    return Standing(tmp_path_factory.mktemp("own"), OWN.old)


def test_the_platforms_own_fields_changed_together_are_updates_of_what_the_table_says(own: Standing) -> None:
    config, expected = copy.deepcopy(OWN.old), dict[str, str]()
    fields = [field for field in OWN.new if _is_update_alone(field)]
    assert len(fields) >= 30
    for field in fields:
        _merge(config, OWN.old, OWN.new[field])
        expected |= said(field_changes()[field])
    planned = own.plan(config)
    assert planned.refusal == ""
    assert planned.kinds == expected
    assert planned.kinds["sagemaker Cluster"] == "update"


def _is_update_alone(field: str) -> bool:
    """Whether a field's change updates or does nothing, and its sample changes that field alone."""
    change = field_changes()[field]
    leaves = sum(1 for _ in _changed(OWN.old, OWN.new[field]))
    return change.outcome in {Outcome.UPDATE, Outcome.NOTHING} and set(said(change).values()) <= {"update"} and leaves == 1


def _changed(old: Any, new: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places where one configuration is not the other; a list is one place."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _changed(old.get(key, ...), new.get(key, ...), (*at, key))
    elif old is ... and isinstance(new, dict) and len(new) == 1:
        [(key, value)] = new.items()
        yield from _changed(..., value, (*at, key))
    elif old != new:
        yield at


def _merge(config: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> None:
    """Change in a configuration what differs between two others."""
    for *parents, last in _changed(old, new):
        source, target = new, config
        for key in parents:
            source, target = source[key], target.setdefault(key, {})
        target[last] = copy.deepcopy(source[last])


REPLACED = [field for field in OWN.new if field_changes()[field].outcome in {Outcome.REPLACE, Outcome.REFUSED}]


@pytest.mark.parametrize("field", REPLACED)
def test_what_replaces_or_is_refused_does_what_the_table_says(own: Standing, field: str) -> None:
    assert differences(field, own.plan(OWN.new[field])) == []


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", families(PLATFORM), ids=lambda family: next(iter(family.new)))
def test_every_field_of_the_platform_by_itself(tmp_path: Path, family: Family) -> None:
    _hold(Standing(tmp_path, family.old), family)


@pytest.mark.faults
@pytest.mark.parametrize("family", families(OPERATOR), ids=lambda family: next(iter(family.new)))
def test_every_field_of_anothers_operator_by_itself(tmp_path: Path, family: Family) -> None:
    _hold(Standing(tmp_path, family.old, program=endpoints_program), family)


def _hold(standing: Standing, family: Family) -> None:
    found: list[str] = []
    for field in sorted(family.new, key=KNOWN_AFTERWARDS.__contains__):
        new = family.new[field]
        planned = standing.do(new, without=KNOWN_AFTERWARDS[field]) if field in KNOWN_AFTERWARDS else standing.plan(new)
        found += differences(field, planned)
    assert found == []
