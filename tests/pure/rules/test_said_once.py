"""A mistake has one finding, whose fix leads out of it and not to the next finding."""

from __future__ import annotations

import json
from pathlib import Path

import botocore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.catalog.regions import REGIONS, is_misspelt
from dpd_infra.rules.check import judged
from dpd_infra.spec.finding import Finding
from dpd_infra.spec.finding import Path as Place
from tests.pure.rules.kit import Edit, Raw, Stack, devices, endpoint, more, put, raw, raw_stack, stack
from tests.pure.rules.kit import platform as of_platform


def regional(given: Stack) -> list[tuple[str, str, str]]:
    """What is said of regions and zones: the rule, the key, the fix."""
    return [
        (found.rule, str(found.path[-1]), found.fix) for found in given.findings if found.rule in {"DPD503", "DPD512", "DPD513", "DPD514"}
    ]


def sdk_regions() -> set[str]:
    """The regions of every partition that the SDK of AWS ships."""
    endpoints = json.loads((Path(botocore.__file__).parent / "data" / "endpoints.json").read_text(encoding="utf-8"))
    return {region for partition in endpoints["partitions"] for region in partition["regions"]}


def test_the_list_of_regions_is_that_of_the_sdk() -> None:
    assert set(REGIONS) == sdk_regions()
    assert list(REGIONS) == sorted(set(REGIONS))


@pytest.mark.parametrize("region", sorted(sdk_regions()))
def test_a_region_with_a_letter_left_out_is_an_error_and_one_with_a_new_number_is_not(region: str) -> None:
    first, *words, number = region.split("-")
    assert is_misspelt("-".join([first, words[0][:-1], *words[1:], number])) or words[0][:-1] == "iso"
    assert not is_misspelt("-".join([first, *words, "9"]))


@pytest.mark.parametrize(
    ("region", "zone", "said"),
    [
        ("eu-nort-1", "eu-nort-1a", [("DPD513", "aws:region", "did you mean eu-north-1?")]),
        ("eu-nort-1", "eu-north-1a", [("DPD513", "aws:region", "did you mean eu-north-1?")]),
        ("eu-north-1", "eu-nort-1a", [("DPD503", "zone", "write eu-north-1a")]),
        ("ap-southeast-9", "ap-southeast-9a", [("DPD514", "aws:region", "see that it exists; did you mean ap-southeast-7?")]),
        ("eu-north-1", "eu-north-1a", []),
    ],
)
def test_a_region_that_is_not_there_has_one_finding(region: str, zone: str, said: list[tuple[str, str, str]]) -> None:
    assert regional(stack(put("aws:region", region), of_platform("network|zone", zone))) == said


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        (stack(endpoint("prefill|gpus", 4), endpoint("decode|gpus", 8)), "give both the same gpus"),
        (stack(endpoint("prefill|gpus", 8), endpoint("decode|gpus", 4)), "give both the same gpus"),
        (raw(devices("nvidia.com/gpu", 4, 8)), "give both the same nvidia.com/gpu"),
    ],
)
def test_roles_with_different_gpu_counts_are_told_so_and_not_to_change_the_size(given: Raw | Stack, fix: str) -> None:
    (found,) = [found for found in given.findings if found.rule == "DPD010"]
    assert found.fix == fix
    assert "prefill asks for" in found.what
    assert "decode asks for" in found.what


@pytest.mark.parametrize(
    ("edits", "place", "fix"),
    [
        ((), ("instanceGroups", "gpu", "count"), "set network.gpuCidr to a block of its own (a VPC takes secondary blocks)"),
        ((of_platform("network|cidr", "10.0.0.0/16"),), ("network", "cidr"), "set network.gpuCidr to a block of its own"),
        ((of_platform("network|cidr", "10.0.0.0/18"),), ("network", "cidr"), "take a larger block, or set network.gpuCidr"),
        ((of_platform("network|gpuCidr", "10.1.0.0/20"),), ("network", "gpuCidr"), "take a larger block"),
    ],
)
def test_a_full_gpu_subnet_is_told_at_a_place_that_was_written_with_what_can_still_grow(
    edits: tuple[Edit, ...], place: tuple[str, ...], fix: str
) -> None:
    (found,) = [found for found in stack(of_platform("instanceGroups|gpu|count", 600), *edits).findings if found.rule == "DPD504"]
    assert found.path[2:] == place
    assert found.fix.startswith(fix)
    assert "larger block" not in found.fix or place != ("network", "cidr") or "/16" not in str(found.value)


MANY = raw_stack(
    raw(put("spec|tags", [{"name": "a", "value": "1"}] * 2), devices("nvidia.com/gpu", "7", "8"), more("--max-num-seqs 1")).data
)
FOUND = tuple(judged(MANY).findings)
PLACES = tuple(dict.fromkeys(place for finding in FOUND for place in (finding.path, *finding.related)))


@given(st.lists(st.sampled_from(PLACES).flatmap(lambda place: st.integers(1, len(place) + 1).map(lambda n: (*place, 0)[:n])), max_size=4))
def test_what_rests_on_a_refused_place_is_not_said_again(refused: list[Place]) -> None:
    def below(place: Place) -> bool:
        return any(place[: len(other)] == other for other in refused)

    def rests(finding: Finding) -> bool:
        above = any(other[: len(place)] == place for other in refused for place in finding.related)
        return below(finding.path) or any(map(below, finding.related)) or above

    assert judged(MANY, refused=refused).findings == [finding for finding in FOUND if not rests(finding)]


def test_there_are_findings_to_withhold() -> None:
    assert len(FOUND) > 2
    assert any(finding.related for finding in FOUND)
