"""How many nodes a group has when others change it too: what the stack file said last, what AWS has, and which of the two holds.

aws-native sends a changed list of groups as a whole, counts included, so an edit of one group would set back the count that an autoscaler
or the console gave another. As `kubectl apply` does, the file is therefore held against what it said last: a count that was edited is the
file's, any other is AWS's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SentGroups:
    """The groups of a stack file as they were sent, or are to be."""

    fingerprint: str
    """Of all that the file says of them, counts included: equal where nothing of any group was edited."""
    counts: Mapping[str, int]
    """The file's count by group name."""
    cluster_arn: str = ""
    """The cluster they were sent to; empty where they are still to be sent."""

    @classmethod
    def of(cls, groups: Sequence[Mapping[str, Any]]) -> SentGroups:
        """Those of a CreateCluster request whose values are all plain."""
        text = json.dumps(groups, sort_keys=True, separators=(",", ":"))
        counts = {str(group["InstanceGroupName"]): int(group["InstanceCount"]) for group in groups}
        return cls(hashlib.sha256(text.encode()).hexdigest(), counts)

    @classmethod
    def read(cls, text: str) -> SentGroups | None:
        """What `written` wrote; None for any other text."""
        try:
            found = json.loads(text)
            counts = {str(name): int(count) for name, count in found["counts"].items()}
            return cls(str(found["fingerprint"]), counts, str(found["clusterArn"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def written(self, cluster_arn: str) -> str:
        """As JSON, for the next update to read."""
        return (
            json.dumps({"clusterArn": cluster_arn, "counts": self.counts, "fingerprint": self.fingerprint}, indent=2, sort_keys=True) + "\n"
        )


def kept_counts(now: SentGroups, last: SentGroups, live: Mapping[str, int]) -> dict[str, int]:
    """The counts that stay as AWS has them, by group: the file still says what it said last, and AWS has another."""
    return {name: live[name] for name, count in now.counts.items() if last.counts.get(name) == count and live.get(name, count) != count}
