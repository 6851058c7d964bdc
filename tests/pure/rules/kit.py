"""Inputs of rules, made from the published example and the dev stack by small edits; and what is found in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path as FilePath
from typing import Any

import yaml

from dpd_infra.render.endpoint import EndpointContext, RenderedManifest
from dpd_infra.render.provenance import Provenance
from dpd_infra.rules.check import check
from dpd_infra.rules.subject import EndpointSubject, StackSubject
from dpd_infra.spec.finding import Finding, Patch
from dpd_infra.spec.operator import OperatorFacts
from dpd_infra.stack import _load
from tests.pure.endpoint.test_published_example import PUBLISHED

ROOT = FilePath(__file__).resolve().parents[3]
PREFERRED = "v1.4.0-eksbuild.1"

Edit = Callable[[dict[str, Any]], None]
"""Changes a document in place."""


def steps(path: str) -> list[Any]:
    """`spec|worker|args|3`: keys of Kubernetes hold dots and slashes."""
    return [int(step) if step.isdigit() else step for step in path.split("|")]


def put(path: str, value: Any) -> Edit:
    """Set a value; objects on the way are made."""

    def edit(document: dict[str, Any]) -> None:
        *way, last = steps(path)
        place: Any = document
        for step in way:
            place = place[step] if isinstance(place, list) else place.setdefault(step, {})
        place[last] = copy.deepcopy(value)

    return edit


def drop(path: str) -> Edit:
    """Take a value away."""

    def edit(document: dict[str, Any]) -> None:
        *way, last = steps(path)
        place: Any = document
        for step in way:
            place = place[step]
        del place[last]

    return edit


def env(name: str, value: str | None) -> Edit:
    """Set a variable of a raw manifest's worker; None takes it away."""

    def edit(document: dict[str, Any]) -> None:
        variables = document["spec"]["worker"]["environmentVariables"]
        variables[:] = [entry for entry in variables if entry["name"] != name]
        if value is not None:
            variables.append({"name": name, "value": value})

    return edit


def flag(name: str, value: str | None) -> Edit:
    """Give a flag of a raw manifest's worker another value; None takes flag and value away."""

    def edit(document: dict[str, Any]) -> None:
        args = document["spec"]["worker"]["args"]
        at = args.index(name)
        args[at : at + 2] = [] if value is None else [name, value]

    return edit


def more(*words: str) -> Edit:
    """Further words of a raw manifest's worker."""
    return lambda document: document["spec"]["worker"]["args"].extend(words)


def role(key: str, *words: str) -> Edit:
    """Words of a role of a raw manifest: `prefillSpec` or `decodingSpec`."""
    return lambda document: document["spec"]["pdSpec"][key].setdefault("args", []).extend(words)


def both(path: str, value: Any) -> Edit:
    """Set a value in both roles of a raw manifest."""

    def edit(document: dict[str, Any]) -> None:
        for key in ("prefillSpec", "decodingSpec"):
            put(f"spec|pdSpec|{key}|{path}", value)(document)

    return edit


def devices(name: str, prefill: int | str, decode: int | str) -> Edit:
    """Requests and limits of a device in both roles of a raw manifest."""

    def edit(document: dict[str, Any]) -> None:
        for key, amount in (("prefillSpec", prefill), ("decodingSpec", decode)):
            for part in ("requests", "limits"):
                put(f"spec|pdSpec|{key}|resources|{part}|{name}", str(amount))(document)

    return edit


def colocated(document: dict[str, Any]) -> None:
    """Take the roles away from a raw manifest."""
    del document["spec"]["pdSpec"]


@cache
def _dev_stack() -> dict[str, Any]:
    data = yaml.safe_load((ROOT / "stacks" / "Pulumi.dev.yaml").read_text(encoding="utf-8"))["config"]
    # A spare node, so that the smallest platform's own advice is out of the way.
    data["dpd-infra:platform"]["instanceGroups"]["gpu"]["count"] = 3
    return data


def apply_patch(data: Any, patch: Patch) -> Any:
    """Data with a patch applied; a list position one past the end appends."""
    data = copy.deepcopy(data)
    place: Any = data
    for step, after in zip(patch.path[:-1], patch.path[1:], strict=True):
        if isinstance(place, dict) and step not in place:
            place[step] = [] if isinstance(after, int) else {}
        place = place[step]
    last: Any = patch.path[-1]
    if patch.remove:
        del place[last]
    elif isinstance(place, list) and last == len(place):
        place.append(patch.value)
    else:
        place[last] = patch.value
    return data


@dataclass(frozen=True)
class Raw:
    """The published manifest with edits, for an operator."""

    edits: tuple[Edit, ...]
    operator: str | None = PREFERRED
    companions: tuple[Mapping[str, Any], ...] = ()
    valid: bool = True
    """Whether the API server takes it: an input that it refuses anyway proves nothing of a rule."""

    @cached_property
    def data(self) -> dict[str, Any]:
        # Not a deep copy: the example writes both roles' resources with one object.
        document = json.loads(json.dumps(PUBLISHED))
        for edit in self.edits:
            edit(document)
        return document

    @cached_property
    def findings(self) -> list[Finding]:
        return self.findings_in(self.data)

    def findings_in(self, data: dict[str, Any]) -> list[Finding]:
        return check(raw_stack(data, self.operator, self.companions))

    def patched(self, patch: Patch) -> dict[str, Any]:
        return apply_patch(self.data, patch)


def raw_subject(document: dict[str, Any], operator: str | None = PREFERRED) -> EndpointSubject:
    """A raw manifest as rules read it."""
    rendered = RenderedManifest(document, Provenance(), EndpointContext("", operator or "", ()))
    facts = OperatorFacts(addon_version=operator) if operator else None
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return EndpointSubject(str(name), rendered, operator=facts)


def raw_stack(document: dict[str, Any], operator: str | None = PREFERRED, companions: tuple[Mapping[str, Any], ...] = ()) -> StackSubject:
    """A raw manifest alone in its stack."""
    endpoint = raw_subject(document, operator)
    return StackSubject(operator=endpoint.operator, endpoints={endpoint.name: endpoint}, companions=companions)


@dataclass(frozen=True)
class Stack:
    """The dev stack with edits."""

    edits: tuple[Edit, ...]

    @cached_property
    def data(self) -> dict[str, Any]:
        config = copy.deepcopy(_dev_stack())
        for edit in self.edits:
            edit(config)
        return config

    @cached_property
    def findings(self) -> list[Finding]:
        return self.findings_in(self.data)

    def findings_in(self, data: dict[str, Any]) -> list[Finding]:
        return list(_load(data, None).findings)

    def patched(self, patch: Patch) -> dict[str, Any]:
        return apply_patch({"config": self.data}, patch)["config"]


def raw(*edits: Edit, operator: str | None = PREFERRED, companions: tuple[Mapping[str, Any], ...] = (), valid: bool = True) -> Raw:
    """The published manifest with edits."""
    return Raw(edits, operator, companions, valid)


def platform(path: str, value: Any) -> Edit:
    """Set a value of the dev stack's platform."""
    return put(f"dpd-infra:platform|{path}", value)


def endpoint(path: str, value: Any) -> Edit:
    """Set a value of the dev stack's endpoint."""
    return put(f"dpd-infra:endpoints|llama-70b|{path}", value)


def stack(*edits: Edit) -> Stack:
    """The dev stack with edits."""
    return Stack(edits)


@dataclass(frozen=True)
class Case:
    """One rule: an input that trips it, and one that nearly does."""

    rule: str
    trip: Raw | Stack
    near: Raw | Stack
