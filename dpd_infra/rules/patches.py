"""The patches that rules offer: where in the user's own file a value is to be written, for a raw manifest and for the short form alike."""

from __future__ import annotations

from typing import Any

from dpd_infra.plan.worker_args import Flag
from dpd_infra.render.provenance import OriginKind
from dpd_infra.rules.environment import ENVIRONMENT
from dpd_infra.rules.subject import EndpointSubject
from dpd_infra.spec.finding import Patch, Path
from dpd_infra.spec.values import entries

SHORT_ENVIRONMENT: Path = ("worker", "environment")
"""Where the short form holds the worker's variables, by name."""


def set_value(endpoint: EndpointSubject, path: Path, value: Any, short: Path | None = None) -> Patch | None:
    """Set a field. `short` is where the short form holds it; None where it has no place there, and then there is no patch."""
    written = _written(endpoint, path)
    if written is not None:
        return Patch(written, value)
    return Patch((*endpoint.rendered.context.path, *short), value) if short is not None else None


def remove(endpoint: EndpointSubject, path: Path) -> Patch | None:
    """Take a field away; None where nobody wrote it."""
    if endpoint.get(*path) is None:
        return None
    written = _written(endpoint, path)
    return Patch(written, remove=True) if written is not None else None


def set_variable(endpoint: EndpointSubject, name: str, value: str) -> Patch:
    """Set an environment variable to a text. In a raw manifest a list position one past the end appends."""
    variable = endpoint.reading.environment.get(name)
    if endpoint.spec is None:
        place: Path = (*endpoint.rendered.context.path, *ENVIRONMENT)
        if variable is not None:
            return Patch((*place, variable.index), {"name": name, "value": value})
        standing = endpoint.get(*ENVIRONMENT)
        entry = {"name": name, "value": value}
        return Patch((*place, len(entries(standing))), entry) if isinstance(standing, list) else Patch(place, [entry])
    if variable is not None and (written := _written(endpoint, variable.path)) is not None:
        return Patch(written, value)
    return Patch((*endpoint.rendered.context.path, *SHORT_ENVIRONMENT, name), value)


def remove_variable(endpoint: EndpointSubject, name: str) -> Patch | None:
    """Take an environment variable away; None where nobody wrote it."""
    variable = endpoint.reading.environment.get(name)
    if variable is None:
        return None
    if endpoint.spec is None:
        return Patch((*endpoint.rendered.context.path, *ENVIRONMENT, variable.index), remove=True)
    written = _written(endpoint, variable.path)
    if written is None:
        return None
    # In `overrides` the entry of a list goes, in the short form the key of a map, which is the value's own place.
    return Patch(written[:-1] if written[-1] == "value" else written, remove=True)


def set_flag(endpoint: EndpointSubject, flag: Flag, value: float) -> Patch | None:
    """Give a numeric flag another value; None where the value shares its list entry with other words, or nobody wrote it."""
    if not flag.alone:
        return None
    written = _written(endpoint, flag.path)
    if written is None:
        return None
    # The short form's own fields are numbers; a word of a list of arguments is text.
    return Patch(written, str(value) if isinstance(written[-1], int) else value)


def _written(endpoint: EndpointSubject, path: Path) -> Path | None:
    """Where in the user's file a part of the manifest is written, or would be in a raw manifest; None where a default put it there."""
    if endpoint.spec is None:
        return (*endpoint.rendered.context.path, *path)
    origins = endpoint.rendered.provenance.origins
    origin = origins.get(path)
    if origin is not None:
        return origin.path if origin.kind is not OriginKind.DEFAULT else None
    # A whole object: removed only where all of it was written in one place.
    below = [(leaf, origin) for leaf, origin in origins.items() if leaf[: len(path)] == path]
    places = {
        origin.path[: len(origin.path) - len(leaf) + len(path)] if origin.kind is not OriginKind.DEFAULT else None for leaf, origin in below
    }
    return places.pop() if len(places) == 1 else None
