"""Holding manifests against what the operator's CRD takes and what must hold for disaggregation to work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpd_infra.catalog.crd import KIND
from dpd_infra.catalog.operator_releases import ADDON_NAME, DEFAULT_ADDON_VERSION
from dpd_infra.render.endpoint import RenderedManifest
from dpd_infra.rules.check import check_endpoint, errors
from dpd_infra.rules.manifest_file import manifest_subject
from dpd_infra.rules.report import report
from dpd_infra.spec.finding import Finding, Severity
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.testing.recording import Recorded, Recording, Unknown

_PULUMI_ANNOTATIONS = "pulumi.com/"


def assert_manifest(
    manifest: Mapping[str, Any] | RenderedManifest | Recorded | Recording,
    *,
    operator: str | OperatorFacts | None = None,
    allow: Iterable[str] = (),
    warnings: bool = False,
) -> None:
    """Fail unless the inference operator would take the manifest and disaggregate it as it says.

    The manifest is held against the facts of the operator's CRD (names, types, ranges, patterns, as the API server does) and against
    every rule of `dpd check`; the failure lists each violation with its place, its cause and its fix.

    Args:
        manifest: An InferenceEndpointConfig as plain data, as `dpd render` makes it, or as it was recorded; a recording stands for all that
            are in it, and one without any fails.
        operator: The add-on's version, `v1.4.0-eksbuild.1`, or what is known of the operator. None: the version of the add-on that the
            recording itself makes, else this library's default.
        allow: Ids of rules that may be broken, `DPD203`.
        warnings: Whether a rule that only warns fails too.

    Raises `AssertionError`, and `ValueError` for an add-on version that is none.
    """
    facts = _facts(operator, manifest)
    allowed = set(allow)
    found: list[Finding] = []
    for document in _documents(manifest):
        findings = check_endpoint(manifest_subject(document, operator=facts))
        counted = findings if warnings else errors(findings)
        found += [finding for finding in counted if finding.rule not in allowed and finding.severity is not Severity.ADVICE]
    if found:
        raise AssertionError(f"with operator add-on {facts.addon_version}:\n\n{report(found)}")


def _facts(operator: str | OperatorFacts | None, manifest: object) -> OperatorFacts:
    if isinstance(operator, OperatorFacts):
        return operator
    if operator is not None:
        return OperatorFacts(addon_version=operator)
    if isinstance(manifest, RenderedManifest) and manifest.context.addon_version:
        return OperatorFacts(addon_version=manifest.context.addon_version, image_mirrors=dict(manifest.context.image_mirrors))
    if isinstance(manifest, Recording):
        for addon in manifest.of_type("aws:eks/addon:Addon"):
            version = addon.inputs.get("addonVersion")
            if addon.inputs.get("addonName") == ADDON_NAME and isinstance(version, str):
                return OperatorFacts(addon_version=version)
    return OperatorFacts(addon_version=DEFAULT_ADDON_VERSION)


def _documents(manifest: Mapping[str, Any] | RenderedManifest | Recorded | Recording) -> list[dict[str, Any]]:
    if isinstance(manifest, RenderedManifest):
        return [manifest.document]
    if isinstance(manifest, Recording):
        found = [resource for resource in manifest.resources if resource.kind == KIND]
        if not found:
            raise AssertionError(f"the program makes no {KIND}; {manifest!r}")
        return [_recorded(resource) for resource in found]
    if isinstance(manifest, Recorded):
        return [_recorded(manifest)]
    return [dict(manifest)]


def _recorded(resource: Recorded) -> dict[str, Any]:
    """The object as it reaches the API server: without Pulumi's own annotations."""
    if resource.kind != KIND:
        raise AssertionError(f"{resource!r} is no {KIND}")
    unknown = sorted(_unknown(resource.inputs, ""))
    if unknown:
        raise AssertionError(
            f"{resource!r} is not known in a preview, in {', '.join(unknown)}: it follows from what is made first. Look at it in an update "
            "(preview=False)."
        )
    metadata = dict(resource.inputs.get("metadata") or {})
    annotations = {
        key: value for key, value in (metadata.pop("annotations", None) or {}).items() if not key.startswith(_PULUMI_ANNOTATIONS)
    }
    if annotations:
        metadata["annotations"] = annotations
    return {**resource.inputs, "metadata": metadata}


def _unknown(value: Any, path: str) -> Iterable[str]:
    if isinstance(value, Unknown):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _unknown(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _unknown(part, f"{path}[{index}]")
