"""The running Pulumi program as this library meets it: its configuration, its secrets, the file behind both, and its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from dpd_infra.plan.project import current_project
from dpd_infra.rules.report import block
from dpd_infra.spec.aws import CONFIG_NAMESPACE
from dpd_infra.spec.config_keys import NAMESPACE
from dpd_infra.spec.finding import Finding, Severity
from dpd_infra.spec.stack_file import StackFile, find_stack_file, read_stack_file
from dpd_infra.spec.yaml_source import Document, YamlProblem

_SAID: ContextVar[set[tuple[str, str, str]] | None] = ContextVar("dpd_infra_said", default=None)
"""The warnings a program has logged: a stack's are found when it is read and again when its components are made."""


def aws_config() -> dict[str, Any]:
    """Every `aws:` key of the running stack's configuration."""
    from pulumi.runtime import config  # noqa: PLC0415 - whatever is not called in a program works without Pulumi

    # `pulumi.Config` answers for a key by name and lists none: pulumi-aws has some fifty, and all of them are handed on.
    return {key: value for key, value in {**config.get_config_env(), **config.CONFIG.get()}.items() if key.startswith(CONFIG_NAMESPACE)}


def own_config(*names: str) -> dict[str, Any]:
    """Those of our own keys that the running stack's configuration has, by their full names: `dpd-infra:platform`."""
    import pulumi  # noqa: PLC0415

    own = pulumi.Config(NAMESPACE)
    return {f"{NAMESPACE}:{name}": value for name in names if (value := own.get_object(name)) is not None}


def secret(key: str) -> Any:
    """A secret of the running stack's configuration, by its full key. Raises `pulumi.ConfigMissingError`."""
    import pulumi  # noqa: PLC0415

    namespace, _, bare = key.rpartition(":")
    return pulumi.Config(namespace or None).require_secret(bare)


def stack_file() -> StackFile | None:
    """The file behind the running stack's configuration; None where it is not on this disk or cannot be read."""
    import pulumi  # noqa: PLC0415

    try:
        path = find_stack_file(current_project().root, pulumi.get_stack())
        return read_stack_file(path) if path is not None else None
    except (OSError, YamlProblem):
        return None


def say(findings: Sequence[Finding], documents: Mapping[str, Document]) -> None:
    """Put the warnings into Pulumi's log, each once in a program."""
    import pulumi  # noqa: PLC0415

    said = _SAID.get() or set()
    _SAID.set(said)
    for finding in findings:
        key = (finding.rule, finding.subject, finding.what)
        # Advice is for `dpd check`: a warning in every `up` that nobody has to act on teaches people to skip warnings.
        if key not in said and finding.severity is Severity.WARNING:
            said.add(key)
            pulumi.log.warn(block(finding, documents.get(finding.file)))
