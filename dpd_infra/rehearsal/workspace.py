"""The copy of a project's files that a rehearsal works in: the user's own files are read, never written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpd_infra.spec.stack_file import file_stems, short_name, stack_file_in

STAND_IN = "rehearsal-stand-in"
"""What a rehearsal puts in place of every encrypted value: it has no key to the real ones."""

_SECRETS_SETTINGS = ("encryptionsalt", "secretsprovider", "encryptedkey", "environment")


class ProjectNotFound(Exception):
    """There is no project, or no such stack; the message says where it was looked for."""


@dataclass(frozen=True)
class ProjectFiles:
    """A project's two files, read."""

    root: Path
    settings: Mapping[str, Any]
    stack: str
    stack_file: Path
    stack_settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self.settings["name"])

    @property
    def main(self) -> str | None:
        """The program, relative to the project's folder; None for `__main__.py` in it."""
        main = self.settings.get("main")
        return str(main) if main else None

    @classmethod
    def read(cls, root: Path, stack: str) -> ProjectFiles:
        """Read `Pulumi.yaml` in `root` and the stack's file, where `stackConfigDir` says. Raises `ProjectNotFound`."""
        root = root.resolve()
        file = next((root / name for name in ("Pulumi.yaml", "Pulumi.yml", "Pulumi.json") if (root / name).is_file()), None)
        if file is None:
            raise ProjectNotFound(f"there is no Pulumi.yaml in {root}")
        settings = _load(file)
        if not settings.get("name"):
            raise ProjectNotFound(f"{file} has no name")
        folder = root / str(settings.get("stackConfigDir") or ".")
        parts = stack.split("/")
        if len(parts) == len(("organization", "project", "stack")) and parts[1] != str(settings["name"]):
            raise ProjectNotFound(f"{stack} is a stack of project {parts[1]}, and {file} is that of project {settings['name']}")
        path = stack_file_in(folder, stack, (".yaml", ".yml", ".json"))
        if path is None:
            known = sorted(item.name.split(".")[1] for item in folder.glob("Pulumi.*.yaml"))
            raise ProjectNotFound(f"there is no {folder / file_stems(stack)[-1]}.yaml; stacks with a file: {', '.join(known) or 'none'}")
        # The rehearsal's backend knows no organizations: one stack is one however it is named.
        return cls(root, settings, short_name(stack), path, _load(path))


def _load(path: Path) -> Mapping[str, Any]:
    text = path.read_text(encoding="utf-8")
    try:
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise ProjectNotFound(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise ProjectNotFound(f"{path} is not a mapping")
    return data


def write_workspace(files: ProjectFiles, folder: Path) -> dict[str, str]:
    """Write the rehearsal's `Pulumi.yaml` and stack file into `folder`.

    Backend, main, runtime options and everything about encryption are left out; each `secure:` value becomes a stand-in. The answer
    names the config paths that must be set as secrets, with their stand-ins.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: files.settings[key] for key in ("name", "description", "config") if key in files.settings}
    project = {**_without_secure(kept), "runtime": "python"}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")
    config = files.stack_settings.get("config") or {}
    secrets = dict.fromkeys(_secure_paths(config, ""), STAND_IN)
    target = folder / f"Pulumi.{files.stack}.yaml"
    settings: dict[str, Any] = {key: value for key, value in files.stack_settings.items() if key not in _SECRETS_SETTINGS}
    settings["config"] = _without_secure(config)
    # The rehearsal's own salt: what it encrypted before stays readable.
    salt = (yaml.safe_load(target.read_text(encoding="utf-8")) or {}).get("encryptionsalt") if target.exists() else None
    if salt:
        settings["encryptionsalt"] = salt
    target.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return secrets


def _is_secure(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _secure_paths(value: Any, path: str) -> Iterator[str]:
    if _is_secure(value):
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secure_paths(item, _member(path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _secure_paths(item, f"{path}[{index}]")


def _member(path: str, key: str) -> str:
    if not path:
        return key
    plain = key.replace("_", "").replace("-", "").isalnum()
    return f"{path}.{key}" if plain else f"{path}[{json.dumps(key)}]"


def _without_secure(value: Any) -> Any:
    if _is_secure(value):
        return STAND_IN
    if isinstance(value, Mapping):
        return {key: _without_secure(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secure(item) for item in value]
    return value
