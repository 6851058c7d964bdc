"""The AWS regions by name, so that a misspelt one is told from one that is newer than this list."""

from __future__ import annotations

import difflib

REGIONS: tuple[str, ...] = (
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-isoe-west-1",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-east-1",
    "us-isof-south-1",
    "us-west-1",
    "us-west-2",
)
"""Every region of every partition (botocore 1.44.8, endpoints.json)."""

_WORDS = frozenset(word for region in REGIONS for word in region.split("-")[1:-1])
"""What stands between the first word and the number: directions, and the names of partitions."""


def near_region(name: str) -> str | None:
    """The known region that an unknown name is nearest to; None where none is near."""
    return next(iter(difflib.get_close_matches(name, REGIONS, n=1, cutoff=0.75)), None)


def is_misspelt(name: str) -> bool:
    """Whether an unknown name has a word of no region, and is near a known one: `eu-nort-1`.

    `ap-southeast-8` and `mx-west-1` are made of known words: AWS may well have opened them since this list was made.
    """
    return name not in REGIONS and any(word not in _WORDS for word in name.split("-")[1:-1]) and near_region(name) is not None
