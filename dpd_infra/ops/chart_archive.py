"""A Helm chart as files in memory, and as an archive that is the same bytes on every machine.

What Helm packs differs at every run: it writes times, and a subchart that is there as a folder and as an archive is taken at random. Here
every subchart is a folder, once, entries are sorted, and there are no times and no owners.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from typing import Any

import yaml

Files = dict[str, bytes]
"""A chart: path within it -> content."""


class ChartError(Exception):
    """Why there is no archive, in one line a person can act on."""


@dataclass(frozen=True, slots=True)
class Subchart:
    """One dependency as the archive holds it."""

    name: str
    version: str
    repository: str
    """Where it came from: an address, `file://` for a folder of the revision, or nothing for one that is simply there."""


def read_tar(content: bytes) -> Files:
    """The regular files of a tar archive, links followed within it. Raises `ChartError` for one that is broken or leaves its folder."""
    files: Files = {}
    try:
        # Unpacked first and whole: tarfile takes the end of a download that broke off for the end of the archive.
        plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                if member.isdir() or not (member.isfile() or member.issym() or member.islnk()):
                    continue
                path = normpath(member.name)
                if path.startswith(("/", "../")):
                    raise ChartError(f"the archive leaves its folder: {member.name}")
                extracted = archive.extractfile(member)
                if extracted is not None:
                    files[path] = extracted.read()
    except (tarfile.TarError, KeyError, EOFError, OSError, zlib.error) as error:
        raise ChartError(f"not a chart archive: {error}") from None
    return files


def within(files: Files, folder: str) -> Files:
    """The files below a folder, by their path in it."""
    return {path.removeprefix(f"{folder}/"): content for path, content in files.items() if path.startswith(f"{folder}/")}


def placed(files: Files, folder: str) -> Files:
    """The files as they are called from outside `folder`."""
    return {f"{folder}/{path}": content for path, content in files.items()}


def unwrapped(files: Files) -> Files:
    """A chart archive's files without the one folder that holds them all. Raises `ChartError`."""
    folders = {path.split("/", maxsplit=1)[0] for path in files}
    if len(folders) != 1 or f"{next(iter(folders))}/Chart.yaml" not in files:
        raise ChartError("not a chart archive: no Chart.yaml in one folder that holds everything")
    return within(files, folders.pop())


def metadata(chart: Files) -> Mapping[str, Any]:
    """What a chart's Chart.yaml says. Raises `ChartError` without a name and a version."""
    try:
        said = yaml.safe_load(chart["Chart.yaml"])
    except yaml.YAMLError as error:
        raise ChartError(f"Chart.yaml is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(said, dict) or not said.get("name") or not said.get("version"):
        raise ChartError("Chart.yaml has no name and version")
    return said


def dependencies(chart: Files) -> tuple[Subchart, ...]:
    """The subcharts that a chart's Chart.yaml names. Raises `ChartError`."""
    try:
        return tuple(
            Subchart(entry["name"], str(entry["version"]), entry.get("repository") or "")
            for entry in metadata(chart).get("dependencies") or ()
        )
    except (KeyError, TypeError, AttributeError):
        raise ChartError("Chart.yaml has a dependency without name and version") from None


def subcharts(chart: Files) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each folder of `charts/` that holds a chart, with what its Chart.yaml says."""
    for path in chart:
        if found := re.fullmatch(r"(charts/[^/]+)/Chart\.yaml", path):
            yield found.group(1), metadata({"Chart.yaml": chart[path]})


def packed(chart: Files) -> bytes:
    """A gzipped tar of the chart, which depends on nothing but its files.

    The tar has sorted names, one mode, and no times or owners. The gzip stores instead of compressing, because what a compressor makes of
    the same bytes differs between its versions.
    """
    name = metadata(chart)["name"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(chart):
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(chart[path])
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(chart[path]))
    return _stored_gzip(buffer.getvalue())


def _stored_gzip(data: bytes) -> bytes:
    """RFC 1952 around RFC 1951's stored blocks: no name, no time, unknown system."""
    most = 0xFFFF
    parts = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"]
    for start in range(0, len(data), most):
        block = data[start : start + most]
        parts += [struct.pack("<BHH", start + most >= len(data), len(block), len(block) ^ most), block]
    return b"".join([*parts, struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)])


def verified(content: bytes) -> tuple[str, str, tuple[Subchart, ...]]:
    """Name, version and subcharts of a packed chart. Raises `ChartError` where it does not hold what its Chart.yaml depends on."""
    chart = unwrapped(read_tar(content))
    said = metadata(chart)
    held = [(str(subchart["name"]), str(subchart["version"])) for _, subchart in subcharts(chart)]
    found: list[Subchart] = []
    for wanted in dependencies(chart):
        version = next((version for name, version in held if name == wanted.name and _satisfies(version, wanted.version)), None)
        if version is None:
            there = ", ".join(f"{name} {version}" for name, version in held if name == wanted.name) or "none of that name"
            raise ChartError(f"the chart depends on {wanted.name} {wanted.version} and holds {there}")
        found.append(Subchart(wanted.name, version, wanted.repository))
    return str(said["name"]), str(said["version"]), tuple(found)


def _satisfies(version: str, wanted: str) -> bool:
    """Whether a version is the one wanted; a range (`~1.2`, `>=1`) was Helm's to resolve, so any version does."""
    exact = re.fullmatch(r"=?\s*v?(\d+\.\d+\.\d+\S*)", wanted)
    return exact is None or version.removeprefix("v") == exact.group(1)


def write_archive(target: Path, content: bytes, *, force: bool) -> bool:
    """Put an archive in its place whole or not at all; False where it was there already. Raises `ChartError`."""
    try:
        if target.exists():
            if target.read_bytes() == content:
                return False
            if not force:
                raise ChartError(f"{target} is there with other content: --force replaces it")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".chart-", delete=False) as part:
            try:
                part.write(content)
                part.close()
                Path(part.name).chmod(0o644)
                Path(part.name).replace(target)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise ChartError(f"cannot write {target}: {error.strerror or error}") from None
    return True
