"""The sections of a stack file's `config`, each built by itself, with everything that is wrong with its shape."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpd_infra.spec.aws import CONFIG_NAMESPACE, AwsSettings, settings_data
from dpd_infra.spec.endpoint import EndpointSpec
from dpd_infra.spec.finding import Finding, Path, Severity
from dpd_infra.spec.shape import build
from dpd_infra.spec.shape_rule import SHAPE_RULE
from dpd_infra.spec.stack_file import Secret

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def build_aws_settings(config: Mapping[str, Any]) -> tuple[AwsSettings | None, list[Finding]]:
    """What the `aws:` keys say."""
    try:
        data = settings_data(config)
    except ValueError as error:
        why = "Every provider and `aws eks get-token` follow the same keys, so they have to be ones that all of them know."
        return None, [shape_finding(("config", "aws:assumeRoles"), str(error), why, "name one role: aws:assumeRoles: [{roleArn: …}]")]
    return build(AwsSettings, data, ("config",), "stack", _aws_path)


def build_endpoints(data: Any, at: Path) -> tuple[dict[str, EndpointSpec], list[Finding]]:
    """Each endpoint by itself, so that one that is wrong does not hide what is wrong with the next."""
    if data is None:
        return {}, []
    if not isinstance(data, dict):
        what = "must be a mapping of endpoint names to endpoints"
        return {}, [shape_finding(at, what, "Endpoints are told apart by name.", "write `name: {model: …}` entries")]
    endpoints: dict[str, EndpointSpec] = {}
    findings: list[Finding] = []
    for name, entry in data.items():
        path = (*at, name)
        if not _NAME.fullmatch(str(name)):
            why = "It begins the name of a Kubernetes Service: lower case, digits, hyphens, a letter first (RFC 1035)."
            findings.append(shape_finding(path, f"{name!r} is not an endpoint name", why, "rename it", str(name)))
        spec, found = build(EndpointSpec, entry, path, str(name))
        findings += found
        if spec is not None:
            endpoints[str(name)] = spec
    return endpoints, findings


def misplaced_secrets(config: Mapping[str, Any], sections: Sequence[str]) -> list[Finding]:
    """An encrypted value inside a section: a spec holds plain data, so a secret enters it by the name of a configuration key."""

    def walk(value: Any, path: Path) -> list[Finding]:
        if isinstance(value, Secret):
            what = "an encrypted value inside this section"
            why = "It would be decrypted into a manifest. Secrets enter by name: of a configuration key, or of a Kubernetes Secret."
            fix = "move it to a key of its own with `pulumi config set --secret` and name that key here"
            return [shape_finding(path, what, why, fix)]
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [finding for key, part in items for finding in walk(part, (*path, key))]

    return [finding for key in sections for finding in walk(config.get(key), ("config", key))]


def _aws_path(path: Path) -> Path:
    """`("config", "region")` as the file has it: `("config", "aws:region")`; what is under `extra` has no level of its own there."""
    path = (path[0], *path[2:]) if path[1:2] == ("extra",) and len(path) > 2 else path
    return (path[0], f"{CONFIG_NAMESPACE}{path[1]}", *path[2:]) if len(path) > 1 else path


def shape_finding(path: Path, what: str, why: str, fix: str, value: Any = None) -> Finding:
    """Something of a wrong shape, told of the stack as a whole."""
    return Finding(SHAPE_RULE, Severity.ERROR, path, what, why, fix, value=value, subject="stack")
