"""The regions in which the inference operator's chart knows a registry for its images."""

from __future__ import annotations

OPERATOR_REGIONS: tuple[str, ...] = (
    "ap-northeast-1",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "eu-central-1",
    "eu-north-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)
"""Chart 2.2.2, and ap-south-2 from chart 2.3.0 on; any other region ends in `Unsupported AWS Region` (inference operator chart)."""
