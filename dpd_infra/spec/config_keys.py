"""The keys of a stack file's `config`: which of them are ours, and which were plainly meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from dpd_infra.spec.finding import Finding, Path, Severity
from dpd_infra.spec.shape_rule import SHAPE_RULE

NAMESPACE = "dpd-infra"
"""The configuration namespace of this library, in every project: `dpd-infra:platform`, `dpd-infra:endpoints`, `dpd-infra:operator`."""

SECTIONS = ("platform", "endpoints", "operator")
"""The keys in it that this library reads by itself; others are read where a `configKey` names them."""

_PLATFORM_MARKS = frozenset({"controlPlane", "instanceGroups", "modelBuckets", "modelStore", "imageMirrors", "dependencies"})
"""Keys that a mapping has which was meant to be a platform of this library."""

_ENDPOINT_MARKS = frozenset({"prefill", "decode", "instanceType", "instanceTypes", "routing", "disaggregated", "worker"})
"""Keys, beside `model`, of what was meant to be an endpoint of this library."""


def is_ours(config: Mapping[str, Any]) -> bool:
    """Whether anything in a stack's configuration is for this library, or was meant to be."""
    return any(str(key).startswith(f"{NAMESPACE}:") for key in config) or any(True for _ in _foreign(config))


def key_findings(config: Mapping[str, Any]) -> list[Finding]:
    """The keys that nothing reads: misspelt ones in our namespace, and our sections in another one.

    A program may keep texts, numbers and secrets of its own in the namespace: they are left alone unless they are near a key that is
    wanted and not there.
    """
    return [*_unknown(config), *_foreign(config)]


def named_keys(config: Mapping[str, Any]) -> set[str]:
    """The keys that a `configKey` names, wherever it stands."""
    return {key for _, key in _named_at(config, ())}


def absent_values(config: Mapping[str, Any], declared: Mapping[str, bool]) -> list[Finding]:
    """The values that a deployment needs and the stack file lacks: of keys that a `configKey` names, and the project's `declared` ones.

    `declared` says of each whether it is secret. Warnings, because a pipeline may set a value just before it deploys; nothing of a key
    that is there misspelt.
    """
    misspelt = {path[-1] for finding in _unknown(config) for path in finding.related}
    why = "The program asks Pulumi for this key, and `pulumi up` stops where it has no value."
    found = {key: _absent(path, key, why, secret=True) for path, key in _named_at(config, ("config",))}
    why = "Pulumi.yaml declares the key without a default, and Pulumi deploys no stack that has no value for it."
    found |= {key: _absent(("config",), key, why, secret=secret) for key, secret in declared.items() if key not in found}
    return [finding for key, finding in found.items() if key not in config and key not in misspelt]


def _absent(path: Path, key: str, why: str, *, secret: bool) -> Finding:
    fix = f"pulumi config set --secret {key}" if secret else f"pulumi config set {key} VALUE"
    return Finding(SHAPE_RULE, Severity.WARNING, path, f"the stack has no value for {key}", why, fix, subject="stack")


def _named_at(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Every `configKey` with its place."""
    if isinstance(value, dict):
        if isinstance(value.get("configKey"), str):
            yield (*path, "configKey"), value["configKey"]
        for key, part in value.items():
            yield from _named_at(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _named_at(part, (*path, index))


def _unknown(config: Mapping[str, Any]) -> Iterator[Finding]:
    known = {*SECTIONS, *(key.removeprefix(f"{NAMESPACE}:") for key in named_keys(config))}
    missing = sorted(name for name in known if f"{NAMESPACE}:{name}" not in config)
    for key, value in config.items():
        namespace, colon, name = str(key).partition(":")
        # A key without a namespace is the project's own.
        if not colon or namespace != NAMESPACE or name in known:
            continue
        near = difflib.get_close_matches(name, missing, n=1, cutoff=0.6)
        if near or isinstance(value, (dict, list)):
            fix = (
                f"did you mean {NAMESPACE}:{near[0]}?" if near else f"put it under a namespace of your own; here are {', '.join(SECTIONS)}"
            )
            why = "Nothing reads a key that is not known: what stands there would be left out without a word."
            yield _finding(str(key), f"unknown key {str(key)!r}", why, fix, near[0] if near else None)


def _foreign(config: Mapping[str, Any]) -> Iterator[Finding]:
    for key, value in config.items():
        namespace, _, name = str(key).rpartition(":")
        if namespace == NAMESPACE or f"{NAMESPACE}:{name}" in config:
            continue
        if (name == "platform" and _is_platform(value)) or (name == "endpoints" and _is_endpoints(value)):
            why = f"The namespace is {NAMESPACE}, whatever the project is called: nothing reads this section."
            yield _finding(str(key), f"{str(key)!r} holds {name} of {NAMESPACE}", why, f"write {NAMESPACE}:{name}", name)


def _is_platform(value: Any) -> bool:
    return isinstance(value, dict) and not _PLATFORM_MARKS.isdisjoint(value)


def _is_endpoints(value: Any) -> bool:
    return isinstance(value, dict) and any(
        isinstance(entry, dict) and "model" in entry and not _ENDPOINT_MARKS.isdisjoint(entry) for entry in value.values()
    )


def _finding(key: str, what: str, why: str, fix: str, meant: str | None) -> Finding:
    related = (("config", f"{NAMESPACE}:{meant}"),) if meant else ()
    return Finding(SHAPE_RULE, Severity.ERROR, ("config", key), what, why, fix, subject="stack", related=related)
