"""How AWS is spoken to: the standard `aws:` config keys of a Pulumi stack, read once so that every provider and tool follows them alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from dpd_infra.spec.base import Spec

CONFIG_NAMESPACE = "aws:"
"""The namespace of pulumi-aws's config keys."""

CREDENTIAL_KEYS = ("accessKey", "secretKey", "token")
"""The keys of pulumi-aws that hold credentials themselves."""

_INTEGER_KEYS = ("maxRetries", "tokenBucketRateLimiterCapacity")
"""The keys of pulumi-aws that hold numbers; `pulumi config set` writes them as text."""

RoleArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", examples=["arn:aws:iam::111122223333:role/deployer"])]
"""The ARN of an IAM role."""


class AssumeRole(Spec):
    """The role that is assumed before anything is done."""

    role_arn: RoleArn
    """The role."""
    session_name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_+=,.@-]{2,64}$")
    """The session's name, as it shows in CloudTrail."""
    external_id: str | None = None
    """What the role's trust policy asks for beside the principal. `aws eks get-token` cannot send one: use a profile for such a role."""
    duration: str | None = Field(default=None, pattern=r"^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", min_length=2)
    """How long a session lasts, `1h`, `90m`: 15 minutes to 12 hours. A GPU cluster may be waited for longer than the default hour."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Session tags."""
    transitive_tag_keys: tuple[str, ...] = ()
    """The session tags that later sessions keep."""

    @property
    def duration_seconds(self) -> int | None:
        """The duration in seconds."""
        if self.duration is None:
            return None
        seconds, digits = 0, ""
        for character in self.duration:
            if character.isdigit():
                digits += character
            else:
                seconds += int(digits) * {"h": 3600, "m": 60, "s": 1}[character]
                digits = ""
        return seconds


class AwsSettings(Spec):
    """The region, the credentials' way and the tags that hold for every AWS call of a stack."""

    region: str = Field(pattern=r"^[a-z]{2,3}(-[a-z]+)+-[0-9]$", examples=["us-east-2"])
    """The AWS region that everything is made in: every provider follows it, and the zones and the models' buckets go by it."""
    profile: str | None = None
    """A profile of the AWS config files."""
    assume_role: AssumeRole | None = None
    """The role to assume."""
    default_tags: dict[str, str] = Field(default_factory=dict)
    """Tags of every resource, beside the platform's own."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Every other `aws:` key by its name, `maxRetries`, as pulumi-aws spells it; handed on untouched."""

    @model_validator(mode="after")
    def _no_credentials(self) -> Self:
        if found := [key for key in CREDENTIAL_KEYS if key in self.extra]:
            raise ValueError(
                f"credentials do not belong in a stack file ({', '.join(CONFIG_NAMESPACE + key for key in found)}): `aws eks get-token` "
                f"would not see them; use {CONFIG_NAMESPACE}profile, {CONFIG_NAMESPACE}assumeRoles or the environment"
            )
        if "assumeRoleWithWebIdentity" in self.extra:
            raise ValueError(
                f"{CONFIG_NAMESPACE}assumeRoleWithWebIdentity is known to pulumi-aws alone: set AWS_ROLE_ARN and "
                "AWS_WEB_IDENTITY_TOKEN_FILE in the environment instead, which aws-native and `aws eks get-token` follow too"
            )
        return self

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, default_region: str | None = None) -> Self:
        """Read the `aws:` keys of a stack's config; keys of other namespaces are passed over.

        Values are as a stack file holds them or as `pulumi.Config` gives them (objects as JSON text). `aws:assumeRoles` is pulumi-aws's
        list of one role; `aws:assumeRole` is that role alone. Raises `pydantic.ValidationError` with one entry a problem, and
        `ValueError` for a chain of roles, which only pulumi-aws could follow.
        """
        return cls.from_yaml_data(settings_data(config, default_region=default_region))


def settings_data(config: Mapping[str, Any], *, default_region: str | None = None) -> dict[str, Any]:
    """The data of `AwsSettings` in a stack's config; raises `ValueError` as `AwsSettings.from_config` does."""
    keys = {key.removeprefix(CONFIG_NAMESPACE): value for key, value in config.items() if key.startswith(CONFIG_NAMESPACE)}
    values = {key: _plain(key, value) for key, value in keys.items()}
    roles = [*values.pop("assumeRoles", []), *([values.pop("assumeRole")] if "assumeRole" in values else [])]
    if len(roles) > 1:
        raise ValueError(
            f"{CONFIG_NAMESPACE}assumeRoles names {len(roles)} roles: aws-native and `aws eks get-token` assume one; chain the others in "
            "an AWS profile (source_profile)"
        )
    tags = values.pop("defaultTags", {})
    data: dict[str, Any] = {"profile": values.pop("profile", None), "extra": values}
    region = values.pop("region", default_region)
    if region is not None:
        data["region"] = region
    data["defaultTags"] = tags.get("tags", {}) if isinstance(tags, Mapping) else tags
    data["assumeRole"] = roles[0] if roles else None
    return data


def _plain(key: str, value: Any) -> Any:
    """The value that a text stands for: `pulumi.Config` hands objects, flags and numbers on as text."""
    if not isinstance(value, str):
        return value
    if value.startswith(("{", "[")):
        return json.loads(value)
    if key in _INTEGER_KEYS and value.isdecimal():
        return int(value)
    return {"true": True, "false": False}.get(value, value)
