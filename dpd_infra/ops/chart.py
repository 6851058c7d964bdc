"""Packing HyperPod's dependencies chart: from a pinned revision of its repository to one archive with every subchart in it.

The chart is in no chart repository. Its subcharts come from folders of the revision, from chart repositories, and from an OCI registry.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

from dpd_infra.ops.chart_archive import (
    ChartError,
    Files,
    Subchart,
    dependencies,
    packed,
    placed,
    read_tar,
    subcharts,
    unwrapped,
    verified,
    within,
    write_archive,
)
from dpd_infra.plan.project import current_project

REPOSITORY = "https://github.com/aws/sagemaker-hyperpod-cli"
"""Where AWS keeps the chart."""
CHART_FOLDER = "helm_chart/HyperPodHelmChart"
"""The chart within the repository, by AWS's instructions for installing it."""
HELM_ADVICE = "install Helm (helm.sh/docs/intro/install), or run `make helm` where Go is installed"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PackedChart:
    """The archive that was made, or was there already."""

    path: Path
    revision: str
    name: str
    version: str
    sha256: str
    subcharts: tuple[Subchart, ...]
    changed: bool
    """False where the same bytes were there already."""


def fetch_chart(
    revision: str,
    target: Path,
    *,
    repository: str = REPOSITORY,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> PackedChart:
    """Pack the chart of one revision (40 hex digits) into `target`, which appears whole or not at all.

    `repository` is an address or a folder that git can fetch from. Needs git, and Helm where a subchart is in a chart repository.
    Raises `ChartError`: no git or Helm, no network, no such revision, a chart that is not complete, or a `target` with other content and
    no `force`.
    """
    progress(f"Fetching {revision[:12]} from {repository}")
    tree = read_revision(repository, revision)
    chart = vendored(tree, CHART_FOLDER, progress)
    content = packed(chart)
    name, version, held = verified(content)
    changed = write_archive(target, content, force=force)
    progress(f"{'Packed' if changed else 'Unchanged:'} {target}")
    digest = hashlib.sha256(content).hexdigest()
    return PackedChart(target, revision, name, version, digest, held, changed)


# --- from a repository


def read_revision(repository: str, revision: str) -> Files:
    """Every file under the chart's parent folder at one revision of a git repository. Raises `ChartError`."""
    source = str(Path(repository).resolve()) if Path(repository).exists() else repository
    with tempfile.TemporaryDirectory(prefix="dpd-chart-") as folder:
        _git(folder, "init", "--quiet")
        try:
            _git(folder, "fetch", "--quiet", "--depth", "1", "--no-tags", source, revision)
        except ChartError as error:
            message = f"cannot fetch {revision} from {repository}: {error}; check the network, or name a copy with --repository"
            raise ChartError(message) from None
        try:
            _git(folder, "cat-file", "-e", f"{revision}:{CHART_FOLDER}/Chart.yaml")
        except ChartError:
            raise ChartError(f"{repository} has no chart in {CHART_FOLDER} at {revision}") from None
        # Whatever this machine's git makes of line endings, the files are the revision's own.
        options = ("-c", "core.autocrlf=false", "-c", "core.eol=lf")
        return read_tar(_git(folder, *options, "archive", "--format=tar", revision, CHART_FOLDER.split("/", maxsplit=1)[0]))


def _git(folder: str, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            env={**_without_git_hook(os.environ), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise ChartError("git is not installed") from None
    if done.returncode:
        raise ChartError(_last_line(done.stderr, "git"))
    return done.stdout


def _without_git_hook(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what git tells its hooks, which would send every command here to the hook's repository."""
    told = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}
    return {name: value for name, value in environment.items() if name not in told}


def _last_line(output: bytes, command: str) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    told = [line for line in lines if line.lower().startswith(("fatal:", "error:"))] or lines
    return told[-1] if told else f"{command} failed without a message"


# --- its subcharts


def vendored(tree: Files, folder: str, progress: Progress) -> Files:
    """The chart in `folder` of `tree`, with each subchart that it names there once, as a folder of `charts/`. Raises `ChartError`."""
    chart: Files = {}
    for path, content in within(tree, folder).items():
        place = re.fullmatch(r"(charts/[^/]+)\.tgz", path)
        chart.update(placed(unwrapped(read_tar(content)), place.group(1)) if place else {path: content})
    fresh: Files = {}
    named: set[str] = set()
    for dependency in dependencies(chart):
        if not dependency.repository:
            continue  # it is in `charts/` of the revision, or else `verified` says so
        if dependency.repository.startswith("file://"):
            place = normpath(f"{folder}/{dependency.repository.removeprefix('file://')}")
            subchart = within(tree, place)
            if "Chart.yaml" not in subchart:
                raise ChartError(f"the revision has no chart in {place}, from where {dependency.name} comes")
        else:
            progress(f"Fetching {dependency.name} {dependency.version} from {dependency.repository}")
            subchart = pull(dependency)
        named.add(dependency.name)
        place = f"charts/{dependency.name}"
        fresh.update(placed(subchart, place if f"{place}/Chart.yaml" not in fresh else f"{place}-{dependency.version}"))
    stale = tuple(f"{place}/" for place, subchart in subcharts(chart) if subchart["name"] in named)
    return {path: content for path, content in chart.items() if not path.startswith(stale)} | fresh


def pull(dependency: Subchart) -> Files:
    """A subchart from its chart repository or OCI registry, through Helm. Raises `ChartError`."""
    helm = shutil.which("helm") or shutil.which("helm", path=str(current_project().root / ".tools" / "bin"))
    if helm is None:
        raise ChartError(f"{dependency.name} is in a chart repository, and Helm is not installed: {HELM_ADVICE}")
    if dependency.repository.startswith("oci://"):
        chart = (f"{dependency.repository.rstrip('/')}/{dependency.name}",)
    else:
        chart = (dependency.name, "--repo", dependency.repository)
    with tempfile.TemporaryDirectory(prefix="dpd-chart-") as folder:
        done = subprocess.run(
            [helm, "pull", *chart, "--version", dependency.version, "--destination", folder],
            env={**os.environ, "HELM_CACHE_HOME": f"{folder}/cache"},  # an index of last month would hide a new version
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            told = _last_line(done.stderr, "helm")
            raise ChartError(f"cannot fetch {dependency.name} {dependency.version} from {dependency.repository}: {told}")
        return unwrapped(read_tar(next(Path(folder).glob("*.tgz")).read_bytes()))
