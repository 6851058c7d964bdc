"""A stand-in for the repository of HyperPod's chart, and for the chart repository that some of its subcharts come from."""

from __future__ import annotations

import io
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

CHART = "helm_chart/HyperPodHelmChart"


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


def subchart(name: str, version: str, marker: str | None = None) -> dict[str, str]:
    """A chart of one ConfigMap, by which a rendering shows that it was there."""
    return {
        "Chart.yaml": yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version}),
        "templates/marker.yaml": config_map(marker or f"{name}-{version}"),
    }


def under(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{path}": content for path, content in files.items()}


def parent(*dependencies: Mapping[str, str]) -> dict[str, str]:
    metadata = {"apiVersion": "v2", "name": "hyperpod-helm-chart", "version": "0.1.0", "dependencies": [*map(dict, dependencies)]}
    return under(
        CHART, {"Chart.yaml": yaml.safe_dump(metadata, sort_keys=False), "values.yaml": "{}\n", "templates/own.yaml": config_map("own")}
    )


def tgz(files: Mapping[str, str], folder: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return buffer.getvalue()


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """Make these files the whole tree of a repository; the new revision."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet")
    git(folder, "rm", "-rfq", "--ignore-unmatch", ".")
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "chart")
    return git(folder, "rev-parse", "HEAD")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        del format, args


@contextmanager
def served(folder: Path, *charts: Mapping[str, str]) -> Iterator[str]:
    """A chart repository on this machine with these charts; its address."""
    folder.mkdir(parents=True)
    entries: dict[str, list[dict[str, object]]] = {}
    for chart in charts:
        metadata = yaml.safe_load(chart["Chart.yaml"])
        archive = f"{metadata['name']}-{metadata['version']}.tgz"
        (folder / archive).write_bytes(tgz(chart, metadata["name"]))
        entries.setdefault(metadata["name"], []).append({**metadata, "urls": [archive]})
    (folder / "index.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "entries": entries}))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
