"""The AWS providers of a stack, built once from the standard `aws:` settings, so that both speak with the same credentials."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_aws_native as aws_native

from dpd_infra.spec.aws import CONFIG_NAMESPACE, AssumeRole, AwsSettings

NATIVE_KEYS = (
    "allowedAccountIds",
    "forbiddenAccountIds",
    "ignoreTags",
    "insecure",
    "maxRetries",
    "skipCredentialsValidation",
    "skipMetadataApiCheck",
    "skipRegionValidation",
    "skipRequestingAccountId",
)
"""The keys of pulumi-aws that aws-native spells and means alike (pulumi-aws-native 1.84, Provider)."""


@dataclass(frozen=True, slots=True)
class Providers:
    """One provider a package."""

    aws: aws.Provider
    aws_native: aws_native.Provider

    @property
    def all(self) -> list[pulumi.ProviderResource]:
        """Both, as `ResourceOptions(providers=...)` takes them: children of a component inherit the one of their package."""
        return [self.aws, self.aws_native]


def aws_providers(name: str, settings: AwsSettings, *, opts: pulumi.ResourceOptions | None = None) -> Providers:
    """Build both providers, named `<name>` and `<name>-native`. Raises `pulumi.RunError` for an `aws:` key that pulumi-aws does not know.

    Other keys than region, profile, role and tags are handed on as they are: all of them to pulumi-aws, to aws-native those it knows.
    """
    return Providers(
        aws=aws.Provider(name, opts=opts, **_aws_arguments(settings)),
        aws_native=aws_native.Provider(f"{name}-native", opts=opts, **_native_arguments(settings)),
    )


def _aws_arguments(settings: AwsSettings) -> dict[str, Any]:
    known = inspect.signature(aws.ProviderArgs.__init__).parameters
    extra = {_snake(key): value for key, value in settings.extra.items()}
    if unknown := sorted(key for key in settings.extra if _snake(key) not in known):
        raise pulumi.RunError(f"pulumi-aws knows no {', '.join(CONFIG_NAMESPACE + key for key in unknown)}")
    role = settings.assume_role
    return {
        **_shared_arguments(settings),
        # Plain values: the SDK hands these two on as JSON text, and the provider reads camelCase there.
        "assume_roles": [{**_role(role), **({"duration": role.duration} if role.duration else {})}] if role else None,
        **extra,
    }


def _native_arguments(settings: AwsSettings) -> dict[str, Any]:
    role = settings.assume_role
    seconds = role.duration_seconds if role else None
    return {
        **_shared_arguments(settings),
        "assume_role": {**_role(role), **({"durationSeconds": seconds} if seconds else {})} if role else None,
        **{_snake(key): settings.extra[key] for key in NATIVE_KEYS if key in settings.extra},
    }


def _shared_arguments(settings: AwsSettings) -> dict[str, Any]:
    tags = {"tags": settings.default_tags} if settings.default_tags else None
    return {"region": settings.region, "profile": settings.profile, "default_tags": tags}


def _role(role: AssumeRole) -> dict[str, Any]:
    """What both providers spell alike."""
    return role.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"duration"})


def _snake(key: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower()
