"""What lookups share: whose credentials they use, what their resources inherit, and one clear error where something is not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pulumi

from dpd_infra.spec.aws import AwsSettings
from dpd_infra.stack import running_aws_settings


def live_settings(given: AwsSettings | None, region: str) -> AwsSettings:
    """How tokens are fetched: as said, else by the stack's `aws:` keys where it has them, else by the environment; always in `region`."""
    if given is not None:
        return given
    if pulumi.Config("aws").get("region") is None:
        return AwsSettings(region=region)
    return running_aws_settings().model_copy(update={"region": region})


def read_options(package: str, opts: pulumi.ResourceOptions | None) -> pulumi.InvokeOptions:
    """The options of a data source: the caller's provider of its package, or what the caller's parent hands on."""
    if opts is None:
        return pulumi.InvokeOptions()
    return pulumi.InvokeOptions(parent=opts.parent, provider=_provider(package, opts))


def made_options(opts: pulumi.ResourceOptions | None, package: str | None = None) -> pulumi.ResourceOptions:
    """The options of what a lookup registers: the caller's parent, dependencies and provider of that package, and no other."""
    if opts is None:
        return pulumi.ResourceOptions()
    provider = _provider(package, opts) if package else None
    return pulumi.ResourceOptions(parent=opts.parent, provider=provider, depends_on=opts.depends_on)


@contextmanager
def read(what: str, fix: str = "") -> Iterator[None]:
    """Turn the failure of a data source into one error that names what was looked for, and what to do. Raises `pulumi.RunError`."""
    try:
        yield
    except pulumi.RunError:
        raise
    except Exception as error:
        # The engine puts the call before the provider's own words.
        said = str(error).rsplit("returned an error: ", 1)[-1]
        raise pulumi.RunError(f"{what} was not found: {said}{f'; {fix}' if fix else ''}") from error


def as_issuer(text: str) -> str:
    """An OIDC issuer without `https://`."""
    return text.removeprefix("https://")


def _provider(package: str, opts: pulumi.ResourceOptions) -> pulumi.ProviderResource | None:
    given = opts.providers
    listed: list[Any] = [opts.provider]
    if isinstance(given, Mapping):
        listed += given.values()
    elif isinstance(given, pulumi.ProviderResource):
        listed.append(given)
    elif given is not None:
        listed += given
    return next((one for one in listed if isinstance(one, pulumi.ProviderResource) and one.package == package), None)
