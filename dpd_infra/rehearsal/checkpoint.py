"""The engine's state of one stack in the backend's folder: its resources, and what was under way when the engine was killed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpd_infra.rehearsal.urn import name_of, type_of


@dataclass(frozen=True)
class Pending:
    """An operation that had begun when the engine was killed: the engine does not know whether it happened."""

    urn: str
    operation: str
    """The engine's word: `creating`, `updating`, `deleting`."""

    @property
    def name(self) -> str:
        """The resource's name."""
        return name_of(self.urn)

    @property
    def type(self) -> str:
        """The type token."""
        return type_of(self.urn)


class StateDamaged(ValueError):
    """The engine's state of a stack is not what it wrote; the message names the file and the way out."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"{file} is damaged, so what the rehearsal made is not known ({why}): rehearse once more, which takes the state before it if "
            "there is one, or `dpd rehearse --reset` forgets the project's rehearsals and begins with nothing"
        )


@dataclass(frozen=True)
class Checkpoint:
    """The state of one stack in a file backend."""

    file: Path

    @classmethod
    def of(cls, state_dir: Path, project: str, stack: str) -> Checkpoint:
        """The state of a stack below a rehearsal's state folder."""
        return cls(state_dir / "backend" / ".pulumi" / "stacks" / project / f"{stack}.json")

    @property
    def _latest(self) -> Mapping[str, Any]:
        if not self.file.exists():
            return {}
        return read(self.file)["checkpoint"].get("latest") or {}

    @property
    def resources(self) -> list[dict[str, Any]]:
        """Every resource in the state, as the engine writes it; none where the stack was never up. Raises `StateDamaged`."""
        return list(self._latest.get("resources") or [])

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What a killed engine left under way."""
        return tuple(Pending(item["resource"]["urn"], item["type"]) for item in self._latest.get("pending_operations") or [])

    @property
    def backup(self) -> Path:
        """The backend's copy of the state before its last change."""
        return self.file.with_suffix(".json.bak")

    def restore(self) -> bool:
        """Put right what a kill has torn; whether that was needed.

        The backup takes the place of half a state. Half of a description that the backend keeps beside a file (`.attrs`: the engine
        then says `failed to load checkpoint: EOF`) is deleted: without one the file is read as it is.
        """
        torn = False
        for file in (self.file, self.backup):
            description = file.with_name(f"{file.name}.attrs")
            if description.exists() and not _is_whole(description):
                description.unlink()
                torn = True
        if _is_state(self.file) or not _is_state(self.backup):
            return torn
        self.write(self.backup.read_text(encoding="utf-8"))
        return True

    def without(self, urns: Collection[str]) -> str:
        """The file's text with these resources, and what was under way, taken out."""
        data = read(self.file)
        latest = data["checkpoint"].get("latest") or {}
        # A stack that was only previewed has none.
        latest["resources"] = [item for item in latest.get("resources") or [] if item["urn"] not in urns]
        latest.pop("pending_operations", None)
        return json.dumps(data)

    def write(self, text: str) -> None:
        """Put a state in place of what is there."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text, encoding="utf-8")


def read(file: Path) -> dict[str, Any]:
    """What the engine wrote into a stack's file. Raises `StateDamaged` for anything else."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StateDamaged(file, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise StateDamaged(file, f"no JSON: {error}") from None
    checkpoint = data.get("checkpoint") if isinstance(data, dict) else None
    latest = (checkpoint.get("latest") or {}) if isinstance(checkpoint, dict) else None
    resources = (latest.get("resources") or []) if isinstance(latest, dict) else None
    if not isinstance(resources, list) or not all(isinstance(item, dict) and isinstance(item.get("urn"), str) for item in resources):
        raise StateDamaged(file, "JSON, but not the state of a stack")
    return data


def _is_state(file: Path) -> bool:
    """Whether a file is there and holds a stack's state."""
    try:
        read(file)
    except StateDamaged:
        return False
    return True


def _is_whole(file: Path) -> bool:
    """Whether a file is there and holds one JSON document."""
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
