"""The API server of these tests: it serves the operator's CRD, and is gone with the process that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kubernetes.api_server import NotStarted, api_server
from tests.kubernetes.client import Client
from tests.kubernetes.crd import crd

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys, time
from pathlib import Path
from tests.kubernetes.api_server import api_server
with api_server(*map(Path, sys.argv[1:4])) as connection:
    print(connection.url, flush=True)
    {then}
"""


def processes_in(folder: Path) -> list[str]:
    """Command lines that name the folder, from /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line and "etcd" in line:
            found.append(line)
    return found


def left_in(folder: Path) -> list[str]:
    """Those that stay: what watches a server ends by itself, a moment after it."""
    deadline = time.monotonic() + 30
    while (found := processes_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_the_crd_is_served_in_both_versions(client: Client) -> None:
    group = crd()["spec"]["group"]
    served = client.must("GET", f"/apis/{group}")
    assert [version["version"] for version in served["versions"]] == ["v1", "v1alpha1"]


def test_a_stranger_is_turned_away(client: Client) -> None:
    answer = client.request("GET", "/api/v1/namespaces", headers={"Authorization": "Bearer stranger"})
    assert answer.status == 401


@pytest.mark.parametrize("then", ["raise RuntimeError('a test failed')", "time.sleep(600)"])
def test_nothing_is_left_running_when_the_process_fails_or_is_killed(etcd: Path, kube_apiserver: Path, tmp_path: Path, then: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(then=then), str(etcd), str(kube_apiserver), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("https://127.0.0.1:")
        if "sleep" in then:
            assert len(processes_in(tmp_path)) > 2
            os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
    assert left_in(tmp_path) == []


def test_a_server_that_cannot_start_says_what_it_logged(etcd: Path, tmp_path: Path) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho 'no such flag'\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(NotStarted, match="no such flag"), api_server(etcd, broken, tmp_path):
        pass
    assert left_in(tmp_path) == []
