"""A part of the differential fuzz that `make fuzz` runs whole: the facts and the raw CRD refuse the same places of a broken document."""

from __future__ import annotations

import os

from dpd_infra.catalog.crd import crd_facts
from tests.pure.crd.fuzz import Counts, differences, judge
from tests.pure.crd.fuzz_documents import Broken, breaks
from tests.pure.endpoint.test_published_example import PUBLISHED

PART = int(os.environ.get("FUZZ_EXAMPLES", "600"))


def test_the_facts_and_the_raw_crd_refuse_the_same_places_of_documents_broken_in_one_field() -> None:
    counts = Counts()
    judge(PART, 0, counts)
    assert sum(counts.by_break.values()) == len(counts.seen) > 0


def test_every_field_is_broken_and_in_every_way_that_the_crd_knows() -> None:
    assert {one.how for one in breaks()} == {
        *("type", "missing", "null", "null entry", "unknown field", "list keys", "int-or-string"),
        *("range", "fraction", "length", "pattern", "enum", "format"),
    }
    broken = {".".join(one.steps).replace(".[]", "[]") for one in breaks() if one.version == "v1"}
    fields = {fact.path for fact in crd_facts().fields() if fact.path.startswith(("spec.", "status."))}
    assert fields - broken == set()


def test_a_difference_between_the_judges_is_told() -> None:
    what = next(one for one in breaks() if one.steps == ("spec", "replicas"))
    both = {**PUBLISHED, "spec": {**PUBLISHED["spec"], "replicas": "two"}}
    assert differences(Broken(both, what)) == ""
    # The head of a document is the API server's own business, of which the CRD says nothing.
    assert "only we refuse" in differences(Broken({**both, "metadata": {"name": "Not A Name"}}, what))
