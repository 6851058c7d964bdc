"""Where a platform is made: account, region, names and tags, known before anything is registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from dpd_infra.plan.names import Naming

ACCOUNT_ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Account:
    """Where everything is made: known before anything is registered, so that names are plain text."""

    account_id: str
    """Twelve digits, as plain text: bucket names carry them, and a name must be known in the preview."""
    region: str
    """The AWS region."""
    naming: Naming
    """Names of account-wide things."""
    partition: str = "aws"
    """`aws`, `aws-us-gov` or `aws-cn`."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """AWS tags for every taggable resource."""
    deployer_arn: str | None = None
    """The IAM principal behind whoever deploys, where it was asked for already; None: an EKS cluster of ours asks."""

    def __post_init__(self) -> None:
        """Raises `pulumi.RunError` for an account id that is none: bucket names would carry it, and would have to be replaced."""
        if not (self.account_id.isascii() and self.account_id.isdecimal() and len(self.account_id) == ACCOUNT_ID_DIGITS):
            raise pulumi.RunError(f"account_id is {self.account_id!r}: an AWS account id has {ACCOUNT_ID_DIGITS} digits")
