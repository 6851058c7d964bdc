"""Which count of a group holds: the file's where it was edited, AWS's where somebody else changed it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpd_infra.plan.group_counts import SentGroups, kept_counts

NAMES = st.sampled_from(["decode", "prefill", "system"])
COUNTS = st.dictionaries(NAMES, st.integers(0, 6758))
ARN = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abc"


def sent(counts: dict[str, int], label: str = "") -> SentGroups:
    return SentGroups.of([{"InstanceGroupName": name, "InstanceCount": count, "Label": label} for name, count in sorted(counts.items())])


@given(COUNTS, COUNTS, COUNTS)
def test_each_group_has_the_count_that_a_three_way_merge_gives(now: dict[str, int], last: dict[str, int], live: dict[str, int]) -> None:
    kept = kept_counts(sent(now), sent(last), live)
    for name, count in now.items():
        # As diff3: one side that stayed as it was yields to the one that changed; the file wins where both did.
        file_changed = name not in last or last[name] != count
        expected = count if file_changed or name not in live else live[name]
        assert kept.get(name, count) == expected
    assert kept.keys() <= now.keys()
    assert all(count != now[name] for name, count in kept.items())


@given(COUNTS)
def test_what_is_written_is_read_back(counts: dict[str, int]) -> None:
    one = sent(counts)
    found = SentGroups.read(one.written(ARN))
    assert found is not None
    assert (found.fingerprint, found.counts, found.cluster_arn) == (one.fingerprint, counts, ARN)


@given(COUNTS, COUNTS)
def test_the_fingerprint_is_one_for_equal_groups_alone(one: dict[str, int], other: dict[str, int]) -> None:
    assert (sent(one).fingerprint == sent(other).fingerprint) is (one == other)
    assert not one or sent(one).fingerprint != sent(one, label="edited").fingerprint


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"counts": 1}', '{"counts": {"gpu": "many"}, "fingerprint": "x", "clusterArn": "a"}', "\0"]
)
def test_any_other_text_is_no_record(text: str) -> None:
    assert SentGroups.read(text) is None
