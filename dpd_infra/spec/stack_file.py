"""A stack file as Pulumi reads it: its configuration with the project's defaults, and where everything stands."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpd_infra.spec.yaml_source import Document, SourceText, YamlProblem, load_document

PROJECT_FILE = "Pulumi.yaml"
_PREFIX = "Pulumi."
_SUFFIXES = (".yaml", ".yml")


class Secret:
    """An encrypted value of a stack file. Its text is not read: only Pulumi can decrypt it."""

    def __repr__(self) -> str:
        return "[secret]"

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self


@dataclass(frozen=True, slots=True)
class StackFile:
    """The configuration of one stack."""

    path: pathlib.Path
    """The file, as it was named."""
    stack: str
    """The stack's name, from the file's."""
    config: dict[str, Any]
    """By full key, `dpd-infra:platform`; encrypted values are `Secret`; the project's defaults are filled in."""
    document: Document = field(repr=False)
    declared: dict[str, bool] = field(default_factory=dict)
    """The keys that the project file declares and gives no value (Pulumi deploys no stack that lacks one), and whether each is secret."""

    @property
    def whole(self) -> bool:
        """Whether every value that Pulumi will see stands here: no environment of Pulumi ESC adds to them."""
        return not (isinstance(self.document.data, dict) and self.document.data.get("environment"))

    @property
    def file(self) -> str:
        """The file's name as reports show it."""
        return str(self.path)


def is_stack_file(path: pathlib.Path) -> bool:
    """Whether a file has a stack file's name, `Pulumi.<stack>.yaml`."""
    return path.name.startswith(_PREFIX) and path.suffix in _SUFFIXES and path.name != PROJECT_FILE and len(path.name.split(".")) > 2


def stack_name(path: pathlib.Path) -> str:
    """The stack of a file: `prod` for `Pulumi.prod.yaml`, the bare name for another."""
    return path.name.removeprefix(_PREFIX).removesuffix(path.suffix)


def read_stack_file(path: pathlib.Path, raw: bytes | SourceText | None = None) -> StackFile:
    """Read a stack file and the defaults of the project around it; `raw` is the file's content where it is at hand already.

    Raises `YamlProblem` where the file cannot be read as YAML or its `config` is not a mapping, and `OSError` where it cannot be opened.
    """
    document = load_document(path.read_bytes() if raw is None else raw, str(path))
    data = {} if document.data is None else document.data
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(config, dict | None):
        message = "a stack file is a mapping with a `config` mapping in it"
        raise YamlProblem(message, line=1, column=1)
    defaults, declared = _of_project(path.parent)
    return StackFile(path, stack_name(path), {**defaults, **_without_ciphertext(config or {})}, document, declared)


def _without_ciphertext(value: Any) -> Any:
    """The same data with every `{secure: …}` replaced by a `Secret`."""
    if isinstance(value, dict):
        if set(value) == {"secure"} and isinstance(value["secure"], str):
            return Secret()
        return {key: _without_ciphertext(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_ciphertext(part) for part in value]
    return value


def find_project_file(folder: pathlib.Path) -> pathlib.Path | None:
    """The Pulumi.yaml of a folder or of the nearest one above it, as Pulumi looks for it."""
    for candidate in (folder.resolve(), *folder.resolve().parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate / PROJECT_FILE
    return None


def _of_project(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, bool]]:
    """What the project file gives every stack: `default` or `value` of a described key, or the bare value (a default).

    And the project's own keys that are described there without a value, with whether each is secret.
    """
    project = find_project_file(folder)
    data = load_document(project.read_bytes(), str(project)).data if project is not None else None
    if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
        return {}, {}
    name = str(data.get("name", ""))
    defaults: dict[str, Any] = {}
    declared: dict[str, bool] = {}
    for key, said in data["config"].items():
        full = key if ":" in key else f"{name}:{key}"
        if not isinstance(said, dict) or {"default", "value", "type", "description", "items", "secret"}.isdisjoint(said):
            defaults[full] = _without_ciphertext(said)
        elif "value" in said or "default" in said:
            defaults[full] = _without_ciphertext(said.get("value", said.get("default")))
        elif full.startswith(f"{name}:"):
            declared[full] = said.get("secret") is True
    return defaults, declared


def find_stack_file(root: pathlib.Path, stack: str) -> pathlib.Path | None:
    """The file of a stack of the project in `root`, or None: in `stackConfigDir`, by any name of the stack, as `file_stems` has them."""
    return stack_file_in(_config_folder(root), stack)


def stack_file_in(folder: pathlib.Path, stack: str, suffixes: Sequence[str] = _SUFFIXES) -> pathlib.Path | None:
    """The file of a stack in the folder of stack files, or None."""
    return next((path for stem in file_stems(stack) for end in suffixes if (path := folder / f"{stem}{end}").is_file()), None)


def file_stems(stack: str) -> tuple[str, ...]:
    """How a stack's file may be called, without its suffix: of `acme/shop/dev` and `acme/dev` it is that of `dev`.

    Pulumi reads `/` as `-` in names that it does not take apart (pkg/workspace, ProjectStackPath).
    """
    joined, short = f"{_PREFIX}{stack.replace('/', '-')}", f"{_PREFIX}{short_name(stack)}"
    parts = stack.split("/")
    if len(parts) > len(("organization", "project", "stack")) or not all(part.strip(".") for part in parts):
        return (joined,)  # a path, and no name of a stack
    return (short,) if len(parts) == len(("organization", "project", "stack")) else tuple(dict.fromkeys((joined, short)))


def short_name(stack: str) -> str:
    """The stack's own name in `ORGANIZATION/PROJECT/STACK` or `ORGANIZATION/STACK`."""
    return stack.rsplit("/", 1)[-1]


def stacks_there(root: pathlib.Path) -> list[str]:
    """The stacks of the project in `root` that have a file, in order."""
    return sorted({stack_name(path) for path in _config_folder(root).glob(f"{_PREFIX}*") if is_stack_file(path) and path.is_file()})


def _config_folder(root: pathlib.Path) -> pathlib.Path:
    """Where a project keeps its stack files: its `stackConfigDir`, or its own folder."""
    project = root / PROJECT_FILE
    if project.is_file():
        data = load_document(project.read_bytes(), str(project)).data
        if isinstance(data, dict) and isinstance(data.get("stackConfigDir"), str):
            return root / data["stackConfigDir"]
    return root
