"""The hermetic environment of a rehearsal: nothing of the user's AWS, Pulumi or Kubernetes settings reaches it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PASSPHRASE = "rehearsal"  # noqa: S105 - encrypts stand-ins in a throw-away state, never a real secret
_FOREIGN = ("AWS_", "PULUMI_", "KUBE", "HELM_")
_SWITCHES = ("PULUMI_K8S_DELETE_UNREACHABLE",)
"""What says how to act, and leads nowhere."""


class PulumiNotFound(Exception):
    """There is no Pulumi CLI; the message says how to get one."""

    def __init__(self) -> None:
        super().__init__(
            "the Pulumi CLI was not found: install it from https://www.pulumi.com/docs/install/, or build it with Go by `make tools`"
        )


def find_pulumi(project: Path | None = None) -> Path:
    """The Pulumi CLI: on PATH, else in `.tools/bin` of the project or of a folder above it. Raises `PulumiNotFound`."""
    on_path = shutil.which("pulumi")
    if on_path:
        return Path(on_path)
    start = (project or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        built = folder / ".tools" / "bin" / "pulumi"
        if built.is_file() and os.access(built, os.X_OK):
            return built
    raise PulumiNotFound


def hermetic(state_dir: Path, debug_providers: str) -> dict[str, str]:
    """Variables of a hermetic run: a file backend, a passphrase and a home of its own; no plugins are looked for."""
    backend, home = state_dir / "backend", state_dir / "home"
    for folder in (backend, home):
        folder.mkdir(parents=True, exist_ok=True)
    nowhere = state_dir / "no-aws-files"
    return {
        "PULUMI_BACKEND_URL": backend.resolve().as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_HOME": str(home.resolve()),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "1",
        "PULUMI_DEBUG_PROVIDERS": debug_providers,
        "AWS_CONFIG_FILE": str(nowhere / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(nowhere / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def without_foreign(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without anything that would reach a real account, backend or cluster."""
    return {key: value for key, value in environment.items() if key in _SWITCHES or not key.startswith(_FOREIGN)}


@contextmanager
def process_environment(pulumi: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Give this process, and so the program and the CLI it starts, the hermetic environment within the block."""
    before = dict(os.environ)
    clean = without_foreign(before)
    clean["PATH"] = os.pathsep.join(part for part in (str(pulumi.parent), before.get("PATH", "")) if part)
    os.environ.clear()
    os.environ.update({**clean, **variables})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
