"""The way back: a raw InferenceEndpointConfig becomes the short form that renders to it, what goes beyond the short form as overrides."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpd_infra.catalog.crd import KIND
from dpd_infra.render.endpoint import endpoint_context, render_endpoint
from dpd_infra.render.manifest_difference import differences, merge_patch, same
from dpd_infra.render.short_form import STAND_IN_TYPE, short_form
from dpd_infra.spec.endpoint import EndpointName, EndpointSpec
from dpd_infra.spec.finding import Path, pointer

_SERVER_FIELDS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("managedFields", "selfLink"),
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Imported:
    """An entry of `dpd-infra:endpoints`."""

    name: str
    entry: dict[str, Any]
    """The short form in a stack file's spelling."""
    left_out: tuple[str, ...]
    """What the API server or the operator writes into a manifest, and which is no part of it."""
    differences: tuple[str, ...]
    """Where what the entry renders to differs from the manifest; empty for an exact inverse."""


class CannotImport(Exception):
    """A document that no entry can stand for. Its text says why."""


def import_manifest(document: Any, *, namespace: str | None = None) -> Imported:
    """The entry of one InferenceEndpointConfig. `namespace` is taken for a manifest that names none.

    Raises `CannotImport` for another kind of document and for one without a name that an entry can carry.
    """
    wanted, left_out = _as_written(document)
    if namespace is not None and "namespace" not in wanted["metadata"]:
        wanted["metadata"]["namespace"] = namespace
    name = wanted["metadata"]["name"]
    try:
        TypeAdapter(EndpointName).validate_python(name)
    except ValidationError as error:
        raise CannotImport(
            f"{name!r} cannot be an entry's name: it begins a Service's, so it is a letter, then letters, digits, '-'"
        ) from error
    # The region is always written: the entry then means the same in every stack.
    context = endpoint_context(name, region="", addon_version="")
    entry = short_form(wanted, name)
    base = render_endpoint(name, _build(entry), context).document
    _shorten(entry, lambda shorter: same(render_endpoint(name, EndpointSpec.from_yaml_data(shorter), context).document, base))
    overrides = merge_patch(base, wanted)
    # The stack goes by these: overrides must not name them, and what differs in them is said.
    for holder, key in (
        (overrides, "apiVersion"),
        (overrides, "kind"),
        *((overrides.get("metadata", {}), key) for key in ("name", "namespace")),
    ):
        holder.pop(key, None)
    overrides = {key: value for key, value in overrides.items() if (key, value) != ("metadata", {})}
    if overrides:
        entry["overrides"] = overrides
    rendered = render_endpoint(name, EndpointSpec.from_yaml_data(entry), context).document
    return Imported(name, entry, left_out, tuple(differences(wanted, rendered)))


def _as_written(document: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The manifest as somebody would write it: without nulls, status and what the API server fills in."""
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise CannotImport(f"not an {KIND}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise CannotImport("a manifest without metadata.name has no entry: entries go by name")
    left_out: list[str] = []
    wanted = _without_nulls(document, (), left_out)
    if "status" in wanted:
        del wanted["status"]
        left_out.append("status")
    left_out += [f"metadata.{field}" for field in _SERVER_FIELDS if wanted["metadata"].pop(field, None) is not None]
    if "metadata.uid" in left_out and wanted["metadata"].pop("finalizers", None) is not None:
        # In an object of a cluster they are its controllers': whoever writes them again keeps it from ever going.
        left_out.append("metadata.finalizers")
    annotations = wanted["metadata"].get("annotations")
    if isinstance(annotations, dict) and annotations.pop(_LAST_APPLIED, None) is not None:
        left_out.append(f"metadata.annotations.{_LAST_APPLIED}")
        if not annotations:
            del wanted["metadata"]["annotations"]
    return wanted, tuple(left_out)


def _without_nulls(value: Any, path: Path, left_out: list[str]) -> Any:
    if isinstance(value, dict):
        left_out += [f"{pointer((*path, key))} (null)" for key, part in value.items() if part is None]
        return {key: _without_nulls(part, (*path, key), left_out) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part, (*path, index), left_out) for index, part in enumerate(value)]
    return copy.deepcopy(value)


def _build(entry: dict[str, Any]) -> EndpointSpec:
    """The spec of an entry; what the short form refuses is taken out of the entry and left to the overrides."""
    for _ in range(20):
        try:
            return EndpointSpec.from_yaml_data(entry)
        except ValidationError as error:
            details = error.errors(include_url=False)
            # Every refusal is acted on, not only the first.
            dropped = [_drop(entry, detail["loc"]) for detail in details]
            if not any(dropped):
                raise CannotImport(f"no entry can say this: {details[0]['msg']}") from error
    raise CannotImport("no entry can say this")


def _shorten(entry: dict[str, Any], is_same: Callable[[dict[str, Any]], bool]) -> None:
    """Take out of an entry what goes without saying. The image stays: another release of this library may have another default."""
    for path in sorted(_leaves(entry), key=len, reverse=True):
        shorter = copy.deepcopy(entry)
        holders = [shorter]
        for step in path[:-1]:
            holders.append(holders[-1][step])
        del holders[-1][path[-1]]
        for holder, step in zip(reversed(holders[:-1]), reversed(path[:-1]), strict=True):
            if not holder[step]:
                del holder[step]
        try:
            if path != ("worker", "image") and is_same(shorter):
                entry.clear()
                entry.update(shorter)
        except ValidationError:
            continue


def _leaves(value: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, part in value.items():
        if isinstance(part, dict) and part:
            yield from _leaves(part, (*path, key))
        else:
            yield (*path, key)


def _drop(entry: dict[str, Any], loc: tuple[int | str, ...]) -> bool:
    """Take out the key of the entry that a refusal is about, lists whole; give what is needed a value that the overrides replace."""
    if loc[:2] == ("model", "name"):
        entry["model"]["name"] = "model"
        return True
    if loc[:1] == ("model",) or not loc:
        if not loc or "instanceType" not in entry:
            entry.pop("instanceTypes", None)
            entry.pop("nodeAffinity", None)
            entry["instanceType"] = STAND_IN_TYPE
        if loc:
            entry["model"] = {"name": entry["model"].get("name", "model"), "s3": {"bucket": "bucket", "region": "us-east-2"}}
        return True
    owner: Any = entry
    way: list[tuple[dict[str, Any], str]] = []
    for step in loc:
        if not isinstance(owner, dict) or step not in owner:
            break
        way.append((owner, str(step)))
        owner = owner[step]
    if not way:
        return False
    holder, key = way[-1]
    del holder[key]
    return True
