"""Set-up of a machine that has only Python and perhaps Go: uv, the virtual environment, and the pinned tools of `tools/`.

Run from the Makefile with the system's Python, so it uses the standard library alone. Each step looks first and does nothing when
nothing is to be done. What it installs goes into `.tools` and `.venv` of this folder, nowhere else.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".tools" / "bin"
PLUGINS = ROOT / ".tools" / "plugins"
VENV = ROOT / ".venv"
SECONDS_BETWEEN_LINES = 30
MINIMUM_UV = (0, 5, 0)
"""The first series whose `uv sync` reads the dependency groups and the lock file of this project."""
INDEX_SETTINGS = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL")
"""Environment variables that name a package index of the user's own."""


class SetupError(Exception):
    """What keeps the set-up from going on, in one line a person can act on."""


@dataclass(frozen=True)
class GoTool:
    """One command that a wrapper module in `tools/` pins and Go builds."""

    name: str
    module: str
    """The module whose version in go.mod is the version of the command."""
    package: str
    minutes: int
    """About how long a first build takes on two cores, downloads included."""
    advice: str
    """How to get the command without Go."""
    minimum: tuple[int, ...] | None
    """The oldest version on PATH that will do; None where only our own build will."""
    wrapper: str = ""
    """The folder of `tools/` that holds the wrapper module, where it has not the command's name."""
    version_variables: tuple[tuple[str, str], ...] = ()
    """What the linker writes into which variable: `{version}` as in go.mod, `{numbers}` its parts."""
    version_argument: str = "version"
    """What makes the command print its version."""
    is_plugin: bool = False
    """Whether it stays off PATH: a Pulumi CLI takes a provider that it finds there, for real stacks too."""

    @property
    def built(self) -> Path:
        """Where our own build of it stands."""
        return (PLUGINS if self.is_plugin else BIN) / self.name

    @property
    def folder(self) -> Path:
        """The wrapper module."""
        return ROOT / "tools" / (self.wrapper or self.name)

    @property
    def pinned(self) -> str:
        """The pinned version, as in `v3.274.1`."""
        found = re.search(
            rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", (self.folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE
        )
        if found is None:
            raise SetupError(f"tools/{self.folder.name}/go.mod does not require {self.module}")
        return found.group(1)

    @property
    def linker_flags(self) -> str:
        """A small binary that knows its version."""
        version = self.pinned
        stamps = [f"-X {variable}={text.format(version=version, numbers=numbers(version))}" for variable, text in self.version_variables]
        return " ".join(["-s -w", *stamps])


GO_TOOLS = {
    "pulumi": GoTool(
        name="pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        version_variables=(("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", "{version}"),),
        minutes=5,
        minimum=(3, 200, 0),
        advice="install the Pulumi CLI (pulumi.com/docs/iac/download-install) or Go 1.26 or later, and run this again",
    ),
    "helm": GoTool(
        name="helm",
        module="helm.sh/helm/v4",
        package="helm.sh/helm/v4/cmd/helm",
        version_variables=(("helm.sh/helm/v4/internal/version.version", "{version}"),),
        minutes=3,
        minimum=(3, 8, 0),  # the first version with OCI chart references switched on
        advice="install Helm (helm.sh/docs/intro/install) or Go 1.26 or later, and run this again",
    ),
    "kube-apiserver": GoTool(
        name="kube-apiserver",
        wrapper="kubernetes",
        module="k8s.io/kubernetes",
        package="k8s.io/kubernetes/cmd/kube-apiserver",
        version_variables=(
            ("k8s.io/component-base/version.gitMajor", "{numbers[0]}"),
            ("k8s.io/component-base/version.gitMinor", "{numbers[1]}"),
            ("k8s.io/component-base/version.gitVersion", "{version}"),
        ),
        version_argument="--version",
        minutes=5,
        minimum=(1, 30, 0),  # the oldest Kubernetes that HyperPod runs on
        advice="install Kubernetes' server binaries (kubernetes.io/releases/download) or Go 1.26 or later, and run this again",
    ),
    "etcd": GoTool(
        name="etcd",
        wrapper="kubernetes",  # the release that Kubernetes itself is built with
        module="go.etcd.io/etcd/server/v3",
        package="go.etcd.io/etcd/server/v3",
        version_argument="--version",
        minutes=1,
        minimum=(3, 4, 0),
        advice="install etcd (Debian: etcd-server) or Go 1.26 or later, and run this again",
    ),
    "pulumi-resource-kubernetes": GoTool(
        name="pulumi-resource-kubernetes",
        module="github.com/pulumi/pulumi-kubernetes/provider/v4",
        package="dpd-infra.local/tools/pulumi-resource-kubernetes",
        version_variables=(("main.version", "{version}"),),
        minutes=10,
        is_plugin=True,
        minimum=None,  # asking another build for its version would start its server
        advice="install Go 1.26 or later, and run this again",
    ),
}


def say(text: str) -> None:
    """One line of progress."""
    print(text, flush=True)


def numbers(version: str) -> tuple[int, ...]:
    """The first version in a text: its three numbers, and the time of a commit that has no version of its own."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)(?:-(\d{14}))?", version)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def version_of(command: str, argument: str = "version") -> tuple[int, ...]:
    """The version that `command` prints, or () where it prints none or does not start."""
    try:
        done = subprocess.run([command, argument], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return numbers(done.stdout)


def run(arguments: list[str], *, what: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    """Run a command that speaks for itself; raises `SetupError` naming what it was for."""
    done = subprocess.run(arguments, cwd=cwd, env={**os.environ, **(env or {})}, check=False)
    if done.returncode:
        raise SetupError(f"{what} failed: `{' '.join(arguments)}` ended with {done.returncode}")


def put_executable(content: bytes, target: Path) -> None:
    """Write an executable whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.replace(target)


# --- uv and the virtual environment


def install_uv() -> str:
    """The uv to use: the one on PATH, else the one that uv.lock pins, fetched once into `.tools/bin`."""
    on_path = shutil.which("uv")
    if on_path and version_of(on_path, "--version") >= MINIMUM_UV:
        return on_path
    pinned = locked_uv()
    ours = BIN / "uv"
    if not ours.exists() or version_of(str(ours), "--version") != numbers(pinned["version"]):
        say(f"Fetching uv {pinned['version']} into .tools/bin ...")
        with zipfile.ZipFile(io.BytesIO(fetch_wheel(pinned))) as wheel:
            put_executable(wheel.read(next(name for name in wheel.namelist() if name.endswith(".data/scripts/uv"))), ours)
    return str(ours)


def locked_uv() -> dict[str, Any]:
    """The entry of uv itself in uv.lock: its version, and address and hash of each wheel."""
    import tomllib  # noqa: PLC0415  (new in Python 3.11: an older one is told so by `main`)

    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    return next(package for package in lock["package"] if package["name"] == "uv")


def fetch_wheel(pinned: Mapping[str, Any]) -> bytes:
    """The wheel of uv for this machine, from pip's index or else from the address in the lock; its hash is one of the lock's."""
    hashes = {wheel["hash"] for wheel in pinned["wheels"]}
    reasons: list[str] = []
    for source in (from_pip, from_lock):
        try:
            content = source(pinned)
        except (OSError, SetupError) as error:
            reasons.append(str(error))
            continue
        if f"sha256:{hashlib.sha256(content).hexdigest()}" in hashes:
            return content
        reasons.append(f"the file {source.__name__.replace('_', ' ')} has none of the hashes in uv.lock")
    raise SetupError(f"uv could not be fetched ({'; '.join(reasons)}): install it (docs.astral.sh/uv) and run this again")


def from_pip(pinned: Mapping[str, Any]) -> bytes:
    """The wheel through pip, which knows the user's own index; a download, so a managed system Python allows it."""
    if importlib.util.find_spec("pip") is None:
        raise SetupError("this Python has no pip")
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, f"uv=={pinned['version']}"]
        done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SetupError(f"pip: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return next(Path(folder).glob("uv-*.whl")).read_bytes()


def from_lock(pinned: Mapping[str, Any]) -> bytes:
    """The wheel from its address in uv.lock."""
    libc = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    system = {"darwin": "macosx"}.get(sys.platform, libc)
    machine = platform.machine().lower()
    for wheel in pinned["wheels"]:
        name = unquote(wheel["url"].rsplit("/", 1)[-1])
        if system in name and f"_{machine}." in name:
            with urllib.request.urlopen(wheel["url"], timeout=60) as answer:  # noqa: S310  (an https address from our own lock)
                return answer.read()
    raise SetupError(f"uv has no wheel for {sys.platform} on {machine}")


def install_venv() -> None:
    """`.venv` as uv.lock says; from the user's own index if the environment names one."""
    uv = install_uv()
    say("Installing the locked Python packages into .venv ...")
    env = {"UV_PROJECT_ENVIRONMENT": str(VENV), "VIRTUAL_ENV": str(VENV)}
    if not any(os.environ.get(name) for name in INDEX_SETTINGS):
        run([uv, "sync", "--quiet", "--frozen"], what="uv sync", env=env)
        return
    # The lock holds an address for each file, and `uv sync --frozen` goes there whatever index is set: keep versions and hashes only.
    if os.environ.get("PIP_INDEX_URL") and not any(os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")):
        env["UV_DEFAULT_INDEX"] = os.environ["PIP_INDEX_URL"]
    with tempfile.TemporaryDirectory() as folder:
        requirements = str(Path(folder) / "requirements.txt")
        run([uv, "export", "--quiet", "--frozen", "--no-emit-project", "--output-file", requirements], what="uv export", env=env)
        if not VENV.exists():
            run([uv, "venv", "--quiet", str(VENV)], what="uv venv", env=env)
        run([uv, "pip", "sync", "--quiet", "--require-hashes", requirements], what="uv pip sync", env=env)
    run([uv, "pip", "install", "--quiet", "--no-deps", "--editable", str(ROOT)], what="uv pip install", env=env)


# --- what Go builds


def install_go_tool(tool: GoTool) -> None:
    """Make sure that the command is on PATH in a version that will do, or build the pinned one into `.tools/bin`."""
    ours = tool.built
    if ours.exists() and version_of(str(ours), tool.version_argument) == numbers(tool.pinned):
        return
    on_path = shutil.which(tool.name, path=os.pathsep.join(path_without_ours()))
    if tool.minimum and on_path and version_of(on_path, tool.version_argument) >= tool.minimum:
        ours.unlink(missing_ok=True)  # an outdated build of ours would hide the good one
        return
    go = shutil.which("go")
    if go is None:
        least = "".join((" ", ".".join(map(str, tool.minimum)), " or later on PATH")) if tool.minimum else ""
        raise SetupError(f"there is no {tool.name}{least}, and no Go to build it with: {tool.advice}")
    say(f"Building {tool.name} {tool.pinned} with Go into {ours.parent.relative_to(ROOT)}, once; about {tool.minutes} minutes ...")
    start = time.monotonic()
    part = ours.with_name(f"{tool.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    command = [go, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", tool.linker_flags, "-o", str(part), tool.package]
    watch_build(command, what=tool.name, cwd=tool.folder)
    part.replace(ours)
    say(f"Built {tool.name} {tool.pinned} in {time.monotonic() - start:.0f} s")


def watch_build(command: list[str], *, what: str, cwd: Path) -> None:
    """Run `go build -v` behind whatever else the machine does, with a line now and then; its errors and downloads are shown."""
    nice = shutil.which("nice")
    env = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    start = said = time.monotonic()
    packages = 0
    with subprocess.Popen([*((nice,) if nice else ()), *command], cwd=cwd, env=env, stderr=subprocess.PIPE, text=True) as build:
        for line in build.stderr or ():
            if re.fullmatch(r"[\w.~/-]+\n", line):
                packages += 1
            else:
                say(line.rstrip())
            if time.monotonic() - said >= SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                say(f"  {what}: {packages} packages compiled in {said - start:.0f} s ...")
    if build.returncode:
        raise SetupError(f"building {what} failed: `{' '.join(command)}` ended with {build.returncode}")


def path_without_ours() -> Iterator[str]:
    """The folders of PATH other than `.tools/bin`, which the Makefile puts first."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and Path(folder).resolve() != BIN:
            yield folder


STEPS: dict[str, Callable[[], object]] = {
    "uv": install_uv,
    "venv": install_venv,
    **{name: functools.partial(install_go_tool, tool) for name, tool in GO_TOOLS.items()},
}


def main(names: list[str]) -> int:
    """Do the named steps in order; one line and 1 at the first that cannot be done."""
    if sys.version_info < (3, 11):  # noqa: UP036  (this file runs before anything could have chosen the Python)
        print(f"Python 3.11 or later is needed; `python3` is {platform.python_version()}", file=sys.stderr)
        return 1
    unknown = [name for name in names if name not in STEPS]
    if unknown or not names:
        print(f"usage: install.py {' | '.join(STEPS)} ...", file=sys.stderr)
        return 2
    try:
        for name in names:
            STEPS[name]()
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
