"""etcd and kube-apiserver on loopback: started with data, keys and a token of their own, and gone when the test process is."""

from __future__ import annotations

import secrets
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import urllib3

START_SECONDS = 60
ATTEMPTS = 3
"""A port that was free may be taken by another process before the server has it."""

_UNTIL_PARENT_ENDS = '"$@" & child=$!; exec 3<&0; (cat <&3 >/dev/null; kill -KILL "$child" 2>/dev/null) & wait "$child"'
"""Run a command until standard input ends: a test process that is killed closes it too. There is nothing to be saved, and an API server
that is asked politely waits a minute for a store that has gone."""


@dataclass(frozen=True)
class Connection:
    """Where the API server is and how it is talked to."""

    url: str
    token: str
    """Of a user in `system:masters`, for whom nothing is forbidden."""
    authority: Path
    """The certificates to trust, PEM."""

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig, as text."""
        return f"""\
apiVersion: v1
kind: Config
current-context: tests
clusters:
  - {{name: tests, cluster: {{server: "{self.url}", certificate-authority: "{self.authority}"}}}}
users:
  - {{name: tests, user: {{token: "{self.token}"}}}}
contexts:
  - {{name: tests, context: {{cluster: tests, user: tests}}}}
"""


class NotStarted(Exception):
    """A server ended, or did not answer in time; with the end of what it logged."""


@contextmanager
def api_server(etcd: Path, kube_apiserver: Path, folder: Path) -> Iterator[Connection]:
    """A Kubernetes API without anything behind it: no controllers, no nodes. Raises `NotStarted`."""
    for attempt in range(1, ATTEMPTS + 1):
        with ExitStack() as running:
            try:
                connection = _start(etcd, kube_apiserver, folder / str(attempt), running)
            except NotStarted:
                if attempt == ATTEMPTS:
                    raise
                continue
            yield connection
            return


def _start(etcd: Path, kube_apiserver: Path, folder: Path, running: ExitStack) -> Connection:
    folder.mkdir(parents=True, mode=0o700)
    client_port, peer_port, port = _free_ports(3)
    store = f"http://127.0.0.1:{client_port}"
    peer = f"http://127.0.0.1:{peer_port}"
    token = secrets.token_hex(16)
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f"{token},tests,tests,system:masters\n", encoding="utf-8")
    certificates = folder / "certificates"
    # Its own serving key also signs service accounts' tokens: one key less to make.
    key = certificates / "apiserver.key"
    _run(
        running,
        folder / "etcd.log",
        [
            str(etcd),
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ],
    )
    server = _run(
        running,
        folder / "kube-apiserver.log",
        [
            str(kube_apiserver),
            f"--etcd-servers={store}",
            f"--cert-dir={certificates}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # No controller makes the service account that this would demand of every pod.
            "--disable-admission-plugins=ServiceAccount",
            # Every request comes from the tests: none is to wait for the others.
            "--enable-priority-and-fairness=false",
        ],
    )
    connection = Connection(f"https://127.0.0.1:{port}", token, certificates / "apiserver.crt")
    _wait(connection, server, folder)
    return connection


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _run(running: ExitStack, log: Path, command: list[str]) -> subprocess.Popen[bytes]:
    output: IO[bytes] = running.enter_context(log.open("wb"))
    shell = shutil.which("sh") or "/bin/sh"
    arguments = [shell, "-c", _UNTIL_PARENT_ENDS, "sh", *command]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent)
    running.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait(timeout=START_SECONDS)


def _wait(connection: Connection, server: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if connection.authority.exists() and _is_ready(connection):
            return
        time.sleep(0.1)
    logs = [folder / name for name in ("etcd.log", "kube-apiserver.log")]
    ends = [f"{log.name}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-5:]) for log in logs]
    raise NotStarted("the Kubernetes API did not start\n" + "\n".join(ends))


def _is_ready(connection: Connection) -> bool:
    try:
        with urllib3.PoolManager(ca_certs=str(connection.authority), retries=False, timeout=5) as pool:
            return pool.request("GET", f"{connection.url}/readyz", headers={"Authorization": f"Bearer {connection.token}"}).status == 200
    except (urllib3.exceptions.HTTPError, ssl.SSLError, OSError):
        return False
