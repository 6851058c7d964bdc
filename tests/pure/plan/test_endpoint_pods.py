"""How many pods autoscaling makes at most: one answer for `auto`, for `dpd size` and for the rules, with the CRD's default."""

from __future__ import annotations

from typing import Any

import pytest

from dpd_infra.plan.endpoint_pods import most_by_scaling
from dpd_infra.sizing import Changes, sized_endpoint
from dpd_infra.stack import _load
from tests.pure.crd.raw_crd import held_schema
from tests.pure.rules.kit import endpoint, put, raw, raw_subject, stack

PD = held_schema()["properties"]["spec"]["properties"]["pdSpec"]["properties"]
DEFAULT = PD["autoScalingSpec"]["properties"]["prefillAutoScaling"]["properties"]["maxReplicaCount"]["default"]


@pytest.mark.parametrize(
    ("scaling", "most"),
    [({"maxReplicaCount": 3}, 3), ({"maxReplicaCount": 0}, 0), ({}, DEFAULT), ({"maxReplicaCount": "many"}, DEFAULT), (None, None)],
)
def test_the_most_is_what_is_said_or_the_default_of_the_crd(scaling: Any, most: int | None) -> None:
    assert most_by_scaling(scaling) == most
    manifest = raw(put("spec|pdSpec|autoScalingSpec", {"prefillAutoScaling": scaling}), put("spec|pdSpec|prefillSpec|replicas", 2)).data
    assert sized_endpoint("e", manifest, Changes()).serving.prefillers_at_most == most
    assert raw_subject(manifest).reading.prefill.most_replicas == (2 if most is None else most)


def test_a_number_of_prefillers_that_is_asked_about_is_not_scaled() -> None:
    manifest = raw(put("spec|pdSpec|autoScalingSpec", {"prefillAutoScaling": {"maxReplicaCount": 3}})).data
    assert sized_endpoint("e", manifest, Changes(prefillers=2)).serving.prefillers_at_most is None


@pytest.mark.parametrize(("scaling", "most"), [({"maxReplicaCount": 4}, 4), ({}, DEFAULT)])
def test_auto_makes_room_for_as_many_as_there_may_be(scaling: dict[str, int], most: int) -> None:
    """The same number of requests a prefiller as with so many prefillers from the beginning."""

    def requests(**prefill: Any) -> int | None:
        asked = stack(endpoint("prefill", prefill | {"maxNumSeqs": "auto"}), endpoint("cache|pdBufferBytes", 16 * 2**30))
        return _load(asked.data, None).subject.endpoints["llama-70b"].reading.prefill.most_sequences

    assert requests(autoscaling=scaling) == requests(replicas=most) != requests(replicas=1)
