"""Where each value of a rendered manifest comes from: the user's file, a default with its source, or an override."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dpd_infra.spec.finding import Path


class OriginKind(StrEnum):
    """Who said a value."""

    FILE = "file"
    """A key of the user's file."""
    DEFAULT = "default"
    """Nobody: a default, or a number worked out from other values."""
    OVERRIDE = "override"
    """The endpoint's `overrides`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one value comes from."""

    kind: OriginKind
    path: Path
    """In the user's file: where the value stands, or for a default the nearest key that the user wrote."""
    setting: Path
    """In the user's file: where the value would be written. The same as `path` for a value that stands there."""
    source: str = ""
    """For a default: the document it comes from, or how it was worked out."""

    def below(self, steps: Path) -> Origin:
        """The origin of a part of this value."""
        if not steps:
            return self
        path = self.path if self.kind is OriginKind.DEFAULT else (*self.path, *steps)
        return replace(self, path=path, setting=(*self.setting, *steps))


@dataclass(slots=True)
class Provenance:
    """The origin of every leaf of one document; a leaf is a scalar or an empty object or list."""

    origins: dict[Path, Origin] = field(default_factory=dict)
    """By the leaf's path in the document."""

    def of(self, path: Path) -> Origin | None:
        """The origin of a value of the document; None for an empty document.

        For an object or list: that of its first leaf. For a place where nothing stands: that of the nearest part around it.
        """
        for length in range(len(path), -1, -1):
            head = path[:length]
            if head in self.origins:
                return self.origins[head]
            below = next((leaf for leaf in self.origins if leaf[:length] == head), None)
            if below is not None:
                return self.origins[below]
        return None

    def as_json_pointers(self) -> dict[str, dict[str, Any]]:
        """Plain data by JSON pointer (RFC 6901), for `--json` output."""
        return {
            json_pointer(path): {
                "kind": str(origin.kind),
                "path": list(origin.path),
                "setting": list(origin.setting),
                "source": origin.source,
            }
            for path, origin in self.origins.items()
        }


def json_pointer(path: Path) -> str:
    """RFC 6901: `/spec/worker/args/3`; the empty path is the empty text."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every leaf of plain data with its path, in order."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield path, value
