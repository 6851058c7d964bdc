"""A recording as canonical text: reviewed like code, so that a change of the graph is a change of a file."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpd_infra.testing.recording import Recorded, Recording, Unknown

UPDATE_VARIABLE = "DPD_UPDATE_SNAPSHOTS"
"""Set to 1 to have snapshots written instead of compared; `pytest --dpd-update-snapshots` does the same."""

_MOST_LINES = 80
"""Lines of a difference that a failure shows."""


def assert_snapshot(recording: Recording, path: Path | str, *, update: bool | None = None) -> None:
    """Fail unless the recording's graph is what the file holds; with `update` (or DPD_UPDATE_SNAPSHOTS=1) write the file.

    The graph is every resource by URN with its inputs and options, secrets masked, and the stack's outputs. A missing file fails.
    """
    file = Path(path)
    text = snapshot_text(recording)
    if update if update is not None else os.environ.get(UPDATE_VARIABLE) == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return
    if not file.exists():
        raise AssertionError(f"there is no snapshot {file} yet: write it with {UPDATE_VARIABLE}=1 or --dpd-update-snapshots, and review it")
    kept = file.read_text(encoding="utf-8")
    if kept != text:
        lines = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), str(file), "this run", lineterm="", n=4))
        more = f"\n… {len(lines) - _MOST_LINES} more lines" if len(lines) > _MOST_LINES else ""
        raise AssertionError(
            "\n".join(["the graph is not what the snapshot holds:", *lines[:_MOST_LINES]])
            + f"{more}\nIf it is what you want: {UPDATE_VARIABLE}=1 or --dpd-update-snapshots writes it."
        )


def snapshot_text(recording: Recording) -> str:
    """The graph as JSON text, in an order that no run changes."""
    return json.dumps(graph_data(recording), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def graph_data(recording: Recording) -> dict[str, Any]:
    """The graph as plain data: resources by their URN without stack and project, and the stack's outputs."""
    resources = {resource.urn.split("::", 2)[2]: _resource(resource) for resource in recording.resources}
    return {"resources": resources, "outputs": plain_data(recording.exports, recording.secret_exports)}


def plain_data(value: Any, secrets: frozenset[str] = frozenset(), path: str = "") -> Any:
    """A recorded value as JSON data, keys sorted: what was secret reads `[secret]`, what is unknown `[unknown]`, JSON text is data."""
    if path in secrets and path:
        return "[secret]"
    if isinstance(value, Unknown):
        return "[unknown]"
    if isinstance(value, Mapping):
        # Messages keep no order of their own.
        return {key: plain_data(value[key], secrets, f"{path}.{key}" if path else key) for key in sorted(value)}
    if isinstance(value, list):
        return [plain_data(part, secrets, f"{path}[{index}]") for index, part in enumerate(value)]
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return {"json": json.loads(value)}
        except ValueError:
            return value
    return value


def _resource(resource: Recorded) -> dict[str, Any]:
    """What is set; what is left at its default is left out, so that a file shows decisions."""
    options: dict[str, Any] = {
        "provider": _short(resource.provider),
        "providers": {package: _short(urn) for package, urn in sorted(resource.providers.items())},
        "protect": resource.protect,
        "dependsOn": sorted(map(_short, resource.dependencies)),
        "timeouts": dict(resource.timeouts),
        "ignoreChanges": sorted(resource.ignore_changes),
        "replaceOnChanges": sorted(resource.replace_on_changes),
        "deleteBeforeReplace": resource.delete_before_replace,
        "retainOnDelete": resource.retain_on_delete,
        "deletedWith": _short(resource.deleted_with),
        "additionalSecretOutputs": sorted(resource.additional_secret_outputs),
        "aliases": sorted(resource.aliases),
        "import": resource.import_id,
        "hooks": {event: list(names) for event, names in sorted(resource.hooks.items())},
        "read": resource.read or None,
    }
    return {
        "parent": _short(resource.parent) or None,
        "inputs": plain_data(resource.inputs, resource.secrets),
        **{key: value for key, value in options.items() if value not in (None, "", [], {})},
    }


def _short(urn: str) -> str:
    """`aws:ec2/vpc:Vpc::name`: the stack, the project and the ancestors' types are the same in every line."""
    if not urn:
        return ""
    _, _, types, name = urn.split("::", 3)
    return f"{types.rsplit('$', 1)[-1]}::{name}"
