"""The names of everything: one audited generator, so that no name is too long, clashes, or moves when something else is added."""

from __future__ import annotations

import re
from dataclasses import dataclass

IAM_ROLE_NAME_LIMIT = 64
"""IAM: a role name has 64 characters at most."""

BUCKET_NAME_LIMIT = 63
"""S3: a bucket name has 63 characters at most, lower case, digits, hyphens and dots."""

DNS_LABEL_LIMIT = 63
"""RFC 1123: a DNS label, and so a Kubernetes Service name, has 63 characters at most."""

INFERENCE_ROLE_PREFIX = "SageMakerHyperPodInference"
"""The prefix of the operator's roles: AWS's managed policy lets it pass only such roles (iam:PassRole)."""

TLS_BUCKET_PREFIX = "hyperpod-tls-"
"""The prefix of the certificate bucket: AWS's managed policy covers `hyperpod-tls*` only."""

LIFECYCLE_BUCKET_PREFIX = "sagemaker-"
"""The prefix that AmazonSageMakerClusterInstanceRolePolicy lets nodes read (SageMaker CreateCluster, SourceS3Uri)."""

_HASH_LENGTH = 8
_PLATFORM = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning and a hash of all of it where it is longer than `limit` characters.

    Two different texts never shorten to the same name but for a collision of 32 hash bits. Raises `ValueError` for a limit under 10.
    """
    if limit < _HASH_LENGTH + 2:
        message = f"a name of {limit} characters cannot carry a hash"
        raise ValueError(message)
    if len(text) <= limit:
        return text
    import hashlib  # noqa: PLC0415 - OpenSSL is loaded where a name is too long

    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{text[: limit - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"


def slug(text: str) -> str:
    """Lower case, digits and hyphens: everything else becomes a hyphen, none of them at an end."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Naming:
    """Names of account-wide and region-wide things, made so that two stacks live in one account."""

    platform: str
    """The platform's name."""
    stack: str
    """The Pulumi stack."""
    region: str
    """The AWS region."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for a platform name that buckets and roles cannot carry."""
        if not _PLATFORM.fullmatch(self.platform):
            message = f"{self.platform!r} cannot be part of bucket names: lower case, digits and single hyphens, a letter first"
            raise ValueError(message)

    @property
    def scope(self) -> str:
        """What sets this stack's names apart: platform and stack, the stack left out where the platform's name ends with it."""
        stack = slug(self.stack.rsplit("/", 1)[-1])
        if not stack or self.platform == stack or self.platform.endswith(f"-{stack}"):
            return self.platform
        return f"{self.platform}-{stack}"

    def role(self, purpose: str) -> str:
        """An IAM role's name, `<platform>-<stack>-<region>-<purpose>`, 64 characters at most."""
        return self._ending(self.scope, f"{self.region}-{purpose}", IAM_ROLE_NAME_LIMIT)

    def inference_role(self, purpose: str) -> str:
        """A role name with the prefix that the operator's managed policy asks for."""
        limit = IAM_ROLE_NAME_LIMIT - len(INFERENCE_ROLE_PREFIX) - 1
        return f"{INFERENCE_ROLE_PREFIX}-{self._ending(self.scope, f'{self.region}-{purpose}', limit)}"

    def tls_bucket(self, account_id: str) -> str:
        """The certificate bucket: unique over all accounts by the account id and the region."""
        return f"{TLS_BUCKET_PREFIX}{self._ending(self.scope, f'{account_id}-{self.region}', BUCKET_NAME_LIMIT - len(TLS_BUCKET_PREFIX))}"

    def model_bucket(self, account_id: str) -> str:
        """The bucket of the model store."""
        return self._ending(self.scope, f"models-{account_id}-{self.region}", BUCKET_NAME_LIMIT)

    def lifecycle_bucket(self, account_id: str) -> str:
        """The bucket with the nodes' lifecycle scripts."""
        limit = BUCKET_NAME_LIMIT - len(LIFECYCLE_BUCKET_PREFIX)
        return f"{LIFECYCLE_BUCKET_PREFIX}{self._ending(self.scope, f'nodes-{account_id}-{self.region}', limit)}"

    @staticmethod
    def _ending(start: str, end: str, limit: int) -> str:
        """The start shortened so that the whole fits: the end tells two things of one stack apart, so it is kept.

        Raises `ValueError` where the end leaves no room for a start and its hash.
        """
        return f"{shorten(start, limit - len(end) - 1)}-{end}"
